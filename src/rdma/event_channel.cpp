// Takes events off the channel: copied, acknowledged, and only then interpreted.
#include "rdma_read/rdma/event_channel.hpp"

#include "rdma_read/rdma/unique_fd.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace rdma_read::rdma {

EventChannel::EventChannel()
    : channel_(check_pointer(rdma_create_event_channel(),
                             {Phase::device, "rdma_create_event_channel", ""})) {
    make_non_blocking(channel_->fd, "event channel");
}

std::optional<CmEvent> EventChannel::try_next() {
    rdma_cm_event* raw = nullptr;
    if (rdma_get_cm_event(channel_.get(), &raw) != 0) {
        if (errno == EAGAIN || errno == EINTR) {
            return std::nullopt;
        }
        throw_system_error({Phase::connect, "rdma_get_cm_event", ""}, -1);
    }
    CmEvent event;
    // As a number: a newer librdmacm may send what this header's enumeration does not hold.
    std::memcpy(&event.type, &raw->event, sizeof(event.type));
    event.status = raw->status;
    event.id = raw->id;
    // Only these carry connection parameters; in others the union holds something else.
    if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST || event.type == RDMA_CM_EVENT_ESTABLISHED
        || event.type == RDMA_CM_EVENT_REJECTED || event.type == RDMA_CM_EVENT_CONNECT_RESPONSE) {
        const rdma_conn_param& parameters = raw->param.conn;
        event.responder_resources = parameters.responder_resources;
        event.initiator_depth = parameters.initiator_depth;
        if (parameters.private_data != nullptr) {
            event.set_private_data({static_cast<const std::byte*>(parameters.private_data),
                                    parameters.private_data_len});
        }
    }
    if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST) {
        event.incoming.reset(raw->id);
    }
    check_minus_one(rdma_ack_cm_event(raw), {Phase::connect, "rdma_ack_cm_event", ""});
    return event;
}

CmEvent EventChannel::next(Deadline deadline, Phase phase, const std::string& waiting_for,
                           const StopRequest& stop) {
    for (;;) {
        if (auto event = try_next()) {
            return std::move(*event);
        }
        if (stop.made()) {
            throw Error(Failure::stopped, phase,
                        fmt::format("stopped while waiting for {}", waiting_for));
        }
        if (deadline.expired()) {
            throw Error(
                Failure::timeout, phase,
                fmt::format("no answer before the deadline while waiting for {}", waiting_for),
                phase == Phase::resolve
                    ? "the peer's address does not answer; check: ping, ip neighbour, rdma link"
                    : "the address was resolved, but nothing answered there: the host may be down "
                      "(behind a router nobody tells), its program stuck or stopped, or a firewall "
                      "in between (UDP 4791 for RoCE); look at all three");
        }
        // poll(2) leaves out descriptors below 0.
        std::array<pollfd, 2> ready{{{fd(), POLLIN, 0}, {stop.fd, POLLIN, 0}}};
        if (poll(ready.data(), ready.size(), deadline.poll_timeout_ms()) < 0 && errno != EINTR) {
            throw_system_error({phase, "poll", "event channel"}, -1);
        }
    }
}

}  // namespace rdma_read::rdma
