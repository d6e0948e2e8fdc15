// A connection manager id: the control side of one connection or listener.
#pragma once

#include "rdma_read/rdma/address.hpp"
#include "rdma_read/rdma/event_channel.hpp"
#include "rdma_read/rdma/handles.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace rdma_read::rdma {

/// How a connection is asked for or accepted; the values that rdma_connect(3) and rdma_accept(3)
/// take, reduced to what a connection that only carries reads needs.
struct ConnectionParameters {
    /// Reads that this side may have in flight (rdma_connect(3), "initiator_depth").
    std::uint8_t initiator_depth = 0;
    /// Reads of the peer that this side answers at a time ("responder_resources").
    std::uint8_t responder_resources = 0;
    /// At most 56 bytes on the active side (rdma_connect(3), "private_data_len").
    std::span<const std::byte> private_data;
};

/// Owns one rdma_cm_id in the TCP port space. A queue pair made on it must be destroyed first.
/// Movable by construction only. Only the thread that owns the event channel may use it.
class CmId {
  public:
    /// A new id on `channel`. Throws Error.
    explicit CmId(const EventChannel& channel);
    /// Takes over the id that came with a CONNECT_REQUEST.
    explicit CmId(CmIdHandle incoming) noexcept : id_(std::move(incoming)) {}
    CmId(CmId&&) noexcept = default;
    CmId(const CmId&) = delete;
    CmId& operator=(const CmId&) = delete;
    CmId& operator=(CmId&&) = delete;
    ~CmId() = default;

    /// Binds to a local address; port 0 takes any free one. Throws Error.
    void bind(const Address& address);
    /// Starts to listen. Throws Error.
    void listen(int backlog);
    /// Starts to resolve the peer's address; ADDR_RESOLVED or an error event follows.
    /// `source` is null or the local address to go out from. Throws Error.
    void resolve_address(const Address& peer, const Address* source,
                         std::chrono::milliseconds timeout);
    /// Starts to resolve the route; ROUTE_RESOLVED or an error event follows. Throws Error.
    void resolve_route(const Address& peer, std::chrono::milliseconds timeout);
    /// Asks for the connection. Throws Error.
    void connect(const ConnectionParameters& parameters, const Address& peer);
    /// Accepts the request this id came with. Throws Error.
    void accept(const ConnectionParameters& parameters);
    /// Refuses the request this id came with, with a reason for the peer. Failing to refuse leaves
    /// the peer to its own deadline, so errors are ignored.
    void reject(std::span<const std::byte> reason) noexcept;
    /// Ends the connection from this side; does not wait. Returns whether the call succeeded.
    bool disconnect() noexcept;

    [[nodiscard]] rdma_cm_id* get() const noexcept { return id_.get(); }
    /// The device, known once bound or resolved; else null.
    [[nodiscard]] ibv_context* verbs() const noexcept { return id_->verbs; }
    [[nodiscard]] std::uint8_t port_num() const noexcept { return id_->port_num; }
    [[nodiscard]] std::optional<Address> local_address() const;
    [[nodiscard]] std::optional<Address> peer_address() const;
    /// The local GID in IPv6 notation.
    [[nodiscard]] std::string gid() const;
    /// iWARP wants remote write access on the destination of a read (RFC 5040, section 5.2).
    [[nodiscard]] bool is_iwarp() const noexcept;

  private:
    CmIdHandle id_;
};

}  // namespace rdma_read::rdma
