// Jobs in which a call never completes: each rank's wait must end all the same, and abort() the
// job.
#include "rdma_read/cluster/communicator.hpp"
#include "rdma_read/cluster/mpi_session.hpp"

#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace rdma_read::cluster;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kReport = 1;
constexpr int kAsExpected = 42;  // the exit code that CTest waits for
constexpr int kNotAsExpected = 43;

/// The waits end after this long; anything near kTooLong has not noticed.
constexpr auto kDeadline = 1s;
constexpr auto kTooLong = 20s;

/// Whether the call returned false, in time, having abandoned the session.
bool ended_unfinished(MpiSession& session, const std::function<bool()>& call) {
    const auto start = Clock::now();
    const bool completed = call();
    return !completed && Clock::now() - start < kTooLong && session.abandoned();
}

/// Tells rank 0 what this rank saw, then waits to be aborted.
[[noreturn]] void report(MpiSession& session, Communicator& world, bool as_expected) {
    const std::vector<std::byte> verdict{std::byte{as_expected}};
    if (world.send(0, kReport, verdict, Wait::lasting(kTooLong))) {
        std::this_thread::sleep_for(kTooLong);
    }
    session.abort(kNotAsExpected);
}

/// Rank 0: aborts the job with what the others saw.
[[noreturn]] void judge(MpiSession& session, Communicator& world, bool as_expected) {
    for (int i = 1; i < world.size(); ++i) {
        const auto message = world.receive(kReport, Wait::lasting(kTooLong));
        as_expected =
            as_expected && message && message->bytes == std::vector<std::byte>{std::byte{1}};
    }
    std::puts(as_expected ? "as expected" : "not as expected");
    session.abort(as_expected ? kAsExpected : kNotAsExpected);
}

[[noreturn]] void all_but_rank_0(MpiSession& session, Communicator& world,
                                 const std::function<bool()>& call) {
    if (world.rank() == 0) {
        judge(session, world, true);
    }
    report(session, world, ended_unfinished(session, call));
}

void broadcast_without_its_root(MpiSession& session, Communicator& world) {
    all_but_rank_0(session, world, [&] {
        std::vector<std::byte> bytes{std::byte{7}};
        const bool completed = world.broadcast(bytes, 0, Wait::lasting(kDeadline));
        return completed || bytes != std::vector<std::byte>{std::byte{7}};
    });
}

void broadcast_stopped(MpiSession& session, Communicator& world) {
    all_but_rank_0(session, world, [&] {
        std::atomic<bool> stop{false};
        const std::jthread stopper([&] {
            std::this_thread::sleep_for(300ms);
            stop = true;
        });
        std::vector<std::byte> bytes;
        return world.broadcast(bytes, 0, Wait::lasting(kTooLong * 2, &stop));
    });
}

void barrier_that_one_never_enters(MpiSession& session, Communicator& world) {
    all_but_rank_0(session, world, [&] { return world.barrier(Wait::lasting(kDeadline)); });
}

void send_that_nobody_takes(MpiSession& session, Communicator& world) {
    if (world.rank() == 0) {
        // Longer than what MPI copies away by itself.
        const std::vector<std::byte> bytes(std::size_t{16} << 20U);
        judge(session, world, ended_unfinished(session, [&] {
                  return world.send(1, kReport + 1, bytes, Wait::lasting(kDeadline));
              }));
    }
    report(session, world, true);
}

void abort_while_the_others_wait(MpiSession& session, Communicator& world) {
    if (world.rank() == world.size() - 1) {
        session.abort(kAsExpected);
    }
    const auto message = world.receive(kReport, Wait::lasting(kTooLong));
    session.abort(message ? kNotAsExpected : kNotAsExpected + 1);
}

}  // namespace

int main(int argc, char** argv) {
    const std::map<std::string, void (*)(MpiSession&, Communicator&)> endings{
        {"broadcast_without_its_root", broadcast_without_its_root},
        {"broadcast_stopped", broadcast_stopped},
        {"barrier_that_one_never_enters", barrier_that_one_never_enters},
        {"send_that_nobody_takes", send_that_nobody_takes},
        {"abort_while_the_others_wait", abort_while_the_others_wait},
    };
    const auto ending = endings.find(argc > 1 ? argv[1] : "");
    if (ending == endings.end()) {
        return 2;
    }
    MpiSession session;
    Communicator world(session);
    ending->second(session, world);
    return 1;  // no ending comes back
}
