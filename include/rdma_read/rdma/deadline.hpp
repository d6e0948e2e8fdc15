// A point in time at which a wait gives up; every wait of this library takes one.
#pragma once

#include <algorithm>
#include <chrono>

namespace rdma_read::rdma {

/// A point on the steady clock. A value type; safe to copy between threads.
class Deadline {
  public:
    using Clock = std::chrono::steady_clock;

    explicit Deadline(Clock::time_point at) noexcept : at_(at) {}

    /// The deadline that lies `budget` from now.
    [[nodiscard]] static Deadline after(std::chrono::nanoseconds budget) noexcept {
        return Deadline(Clock::now() + budget);
    }

    [[nodiscard]] Clock::time_point at() const noexcept { return at_; }
    [[nodiscard]] bool expired() const noexcept { return Clock::now() >= at_; }

    /// The earlier of two deadlines: a step inside a budget never outlives the budget.
    [[nodiscard]] Deadline or_earlier(Deadline other) const noexcept {
        return Deadline(std::min(at_, other.at_));
    }

    /// What is left, never negative.
    [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept {
        return std::max(std::chrono::nanoseconds::zero(),
                        std::chrono::duration_cast<std::chrono::nanoseconds>(at_ - Clock::now()));
    }

    /// What is left in milliseconds for poll(2) and epoll_wait(2), rounded up so that a wait does
    /// not spin through its last millisecond; bounded so that it fits an int.
    [[nodiscard]] int poll_timeout_ms() const noexcept {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(remaining());
        return static_cast<int>(std::min<std::chrono::milliseconds::rep>(left.count(), 60'000));
    }

  private:
    Clock::time_point at_;
};

}  // namespace rdma_read::rdma
