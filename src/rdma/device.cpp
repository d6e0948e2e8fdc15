// Finds devices through the addresses that are bound to them.
#include "rdma_read/rdma/device.hpp"

#include "rdma_read/rdma/cm_id.hpp"
#include "rdma_read/rdma/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace rdma_read::rdma {

namespace {

struct HostAddress {
    std::string interface;
    Address address;
};

std::vector<HostAddress> host_addresses() {
    ifaddrs* first = nullptr;
    check_minus_one(getifaddrs(&first), {Phase::device, "getifaddrs", ""});
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
    std::vector<HostAddress> addresses;
    for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
        if (const auto address = Address::from(entry->ifa_addr)) {
            addresses.push_back({entry->ifa_name, address->with_port(0)});
        }
    }
    std::stable_partition(addresses.begin(), addresses.end(),
                          [](const auto& at) { return at.address.family() == AF_INET; });
    return addresses;
}

std::string state_name(ibv_port_state state) {
    switch (state) {
        case IBV_PORT_DOWN:
            return "DOWN";
        case IBV_PORT_INIT:
            return "INIT";
        case IBV_PORT_ARMED:
            return "ARMED";
        case IBV_PORT_ACTIVE:
            return "ACTIVE";
        case IBV_PORT_ACTIVE_DEFER:
            return "ACTIVE_DEFER";
        case IBV_PORT_NOP:
            break;
    }
    return "?";
}

std::string describe(const DevicePort& port) {
    return fmt::format("{}:{} {} ({}, {})", port.device, port.port_num, port.address.to_string(),
                       port.interface, port.state);
}

// Why a wished address is not among the ports that can be used.
std::string why_not(const Address& address) {
    if (address.is_loopback()) {
        return "is loopback, which no other host can reach";
    }
    if (address.is_wildcard()) {
        return "is the wildcard, which names no device";
    }
    if (address.is_link_local()) {
        return "is link-local, which is not routed";
    }
    const auto here = host_addresses();
    return std::ranges::any_of(here, [&](const auto& at) { return at.address.same_host(address); })
               ? "belongs to this host, but to no RDMA device"
               : "is no address of this host";
}

}  // namespace

// Encodings of ibv_port_attr (InfiniBand Architecture Specification, PortInfo, LinkWidthActive and
// LinkSpeedActive).
double rate_gbps(const ibv_port_attr& port) {
    double lanes = 0;
    switch (port.active_width) {
        case 1:
            lanes = 1;
            break;
        case 2:
            lanes = 4;
            break;
        case 4:
            lanes = 8;
            break;
        case 8:
            lanes = 12;
            break;
        case 16:
            lanes = 2;
            break;
        default:
            break;
    }
    double lane_rate = 0;
    switch (port.active_speed) {
        case 1:
            lane_rate = 2.5;
            break;
        case 2:
            lane_rate = 5;
            break;
        case 4:
        case 8:
            lane_rate = 10;
            break;
        case 16:
            lane_rate = 14;
            break;
        case 32:
            lane_rate = 25;
            break;
        case 64:
            lane_rate = 50;
            break;
        case 128:
            lane_rate = 100;
            break;
        default:
            break;
    }
    // 8b/10b; the later speeds lose 2 bits of 66 or 257, which their names leave out.
    const bool coded = port.link_layer == IBV_LINK_LAYER_INFINIBAND && port.active_speed <= 4;
    return lanes * lane_rate * (coded ? 0.8 : 1);
}

DevicePort query_port(ibv_context* verbs, std::uint8_t port_num) {
    DevicePort port;
    port.device = device_name(verbs);
    port.port_num = port_num;
    ibv_port_attr attributes{};
    check_errno_value(
        ibv_query_port(verbs, port_num, &attributes),
        {Phase::device, "ibv_query_port", fmt::format("{}:{}", port.device, port_num)});
    port.active = attributes.state == IBV_PORT_ACTIVE;
    port.state = state_name(attributes.state);
    switch (attributes.link_layer) {
        case IBV_LINK_LAYER_ETHERNET:
            port.link_layer = "Ethernet";
            break;
        case IBV_LINK_LAYER_INFINIBAND:
            port.link_layer = "InfiniBand";
            break;
        default:
            port.link_layer = "?";
    }
    if (attributes.active_mtu >= IBV_MTU_256 && attributes.active_mtu <= IBV_MTU_4096) {
        port.mtu = 128U << static_cast<unsigned int>(attributes.active_mtu);
    }
    port.rate_gbps = rate_gbps(attributes);
    return port;
}

