// The hot path: keeps reads in flight and hands each finished one to whoever checks it.
#pragma once

#include "rdma_read/rdma/deadline.hpp"
#include "rdma_read/rdma/read_client.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rdma_read::rdma {

/// One read: from where in the remote buffer, and to where in the client's destination region.
struct ReadRequest {
    std::uint64_t remote_offset = 0;
    std::span<std::byte> destination;
};

/// Decides what is read and looks at what arrived. Called on the streaming thread.
class ReadSink {
  public:
    ReadSink() = default;
    ReadSink(const ReadSink&) = delete;
    ReadSink& operator=(const ReadSink&) = delete;
    ReadSink(ReadSink&&) = delete;
    ReadSink& operator=(ReadSink&&) = delete;
    virtual ~ReadSink() = default;

    /// The next read of a slot; its destination is the slot's own and free.
    virtual ReadRequest next(std::uint32_t slot) = 0;
    /// The slot's read is complete; its destination may be looked at until the call returns.
    virtual void finished(std::uint32_t slot) = 0;
};

/// Why a stream ended early, as a value: the data path does not throw.
struct ReadFailure {
    Failure failure = Failure::read;
    std::string message;
    std::string hint;
};

/// What a stream did.
struct StreamSummary {
    std::uint64_t reads = 0;  ///< completed and handed to the sink
    /// From just before the first read is decided on to the last completion; with a failure, to
    /// where that was met. For run_one() see there.
    std::chrono::nanoseconds duration{};
    /// Of a timed run the middle, without ramp-up and drain: reads that completed, and how long
    /// that took, between the first and the last look at completions that lie between 10 % and 90 %
    /// of the time from the start to StreamPlan::until. 0 if there are no two such looks.
    std::uint64_t steady_reads = 0;
    std::chrono::nanoseconds steady_duration{};
    std::optional<ReadFailure> failure;  ///< nothing if everything asked for was read
};

/// When a stream is done.
struct StreamPlan {
    /// Places for reads, at least 1. More than may be in flight are used up to twice that number:
    /// then, whenever reads finish, the next ones are posted before these are checked.
    std::uint32_t slots = 1;
    /// Reads in flight over all queue pairs, those counted that have arrived and are not reported
    /// yet; 0: as many as slots. They are spread evenly; what does not fit the client's send queues
    /// is left out.
    std::uint32_t in_flight = 0;
    std::uint64_t reads = 0;  ///< how many in all; 0: as many as `until` allows
    /// No read but the first is begun after this, as far as the clock told before the list that it
    /// is posted in; those in flight are awaited.
    std::optional<Deadline> until;
};

/// Streams reads over all queue pairs of one connected client; what is begun together is posted as
/// one list on each. Reads longer than the device's longest message are made of several work
/// requests on one queue pair. Where short reads arrive faster than they are posted, not every
/// one reports its completion (is signaled): a queue pair completes its requests in the order in
/// which they were posted (InfiniBand Architecture Specification, volume 1, 10.8), so one speaks
/// for those before it. A completion out of that order is a failure. Allocates in the constructor
/// only. One thread at a time.
class ReadStream {
  public:
    /// Precondition: the client's destination is set, and stays as it is while the stream is used.
    explicit ReadStream(ReadClient& client);

    /// Runs the plan. The deadline bounds everything, and so does the client's request to stop.
    /// After a failure that left reads in flight every further run fails: the connection is of no
    /// more use.
    [[nodiscard]] StreamSummary run(ReadSink& sink, const StreamPlan& plan, Deadline deadline);

    /// One read, alone, through slot 0. Its duration is from just before it is posted to just after
    /// its completion was seen: deciding what to read and looking at what arrived are no part of
    /// it. On failure the duration is 0 and summary.failure says why.
    [[nodiscard]] StreamSummary run_one(ReadSink& sink, Deadline deadline);

