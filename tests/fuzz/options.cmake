# How a tree with fuzzers is built: cmake -C tests/fuzz/options.cmake. Unit tests in it run under the same sanitizers.
set(CMAKE_CXX_COMPILER clang++ CACHE STRING "Compiler, whose libFuzzer the fuzzers are linked with")
set(CMAKE_BUILD_TYPE None CACHE STRING "Build type")
set(CMAKE_CXX_FLAGS "-O1 -g1" CACHE STRING "Compiler options")
set(RDMA_READ_SANITIZE fuzzer-no-link,address,undefined CACHE STRING "Sanitizers to build with")
