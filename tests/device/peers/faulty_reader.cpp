// rdma_read_mpi with a faulty reader in the place of its own: faulty_reader FAULT [options].
//   never-connects   does nothing for ever
//   dies             is killed when its turn comes
//   misses           looks at no data and takes every read for right
//   stays:FILE       has its turn, creates the file and does nothing more until the server drops it
//   writes           tries to write to the exposed buffer, with the key that it was given
//   follows:FILE     reads as it should, but waits for the file, for --timeout at most
#include "app/buffer_reader.hpp"
#include "app/roles.hpp"
#include "app/star.hpp"
#include "rdma_read/rdma/buffer.hpp"
#include "rdma_read/rdma/read_client.hpp"
#include "rdma_read/verify/pattern.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <thread>

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

namespace rdma = rdma_read::rdma;

rdma::ReadClientConfig config_of(const rdma_read::app::ReaderTask& task) {
    const auto& server = task.announcement.server;
    rdma::ReadClientConfig config;
    config.server = rdma::Address::parse(server.address, server.port).value();
    config.stop = task.stop;
    config.hello = {task.announcement.run, static_cast<std::uint32_t>(task.rank)};
    return config;
}

// Does with the descriptor what it does not permit, and tells what became of it.
rdma_read::verify::Result write(const rdma_read::app::ReaderTask& task) {
    const auto deadline = rdma::Deadline::after(task.options.timeout);
    const rdma::Buffer memory(64);
    rdma::ReadClientConfig config = config_of(task);
    config.destination = memory.bytes();
    rdma::ReadClient client(config, deadline);
    ibv_sge element{reinterpret_cast<std::uintptr_t>(memory.bytes().data()),
                    static_cast<std::uint32_t>(memory.bytes().size()), client.destination().lkey()};
    ibv_send_wr request{};
    request.sg_list = &element;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma.remote_addr = client.remote().address;
    request.wr.rdma.rkey = client.remote().rkey;
    rdma_read::verify::Result result;
    result.outcome = rdma_read::verify::Outcome::corrupt;
    result.phase = "read";
    result.error = "the write was neither made nor refused";
    std::array<ibv_wc, 1> room{};
    std::span<ibv_wc> done;
    if (client.queue_pair(0).post_list(&request) == 0
        && client.wait(room, done, deadline) == rdma::WaitEnd::completions) {
        const bool refused = done.front().status == IBV_WC_REM_ACCESS_ERR;
        result.outcome =
            refused ? rdma_read::verify::Outcome::read_failed : rdma_read::verify::Outcome::corrupt;
        result.error = ibv_wc_status_str(done.front().status);
    }
    return result;
}

// Holds the descriptor and says nothing, as a frozen reader.
rdma_read::verify::Result stay(const rdma_read::app::ReaderTask& task, const std::string& file) {
    const auto deadline = rdma::Deadline::after(task.options.timeout * 4);
    rdma::ReadClient client(config_of(task), deadline);
    std::ofstream(file).close();
    while (!client.ended() && !deadline.expired()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    rdma_read::verify::Result result;
    result.outcome = rdma_read::verify::Outcome::read_failed;
    result.phase = "read";
    result.error = client.ended() ? "dropped by the server" : "never dropped";
    return result;
}

// What follows the colon.
std::string argument_of(const std::string& fault) {
    return fault.substr(fault.find(':') + 1);
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
        if (fault == "writes") {
            return write(task);
        }
        if (fault.starts_with("stays:")) {
            return stay(task, argument_of(fault));
        }
        if (fault.starts_with("follows:")) {
            const auto limit = rdma_read::rdma::Deadline::after(task.options.timeout);
            while (!std::filesystem::exists(argument_of(fault)) && !limit.expired()) {
                std::this_thread::sleep_for(std::chrono::milliseconds(10));
            }
            return rdma_read::app::real_roles().read(task);
        }
        for (;;) {
            pause();
        }
    };
    return rdma_read::app::rdma_read_mpi_main(argc - 1, argv + 1, roles);
}
