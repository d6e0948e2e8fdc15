# Installs the programs and the three libraries as the package rdma_read, each leaf usable without the others.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rdma_read")

install(TARGETS rdma_read_mpi rdma_read RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
# One file of targets a leaf: the one that a user does not ask for asks for nothing either.
foreach(leaf IN ITEMS rdma verify cluster)
  install(TARGETS rdma_read_${leaf} EXPORT rdma_read_${leaf}
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT rdma_read_${leaf} NAMESPACE rdma_read:: FILE rdma_read_${leaf}.cmake
    DESTINATION "${package_dir}")
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/job-scripts/rdma_read_mpi.sbatch"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/rdma_read")

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/rdma_read-config.cmake.in"
  "${PROJECT_BINARY_DIR}/rdma_read-config.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/rdma_read-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/rdma_read-config.cmake"
  "${PROJECT_BINARY_DIR}/rdma_read-config-version.cmake" DESTINATION "${package_dir}")
