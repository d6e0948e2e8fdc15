# Fails when a file of one leaf includes what only another part may use. ROOT is the source tree.
#
# Installed headers of every dependency are found from everywhere, so the compiler does not notice.
cmake_minimum_required(VERSION 3.25)

set(forbidden_rdma "^(mpi\\.h|hwloc|boost/|nlohmann/|rdma_read/(verify|cluster|app)/|(verify|cluster|app)/)")
set(forbidden_verify "^(mpi\\.h|hwloc|rdma/|infiniband/|rdma_read/(rdma|cluster|app)/|(cluster|app)/)")
set(forbidden_cluster "^(hwloc|rdma/|infiniband/|boost/|nlohmann/|rdma_read/(rdma|verify|app)/|(verify|app)/)")

set(violations "")
foreach(leaf IN ITEMS rdma verify cluster)
  file(GLOB_RECURSE files "${ROOT}/include/rdma_read/${leaf}/*" "${ROOT}/src/${leaf}/*")
  list(FILTER files INCLUDE REGEX "\\.(hpp|cpp|h)$")
  if(NOT files)
    message(FATAL_ERROR "include_direction: no file of the leaf ${leaf} in ${ROOT}")
  endif()
  foreach(file IN LISTS files)
    file(STRINGS "${file}" lines REGEX "^[ \t]*#[ \t]*include[ \t]*[<\"]")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"]*)[>\"].*$" "\\1" header "${line}")
      # The rdma leaf's own internal headers have the same first folder as the system's <rdma/...>.
      if(header MATCHES "${forbidden_${leaf}}")
        string(APPEND violations "  ${file}: ${header}\n")
      endif()
    endforeach()
  endforeach()
endforeach()
if(violations)
  message(FATAL_ERROR "include_direction: these includes cross from one leaf to another:\n${violations}")
endif()
