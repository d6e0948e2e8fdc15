// The calls of librdmacm on one id, each with its error named.
#include "rdma_read/rdma/cm_id.hpp"

#include <arpa/inet.h>

#include <array>
#include <cerrno>

namespace rdma_read::rdma {

namespace {

// RNR retries without end: a receive that is posted late is no failure (our deadline bounds it).
constexpr std::uint8_t kRnrRetryForever = 7;
// 7 would be taken as endless by some devices, so a dead peer would never be noticed.
constexpr std::uint8_t kRetryCount = 6;

rdma_conn_param raw_parameters(const ConnectionParameters& parameters) {
    rdma_conn_param raw{};
    raw.private_data = parameters.private_data.data();
    raw.private_data_len = static_cast<std::uint8_t>(parameters.private_data.size());
    raw.responder_resources = parameters.responder_resources;
    raw.initiator_depth = parameters.initiator_depth;
    raw.retry_count = kRetryCount;
    raw.rnr_retry_count = kRnrRetryForever;
    return raw;
}

rdma_cm_id* create_id(const EventChannel& channel) {
    rdma_cm_id* id = nullptr;
    check_minus_one(rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_TCP),
                    {Phase::setup, "rdma_create_id", "RDMA_PS_TCP"});
    return id;
}

}  // namespace

CmId::CmId(const EventChannel& channel) : id_(create_id(channel)) {}

void CmId::bind(const Address& address) {
    if (rdma_bind_addr(id_.get(), address.raw()) == 0) {
        return;
    }
    // For a wildcard the kernel says "not available" where it means that the port is taken
    // (cma_check_port() in drivers/infiniband/core/cma.c).
    const int cause = errno == EADDRNOTAVAIL && address.is_wildcard() ? EADDRINUSE : errno;
    throw_system_error({Phase::device, "rdma_bind_addr", address.with_port_text()}, cause);
}

void CmId::listen(int backlog) {
    const auto bound = local_address();
    check_minus_one(
        rdma_listen(id_.get(), backlog),
        {Phase::device, "rdma_listen", bound ? bound->with_port_text() : std::string("?")});
}

void CmId::resolve_address(const Address& peer, const Address* source,
                           std::chrono::milliseconds timeout) {
    check_minus_one(rdma_resolve_addr(id_.get(), source == nullptr ? nullptr : source->raw(),
                                      peer.raw(), static_cast<int>(timeout.count())),
                    {Phase::resolve, "rdma_resolve_addr", peer.with_port_text()});
}

void CmId::resolve_route(const Address& peer, std::chrono::milliseconds timeout) {
    check_minus_one(rdma_resolve_route(id_.get(), static_cast<int>(timeout.count())),
                    {Phase::resolve, "rdma_resolve_route", peer.with_port_text()});
}

void CmId::connect(const ConnectionParameters& parameters, const Address& peer) {
    rdma_conn_param raw = raw_parameters(parameters);
    check_minus_one(rdma_connect(id_.get(), &raw),
                    {Phase::connect, "rdma_connect", peer.with_port_text()});
}

void CmId::accept(const ConnectionParameters& parameters) {
    rdma_conn_param raw = raw_parameters(parameters);
    const auto peer = peer_address();
    check_minus_one(
        rdma_accept(id_.get(), &raw),
        {Phase::connect, "rdma_accept", peer ? peer->with_port_text() : std::string("?")});
}

void CmId::reject(std::span<const std::byte> reason) noexcept {
    rdma_reject(id_.get(), reason.data(), static_cast<std::uint8_t>(reason.size()));
}

bool CmId::disconnect() noexcept {
    return rdma_disconnect(id_.get()) == 0;
}

std::optional<Address> CmId::local_address() const {
    return Address::from(rdma_get_local_addr(id_.get()));
}

std::optional<Address> CmId::peer_address() const {
    return Address::from(rdma_get_peer_addr(id_.get()));
}

std::string CmId::gid() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(AF_INET6, id_->route.addr.addr.ibaddr.sgid.raw, text.data(), text.size());
    return text.data();
}

bool CmId::is_iwarp() const noexcept {
    return id_->verbs != nullptr && id_->verbs->device != nullptr
           && id_->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

}  // namespace rdma_read::rdma
