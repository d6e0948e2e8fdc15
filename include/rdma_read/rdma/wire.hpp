// What peers say to each other: fixed layouts, big-endian, checked before anything is believed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace rdma_read::rdma {

/// 128 random bits that name a run; ranks of one run share them, strangers do not know them.
using RunId = std::array<std::uint8_t, 16>;

/// Two programs talk only if this is the same.
inline constexpr std::uint16_t kProtocolVersion = 2;

/// The reader's introduction, in the private data of its connection request.
struct Hello {
    RunId run{};
    std::uint32_t rank = 0;
    std::uint32_t queue_pair = 0;  ///< index among those of this reader
    friend bool operator==(const Hello&, const Hello&) = default;
};

/// Why a server does not want a connection; travels back in the private data of the rejection.
enum class Refusal : std::uint16_t {
    not_this_protocol = 1,
    other_version = 2,
    other_run = 3,
    rank_out_of_range = 4,
    rank_already_connected = 5,
    server_full = 6,
    server_error = 7,
    server_busy = 8,
    queue_pair_out_of_range = 9
};

[[nodiscard]] std::string_view to_string(Refusal refusal) noexcept;

/// The permission to read: where the exposed buffer is and the key that opens it.
struct RemoteBuffer {
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    std::uint32_t rkey = 0;
    friend bool operator==(const RemoteBuffer&, const RemoteBuffer&) = default;
};

inline constexpr std::size_t kHelloBytes = 32;
inline constexpr std::size_t kRefusalBytes = 10;
inline constexpr std::size_t kReadyBytes = 8;
inline constexpr std::size_t kRemoteBufferBytes = 28;

[[nodiscard]] std::array<std::byte, kHelloBytes> encode(const Hello& hello) noexcept;
[[nodiscard]] std::array<std::byte, kRefusalBytes> encode(Refusal refusal) noexcept;
[[nodiscard]] std::array<std::byte, kRemoteBufferBytes> encode(const RemoteBuffer& buffer) noexcept;
/// The reader's first message: its receive is posted and its queue pair ready.
[[nodiscard]] std::array<std::byte, kReadyBytes> encode_ready() noexcept;

/// A decoded Hello, or why it is refused. Bytes behind the message are padding and ignored.
struct HelloOrRefusal {
    std::optional<Hello> hello;
    Refusal refusal = Refusal::not_this_protocol;
};
[[nodiscard]] HelloOrRefusal decode_hello(std::span<const std::byte> bytes) noexcept;
/// Nothing if the bytes are not a refusal of this protocol.
[[nodiscard]] std::optional<Refusal> decode_refusal(std::span<const std::byte> bytes) noexcept;
/// Exactly one message, no more and no less.
[[nodiscard]] bool is_ready(std::span<const std::byte> bytes) noexcept;
/// Exactly one message, of this version, with a length that is not 0 and does not wrap around the
/// address space; else nothing.
[[nodiscard]] std::optional<RemoteBuffer> decode_remote_buffer(
    std::span<const std::byte> bytes) noexcept;

}  // namespace rdma_read::rdma
