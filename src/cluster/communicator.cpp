// Moves bytes between the ranks: broadcast, send and receive, barrier. Each with a deadline.
#include "rdma_read/cluster/communicator.hpp"

#include "mpi_call.hpp"
#include "rdma_read/cluster/mpi_session.hpp"

#include <endian.h>
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <set>
#include <thread>
#include <utility>

namespace rdma_read::cluster {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{20};
/// The part of the time waited so far that a pause may add. Hundreds of ranks may share a host with
/// the one that they all wait for: what they do meanwhile must not be what keeps it from its work.
constexpr int kPauseShare = 16;

/// MPI moves a long message piece by piece, one piece per test. Several tests per awakening, and
/// less sleep between them, keep that from taking a long pause per piece.
constexpr int kTestsPerAwakening = 8;
constexpr std::chrono::milliseconds kLongestPauseInTransit{1};
constexpr std::size_t kLongMessage = std::size_t{64} << 10U;

Clock::duration longest_pause(std::size_t bytes_in_transit) {
    return bytes_in_transit > kLongMessage ? kLongestPauseInTransit : kLongestPause;
}

/// Calls `done` until it returns true, with growing pauses of up to what `longest` returns. False
/// when the wait ended first.
template <typename Longest, typename Done>
bool sleep_until_done(const Wait& wait, Longest longest, Done done) {
    const auto started = Clock::now();
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
        const auto pause =
            std::clamp<Clock::duration>((now - started) / kPauseShare, kFirstPause, longest());
        std::this_thread::sleep_for(std::min(pause, wait.deadline - now));
    }
}

/// Memory that an outstanding request may still touch is never released. It stays reachable, so
/// that leak checkers see it as what it is.
void keep_for_ever(std::shared_ptr<void> memory) {
    static auto& kept = *new std::vector<std::shared_ptr<void>>;
    kept.push_back(std::move(memory));
}

/// Completes the request, which moves so many bytes, or abandons the session. `memory` is what the
/// request uses.
bool complete(std::string_view call, MPI_Request request, std::size_t bytes, const Wait& wait,
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
        if (sleep_until_done(
                wait, [bytes] { return longest_pause(bytes); }, test)) {
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

/// What the first of a broadcast's two messages carries.
constexpr std::size_t kFirstPiece = 2048;

int to_count(std::size_t bytes) {
    return static_cast<int>(bytes);  // kLargestMessage fits
}

}  // namespace

/// Messages that have been matched but not yet received to the end. A list, because MPI holds the
/// address of each.
struct Communicator::Transfers {
    struct Incoming {
        MPI_Request request = MPI_REQUEST_NULL;
        /// What MPI moves, of which nothing is kept if it is too much.
        std::uint64_t length = 0;
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
        // Of fixed length: the bytes' number, and as many of them as fit, which are nearly always
        // all. A collective call costs every rank several awakenings.
        std::array<std::byte, kFirstPiece> first{};
        std::vector<std::byte> rest;
    };
    const auto buffer = std::make_shared<Buffer>();
    const auto number = std::span(buffer->first).first<sizeof(std::uint64_t)>();
    const auto beginning = std::span(buffer->first).subspan<sizeof(std::uint64_t)>();
    const bool is_root = rank_ == root;
    if (is_root) {
        if (bytes.size() > kLargestMessage) {
            throw Error("broadcast: " + too_long(bytes.size()));
        }
        const std::uint64_t length = htobe64(bytes.size());
        std::memcpy(number.data(), &length, sizeof length);
        const auto fits = std::span(bytes).first(std::min(bytes.size(), beginning.size()));
        std::ranges::copy(fits, beginning.begin());
        const auto others = std::span(bytes).subspan(fits.size());
        buffer->rest.assign(others.begin(), others.end());
    }
    MPI_Request request = MPI_REQUEST_NULL;
    check("MPI_Ibcast", MPI_Ibcast(buffer->first.data(), to_count(buffer->first.size()), MPI_BYTE,
                                   root, MPI_COMM_WORLD, &request));
    if (!complete("MPI_Ibcast", request, kFirstPiece, wait, buffer, session_)) {
        return false;
    }
    std::uint64_t length = 0;
    std::memcpy(&length, number.data(), sizeof length);
    length = be64toh(length);
    if (length > kLargestMessage) {
        session_.abandon();  // the others may wait for this rank's part in the second broadcast
        throw Error(fmt::format("broadcast from rank {}: {}", root, too_long(length)));
    }
    const auto fits = beginning.first(std::min<std::size_t>(length, beginning.size()));
    if (length > fits.size()) {
        buffer->rest.resize(length - fits.size());
        check("MPI_Ibcast", MPI_Ibcast(buffer->rest.data(), to_count(buffer->rest.size()), MPI_BYTE,
                                       root, MPI_COMM_WORLD, &request));
        if (!complete("MPI_Ibcast", request, buffer->rest.size(), wait, buffer, session_)) {
            return false;
        }
    }
    if (!is_root) {
        bytes.assign(fits.begin(), fits.end());
        bytes.insert(bytes.end(), buffer->rest.begin(), buffer->rest.end());
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
    return complete("MPI_Isend", request, copy->size(), wait, copy, session_);
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
        entry.length = static_cast<std::uint64_t>(std::max<MPI_Count>(length, 0));
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
    const auto longest = [&] {
        std::uint64_t bytes = 0;
        for (const auto& entry : transfers_->incoming) {
            bytes = std::max(bytes, entry.length);
        }
        return longest_pause(bytes);
    };
    const bool received = sleep_until_done(wait, longest, [&] {
        message = try_receive(tag);
        return message.has_value();
    });
    return received ? std::move(message) : std::nullopt;
}

bool Communicator::barrier(Wait wait) {
    // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): complete() waits for it
    MPI_Request request = MPI_REQUEST_NULL;
    check("MPI_Ibarrier", MPI_Ibarrier(MPI_COMM_WORLD, &request));
    return complete("MPI_Ibarrier", request, 0, wait, nullptr, session_);
}

}  // namespace rdma_read::cluster
