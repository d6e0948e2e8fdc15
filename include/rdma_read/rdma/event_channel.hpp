// The channel on which a connection manager reports what happens to its ids.
#pragma once

#include "rdma_read/rdma/cm_event.hpp"
#include "rdma_read/rdma/deadline.hpp"
#include "rdma_read/rdma/error.hpp"
#include "rdma_read/rdma/stop_request.hpp"

#include <optional>
#include <string_view>

namespace rdma_read::rdma {

/// A non-blocking event channel. It must outlive every id that was created on it
/// (rdma_destroy_event_channel(3)). One thread owns a channel and its ids.
class EventChannel {
  public:
    /// Throws Error: no_device where the kernel has no RDMA support.
    EventChannel();

    /// The next event, acknowledged, or nothing if there is none now. Throws Error.
    [[nodiscard]] std::optional<CmEvent> try_next();

    /// Waits for an event; throws Error that names `waiting_for` when the deadline passes
    /// (timeout) or somebody asks to stop (stopped).
    [[nodiscard]] CmEvent next(Deadline deadline, Phase phase, const std::string& waiting_for,
                               const StopRequest& stop = {});

    [[nodiscard]] rdma_event_channel* get() const noexcept { return channel_.get(); }
    /// Readable when an event waits; for poll(2) and epoll(7).
    [[nodiscard]] int fd() const noexcept { return channel_->fd; }

  private:
    EventChannelHandle channel_;
};

}  // namespace rdma_read::rdma
