// Sleeps until one of several descriptors has something to say, or a deadline passes.
#pragma once

#include "rdma_read/rdma/deadline.hpp"
#include "rdma_read/rdma/unique_fd.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>

namespace rdma_read::rdma {

/// Descriptors that are watched together (epoll(7)), and the time by a timer of its own: it is set
/// once for each deadline, while a time-out that is given to poll(2) is set and taken back by every
/// call, which shows in the latency of what is waited for. One thread at a time.
class WaitSet {
  public:
    /// Throws Error.
    WaitSet();

    /// Watches a descriptor until it is closed. Throws Error.
    void add(int fd);

    /// Sleeps until descriptors that were added are readable, or broken, and returns them, at most
    /// kMostAtOnce; none if the deadline passed or a signal came first. What is readable and not
    /// read is so in the next call again. The span is valid until then. Throws Error.
    [[nodiscard]] std::span<const int> wait(Deadline deadline);

    static constexpr std::size_t kMostAtOnce = 8;

  private:
    void set_timer(Deadline deadline);

    UniqueFd epoll_;
    UniqueFd timer_;
    std::optional<Deadline::Clock::time_point> timer_set_to_;
    std::array<int, kMostAtOnce> readable_{};
};

}  // namespace rdma_read::rdma
