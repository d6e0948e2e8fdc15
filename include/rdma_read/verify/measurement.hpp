// Latency and rate of reads.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rdma_read::verify {

/// Percentiles of latency in microseconds. Each is a latency that was measured (nearest rank): the
/// smallest one that at least p percent of all samples do not exceed.
struct LatencySummary {
    double min = 0;
    double p50 = 0;
    double p90 = 0;
    double p99 = 0;
    double p999 = 0;
    double max = 0;
    std::uint64_t samples = 0;
};

/// Collects the latency of every read of a phase. Not thread safe.
class LatencyRecorder {
  public:
    /// Makes room for `capacity` samples, all of it at once. Throws std::bad_alloc.
    explicit LatencyRecorder(std::size_t capacity);

    /// Takes one sample, without allocating. A negative one counts as zero; one beyond the capacity
    /// is counted in overflow() and otherwise ignored.
    void add(std::chrono::nanoseconds latency) noexcept;

    /// Exact percentiles of the samples, or nothing when there are none. Sorts a copy.
    [[nodiscard]] std::optional<LatencySummary> summary() const;

    [[nodiscard]] std::size_t samples() const noexcept { return samples_.size(); }
    /// How many samples found no room.
    [[nodiscard]] std::uint64_t overflow() const noexcept { return overflow_; }

  private:
    std::size_t capacity_;
    std::vector<std::chrono::nanoseconds> samples_;
    std::uint64_t overflow_ = 0;
};

/// How fast reads went.
struct Rate {
    double bytes_per_s = 0;
    double reads_per_s = 0;
    double seconds = 0;

    /// The rate of `reads` reads of `read_bytes` in `elapsed`; nothing when no time has passed.
    [[nodiscard]] static std::optional<Rate> of(std::uint64_t reads, std::uint64_t read_bytes,
                                                std::chrono::nanoseconds elapsed) noexcept;
};

}  // namespace rdma_read::verify
