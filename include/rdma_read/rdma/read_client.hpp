// The reading side: connects, gets the descriptor, waits for completions, leaves.
#pragma once

#include "rdma_read/rdma/buffer.hpp"
#include "rdma_read/rdma/cm_id.hpp"
#include "rdma_read/rdma/completion_queue.hpp"
#include "rdma_read/rdma/deadline.hpp"
#include "rdma_read/rdma/event_channel.hpp"
#include "rdma_read/rdma/memory_region.hpp"
#include "rdma_read/rdma/poll_budget.hpp"
#include "rdma_read/rdma/queue_pair.hpp"
#include "rdma_read/rdma/stop_request.hpp"
#include "rdma_read/rdma/wait_set.hpp"
#include "rdma_read/rdma/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace rdma_read::rdma {

/// What a reader asks for.
struct ReadClientConfig {
    Address server;
    /// Its queue pair index is that of the client's first one; the others follow.
    Hello hello;
    /// Queue pairs, at least 1, each on a connection of its own. The server must allow as many.
    std::uint32_t queue_pairs = 1;
    /// Reads in flight that are wanted on each of them, at least 1; clamped to what the device can.
    std::uint32_t depth = 1;
    /// Where reads land; must outlive the client. Empty: set_destination() follows.
    std::span<std::byte> destination;
    /// Called with the device's name when it is known, before any memory is registered with it: for
    /// who wants to be near it when pages get their places. May be empty; what it throws passes
    /// through the constructor.
    std::function<void(const std::string& device)> on_device;
    /// Ends every wait but those of disconnect().
    StopRequest stop;
};

/// The path that the connections of a reader take, as the connection manager and the device tell
/// it.
struct ConnectionPath {
    std::string device;
    std::uint8_t port_num = 0;
    std::string local_address;
    std::string remote_address;
    std::string gid;
    std::uint32_t mtu = 0;               ///< bytes, 0 if not known
    double rate_gbps = 0;                ///< of the local port, 0 if not known
    std::uint32_t depth_negotiated = 0;  ///< reads that may be on the wire, on each queue pair
};

/// Why a wait for completions ended without one.
enum class WaitEnd { completions, disconnected, timeout, stopped };

/// A reader at a ReadServer: one or several queue pairs with one completion queue, one protection
/// domain and one destination. Constructed connected and in possession of the descriptor, or not at
/// all. Only the thread that built it may use it.
class ReadClient {
  public:
    /// One attempt. Throws Error with the phase it failed in; the destructors of what was built so
    /// far do not wait for the network.
    ReadClient(const ReadClientConfig& config, Deadline deadline);
    ReadClient(const ReadClient&) = delete;
    ReadClient& operator=(const ReadClient&) = delete;
    ReadClient(ReadClient&&) = delete;
    ReadClient& operator=(ReadClient&&) = delete;
    ~ReadClient() = default;

    /// The permission that the server gave; checked to be well-formed.
    [[nodiscard]] const RemoteBuffer& remote() const noexcept { return remote_; }
    [[nodiscard]] const ConnectionPath& path() const noexcept { return path_; }
    /// Work requests that fit the send queue of each queue pair.
    [[nodiscard]] std::uint32_t send_entries() const noexcept { return send_entries_; }
    /// The longest single work request: the port's limit, at most 1 GiB.
    [[nodiscard]] std::uint64_t max_message() const noexcept { return max_message_; }
    [[nodiscard]] const MemoryRegion& destination() const noexcept { return *destination_; }
    [[nodiscard]] std::uint32_t queue_pairs() const noexcept {
        return static_cast<std::uint32_t>(queue_pairs_.size());
    }
    /// `index` is less than queue_pairs().
    [[nodiscard]] QueuePair& queue_pair(std::uint32_t index) noexcept {
        return queue_pairs_[index];
    }
    /// When the last of the connections was established.
    [[nodiscard]] Deadline::Clock::time_point established() const noexcept { return established_; }

    /// Registers where reads land, once and before a ReadStream is made, for who learns only from
    /// the descriptor how much there is to read. The memory must outlive the client. Throws Error.
    void set_destination(std::span<std::byte> memory);

