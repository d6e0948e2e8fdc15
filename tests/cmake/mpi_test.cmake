# rdma_read_add_mpi_test: runs a program under mpirun, once for each number of ranks.
set(RDMA_READ_EXPECT_COMMAND "${CMAKE_CURRENT_LIST_DIR}/expect_command.cmake")

# rdma_read_add_mpi_test(
#   NAME name            the tests are name.np1, name.np2, …
#   TARGET target        the program; or, for an MPMD start:
#   COMMAND word…        what follows "mpirun … -np N"
#   RANKS n…             one test for each
#   [ARGUMENTS word…]    for the program
#   [EXIT_CODE n]        expected of mpirun; default 0
#   [OUTPUT regex…]      each must match stdout and stderr together
#   [NO_OUTPUT regex…]   none may
#   [TIMEOUT seconds])   default 60
function(rdma_read_add_mpi_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TARGET;EXIT_CODE;TIMEOUT"
                        "RANKS;ARGUMENTS;COMMAND;OUTPUT;NO_OUTPUT")
  if(NOT DEFINED arg_EXIT_CODE)
    set(arg_EXIT_CODE 0)
  endif()
  if(NOT DEFINED arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(arg_TARGET)
    set(arg_COMMAND "$<TARGET_FILE:${arg_TARGET}>" ${arg_ARGUMENTS})
  endif()
  foreach(ranks IN LISTS arg_RANKS)
    set(name "${arg_NAME}.np${ranks}")
    add_test(NAME "${name}"
      COMMAND "${CMAKE_COMMAND}"
              "-DEXIT_CODE=${arg_EXIT_CODE}" "-DOUTPUT=${arg_OUTPUT}" "-DNO_OUTPUT=${arg_NO_OUTPUT}"
              -P "${RDMA_READ_EXPECT_COMMAND}" --
              "${MPIEXEC_EXECUTABLE}" ${MPIEXEC_PREFLAGS} --oversubscribe
              "${MPIEXEC_NUMPROC_FLAG}" ${ranks} ${arg_COMMAND})
    # mpirun refuses to run as root without these two.
    set_tests_properties("${name}" PROPERTIES
      LABELS mpi
      PROCESSORS ${ranks}
      TIMEOUT ${arg_TIMEOUT}
      ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
  endforeach()
endfunction()
