// Reads, prints and classifies IPv4 and IPv6 addresses.
#include "rdma_read/rdma/address.hpp"

#include "rdma_read/rdma/error.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>

#include <array>
#include <cstring>
#include <memory>

namespace rdma_read::rdma {

namespace {

const sockaddr_in& as_v4(const sockaddr_storage& storage) {
    return reinterpret_cast<const sockaddr_in&>(storage);
}
const sockaddr_in6& as_v6(const sockaddr_storage& storage) {
    return reinterpret_cast<const sockaddr_in6&>(storage);
}

}  // namespace

Address::Address() noexcept {
    storage_.ss_family = AF_INET;
}

std::optional<Address> Address::parse(std::string_view text, std::uint16_t port) {
    if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
        text = text.substr(1, text.size() - 2);
    }
    const std::string terminated(text);
    if (terminated.find('\0') != std::string::npos) {
        return std::nullopt;  // inet_pton would not see what follows
    }
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    if (inet_pton(AF_INET, terminated.c_str(), &v4.sin_addr) == 1) {
        return from(reinterpret_cast<const sockaddr*>(&v4))->with_port(port);
    }
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    if (inet_pton(AF_INET6, terminated.c_str(), &v6.sin6_addr) == 1) {
        return from(reinterpret_cast<const sockaddr*>(&v6))->with_port(port);
    }
    return std::nullopt;
}

std::vector<Address> Address::resolve(const std::string& name, std::uint16_t port) {
    if (const auto numeric = parse(name, port)) {
        return {*numeric};
    }
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int result = getaddrinfo(name.c_str(), nullptr, &hints, &found);
    if (result != 0) {
        throw Error(Failure::bad_address, Phase::resolve,
                    fmt::format("getaddrinfo({}): {}", name, gai_strerror(result)),
                    "give a numeric address, or a name that /etc/hosts or DNS knows", result);
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
    std::vector<Address> addresses;
    for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
        if (const auto address = from(entry->ai_addr)) {
            addresses.push_back(address->with_port(port));
        }
    }
    if (addresses.empty()) {
        throw Error(Failure::bad_address, Phase::resolve,
                    fmt::format("getaddrinfo({}): no IPv4 or IPv6 address", name));
    }
    return addresses;
}

std::optional<Address> Address::from(const sockaddr* raw) {
    if (raw == nullptr || (raw->sa_family != AF_INET && raw->sa_family != AF_INET6)) {
        return std::nullopt;
    }
    Address address;
    std::memcpy(&address.storage_, raw,
                raw->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    return address;
}

std::uint16_t Address::port() const noexcept {
    return ntohs(family() == AF_INET ? as_v4(storage_).sin_port : as_v6(storage_).sin6_port);
}

Address Address::with_port(std::uint16_t port) const noexcept {
    Address copy = *this;
    if (family() == AF_INET) {
        reinterpret_cast<sockaddr_in&>(copy.storage_).sin_port = htons(port);
    } else {
        reinterpret_cast<sockaddr_in6&>(copy.storage_).sin6_port = htons(port);
    }
    return copy;
}

bool Address::is_loopback() const noexcept {
    if (family() == AF_INET) {
        return (ntohl(as_v4(storage_).sin_addr.s_addr) >> 24U) == 127;
    }
    const auto& v6 = as_v6(storage_).sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

bool Address::is_wildcard() const noexcept {
    return family() == AF_INET ? as_v4(storage_).sin_addr.s_addr == 0
                               : IN6_IS_ADDR_UNSPECIFIED(&as_v6(storage_).sin6_addr);
}

bool Address::is_link_local() const noexcept {
    return family() == AF_INET ? (ntohl(as_v4(storage_).sin_addr.s_addr) >> 16U) == 0xa9fe
                               : IN6_IS_ADDR_LINKLOCAL(&as_v6(storage_).sin6_addr);
}

bool Address::same_host(const Address& other) const noexcept {
    if (family() != other.family()) {
        return false;
    }
    return family() == AF_INET
               ? as_v4(storage_).sin_addr.s_addr == as_v4(other.storage_).sin_addr.s_addr
               : IN6_ARE_ADDR_EQUAL(&as_v6(storage_).sin6_addr, &as_v6(other.storage_).sin6_addr);
}

std::string Address::to_string() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* const raw_address = family() == AF_INET
                                        ? static_cast<const void*>(&as_v4(storage_).sin_addr)
                                        : static_cast<const void*>(&as_v6(storage_).sin6_addr);
    inet_ntop(family(), raw_address, text.data(), text.size());
    return text.data();
}

std::string Address::with_port_text() const {
    return family() == AF_INET ? fmt::format("{}:{}", to_string(), port())
                               : fmt::format("[{}]:{}", to_string(), port());
}

sockaddr* Address::raw() const noexcept {
    return const_cast<sockaddr*>(reinterpret_cast<const sockaddr*>(&storage_));
}

socklen_t Address::raw_size() const noexcept {
    return family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

}  // namespace rdma_read::rdma
