// Reads, prints and classifies IPv4 and IPv6 addresses.
#include "rdma_read/rdma/address.hpp"

#include "rdma_read/rdma/error.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>

#include <array>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

namespace rdma_read::rdma {

namespace {

const sockaddr_in& as_v4(const sockaddr_storage& storage) {
    return reinterpret_cast<const sockaddr_in&>(storage);
}
const sockaddr_in6& as_v6(const sockaddr_storage& storage) {
    return reinterpret_cast<const sockaddr_in6&>(storage);
}

// One question to the resolver, and its answer.
class Lookup {
  public:
    explicit Lookup(std::string name) : name_(std::move(name)) { hints_.ai_socktype = SOCK_STREAM; }
    Lookup(const Lookup&) = delete;
    Lookup& operator=(const Lookup&) = delete;
    Lookup(Lookup&&) = delete;
    Lookup& operator=(Lookup&&) = delete;
    ~Lookup() {
        if (request_.ar_result != nullptr) {
            freeaddrinfo(request_.ar_result);
        }
    }

    // Answers at once and starts no thread, but knows numeric addresses alone, also those with a
    // scope.
    int numeric() {
        hints_.ai_flags = AI_NUMERICHOST;
        return getaddrinfo(name_.c_str(), nullptr, &hints_, &request_.ar_result);
    }
    // EAI_INPROGRESS when the deadline passes first.
    int by_name(Deadline deadline) {
        hints_.ai_flags = 0;
        request_.ar_name = name_.c_str();
        request_.ar_request = &hints_;
        gaicb* list = &request_;
        if (const int error = getaddrinfo_a(GAI_NOWAIT, &list, 1, nullptr); error != 0) {
            return error;
        }
        while (gai_error(&request_) == EAI_INPROGRESS && !deadline.expired()) {
            const auto left = deadline.remaining();
            const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
            const timespec timeout{seconds.count(), (left - seconds).count()};
            gai_suspend(&list, 1, &timeout);
        }
        return gai_error(&request_);
    }
    // False while the resolver still works on it and needs this object.
    bool cancel() { return gai_cancel(&request_) != EAI_NOTCANCELED; }
    [[nodiscard]] const addrinfo* answer() const { return request_.ar_result; }

  private:
    std::string name_;
    addrinfo hints_{};
    gaicb request_{};
};

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

std::vector<Address> Address::resolve(const std::string& name, std::uint16_t port,
                                      Deadline deadline) {
    if (const auto numeric = parse(name, port)) {
        return {*numeric};
    }
    auto lookup = std::make_unique<Lookup>(name);
    int result = lookup->numeric();
    if (result == EAI_NONAME) {
        result = lookup->by_name(deadline);
    }
    if (result == EAI_INPROGRESS) {
        if (!lookup->cancel()) {
            // Left to the resolver's thread, which writes to it when it gives up at last.
            static_cast<void>(lookup.release());
        }
        throw Error(Failure::timeout, Phase::resolve,
                    fmt::format("getaddrinfo({}): no answer before the deadline", name),
                    fmt::format("give a numeric address, or look at the name servers in "
                                "/etc/resolv.conf; check: getent ahosts {}",
                                name));
    }
    if (result != 0) {
        throw Error(Failure::bad_address, Phase::resolve,
                    fmt::format("getaddrinfo({}): {}", name, gai_strerror(result)),
                    "give a numeric address, or a name that /etc/hosts or DNS knows", result);
    }
    std::vector<Address> addresses;
    for (const addrinfo* entry = lookup->answer(); entry != nullptr; entry = entry->ai_next) {
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
