# Run by CPack between installation and packaging: adds to each package what Debian wants to be in it.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Compresses a file so that the same file gives the same bytes.
function(compress file)
  run(gzip -9nf "${file}")
  file(CHMOD "${file}.gz" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endfunction()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER "${component}" upper)
  set(root "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX}")
  set(doc "${root}/share/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")

  configure_file("${CMAKE_CURRENT_LIST_DIR}/changelog" "${doc}/changelog.Debian" COPYONLY)
  compress("${doc}/changelog.Debian")
  file(READ "${CMAKE_CURRENT_LIST_DIR}/copyright" copyright)
  foreach(package IN ITEMS libcli11-dev nlohmann-json3-dev libboost-serialization-dev libfmt-dev libhwloc-dev)
    file(GLOB notice "/usr/share/doc/${package}/copyright")
    if(notice)
      file(READ "${notice}" text)
      string(APPEND copyright "\n---- ${package}\n\n${text}")
    endif()
  endforeach()
  # The programs contain what their headers define, whose notices have to go with them.
  file(WRITE "${doc}/copyright" "${copyright}")
  file(CHMOD "${doc}/copyright" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)

  file(GLOB pages "${root}/share/man/man*/*.[0-9]")
  foreach(page IN LISTS pages)
    compress("${page}")
  endforeach()
  # CPack strips programs, but not archives.
  file(GLOB_RECURSE archives "${root}/lib/*.a")
  foreach(archive IN LISTS archives)
    run("${CPACK_RDMA_READ_STRIP}" --strip-debug --enable-deterministic-archives
        --remove-section=.comment --remove-section=.note "${archive}")
  endforeach()
  # The umask of whoever builds decides nothing.
  file(CHMOD_RECURSE "${root}" DIRECTORY_PERMISSIONS
       OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endforeach()
