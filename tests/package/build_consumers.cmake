# Installs the package into a folder and builds the consumer against each of its libraries alone, with what the other
# libraries need hidden from it: cmake -DBUILD=dir -DSOURCE=dir -DWORK=dir -DCOMPILER=file -DFLAGS=text -P …
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "status ${status}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/installed")
foreach(file IN ITEMS bin/rdma_read_mpi bin/rdma_read include/rdma_read/verify/pattern.hpp
                      share/man/man1/rdma_read_mpi.1 share/man/man1/rdma_read.1
                      share/bash-completion/completions/rdma_read_mpi share/bash-completion/completions/rdma_read
                      share/rdma_read/rdma_read_mpi.sbatch share/rdma_read/verify_before.sh
                      share/rdma_read/drain_bad_nodes.sh share/rdma_read/health_check.sh)
  if(NOT EXISTS "${WORK}/installed/${file}")
    message(FATAL_ERROR "${file} is not installed")
  endif()
endforeach()

set(hidden_from_rdma Boost MPI)
set(hidden_from_verify MPI PkgConfig)
set(hidden_from_cluster Boost PkgConfig)
foreach(leaf IN ITEMS rdma verify cluster)
  set(hide ${hidden_from_${leaf}})
  list(TRANSFORM hide PREPEND -DCMAKE_DISABLE_FIND_PACKAGE_)
  list(TRANSFORM hide APPEND =ON)
  run("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/${leaf}" "-DLEAF=${leaf}" "-DCMAKE_PREFIX_PATH=${WORK}/installed"
      "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_FLAGS=${FLAGS}" ${hide})
  run("${CMAKE_COMMAND}" --build "${WORK}/${leaf}")
endforeach()
run("${WORK}/verify/use_verify")

# A component that does not exist is an error, not silence.
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/none" -DLEAF=none
                        "-DCMAKE_PREFIX_PATH=${WORK}/installed" "-DCMAKE_CXX_COMPILER=${COMPILER}"
                RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE error)
if(status EQUAL 0 OR NOT error MATCHES "rdma_read has no component none")
  message(FATAL_ERROR "the component none was found")
endif()
