// Says its name and rank if it is the process that speaks for its program. Never initialises MPI.
#include "rdma_read/cluster/launch_environment.hpp"

#include <cstdio>

int main(int argc, char** argv) {
    const auto environment = rdma_read::cluster::LaunchEnvironment::from_environment();
    if (environment.speaks) {
        std::printf("speaks: %s %d\n", argc > 1 ? argv[1] : "?", environment.rank.value_or(-1));
    }
    return 0;
}
