// Polls, arms and drains one completion queue.
#include "rdma_read/rdma/completion_queue.hpp"

#include "rdma_read/rdma/error.hpp"
#include "rdma_read/rdma/unique_fd.hpp"

#include <fmt/format.h>

namespace rdma_read::rdma {

CompletionQueue::CompletionQueue(ibv_context* verbs, int entries)
    : channel_(check_pointer(ibv_create_comp_channel(verbs),
                             {Phase::setup, "ibv_create_comp_channel", device_name(verbs)})),
      cq_(check_pointer(ibv_create_cq(verbs, entries, nullptr, channel_.get(), 0),
                        {Phase::setup, "ibv_create_cq",
                         fmt::format("{} entries on {}", entries, device_name(verbs))})) {
    make_non_blocking(channel_->fd, "completion channel");
}

CompletionQueue::~CompletionQueue() {
    if (unacknowledged_ > 0) {
        ibv_ack_cq_events(cq_.get(), unacknowledged_);
    }
}

void CompletionQueue::throw_poll_error(int result) {
    throw Error(Failure::setup, Phase::read, fmt::format("ibv_poll_cq: failed with {}", result), {},
                result);
}

void CompletionQueue::arm() {
    if (woken_) {
        take_wakeup();
    }
    if (!armed_) {
        check_errno_value(ibv_req_notify_cq(cq_.get(), 0), {Phase::read, "ibv_req_notify_cq", ""});
        armed_ = true;
    }
}

void CompletionQueue::take_wakeup() noexcept {
    // There is one at most for each time the queue was armed.
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    woken_ = false;
    if (ibv_get_cq_event(channel_.get(), &cq, &context) != 0) {
        return;
    }
    armed_ = false;
    // Acknowledging takes a lock, so it is done for many at once.
    if (++unacknowledged_ >= 64) {
        ibv_ack_cq_events(cq_.get(), unacknowledged_);
        unacknowledged_ = 0;
    }
}

}  // namespace rdma_read::rdma
