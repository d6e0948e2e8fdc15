// Results and announcements as bytes, for the way between ranks.
#pragma once

#include "rdma_read/verify/result.hpp"

#include <cstddef>
#include <span>
#include <stdexcept>
#include <vector>

namespace rdma_read::verify {

/// Bytes that are not what encode() makes: from a stranger, of another version, cut short, changed.
class CodecError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Bytes for the same version of this program on a host of the same byte order, which decode()
/// checks. The length of the answer is in proportion to what it holds.
[[nodiscard]] std::vector<std::byte> encode(const Result& result);
[[nodiscard]] std::vector<std::byte> encode(const ServerInfo& server);
[[nodiscard]] std::vector<std::byte> encode(const Announcement& announcement);

/// The inverse of encode(). `bytes` is hostile until proven otherwise: whatever it holds, these
/// return a value whose enumerators are in range, or throw CodecError. Memory taken is in
/// proportion to the length of `bytes`, never to a count inside.
[[nodiscard]] Result decode_result(std::span<const std::byte> bytes);
[[nodiscard]] ServerInfo decode_server_info(std::span<const std::byte> bytes);
[[nodiscard]] Announcement decode_announcement(std::span<const std::byte> bytes);

}  // namespace rdma_read::verify
