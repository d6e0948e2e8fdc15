// Moves bytes between the ranks: broadcast, send and receive, barrier. Each with a deadline.
#include "rdma_read/cluster/communicator.hpp"

#include "mpi_call.hpp"
#include "rdma_read/cluster/mpi_session.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <list>
#include <set>
#include <thread>
#include <utility>

namespace rdma_read::cluster {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kFirstPause{50};
constexpr std::chrono::microseconds kLongestPause{4000};

/// MPI moves a long message piece by piece, one piece per test. Several tests per awakening keep
/// that from taking a pause per piece.
constexpr int kTestsPerAwakening = 8;

/// Calls `done` until it returns true, with growing pauses. False when the wait ended first.
template <typename Done>
bool sleep_until_done(const Wait& wait, Done done) {
    Clock::duration pause = kFirstPause;
    while (true) {
        for (int i = 0; i < kTestsPerAwakening; ++i) {
            if (done()) {
                return true;
            }
        }
        const auto now = Clock::now();
        if (now >= wait.deadline || (wait.stop != nullptr && wait.stop->load())) {
            return false;
        }
        std::this_thread::sleep_for(std::min(pause, wait.deadline - now));
        pause = std::min<Clock::duration>(pause * 2, kLongestPause);
    }
}

/// Memory that an outstanding request may still touch is never released. It stays reachable, so
/// that leak checkers see it as what it is.
void keep_for_ever(std::shared_ptr<void> memory) {
    static auto& kept = *new std::vector<std::shared_ptr<void>>;
    kept.push_back(std::move(memory));
}

/// Completes the request or abandons the session. `memory` is what the request uses.
bool complete(std::string_view call, MPI_Request request, const Wait& wait,
              const std::shared_ptr<void>& memory, MpiSession& session) {
    auto outstanding = std::make_shared<MPI_Request>(request);
    const auto test = [&] {
        int done = 0;
        check(call, MPI_Test(outstanding.get(), &done, MPI_STATUS_IGNORE));
        return done != 0;
    };
    const auto abandon = [&] {
        session.abandon();
        keep_for_ever(outstanding);
        keep_for_ever(memory);
    };
    try {
        if (sleep_until_done(wait, test)) {
            return true;
        }
    } catch (...) {
        abandon();  // MPI does not say what a failed request still touches
        throw;
    }
    abandon();
    return false;
}

std::string too_long(std::uint64_t bytes) {
    return fmt::format("message of {} bytes is longer than the allowed {}", bytes,
                       Communicator::kLargestMessage);
}

int to_count(std::size_t bytes) {
    return static_cast<int>(bytes);  // kLargestMessage fits
}

}  // namespace

/// Messages that have been matched but not yet received to the end. A list, because MPI holds the
/// address of each.
struct Communicator::Transfers {
    struct Incoming {
        MPI_Request request = MPI_REQUEST_NULL;
        Message message;
    };
    std::list<Incoming> incoming;
};

