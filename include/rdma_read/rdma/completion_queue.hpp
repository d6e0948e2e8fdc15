// A completion queue with the channel that wakes whoever sleeps on it.
#pragma once

#include "rdma_read/rdma/handles.hpp"

#include <cstddef>
#include <span>

namespace rdma_read::rdma {

/// Owns a completion channel and a queue on it. It must outlive the queue pairs that use it.
/// Only one thread may use it at a time.
class CompletionQueue {
  public:
    /// Throws Error; `entries` is the least number of completions that it holds.
    CompletionQueue(ibv_context* verbs, int entries);
    CompletionQueue(const CompletionQueue&) = delete;
    CompletionQueue& operator=(const CompletionQueue&) = delete;
    CompletionQueue(CompletionQueue&&) = delete;
    CompletionQueue& operator=(CompletionQueue&&) = delete;
    /// Acknowledges what it received: ibv_destroy_cq(3) waits for that.
    ~CompletionQueue();

    /// Takes finished work requests, as many as there are and fit; never waits. Throws Error.
    [[nodiscard]] std::span<ibv_wc> poll(std::span<ibv_wc> into) {
        const int count = ibv_poll_cq(cq_.get(), static_cast<int>(into.size()), into.data());
        if (count < 0) {
            throw_poll_error(count);
        }
        return into.first(static_cast<std::size_t>(count));
    }
    /// Sees to it that the next completion raises a wake-up, unless one is outstanding or raised
    /// already. What finished before is not announced, so poll once more after it
    /// (ibv_req_notify_cq(3)). Throws Error.
    void arm();
    /// To be told when fd() was found readable: the wake-up is taken off the channel before the
    /// next arm(), which leaves the time until then to whatever the wake-up was about.
    void woken() noexcept { woken_ = true; }

    [[nodiscard]] ibv_cq* get() const noexcept { return cq_.get(); }
    /// Readable after a wake-up; for poll(2) and epoll(7).
    [[nodiscard]] int fd() const noexcept { return channel_->fd; }

  private:
    [[noreturn]] static void throw_poll_error(int result);
    void take_wakeup() noexcept;

    CompChannelHandle channel_;
    CqHandle cq_;
    unsigned int unacknowledged_ = 0;
    bool armed_ = false;
    bool woken_ = false;
};

}  // namespace rdma_read::rdma
