// What became of one reader, and what a server says of itself.
#pragma once

#include "rdma_read/verify/bound.hpp"
#include "rdma_read/verify/measurement.hpp"
#include "rdma_read/verify/mismatch.hpp"
#include "rdma_read/verify/run_id.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rdma_read::verify {

/// What became of one reader.
enum class Outcome : std::uint8_t {
    pass,            ///< every read was made and every byte was right
    corrupt,         ///< wrong data, or data outside its place
    slow,            ///< right, but outside the thresholds
    connect_failed,  ///< no connection, or no descriptor of the server's buffer
    read_failed,     ///< a read completed with an error, or the connection broke
    timeout,         ///< the reader's time was over
    no_device,       ///< no usable RDMA device
    setup_failed,    ///< a device, but no memory, queue or limit to use it
    not_run,         ///< nothing was tried, or nothing was heard of it
};

/// "PASS", "CORRUPT", "SLOW", "CONNECT_FAILED", "READ_FAILED", "TIMEOUT", "NO_DEVICE",
/// "SETUP_FAILED", "NOT_RUN".
[[nodiscard]] std::string_view to_string(Outcome outcome) noexcept;

/// The reads of one size by one reader. Counts of reads and bytes are those of the throughput
/// phase, so that they are what was asked for; the latency phase has its own in `latency_us`.
/// Mismatches are those of both phases.
struct SizeResult {
    std::uint64_t size = 0;                    ///< bytes of each read
    std::uint64_t reads = 0;                   ///< that completed
    std::uint64_t bytes_read = 0;              ///< by these
    std::uint64_t bytes_verified = 0;          ///< by those of which every byte was right
    std::uint64_t mismatched_reads = 0;        ///< with at least one wrong byte
    std::vector<Mismatch> mismatches;          ///< the first stretches of wrong bytes
    bool guard_intact = false;                 ///< nothing was written outside the destination
    std::uint32_t depth = 0;                   ///< reads in flight in the throughput phase, at most
    std::optional<LatencySummary> latency_us;  ///< of the latency phase
    std::optional<double> bandwidth_bytes_per_s;  ///< of the throughput phase
    std::optional<double> reads_per_s;            ///< of the throughput phase
    double seconds = 0;                           ///< that the throughput phase took
    std::optional<double> checking_s;             ///< of these, spent on checking; sampled
    std::optional<Bound> bound;                   ///< what keeps it from being faster
};

/// The way that was read over. An empty string is an unknown.
struct Path {
    std::string local_device;
    std::optional<std::uint32_t> local_port_num;
    std::string local_address;
    std::string remote_address;
    std::string gid;                                ///< of the local port
    std::optional<std::uint32_t> mtu;               ///< active, in bytes
    std::optional<std::uint32_t> depth_negotiated;  ///< outstanding reads that both ends agreed on
    std::optional<double> rate_gbps;                ///< of the local port
};

/// What a reader proved before it read. nullopt: it did not get that far.
struct SelfTest {
    std::optional<bool> planted_error_found;  ///< a wrong byte that it planted, where it planted it
    std::optional<bool> wrong_key_refused;    ///< a read with a wrong key
    std::optional<bool> out_of_bounds_refused;  ///< a read that passes the end of the buffer

    /// Whether all of it is proved.
    [[nodiscard]] bool proved() const noexcept;
    /// Whether any of it is disproved.
    [[nodiscard]] bool disproved() const noexcept;
    friend bool operator==(const SelfTest&, const SelfTest&) = default;
};

/// What became of one reader at one server. As constructed: nothing has happened yet.
struct Result {
    std::int32_t server_rank = -1;  ///< -1: unknown
    std::int32_t reader_rank = -1;
    std::string server_host;
    std::string reader_host;
    Outcome outcome = Outcome::not_run;
    std::string phase;              ///< in which it failed; empty for PASS
    std::string error;              ///< one line: the call, the object, the peer, the cause
    std::string hint;               ///< the likely cause and the next command to run
    std::string stopped_by;         ///< the signal that ended it early, "SIGTERM"; empty: none
    std::optional<bool> confirmed;  ///< whether a second try failed as well
    Path path;
    std::optional<double> connect_ms;
    std::uint32_t attempts = 0;  ///< to connect
    /// Why those before the last one failed, in their order; a cause that repeats stands once.
    std::vector<std::string> attempt_errors;
    std::string read_started;       ///< by the reader's clock, ISO 8601, UTC
    std::string read_ended;         ///< the same
    std::vector<SizeResult> sizes;  ///< in the order in which they were run
    /// Counters of the local port that mean trouble and went up while it read, and by how much.
    /// nullopt: not known.
    std::optional<std::map<std::string, std::int64_t>> counters;
    std::vector<std::string> notes;     ///< remarks that are not failures, for a person
    std::vector<std::string> warnings;  ///< why its numbers may not be trusted
    std::optional<double> clock_ns;     ///< what one reading of the clock costs
    std::string cores;                  ///< where its thread may run, "0-3"; empty: unknown
    std::optional<SelfTest> self_test;  ///< nullopt: none was made

    /// Whether there was trouble on the way that the device made good, or not: some of the counters
    /// went up. Says nothing of the data. nullopt: not known.
    [[nodiscard]] std::optional<bool> degraded() const noexcept;
};

/// What a server says of itself. An empty string is an unknown.
struct ServerInfo {
    std::int32_t rank = -1;
    std::string host;
    std::string device;
    std::optional<std::uint32_t> port_num;
    std::string address;
    std::uint16_t port = 0;  ///< in the RDMA port space, host byte order; 0: unknown
    std::string link_layer;
    std::optional<std::uint32_t> mtu;           ///< active, in bytes
    std::optional<double> rate_gbps;            ///< of the port
    std::optional<double> cpu_s_while_serving;  ///< processor time from first to last reader
    std::optional<double> serving_s;            ///< the same on the clock
    std::uint64_t connections = 0;
    std::string stopped_by;  ///< the signal that ended it early, "SIGTERM"; empty: none
};

/// What a server tells all ranks before the run: where it is, or why it is nowhere.
struct Announcement {
    bool usable = false;  ///< false: `error` says why
    RunId run{};
    std::int32_t server_rank = -1;
    std::uint64_t buffer_bytes = 0;  ///< length of the exposed buffer
    ServerInfo server;
    std::string error;
    std::string hint;
};

}  // namespace rdma_read::verify
