// rdma_read_mpi with a faulty reader in the place of its own: faulty_reader FAULT [options].
//   never-connects   does nothing for ever
//   dies             is killed when its turn comes
//   misses           looks at no data and takes every read for right
#include "app/buffer_reader.hpp"
#include "app/roles.hpp"
#include "app/star.hpp"
#include "rdma_read/verify/pattern.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

namespace {

// What the check of a reader that misses puts into the place of what it should look at.
const rdma_read::app::ReaderTask* task_of_the_blind = nullptr;

bool take_for_right(rdma_read::verify::Checker& checker, std::uint32_t slot) {
    const auto& server = task_of_the_blind->announcement;
    const auto landed = checker.landed(slot);
    rdma_read::verify::Pattern(server.run, static_cast<std::uint32_t>(server.server_rank))
        .fill(landed.destination, landed.remote_offset);
    return checker.finished(slot);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: faulty_reader FAULT [rdma_read_mpi options]\n", stderr);
        return 2;
    }
    const std::string fault = argv[1];
    rdma_read::app::Roles roles = rdma_read::app::real_roles();
    roles.read = [&](const rdma_read::app::ReaderTask& task) -> rdma_read::verify::Result {
        if (fault == "misses") {
            task_of_the_blind = &task;
            return rdma_read::app::read_buffer(task, take_for_right);
        }
        if (fault == "dies") {
            kill(getpid(), SIGKILL);
        }
        for (;;) {
            pause();
        }
    };
    return rdma_read::app::rdma_read_mpi_main(argc - 1, argv + 1, roles);
}
