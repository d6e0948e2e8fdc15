// Moves bytes between the ranks: broadcast, send and receive, barrier. Each with a deadline.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rdma_read::cluster {

class MpiSession;

/// How long a call may wait.
struct Wait {
    std::chrono::steady_clock::time_point deadline;
    /// If given, the wait also ends soon after this becomes true. Not owned; outlives the call.
    const std::atomic<bool>* stop = nullptr;

    [[nodiscard]] static Wait lasting(std::chrono::nanoseconds duration,
                                      const std::atomic<bool>* stop = nullptr) {
        return {std::chrono::steady_clock::now() + duration, stop};
    }
};

/// What one rank sent to another.
struct Message {
    int source = -1;
    int tag = -1;
    std::vector<std::byte> bytes;
    /// Empty, or why the message was dropped (then `bytes` is empty): it was longer than
    /// Communicator::kLargestMessage, or MPI failed to deliver it.
    std::string error;
};

/// All ranks of the job. Bytes only: what they mean is the caller's business, and what comes in is
/// to be checked like anything from outside.
///
/// Waiting: no call spins. Every wait alternates MPI_Test with sleeps, each of a sixteenth of the
/// time waited so far but no less than 50 us and no more than 20 ms (1 ms while a long message is
/// under way). So much delay may be added to a message, and to each of the rounds that a collective
/// call takes among many ranks; a long wait for short messages costs less than a percent of a core.
/// Even with a deadline in the past a call tries once.
///
/// When broadcast, send or barrier return false, their request is still outstanding. The
/// communicator keeps the memory of such a request alive for ever, abandons the session (so that
/// MPI_Finalize is not called) and must not be used for a further collective call: its ranks would
/// no longer agree on which call is which. End the job with MpiSession::abort.
///
/// Errors: a failed MPI call throws Error, also a rank or tag that does not exist.
/// Threads: that of the session only. Lifetime: the session outlives the communicator.
class Communicator {
  public:
    /// Longest message in bytes, of a broadcast too: a bound on what a peer can make us allocate.
    static constexpr std::size_t kLargestMessage = std::size_t{64} << 20U;

    /// The communicator of all ranks.
    explicit Communicator(MpiSession& session);
    ~Communicator();
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;
    Communicator(Communicator&&) = delete;
    Communicator& operator=(Communicator&&) = delete;

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int size() const noexcept { return size_; }

    /// Collective. Gives every rank the root's bytes; replaces what the others have in `bytes`.
    /// \return false, with `bytes` unchanged, if the deadline or the stop flag came first
    /// \throws Error if the root's bytes are more than kLargestMessage
    [[nodiscard]] bool broadcast(std::vector<std::byte>& bytes, int root, Wait wait);

    /// Sends a copy of `bytes`. True means that the copy is no longer needed, not that it was
    /// received. A rank may send to itself.
    /// \return false if the deadline or the stop flag came first
    /// \throws Error if there are more than kLargestMessage bytes
    [[nodiscard]] bool send(int to, int tag, std::span<const std::byte> bytes, Wait wait);

    /// Takes a message with this tag, from whichever rank; never waits, not even for the rest of a
    /// long message. nullopt: there is none yet.
    [[nodiscard]] std::optional<Message> try_receive(int tag);

    /// Waits for a message with this tag, from whichever rank.
    /// \return nullopt if the deadline or the stop flag came first; the communicator stays usable
    [[nodiscard]] std::optional<Message> receive(int tag, Wait wait);

    /// Collective. Waits until every rank is here: an orderly end before MPI_Finalize.
    /// \return false if the deadline or the stop flag came first
    [[nodiscard]] bool barrier(Wait wait);

  private:
    struct Transfers;  // the requests under way, and the memory they use

    MpiSession& session_;
    std::unique_ptr<Transfers> transfers_;
    int rank_ = 0;
    int size_ = 0;
};

}  // namespace rdma_read::cluster