    /// Waits until there are completions (then `done` holds them), any of the connections ends, the
    /// deadline passes, or somebody asks to stop. Looks for as long as PollBudget has learned to be
    /// worth it, then sleeps. Watches completion queue and event channel alike: when a peer dies,
    /// some devices deliver only DISCONNECTED and never a completion. Throws Error.
    [[nodiscard]] WaitEnd wait(std::span<ibv_wc> into, std::span<ibv_wc>& done, Deadline deadline) {
        done = cq_->poll(into);
        return done.empty() ? wait_longer(into, done, deadline) : WaitEnd::completions;
    }

    /// Asks the kernel now for what a wait would have to ask it for before it can sleep, if waits
    /// sleep here: for who has time before a post, and wants none lost after it. Throws Error.
    void prepare_to_wait() {
        if (poll_budget_.sleeping()) {
            cq_->arm();
        }
    }

    /// Whether any of the connections has ended, as far as this side knows by now; never waits.
    /// Throws Error.
    [[nodiscard]] bool ended() { return connection_ended(); }
    /// The event that ended the first of them that did, in words; empty: none has, as far as is
    /// known.
    [[nodiscard]] const std::string& ended_by() const noexcept { return ended_by_; }

    /// Whether somebody asked this client to stop.
    [[nodiscard]] bool stop_requested() const noexcept { return stop_.made(); }

    /// Says goodbye, and waits for the answers no longer than the deadline.
    void disconnect(Deadline deadline) noexcept;

  private:
    struct Link {
        explicit Link(const EventChannel& channel) : id(channel) {}
        CmId id;
        bool goodbye_said = false;
        bool ended = false;
    };

    // What every link has to go through, and the event that ends it.
    struct Step {
        rdma_cm_event_type ended_by;
        Phase phase;
        const char* name;
        std::function<void(std::uint32_t index)> begin;
        std::function<void(std::uint32_t index, const CmEvent& event)> end;
    };

    // The step of all links, some at a time.
    void for_each_link(const Step& step, Deadline deadline);
    void resolve(Deadline deadline);
    void set_up(const ReadClientConfig& config);
    void connect(const Hello& hello, Deadline deadline);
    void request(std::uint32_t index, Hello hello);
    void say_ready();
    void receive_descriptors(Deadline deadline);
    [[nodiscard]] RemoteBuffer descriptor_in(std::uint32_t index, std::size_t bytes) const;
    [[nodiscard]] std::span<std::byte> incoming(std::uint32_t index) const;
    [[nodiscard]] bool connection_ended();
    // Of a wait what follows a first look that found nothing.
    [[nodiscard]] WaitEnd wait_longer(std::span<ibv_wc> into, std::span<ibv_wc>& done,
                                      Deadline deadline);
    [[nodiscard]] WaitEnd sleep(std::span<ibv_wc> into, std::span<ibv_wc>& done, Deadline deadline);

    // In the order of construction: each needs those before it, and is destroyed before them.
    Address server_;
    StopRequest stop_;
    PollBudget poll_budget_;
    EventChannel channel_;
    WaitSet waits_;
    std::deque<Link> links_;
    PdHandle pd_;
    std::optional<CompletionQueue> cq_;
    Buffer message_memory_;
    std::optional<MemoryRegion> messages_;
    std::optional<MemoryRegion> destination_;
    std::deque<QueuePair> queue_pairs_;  // in the order of their links
    RemoteBuffer remote_;
    ConnectionPath path_;
    Deadline::Clock::time_point established_;
    std::uint32_t send_entries_ = 1;
    std::uint8_t depth_asked_ = 1;
    std::uint64_t max_message_ = 0;
    bool ended_ = false;
    std::string ended_by_;
};

/// A connected reader, and what it took to get there.
struct Connected {
    std::unique_ptr<ReadClient> client;
    std::uint32_t attempts = 0;
    /// Over all attempts, until all connections were established: what a server takes to answer
    /// with its descriptor, which may be to wait for other readers, is no part of it.
    std::chrono::nanoseconds took{};
};

/// Connects, again on a fresh id with growing, jittered pauses while the failure is one that may
/// pass (nobody listens yet, busy, stale connection, unreachable, a resolution that timed out),
/// until the deadline or a request to stop. `attempts` counts also when it throws. Throws the last
/// attempt's Error; if the deadline or a request to stop cut that attempt short, the Error tells of
/// the attempt before, if there was one.
[[nodiscard]] Connected connect_with_retry(const ReadClientConfig& config, Deadline deadline,
                                           std::uint32_t& attempts,
                                           const std::function<void(const Error&)>& on_retry = {});

}  // namespace rdma_read::rdma