Communicator::Communicator(MpiSession& session)
    : session_(session), transfers_(std::make_unique<Transfers>()) {
    // The program owns all of MPI, so a duplicate of the world, which takes a collective call that
    // waits without a deadline, would separate it from nobody.
    check("MPI_Comm_rank", MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
    check("MPI_Comm_size", MPI_Comm_size(MPI_COMM_WORLD, &size_));
}

Communicator::~Communicator() {
    if (!transfers_->incoming.empty()) {
        session_.abandon();
        keep_for_ever(std::move(transfers_));
    }
}

// complete() waits for what these start, out of the analyzer's sight.
// NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)
bool Communicator::broadcast(std::vector<std::byte>& bytes, int root, Wait wait) {
    struct Buffer {
        std::uint64_t length = 0;
        std::vector<std::byte> bytes;
    };
    const auto buffer = std::make_shared<Buffer>();
    if (rank_ == root) {
        if (bytes.size() > kLargestMessage) {
            throw Error("broadcast: " + too_long(bytes.size()));
        }
        buffer->length = bytes.size();
        buffer->bytes = bytes;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    check("MPI_Ibcast",
          MPI_Ibcast(&buffer->length, 1, MPI_UINT64_T, root, MPI_COMM_WORLD, &request));
    if (!complete("MPI_Ibcast", request, wait, buffer, session_)) {
        return false;
    }
    if (buffer->length > kLargestMessage) {
        session_.abandon();  // the others may wait for this rank's part in the second broadcast
        throw Error(fmt::format("broadcast from rank {}: {}", root, too_long(buffer->length)));
    }
    buffer->bytes.resize(buffer->length);
    check("MPI_Ibcast", MPI_Ibcast(buffer->bytes.data(), to_count(buffer->bytes.size()), MPI_BYTE,
                                   root, MPI_COMM_WORLD, &request));
    if (!complete("MPI_Ibcast", request, wait, buffer, session_)) {
        return false;
    }
    if (rank_ != root) {
        bytes = std::move(buffer->bytes);
    }
    return true;
}

bool Communicator::send(int to, int tag, std::span<const std::byte> bytes, Wait wait) {
    if (bytes.size() > kLargestMessage) {
        throw Error(fmt::format("send to rank {}: {}", to, too_long(bytes.size())));
    }
    const auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
    MPI_Request request = MPI_REQUEST_NULL;
    check("MPI_Isend", MPI_Isend(copy->data(), to_count(copy->size()), MPI_BYTE, to, tag,
                                 MPI_COMM_WORLD, &request));
    return complete("MPI_Isend", request, wait, copy, session_);
}

// NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)

std::optional<Message> Communicator::try_receive(int tag) {
    auto& incoming = transfers_->incoming;
    int found = 0;
    MPI_Message matched = MPI_MESSAGE_NULL;
    MPI_Status status{};
    check("MPI_Improbe",
          MPI_Improbe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &found, &matched, &status));
    if (found != 0) {
        MPI_Count length = 0;
        check("MPI_Get_elements_x", MPI_Get_elements_x(&status, MPI_BYTE, &length));
        auto& entry = incoming.emplace_back();
        entry.message.source = status.MPI_SOURCE;
        entry.message.tag = status.MPI_TAG;
        if (length < 0 || std::cmp_greater(length, kLargestMessage)) {
            // Received into no memory at all, which MPI reports as truncated: the sender is not
            // left waiting, and nothing is allocated.
            entry.message.error = too_long(static_cast<std::uint64_t>(length));
        } else {
            entry.message.bytes.resize(static_cast<std::size_t>(length));
        }
        const int code =
            MPI_Imrecv(entry.message.bytes.data(), to_count(entry.message.bytes.size()), MPI_BYTE,
                       &matched, &entry.request);
        if (code != MPI_SUCCESS) {
            incoming.pop_back();
            throw Error::from_code("MPI_Imrecv", code);
        }
    }
    std::set<int> sources_with_earlier;  // a short message must not overtake a long one
    for (auto entry = incoming.begin(); entry != incoming.end(); ++entry) {
        if (entry->message.tag != tag || sources_with_earlier.contains(entry->message.source)) {
            continue;
        }
        int done = 0;
        const int code = MPI_Test(&entry->request, &done, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS && done == 0) {
            sources_with_earlier.insert(entry->message.source);
            continue;
        }
        Message message = std::move(entry->message);
        incoming.erase(entry);
        if (code != MPI_SUCCESS && message.error.empty()) {
            message.error = "MPI_Imrecv: " + error_text(code);
        }
        if (!message.error.empty()) {
            message.bytes.clear();
        }
        return message;
    }
    return std::nullopt;
}

std::optional<Message> Communicator::receive(int tag, Wait wait) {
    std::optional<Message> message;
    const bool received = sleep_until_done(wait, [&] {
        message = try_receive(tag);
        return message.has_value();
    });
    return received ? std::move(message) : std::nullopt;
}

bool Communicator::barrier(Wait wait) {
    // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): complete() waits for it
    MPI_Request request = MPI_REQUEST_NULL;
    check("MPI_Ibarrier", MPI_Ibarrier(MPI_COMM_WORLD, &request));
    return complete("MPI_Ibarrier", request, wait, nullptr, session_);
}

}  // namespace rdma_read::cluster
