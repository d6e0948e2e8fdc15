// The serving side: exposes one buffer, tells readers where it is, and stays out of their reads.
#pragma once

#include "rdma_read/rdma/cm_id.hpp"
#include "rdma_read/rdma/deadline.hpp"
#include "rdma_read/rdma/device.hpp"
#include "rdma_read/rdma/event_channel.hpp"
#include "rdma_read/rdma/unique_fd.hpp"
#include "rdma_read/rdma/wire.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace rdma_read::rdma {

class WaitSet;
struct ServedDevice;  // internal to the library

/// How a server behaves.
struct ReadServerConfig {
    /// Where to listen; port 0 takes any free one. An IPv6 wildcard listens on every address of
    /// every device, IPv4 included.
    Address address;
    /// Only readers that know it are let in.
    RunId run{};
    /// Ranks run from 0 to ranks - 1, each connected once at a time; 0 lets any rank in, any number
    /// of times, and takes each connection for a reader of its own.
    std::uint32_t ranks = 0;
    /// Connections that one rank may have, numbered by Hello::queue_pair from 0 and each there once
    /// at a time; together they are one reader. At least 1.
    std::uint32_t queue_pairs_per_rank = 1;
    /// Connections at a time and device; further ones are refused with Refusal::server_full. A
    /// device whose completion queues are too short for so many takes fewer.
    std::uint32_t max_connections = 1024;
    /// Of these, connections at a time whose first message is still awaited; further ones are
    /// refused with Refusal::server_busy and may try again. 0: as many as max_connections.
    std::uint32_t max_half_open = 0;
    /// Readers at a time that have the descriptor and with it the permission to read; further ones
    /// that are ready get it in the order in which they became so, each when one that has it has
    /// gone. How long they wait is up to their own deadlines. 0: all.
    std::uint32_t concurrency = 0;
    /// How long after it got the descriptor a reader may be dropped for others that wait for it:
    /// one that is frozen, or whose host died without a word, would have it for ever. 0: never.
    std::chrono::milliseconds turn_limit{0};
    /// Whether it is dropped then even if nobody waits for it: for a service that ends when its
    /// readers have gone.
    bool turns_end_always = false;
    /// Readers that are to begin together: nobody gets the descriptor before so many are ready, or
    /// before `start_patience` has passed without a further one. 0: each at once.
    std::uint32_t start_together = 0;
    std::chrono::milliseconds start_patience{1'000};
    /// How long a peer may take from its request to its first message; a request for a further
    /// queue pair begins it anew for those before it.
    std::chrono::milliseconds handshake_limit{10'000};
    /// Ends serve() when it becomes readable, like stop(); not owned; -1: none.
    int stop_fd = -1;
};

/// What happened while a server served.
struct ServeSummary {
    std::uint64_t connections = 0;  ///< readers that were given the descriptor
    std::uint64_t finished = 0;     ///< of these, readers whose connections have all ended
    std::uint64_t refused = 0;      ///< requests turned away
    double seconds = 0;             ///< wall time in serve()
    double cpu_seconds = 0;         ///< CPU time of the serving thread in serve()
};

/// Listens on one address and serves one buffer, read-only. The constructor listens, so the port
/// can be published before serve() runs. One thread calls serve(); stop() may be called from any
/// thread or signal handler.
class ReadServer {
  public:
    /// `exposed` must outlive the server and be filled already: a reader may read it at once.
    /// Throws Error.
    ReadServer(const ReadServerConfig& config, std::span<std::byte> exposed);
    ReadServer(const ReadServer&) = delete;
    ReadServer& operator=(const ReadServer&) = delete;
    ReadServer(ReadServer&&) = delete;
    ReadServer& operator=(ReadServer&&) = delete;
    ~ReadServer();

    /// Where it listens, with the real port.
    [[nodiscard]] Address address() const noexcept { return address_; }
    /// The device port behind the address; nothing for a wildcard.
    [[nodiscard]] const std::optional<DevicePort>& port() const noexcept { return port_; }

    /// Serves until stop() or until `finished_limit` readers have come and gone (0: no limit).
    /// Sleeps in epoll_wait(2) when nothing happens; the reads themselves do not wake it.
    /// Throws Error only for what ends the service as a whole; summary() then has what happened
    /// until then, and the connections end with the server.
    ServeSummary serve(std::uint64_t finished_limit = 0);

    /// What has happened, as serve() returns it; for the serving thread.
    [[nodiscard]] const ServeSummary& summary() const noexcept { return summary_; }

    /// Ends serve() soon; may come before it. Async-signal-safe.
    void stop() noexcept;

    /// What a single connection's failure or an unwanted peer looks like, for a log; of many
    /// refused requests only the first few, and their number. Called on the serving thread. Set
    /// before serve().
    void on_notice(std::function<void(const std::string&)> notice) { notice_ = std::move(notice); }

  private:
    struct Connection;
    struct Reader;

    // One wait and what comes of it; false when somebody asked to stop.
    [[nodiscard]] bool look(WaitSet& waits);
    void handle_events();
    void handle(CmEvent event);
    void request(CmEvent event);
    [[nodiscard]] std::optional<Refusal> objection_to(const Hello& hello, ServedDevice* device);
    void accept(CmEvent event, const Hello& hello, ServedDevice& device);
    void refuse(CmIdHandle incoming, Refusal refusal);
    void completed(const ibv_wc& completion);
    void ready(Connection& connection);
    [[nodiscard]] bool may_start() const noexcept;
    void grant_waiting();
    void send_descriptor(Connection& connection);
    void drop(Connection& connection);
    void begin_handshake(Connection& connection);
    void end_handshake(Connection& connection) noexcept;
    void join_reader(Connection& connection);
    void leave_reader(Connection& connection);
    void drop_silent_peers();
    // A reader that goes for something that it did or did not do.
    void hang_up(Connection& connection);
    [[nodiscard]] bool turns_are_limited() const noexcept;
    void end_overdue_turns();
    void drain(ServedDevice& device);
    [[nodiscard]] Connection* find(const rdma_cm_id* id) noexcept;
    [[nodiscard]] ServedDevice* find_device(const ibv_context* verbs) noexcept;
    [[nodiscard]] Deadline next_limit() const noexcept;
    void notice(const std::string& text) const;

    // In the order of construction: each needs those before it, and is destroyed before them.
    ReadServerConfig config_;
    EventChannel channel_;
    CmId listener_;
    Address address_;
    std::optional<DevicePort> port_;
    UniqueFd stop_event_;
    std::vector<std::unique_ptr<ServedDevice>> devices_;
    std::vector<CmId> on_devices_;  // of a wildcard: one on each device, to be told when it goes
    std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;  // by serial
    std::unordered_map<const rdma_cm_id*, Connection*> by_id_;
    std::unordered_map<std::uint64_t, std::unique_ptr<Reader>> readers_;  // by Reader::key
    // Those whose first message is awaited; all are given the same time, so the oldest is due
    // first.
    std::list<Connection*> handshakes_;
    std::list<Reader*> waiting_;           // for the descriptor
    std::list<Reader*> turns_;             // readers that were granted it, the oldest turn first
    bool started_ = false;                 // somebody was granted it
    std::optional<Deadline> start_limit_;  // of the wait for more to start with
    std::uint64_t next_serial_ = 1;
    std::uint64_t strangers_ = 0;  // whom refuse() turned away
    ServeSummary summary_;
    std::function<void(const std::string&)> notice_;
};

}  // namespace rdma_read::rdma
