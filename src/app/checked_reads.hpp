// The reads of a run, each checked, and what checking cost.
#pragma once

#include "app/self_test.hpp"
#include "rdma_read/rdma/read_stream.hpp"
#include "rdma_read/verify/checker.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace rdma_read::app {

/// Lets the checker say where each read goes and look at what it brought, and knows how long that
/// took: of a sample, because two looks at the clock for every short read would cost more than the
/// check. The checker outlives it. Not thread safe.
class CheckedReads final : public rdma::ReadSink {
  public:
    /// `clock_ns`: what one reading of the clock costs, nanoseconds; each sample contains one.
    CheckedReads(verify::Checker& checker, ReadCheck check, double clock_ns = 0)
        : checker_(checker), check_(check), clock_ns_(clock_ns) {}
    /// How many seconds looking at all reads took, estimated from the sample; nothing if there was
    /// none.
    [[nodiscard]] std::optional<double> checking_s() const noexcept {
        if (sampled_ == 0) {
            return std::nullopt;
        }
        const double each =
            static_cast<double>(sampled_time_.count()) / static_cast<double>(sampled_);
        return std::max(each - clock_ns_, 0.0) * static_cast<double>(reads_) / 1e9;
    }
    rdma::ReadRequest next(std::uint32_t slot) override {
        const auto target = checker_.next(slot);
        return {target.remote_offset, target.destination};
    }
    void finished(std::uint32_t slot) override {
        if (reads_++ % kSampleEvery != 0) {
            check_(checker_, slot);
            return;
        }
        const auto begin = std::chrono::steady_clock::now();
        check_(checker_, slot);
        sampled_time_ += std::chrono::steady_clock::now() - begin;
        ++sampled_;
    }

  private:
    // A prime: reads finish in groups, and not always the first of one is to be looked at.
    static constexpr std::uint64_t kSampleEvery = 17;

    verify::Checker& checker_;
    ReadCheck check_;
    double clock_ns_;
    std::uint64_t reads_ = 0;
    std::uint64_t sampled_ = 0;
    std::chrono::nanoseconds sampled_time_{};
};

}  // namespace rdma_read::app
