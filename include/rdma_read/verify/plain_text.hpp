// Text from peers and hosts, made fit for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rdma_read::verify {

/// `text` on one line and without power over a terminal: line ends and tabs become spaces, other
/// control characters, the characters that reorder text, and what is not UTF-8 become '?'.
[[nodiscard]] std::string plain(std::string_view text);

/// How many characters `text` has, as plain() leaves it: the columns that it takes, but for wide
/// and combining characters.
[[nodiscard]] std::size_t width(std::string_view text) noexcept;

}  // namespace rdma_read::verify
