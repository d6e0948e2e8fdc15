# Installs the programs with what belongs to them, and the three libraries as the package rdma_read, each leaf usable
# without the others. Two components: rdma_read for users, rdma_read_dev for other projects.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rdma_read")

# ---- for users

install(TARGETS rdma_read_mpi rdma_read
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT rdma_read)

# The newest entry of the changelog names the version, and the day of the manual pages.
file(STRINGS "${PROJECT_SOURCE_DIR}/src/debian/changelog" changelog REGEX "^(rdma-read| --) " LIMIT_COUNT 2)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/debian/changelog")
if(NOT changelog MATCHES "^rdma-read \\(([^)-]+)-([^)-]+)\\).*, 0?([0-9]+) ([A-Z][a-z][a-z]) ([0-9]+) ")
  message(FATAL_ERROR "src/debian/changelog: the newest entry has no version or no date")
endif()
if(NOT CMAKE_MATCH_1 STREQUAL PROJECT_VERSION)
  message(FATAL_ERROR "src/debian/changelog: the newest entry is for ${CMAKE_MATCH_1}, not for ${PROJECT_VERSION}")
endif()
set(RDMA_READ_PACKAGE_RELEASE "${CMAKE_MATCH_2}")
set(month_Jan January)
set(month_Feb February)
set(month_Mar March)
set(month_Apr April)
set(month_May May)
set(month_Jun June)
set(month_Jul July)
set(month_Aug August)
set(month_Sep September)
set(month_Oct October)
set(month_Nov November)
set(month_Dec December)
set(RDMA_READ_MAN_DATE "${month_${CMAKE_MATCH_4}} ${CMAKE_MATCH_3}, ${CMAKE_MATCH_5}")

foreach(program IN ITEMS rdma_read_mpi rdma_read)
  configure_file("${CMAKE_CURRENT_LIST_DIR}/man/${program}.1.in" "${PROJECT_BINARY_DIR}/man/${program}.1" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/man/${program}.1"
    DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT rdma_read)
  install(FILES "${CMAKE_CURRENT_LIST_DIR}/completion/${program}.bash" RENAME "${program}"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" COMPONENT rdma_read)
endforeach()
# They look for the programs in ../../bin, among others.
set(scripts rdma_read_mpi.sbatch verify_before.sh drain_bad_nodes.sh health_check.sh)
list(TRANSFORM scripts PREPEND "${PROJECT_SOURCE_DIR}/job-scripts/")
install(PROGRAMS ${scripts} DESTINATION "${CMAKE_INSTALL_DATADIR}/rdma_read" COMPONENT rdma_read)

# ---- for other projects

# One file of targets a leaf: the one that a user does not ask for asks for nothing either.
foreach(leaf IN ITEMS rdma verify cluster)
  install(TARGETS rdma_read_${leaf} EXPORT rdma_read_${leaf}
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT rdma_read_dev
    FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT rdma_read_dev)
  install(EXPORT rdma_read_${leaf} NAMESPACE rdma_read:: FILE rdma_read_${leaf}.cmake
    DESTINATION "${package_dir}" COMPONENT rdma_read_dev)
endforeach()
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/rdma_read-config.cmake.in"
  "${PROJECT_BINARY_DIR}/rdma_read-config.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/rdma_read-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/rdma_read-config.cmake"
  "${PROJECT_BINARY_DIR}/rdma_read-config-version.cmake"
  DESTINATION "${package_dir}" COMPONENT rdma_read_dev)
