// How long to look for an answer before sleeping, learned from how long answers took.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace rdma_read::rdma {

/// Where an answer takes less than a sleep and a wake-up, sleeping costs more than it saves; where
/// it takes longer, looking only keeps the processor from whoever else needs it, perhaps the very
/// peer that is waited for. A value type; one thread at a time.
class PollBudget {
  public:
    using Duration = std::chrono::nanoseconds;

    static constexpr Duration kLeast = std::chrono::microseconds(2);
    /// About what a sleep and a wake-up cost.
    static constexpr Duration kMost = std::chrono::microseconds(50);
    /// Where sleeping is the rule, one in so many waits looks first: answers may have become
    /// short, and a sleep would hide it.
    static constexpr std::uint32_t kWaitsPerProbe = 64;

    /// How long the wait that begins may look before it sleeps.
    [[nodiscard]] Duration begin_wait() noexcept {
        if (!sleeping()) {
            return std::clamp(2 * usual_, kLeast, kMost);
        }
        return ++waits_ % kWaitsPerProbe == 0 ? kMost : Duration::zero();
    }
    /// The wait ended after this time, by an answer that was seen while looking or after a sleep.
    void answered(Duration after, bool slept) noexcept {
        if (sleeping()) {
            if (!slept) {
                usual_ = after;
            }
            return;
        }
        // How long a look that found nothing would have had to be is not known: the answer may have
        // come only because the processor was free then.
        usual_ += ((slept ? 2 * kMost : after) - usual_) / 8;
    }

    /// Whether answers take so long that a wait sleeps at once.
    [[nodiscard]] bool sleeping() const noexcept { return usual_ > kMost; }

  private:
    Duration usual_ = kMost / 2;
    std::uint32_t waits_ = 0;
};

}  // namespace rdma_read::rdma
