// How long to look for an answer before sleeping, learned from how long answers took.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

namespace rdma_read::rdma {

/// Where an answer takes less than a sleep and a wake-up, sleeping costs more than it saves. Where
/// it takes longer, looking pays if nobody else needs the processor, and does harm if somebody
/// does, perhaps the very peer that is waited for: which of the two it is shows in how soon answers
/// come, so both ways are tried and compared. A value type; one thread at a time.
class PollBudget {
  public:
    using Duration = std::chrono::nanoseconds;

    static constexpr Duration kLeast = std::chrono::microseconds(2);
    /// About what a sleep and a wake-up cost: looking for less than this needs no reason.
    static constexpr Duration kMost = std::chrono::microseconds(50);
    /// Looking for longer than this would not gain enough of it.
    static constexpr Duration kLongest = std::chrono::milliseconds(1);
    /// Where answers take long, so many waits in a row try the other way, for the first time soon
    /// and then once in so many. The first of them still bear the marks of the way before: they
    /// only settle.
    static constexpr std::uint32_t kTryLength = 8;
    static constexpr std::uint32_t kTrySettles = 3;
    static constexpr std::uint32_t kFirstTry = 24;
    static constexpr std::uint32_t kWaitsPerTry = 256;

    /// How long the wait that begins may look before it sleeps.
    [[nodiscard]] Duration begin_wait() noexcept {
        const bool trying =
            waits_ % kWaitsPerTry >= kFirstTry && waits_ % kWaitsPerTry < kFirstTry + kTryLength;
        ++waits_;
        if (!trying) {
            tries_ = 0;
        }
        switch (way_) {
            case Way::short_looks:
                look_ = std::clamp(2 * usual_, kLeast, kMost);
                break;
            case Way::sleeps:
                look_ = trying ? std::clamp(slept_, kMost, kLongest) : Duration::zero();
                break;
            case Way::long_looks:
                look_ = trying ? Duration::zero() : std::clamp(2 * usual_, kMost, kLongest);
                break;
        }
        return look_;
    }

    /// The wait that began last ended after this time, by an answer that was seen while looking or
    /// after a sleep.
    void answered(Duration after, bool slept) noexcept {
        switch (way_) {
            case Way::short_looks:
                // How long a look that found nothing would have had to be is not known: the answer
                // may have come only because the processor was free then.
                usual_ += ((slept ? 2 * kMost : after) - usual_) / 8;
                if (usual_ > kMost) {
                    take(Way::sleeps);
                    slept_ = Duration::zero();
                }
                break;
            case Way::sleeps:
                if (look_ == Duration::zero()) {
                    slept_ = slept_ == Duration::zero() ? after : followed(slept_, after);
                } else if (!slept && after <= kMost) {
                    usual_ = after;
                    take(Way::short_looks);
                } else if (const auto looked = tried(after); looked && pays(*looked)) {
                    usual_ = *looked;
                    take(Way::long_looks);
                }
                break;
            case Way::long_looks:
                if (look_ > Duration::zero()) {
                    usual_ = followed(usual_, after);
                } else if (const auto sleeping = tried(after)) {
                    slept_ += (*sleeping - slept_) / 2;
                }
                if (usual_ <= kMost) {
                    take(Way::short_looks);
                } else if (usual_ > slept_) {
                    take(Way::sleeps);
                }
                break;
        }
    }

    /// Whether a wait, but for a try now and then, sleeps at once.
    [[nodiscard]] bool sleeping() const noexcept { return way_ == Way::sleeps; }

  private:
    enum class Way { short_looks, sleeps, long_looks };

    void take(Way way) noexcept {
        way_ = way;
        tries_ = 0;
    }
    // What answers usually take, after one more; a few that take very long are not usual.
    [[nodiscard]] static Duration followed(Duration usual, Duration after) noexcept {
        return usual + std::clamp((after - usual) / 8, -usual / 32, usual / 32);
    }
    // With the last wait of a try: what the way that was tried usually takes.
    [[nodiscard]] std::optional<Duration> tried(Duration after) noexcept {
        if (++tries_ > kTrySettles) {
            tried_.at(tries_ - kTrySettles - 1) = after;
        }
        if (tries_ < kTryLength) {
            return std::nullopt;
        }
        tries_ = 0;
        auto* const middle = tried_.begin() + tried_.size() / 2;
        std::ranges::nth_element(tried_, middle);
        return *middle;
    }
    // Answers differ from one to the next: for a small gain the way is not changed.
    [[nodiscard]] bool pays(Duration looked) const noexcept {
        return looked < slept_ - slept_ / 16;
    }

    Way way_ = Way::short_looks;
    Duration usual_ = kMost / 2;         // until an answer is seen while looking
    Duration slept_ = Duration::zero();  // until an answer comes where a wait sleeps at once
    Duration look_ = Duration::zero();
    std::uint32_t waits_ = 0;
    std::uint32_t tries_ = 0;
    std::array<Duration, kTryLength - kTrySettles> tried_{};
};

}  // namespace rdma_read::rdma