  private:
    // What is left of a read that the send queue had no room for as a whole.
    struct Rest {
        std::uint32_t slot = 0;
        ReadRequest request;
    };
    // One queue pair with the list that is being made for it.
    struct Lane {
        Lane(ReadClient& client, std::uint32_t queue_pair);
        [[nodiscard]] std::uint32_t used() const noexcept { return in_flight + listed; }
        [[nodiscard]] bool has_room() const noexcept { return used() < requests.size(); }
        // Where in the rings the request is that is the nth after the oldest in flight.
        [[nodiscard]] std::size_t place(std::uint32_t nth) const noexcept {
            const std::size_t sum = oldest + nth;
            return sum < requests.size() ? sum : sum - requests.size();
        }
        // How many of the oldest in flight the next completion speaks for; 0: none is in flight.
        [[nodiscard]] std::uint32_t together() const noexcept {
            return in_flight > 0 ? reported_together[oldest] : 0;
        }
        void signal_last() noexcept;

        QueuePair& qp;
        // Rings: those in flight, oldest first, and then those listed. Each request leads to the
        // one at the next place, but while it ends the list that is being posted.
        std::vector<ibv_send_wr> requests;
        std::vector<ibv_sge> elements;
        // At the first of the requests that one completion speaks for: how many they are.
        // Elsewhere without meaning.
        std::vector<std::uint32_t> reported_together;
        std::size_t oldest = 0;
        std::uint32_t in_flight = 0;
        std::uint32_t listed = 0;
        // At the list's end those that no signaled request follows.
        std::uint32_t silent = 0;
        std::uint64_t silent_bytes = 0;
        std::optional<Rest> unfinished;
    };
    struct Run;

    // Forgets the run before; fails if that left reads in flight.
    [[nodiscard]] std::optional<ReadFailure> begin(std::uint32_t slot_count);
    [[nodiscard]] bool is_exposed(const ReadRequest& request) const noexcept;
    [[nodiscard]] ReadFailure range_failure(const ReadRequest& request) const;
    [[nodiscard]] ReadFailure completion_failure(const ibv_wc& completion) const;
    [[nodiscard]] ReadFailure order_failure() const;
    [[nodiscard]] ReadFailure timeout_failure() const;
    [[nodiscard]] ReadFailure stopped_failure() const;
    // Reads that complete all the time never let a wait see its deadline or a request to stop.
    [[nodiscard]] std::optional<ReadFailure> cut_short(Deadline::Clock::time_point now,
                                                       Deadline deadline) const;
    [[nodiscard]] std::optional<ReadFailure> await_completions(std::span<ibv_wc>& done,
                                                               Deadline deadline);
    [[nodiscard]] Lane* emptiest_lane() noexcept;
    // As many of the read's requests as there is room for, which is one at least; what is left is
    // the lane's unfinished read then. Precondition: there was none.
    void list_requests(Lane& lane, std::uint32_t slot, ReadRequest request) noexcept;
    [[nodiscard]] std::optional<ReadFailure> list_reads(Run& run);
    [[nodiscard]] std::optional<ReadFailure> post_lists();
    [[nodiscard]] std::optional<ReadFailure> refill(Run& run);
    // Up to the first completion that failed.
    [[nodiscard]] std::optional<ReadFailure> take(Run& run, std::span<const ibv_wc> completions);
    [[nodiscard]] std::optional<ReadFailure> take(Run& run, const ibv_wc& completion);
    // Of the oldest that complete together, those that come before the one that failed.
    void take_before(Run& run, Lane& lane, std::uint64_t failed);
    void take_oldest(Run& run, Lane& lane, std::uint32_t count);
    void hand_over(Run& run);

    ReadClient& client_;
    std::uint32_t capacity_;  // reads that may be in flight over all queue pairs
    std::vector<Lane> lanes_;
    std::vector<std::uint32_t> lane_of_slot_;  // of its newest read
    std::vector<std::uint32_t> free_slots_;
    std::vector<std::uint32_t> finished_slots_;  // complete, and not handed to the sink yet
    std::vector<ibv_wc> completions_;
    std::uint32_t in_flight_ = 0;     // work requests on all lanes
    std::uint32_t signal_every_ = 1;  // of how many requests of a lane one at least is signaled
};

}  // namespace rdma_read::rdma
