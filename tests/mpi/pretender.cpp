// rdma_read_mpi whose parts only pretend, where there is no device: pretender PART [options]. Every
// rank may have another PART:
//   passes    reads all at once, and rightly
//   reads     says "rank N reads" on stderr, and reads until it is told to stop
//   unready   the server says "rank N prepares" on stderr, and never is ready
//   late      passes; the server is told to stop when every reader has reported
//   ends:N    a reader that ends itself by signal N
//   held:FILE passes, but says "held" on stderr behind MPI_Init and goes on when there is the file
// The environment's PRETENDER_PATIENCE is how many seconds the ranks have to come together.
#include "app/star.hpp"

#include <mpi.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

namespace rdma_read::app {
namespace {

void tell(int rank, const char* what) {
    std::fprintf(stderr, "rank %d %s\n", rank, what);
}

[[noreturn]] void do_nothing() {
    for (;;) {
        pause();
    }
}

class PretendedServer : public Server {
  public:
    PretendedServer(const ServerTask& task, bool late) : late_(late) {
        announcement_.usable = true;
        announcement_.run = task.run;
        announcement_.server.address = "192.0.2.1";
        announcement_.server.host = task.host;
    }
    [[nodiscard]] verify::Announcement announcement() const override { return announcement_; }
    [[nodiscard]] verify::ServerInfo finish() override {
        if (late_) {
            raise(SIGTERM);
        }
        return announcement_.server;
    }

  private:
    verify::Announcement announcement_;
    bool late_;
};

verify::Result read_as(const std::string& part, const ReaderTask& task) {
    verify::Result result;
    result.server_rank = task.options.server;
    result.server_host = task.announcement.server.host;
    result.reader_rank = task.rank;
    result.reader_host = task.host;
    if (part.starts_with("ends:")) {
        raise(std::stoi(part.substr(part.find(':') + 1)));
    }
    if (part == "reads") {
        tell(task.rank, "reads");
        pollfd stop{task.stop.fd, POLLIN, 0};
        while (!task.stop.flag->load()) {
            poll(&stop, 1, -1);
        }
        result.phase = "read";
        result.error = "stopped while reading";
        return result;
    }
    for (const std::uint64_t size : task.options.sizes) {
        verify::SizeResult& of_size = result.sizes.emplace_back();
        of_size.size = size;
        of_size.reads = task.options.iterations;
        of_size.bytes_read = of_size.bytes_verified = size * of_size.reads;
        of_size.guard_intact = true;
    }
    result.outcome = verify::Outcome::pass;
    return result;
}

// Where to wait, if so.
std::string held_until;

}  // namespace
}  // namespace rdma_read::app

// The first call of MPI after MPI_Init, by MPI's profiling interface.
// NOLINTNEXTLINE(readability-identifier-naming)
int MPI_Comm_rank(MPI_Comm communicator, int* rank) {
    using rdma_read::app::held_until;
    if (!held_until.empty()) {
        std::fputs("held\n", stderr);
        while (!std::filesystem::exists(held_until)) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }
    return PMPI_Comm_rank(communicator, rank);
}

int main(int argc, char** argv) {
    using namespace rdma_read::app;
    if (argc < 2) {
        std::fputs("usage: pretender PART [rdma_read_mpi options]\n", stderr);
        return 2;
    }
    const std::string part = argv[1];
    if (part.starts_with("held:")) {
        held_until = part.substr(part.find(':') + 1);
    }
    Roles roles;
    if (const char* const patience = std::getenv("PRETENDER_PATIENCE")) {
        roles.patience = std::chrono::seconds(std::atoi(patience));
    }
    roles.serve = [&](const ServerTask& task) -> std::unique_ptr<Server> {
        if (part == "unready") {
            tell(task.rank, "prepares");
            do_nothing();
        }
        return std::make_unique<PretendedServer>(task, part == "late");
    };
    roles.read = [&](const ReaderTask& task) { return read_as(part, task); };
    return rdma_read_mpi_main(argc - 1, argv + 1, roles);
}
