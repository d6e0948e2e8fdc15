// Percentiles by nearest rank, and rates.
#include "rdma_read/verify/measurement.hpp"

#include <algorithm>

namespace rdma_read::verify {

namespace {

// The rank is the smallest whole number that is at least per_mille / 1000 of all samples.
double nearest_rank(const std::vector<std::chrono::nanoseconds>& sorted, std::size_t per_mille) {
    const std::size_t whole = sorted.size() / 1000 * per_mille;
    const std::size_t rest = (sorted.size() % 1000 * per_mille + 999) / 1000;
    const std::size_t rank = std::max<std::size_t>(whole + rest, 1);
    return std::chrono::duration<double, std::micro>(sorted[rank - 1]).count();
}

}  // namespace

LatencyRecorder::LatencyRecorder(std::size_t capacity) : capacity_(capacity) {
    samples_.reserve(capacity);
}

void LatencyRecorder::add(std::chrono::nanoseconds latency) noexcept {
    if (samples_.size() == capacity_) {
        ++overflow_;
        return;
    }
    samples_.push_back(std::max(latency, std::chrono::nanoseconds::zero()));
}

std::optional<LatencySummary> LatencyRecorder::summary() const {
    if (samples_.empty()) {
        return std::nullopt;
    }
    auto sorted = samples_;
    std::sort(sorted.begin(), sorted.end());
    LatencySummary summary;
    summary.min = nearest_rank(sorted, 0);
    summary.p50 = nearest_rank(sorted, 500);
    summary.p90 = nearest_rank(sorted, 900);
    summary.p99 = nearest_rank(sorted, 990);
    summary.p999 = nearest_rank(sorted, 999);
    summary.max = nearest_rank(sorted, 1000);
    summary.samples = sorted.size();
    return summary;
}

std::optional<Rate> Rate::of(std::uint64_t reads, std::uint64_t read_bytes,
                             std::chrono::nanoseconds elapsed) noexcept {
    const double seconds = std::chrono::duration<double>(elapsed).count();
    if (seconds <= 0) {
        return std::nullopt;
    }
    const double reads_per_s = static_cast<double>(reads) / seconds;
    return Rate{reads_per_s * static_cast<double>(read_bytes), reads_per_s, seconds};
}

}  // namespace rdma_read::verify
