# Runs what follows "--" and fails unless its exit code and its output are as expected:
# cmake -DEXIT_CODE=n "-DOUTPUT=regex;…" "-DNO_OUTPUT=regex;…" -P expect_command.cmake -- command…
set(command)
set(is_command FALSE)
foreach(i RANGE ${CMAKE_ARGC})
  if(is_command AND DEFINED CMAKE_ARGV${i})
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif("${CMAKE_ARGV${i}}" STREQUAL "--")
    set(is_command TRUE)
  endif()
endforeach()

execute_process(COMMAND ${command}
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE code
  ECHO_OUTPUT_VARIABLE ECHO_ERROR_VARIABLE)

if(NOT code STREQUAL EXIT_CODE)
  message(FATAL_ERROR "exit code ${code}, expected ${EXIT_CODE}")
endif()
foreach(regex IN LISTS OUTPUT)
  if(NOT output MATCHES "${regex}")
    message(FATAL_ERROR "the output has nothing that matches: ${regex}")
  endif()
endforeach()
foreach(regex IN LISTS NO_OUTPUT)
  if(output MATCHES "${regex}")
    message(FATAL_ERROR "the output has what it must not have: ${CMAKE_MATCH_0}")
  endif()
endforeach()
