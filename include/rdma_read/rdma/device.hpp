// The RDMA devices of this host by the IP addresses that reach them, and the choice among them.
#pragma once

#include "rdma_read/rdma/address.hpp"
#include "rdma_read/rdma/event_channel.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rdma_read::rdma {

/// One port of one device as seen through one IP address.
struct DevicePort {
    std::string device;
    std::uint8_t port_num = 0;
    Address address;         ///< port 0
    std::string interface;   ///< the net device that holds the address
    bool active = false;     ///< port state ACTIVE
    std::string state;       ///< "ACTIVE", "DOWN", …
    std::string link_layer;  ///< "Ethernet", "InfiniBand", or "?"
    std::uint32_t mtu = 0;   ///< active MTU in bytes, 0 if not known
    double rate_gbps = 0;    ///< what the port can carry, 0 if not known
};

/// What the port can carry in 10^9 bit/s: active width times active speed, and of SDR, DDR and QDR
/// InfiniBand, whose speeds count the bits of the 8b/10b coding, four fifths of it; 0 if not known.
[[nodiscard]] double rate_gbps(const ibv_port_attr& port);

/// What the port of `verbs` says of itself; device, port_num, state, link layer, MTU and rate.
[[nodiscard]] DevicePort query_port(ibv_context* verbs, std::uint8_t port_num);

/// Every address of this host that is bound to an RDMA device, in the order of the host's
/// interfaces, IPv4 before IPv6. The connection manager itself is asked (rdma_bind_addr(3)), so
/// what is listed is what a server can listen on. Loopback and link-local addresses are left out.
[[nodiscard]] std::vector<DevicePort> list_device_ports(const EventChannel& channel);

/// What the user wants of the server's address; an empty member does not restrict.
struct PortWish {
    std::optional<Address> address;
    std::string interface;
    std::string device;
    std::optional<std::uint8_t> port_num;
};

/// What was chosen, and what else could have been.
struct PortChoice {
    DevicePort port;
    std::vector<DevicePort> others;  ///< further usable candidates, for a word to the user
};

/// The first ACTIVE port that fits the wish, IPv4 before IPv6. Throws Error (no_device or
/// bad_address) that names what was wanted and lists what is usable.
[[nodiscard]] PortChoice choose_port(const std::vector<DevicePort>& ports, const PortWish& wish);

/// Names of all RDMA devices of this host, with or without an address; empty where there are none.
[[nodiscard]] std::vector<std::string> device_names();

/// "rxe0:1 10.0.0.1 (eth0, ACTIVE)" for each, comma-separated; "none" for an empty list.
[[nodiscard]] std::string describe(const std::vector<DevicePort>& ports);

}  // namespace rdma_read::rdma
