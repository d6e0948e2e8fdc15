// The options of rdma_read: one server or one client, without MPI.
#pragma once

#include "app/command_line.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace rdma_read::app {

inline constexpr std::uint16_t kPairPort = 7471;

/// A client's whole budget, unless it chooses another.
inline constexpr std::chrono::seconds kPairTimeout{30};
/// What even a slow path carries in a second.
inline constexpr std::uint64_t kSlowPathBytes = std::uint64_t{8} << 20U;

/// rdma_read -s
struct PairServerOptions {
    std::optional<std::string> bind;  ///< Literal address to listen on; none: all.
    std::uint16_t port = kPairPort;   ///< 0: any free port.
    std::string message = "Hello from RDMA server memory!";  ///< No NUL; at most `size` bytes.
    std::uint64_t size = 4096;                               ///< Bytes exposed.
    std::uint32_t clients = 1;                               ///< 0: serve until stopped.
    std::optional<std::string> token_file;                   ///< None: whoever connects is served.

    /// How long after it got the descriptor a client may still be there: the usual budget of one,
    /// what a long text takes on a slow path, and time for its goodbye.
    [[nodiscard]] std::chrono::seconds turn() const {
        return kPairTimeout + std::chrono::seconds(size / kSlowPathBytes) + std::chrono::seconds{5};
    }
};

/// rdma_read -c SERVER
struct PairClientOptions {
    std::string server;                               ///< Address or name.
    std::uint16_t port = kPairPort;                   ///< Never 0.
    std::chrono::nanoseconds timeout = kPairTimeout;  ///< Whole budget.
    std::optional<std::string> token_file;            ///< None: the server has none.
};

using ParsedPairOptions = std::variant<PairServerOptions, PairClientOptions, EarlyExit>;

/// Parses the command line of rdma_read. Prints nothing, opens no file and reads no environment
/// variable. A wrong command line gives two lines: the error and the usage.
[[nodiscard]] ParsedPairOptions parse_pair_options(int argc, const char* const* argv);

}  // namespace rdma_read::app
