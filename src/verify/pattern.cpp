// Hashes a base for each server of a run; whole words go to the kernels, the tail is done here.
#include "rdma_read/verify/pattern.hpp"

#include "verify/pattern_kernels.hpp"

#include <cstring>

namespace rdma_read::verify {

namespace {

// A bijection of 64 bits in which every input bit reaches every output bit: two rounds of
// shift-xor and odd multiplication (the constants are those of splitmix64's finalizer).
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
    x ^= x >> 30U;
    x *= 0xBF58476D1CE4E5B9U;
    x ^= x >> 27U;
    x *= 0x94D049BB133111EBU;
    x ^= x >> 31U;
    return x;
}

constexpr std::uint64_t load_half(const RunId& run, std::size_t at) noexcept {
    std::uint64_t half = 0;
    for (std::size_t i = 8; i-- > 0;) {
        half = half << 8U | run[at + i];
    }
    return half;
}

constexpr std::uint64_t hash(const RunId& run, std::uint32_t server_rank) noexcept {
    // The rank enters last and through bijections only: no two servers of a run share a base.
    const std::uint64_t low = mix(load_half(run, 0) + Pattern::kStep);
    const std::uint64_t both = mix((low ^ load_half(run, 8)) + 2 * Pattern::kStep);
    return mix((both ^ server_rank) + 3 * Pattern::kStep);
}

}  // namespace

Pattern::Pattern(const RunId& run, std::uint32_t server_rank) noexcept
    : base_(hash(run, server_rank)) {}

void Pattern::fill(std::span<std::byte> out, std::uint64_t offset) const noexcept {
    const std::uint64_t first = offset / 8;
    const std::size_t words = out.size() / 8;
    kernels::best().fill(out.data(), words, word(first), kStep);
    if (const auto tail = out.subspan(8 * words); !tail.empty()) {
        const std::uint64_t last = kernels::little_endian(word(first + words));
        std::memcpy(tail.data(), &last, tail.size());
    }
}

bool Pattern::matches(std::span<const std::byte> data, std::uint64_t offset) const noexcept {
    const std::uint64_t first = offset / 8;
    const std::size_t words = data.size() / 8;
    if (const auto tail = data.subspan(8 * words); !tail.empty()) {
        const std::uint64_t last = kernels::little_endian(word(first + words));
        if (std::memcmp(tail.data(), &last, tail.size()) != 0) {
            return false;
        }
    }
    return kernels::best().matches(data.data(), words, word(first), kStep);
}

}  // namespace rdma_read::verify