std::vector<DevicePort> list_device_ports(const EventChannel& channel) {
    std::vector<DevicePort> ports;
    for (const auto& at : host_addresses()) {
        if (at.address.is_loopback() || at.address.is_link_local()) {
            continue;
        }
        CmId id(channel);
        try {
            id.bind(at.address);
            if (id.verbs() == nullptr) {
                continue;
            }
            DevicePort port = query_port(id.verbs(), id.port_num());
            port.address = at.address;
            port.interface = at.interface;
            ports.push_back(std::move(port));
        } catch (const Error& error) {
            if (error.code() == EACCES || error.code() == EPERM) {
                throw;
            }
            // Most addresses of a host belong to no RDMA device: that is the answer, not an error.
            continue;
        }
    }
    return ports;
}

PortChoice choose_port(const std::vector<DevicePort>& ports, const PortWish& wish) {
    std::vector<DevicePort> active;
    std::ranges::copy_if(ports, std::back_inserter(active), &DevicePort::active);
    std::vector<DevicePort> fitting;
    std::ranges::copy_if(active, std::back_inserter(fitting), [&](const DevicePort& port) {
        return (!wish.address || wish.address->same_host(port.address))
               && (wish.interface.empty() || wish.interface == port.interface)
               && (wish.device.empty() || wish.device == port.device)
               && (!wish.port_num || *wish.port_num == port.port_num);
    });
    if (!fitting.empty()) {
        std::stable_partition(fitting.begin(), fitting.end(), [](const DevicePort& port) {
            return port.address.family() == AF_INET;
        });
        DevicePort first = fitting.front();
        fitting.erase(fitting.begin());
        return {std::move(first), std::move(fitting)};
    }
    const std::string usable = fmt::format("usable here: {}", describe(active));
    std::vector<std::string> wanted;
    if (wish.address) {
        const bool known = std::ranges::any_of(
            ports, [&](const auto& port) { return port.address.same_host(*wish.address); });
        wanted.push_back(fmt::format(
            "address {} {}", wish.address->to_string(),
            known ? "does not fit the rest, or its port is not ACTIVE" : why_not(*wish.address)));
    }
    if (!wish.interface.empty()) {
        wanted.push_back(fmt::format("interface {}", wish.interface));
    }
    if (!wish.device.empty()) {
        wanted.push_back(wish.port_num ? fmt::format("device {}:{}", wish.device, *wish.port_num)
                                       : fmt::format("device {}", wish.device));
    } else if (wish.port_num) {
        wanted.push_back(fmt::format("port {}", *wish.port_num));
    }
    if (!wanted.empty()) {
        throw Error(Failure::bad_address, Phase::device,
                    fmt::format("no ACTIVE RDMA port fits what was asked for ({}); {}",
                                fmt::join(wanted, ", "), usable),
                    "choose one of the usable ones, or leave the choice to the program");
    }
    throw Error(
        Failure::no_device, Phase::device,
        ports.empty() ? fmt::format(
            "no RDMA device with a routable IP address (devices: {})",
            device_names().empty() ? "none" : fmt::format("{}", fmt::join(device_names(), ", ")))
                      : fmt::format("no RDMA port is ACTIVE; present: {}", describe(ports)),
        "give the device's net interface an address and bring it up; check with: rdma link; ip -br "
        "addr");
}

std::vector<std::string> device_names() {
    int count = 0;
    const std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)> list(
        ibv_get_device_list(&count), &ibv_free_device_list);
    std::vector<std::string> names;
    for (int i = 0; list != nullptr && i < count; ++i) {
        names.emplace_back(ibv_get_device_name(list.get()[i]));
    }
    return names;
}

std::string describe(const std::vector<DevicePort>& ports) {
    if (ports.empty()) {
        return "none";
    }
    std::vector<std::string> texts;
    std::ranges::transform(ports, std::back_inserter(texts),
                           [](const DevicePort& port) { return describe(port); });
    return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace rdma_read::rdma
