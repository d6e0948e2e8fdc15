// rdma_read_mpi with a faulty reader in the place of its own: faulty_reader FAULT [options].
//   never-connects   does nothing for ever
//   dies             is killed when its turn comes
#include "app/roles.hpp"
#include "app/star.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: faulty_reader FAULT [rdma_read_mpi options]\n", stderr);
        return 2;
    }
    const std::string fault = argv[1];
    rdma_read::app::Roles roles = rdma_read::app::real_roles();
    roles.read = [&](const rdma_read::app::ReaderTask&) -> rdma_read::verify::Result {
        if (fault == "dies") {
            kill(getpid(), SIGKILL);
        }
        for (;;) {
            pause();
        }
    };
    return rdma_read::app::rdma_read_mpi_main(argc - 1, argv + 1, roles);
}
