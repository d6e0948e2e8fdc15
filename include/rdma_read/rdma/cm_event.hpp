// A connection manager event, copied to a value so that it can be acknowledged before it is used.
#pragma once

#include "rdma_read/rdma/handles.hpp"

#include <rdma/rdma_cma.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace rdma_read::rdma {

/// One event of rdma_get_cm_event(3), already acknowledged.
///
/// An event that is not acknowledged makes rdma_destroy_id(3) block for ever; a value cannot be
/// forgotten in that way.
struct CmEvent {
    /// An rdma_cm_event_type, or a number beyond it from a librdmacm that is newer than the header
    /// this was built with.
    std::underlying_type_t<rdma_cm_event_type> type{};
    /// Negative errno for address, route and unreachable errors; the connection manager's own
    /// reason for REJECTED (8 no listener or consumer, 10 stale connection, 28 consumer defined).
    int status = 0;
    /// The id it happened on; not owned, and only to be compared with ids that the receiver owns.
    rdma_cm_id* id = nullptr;
    /// For CONNECT_REQUEST only: the new connection's id, owned by whoever takes the event.
    CmIdHandle incoming;
    /// CONNECT_REQUEST: how many reads the peer wants to have in flight. ESTABLISHED: see below.
    std::uint8_t responder_resources = 0;
    /// ESTABLISHED on the active side: how many reads may be in flight towards the peer.
    std::uint8_t initiator_depth = 0;

    /// What the peer sent with the event. The network may pad it with zeros (rdma_accept(3),
    /// "private_data_len"), so a decoder reads a prefix.
    [[nodiscard]] std::span<const std::byte> private_data() const noexcept {
        return std::span(private_storage_).first(private_size_);
    }
    void set_private_data(std::span<const std::byte> data) noexcept;

  private:
    std::array<std::byte, 256> private_storage_{};
    std::size_t private_size_ = 0;
};

/// "RDMA_CM_EVENT_REJECTED (status 8: no listener, or refused by the peer)".
[[nodiscard]] std::string describe(const CmEvent& event);

}  // namespace rdma_read::rdma
