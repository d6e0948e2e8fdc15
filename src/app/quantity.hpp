// Numbers with units as a user types them. Each parser takes the whole text or nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rdma_read::app {

/// Decimal digits only: no sign, no space. nullopt also on overflow.
[[nodiscard]] std::optional<std::uint64_t> parse_whole(std::string_view text);

/// A whole number, optionally followed by K, M or G (either case): powers of 1024.
[[nodiscard]] std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// Seconds as a decimal number without exponent: "30", "0.5". Never negative; at most a day;
/// rounded to nanoseconds. The decimal point is a point in every locale.
[[nodiscard]] std::optional<std::chrono::nanoseconds> parse_seconds(std::string_view text);

/// Bytes as the shortest text that parse_bytes reads back: 65536 is "64K".
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

/// Seconds as the shortest text that parse_seconds reads back.
[[nodiscard]] std::string format_seconds(std::chrono::nanoseconds duration);

/// Whether the text is an IPv4 or IPv6 address, without port, brackets or scope.
[[nodiscard]] bool is_ip_address(const std::string& text);

}  // namespace rdma_read::app
