// What the pattern's loops are measured against, compiled with -O3.
#pragma once

#include <cstdint>
#include <span>

namespace rdma_read::bench {

/// The sum modulo 2^64: the least that a check of every byte can do is to load it.
[[nodiscard]] std::uint64_t sum(std::span<const std::uint64_t> words) noexcept;

}  // namespace rdma_read::bench
