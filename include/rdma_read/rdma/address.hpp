// An IPv4 or IPv6 address with a port, as librdmacm and getaddrinfo know it.
#pragma once

#include "rdma_read/rdma/deadline.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rdma_read::rdma {

/// A socket address of family AF_INET or AF_INET6. A value type.
class Address {
  public:
    /// The IPv4 wildcard, port 0.
    Address() noexcept;

    /// Reads a numeric address ("10.0.0.1", "fd00::1", "[fd00::1]"); nothing is looked up.
    [[nodiscard]] static std::optional<Address> parse(std::string_view text,
                                                      std::uint16_t port = 0);

    /// Looks a numeric address or a name up with getaddrinfo(3), in its order of preference. A name
    /// is looked up on a thread of its own, which may outlive the call: name servers that do not
    /// answer are waited for much longer than most deadlines. Throws Error (timeout when the
    /// deadline passes), and std::system_error if there can be no thread.
    [[nodiscard]] static std::vector<Address> resolve(const std::string& name, std::uint16_t port,
                                                      Deadline deadline);

    /// Copies a socket address; nothing if it is null or of another family.
    [[nodiscard]] static std::optional<Address> from(const sockaddr* raw);

    [[nodiscard]] int family() const noexcept { return storage_.ss_family; }
    /// The port in host byte order.
    [[nodiscard]] std::uint16_t port() const noexcept;
    [[nodiscard]] Address with_port(std::uint16_t port) const noexcept;

    [[nodiscard]] bool is_loopback() const noexcept;
    [[nodiscard]] bool is_wildcard() const noexcept;
    /// 169.254/16 or fe80::/10: not routable, so no address for a server.
    [[nodiscard]] bool is_link_local() const noexcept;
    /// Same address, whatever the port.
    [[nodiscard]] bool same_host(const Address& other) const noexcept;

    /// "10.0.0.1" or "fd00::1".
    [[nodiscard]] std::string to_string() const;
    /// "10.0.0.1:7471" or "[fd00::1]:7471".
    [[nodiscard]] std::string with_port_text() const;

    /// For C interfaces that take a non-const pointer although they only read it.
    [[nodiscard]] sockaddr* raw() const noexcept;
    [[nodiscard]] socklen_t raw_size() const noexcept;

  private:
    sockaddr_storage storage_{};
};

}  // namespace rdma_read::rdma
