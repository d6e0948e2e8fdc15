// What keeps a reader from being faster.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rdma_read::verify {

/// What can limit a reader's bandwidth.
enum class BoundKind : std::uint8_t {
    port,         ///< the slower of the reader's and the server's port
    server_port,  ///< the server's port, which several readers share
    depth,        ///< the reads in flight, each of which takes its latency
    checking,     ///< looking at the bytes that were read
    unknown,      ///< none of those that are known
};

/// "port", "server_port", "depth", "checking", "unknown".
[[nodiscard]] std::string_view to_string(BoundKind kind) noexcept;

/// What was measured of one reader and one size in its throughput phase, and what is known of its
/// path. What is not known stays empty; a number that cannot be (zero, negative, infinite, NaN)
/// counts as not known.
struct BoundInput {
    double bandwidth_bytes_per_s = 0;          ///< measured
    std::optional<double> reader_rate_gbps;    ///< of the reader's port, 10^9 bit/s
    std::optional<double> server_rate_gbps;    ///< of the server's port, 10^9 bit/s
    std::uint32_t readers_at_server = 1;       ///< that read from it at the same time, this one too
    std::optional<double> server_bytes_per_s;  ///< what all of these got together
    std::uint64_t size = 0;                    ///< S, bytes of each read; 0: not known
    std::uint64_t reads_in_flight = 0;  ///< N: on the wire at a time, over all QPs; 0: not known
    std::optional<double> latency_us;   ///< of a single read of this size, the least
    std::optional<double> checking_s;   ///< spent on checking in the phase
    std::optional<double> phase_s;      ///< the phase took
};

/// The bound that binds.
struct Bound {
    BoundKind kind = BoundKind::unknown;
    /// What the bound allows this reader, in bytes/s. When none binds: what the nearest known bound
    /// allows; empty when none is known.
    std::optional<double> bytes_per_s;
    /// Measured bandwidth as a share of that, 1 being all of it; empty when none is known. For a
    /// shared port of which it is known what all readers got: their share of the port.
    std::optional<double> used;
    /// For a person: one short line of ASCII without a newline, independent of the locale.
    std::string text;
};

/// A bound binds when at least this share of what it allows was measured. Below 1, because headers
/// take their part of a port's rate and because reads begin and end.
inline constexpr double kBindingShare = 0.85;

/// A bound of which more than this was measured is no bound: what it was derived from does not
/// describe the throughput phase (two ranks on one host whose reads never reach the port; single
/// reads that waited in sleep while those in flight did not).
inline constexpr double kRefutedShare = 1.15;

/// Says which bound binds: of all that are known and not refuted, the one of which the largest
/// share is used, if that is at least kBindingShare. Equal ones rank as in BoundKind. The bounds
/// are, in bytes/s:
///
///  - port: the least of the known port rates, R / 8;
///  - server_port, for k > 1 readers: the server's R / 8 / k. When it is known what all of them
///    got together, then that is compared with R / 8: k readers need not get equal parts;
///  - depth: N * S / T, where T is the time that one read of this size takes when it is alone, as
///    measured: the time of the shortest read and that of S bytes on the wire. Take the least
///    latency: it is what a read costs when nothing disturbs it, and a bound has to lie above what
///    can be reached;
///  - checking: S * reads / checking time, which is the measured bandwidth divided by the share of
///    the phase that went into checking. Checking overlaps the flight of other reads, so it binds
///    only when it takes nearly all the time.
///
/// The same input gives the same answer, on any thread. Throws std::bad_alloc only.
[[nodiscard]] Bound explain(const BoundInput& input);

}  // namespace rdma_read::verify
