// Reads, prints and classifies IPv4 and IPv6 addresses.
#include "rdma_read/rdma/address.hpp"

#include "rdma_read/rdma/error.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>

#include <array>
#include <cstring>
#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace rdma_read::rdma {

namespace {

const sockaddr_in& as_v4(const sockaddr_storage& storage) {
    return reinterpret_cast<const sockaddr_in&>(storage);
}
const sockaddr_in6& as_v6(const sockaddr_storage& storage) {
    return reinterpret_cast<const sockaddr_in6&>(storage);
}

struct FreeList {
    void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};

// What the resolver said.
struct Answer {
    int error = 0;
    std::unique_ptr<addrinfo, FreeList> list;
};

Answer ask(const std::string& name, int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    addrinfo* found = nullptr;
    Answer answer;
    answer.error = getaddrinfo(name.c_str(), nullptr, &hints, &found);
    answer.list.reset(answer.error == 0 ? found : nullptr);
    return answer;
}

// On a thread of its own, which is left to itself when the deadline passes: nothing calls the
// resolver off.
Answer ask(const std::string& name, Deadline deadline) {
    std::packaged_task<Answer()> question([name] { return ask(name, 0); });
    auto answer = question.get_future();
    std::thread(std::move(question)).detach();
    if (answer.wait_for(deadline.remaining()) != std::future_status::ready) {
        throw Error(Failure::timeout, Phase::resolve,
                    fmt::format("getaddrinfo({}): no answer before the deadline", name),
                    fmt::format("give a numeric address, or look at the name servers in "
                                "/etc/resolv.conf; check: getent ahosts {}",
                                name));
    }
    return answer.get();
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

std::vector<Address> Address::resolve(const std::string& name, std::uint16_t port,
                                      Deadline deadline) {
    if (const auto numeric = parse(name, port)) {
        return {*numeric};
    }
    // Numeric addresses that inet_pton(3) does not know, such as those with a scope, are answered
    // at once.
    Answer answer = ask(name, AI_NUMERICHOST);
    if (answer.error == EAI_NONAME) {
        answer = ask(name, deadline);
    }
    if (answer.error != 0) {
        throw Error(Failure::bad_address, Phase::resolve,
                    fmt::format("getaddrinfo({}): {}", name, gai_strerror(answer.error)),
                    "give a numeric address, or a name that /etc/hosts or DNS knows", answer.error);
    }
    std::vector<Address> addresses;
    for (const addrinfo* entry = answer.list.get(); entry != nullptr; entry = entry->ai_next) {
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
