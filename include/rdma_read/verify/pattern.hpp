// The payload: every 64-bit word of an exposed buffer names its place, its server and its run.
#pragma once

#include "rdma_read/verify/run_id.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace rdma_read::verify {

/// What a server's exposed buffer holds: the word at index i is base + i * kStep modulo 2^64, where
/// base is a hash of the run id and of the server's rank.
///
/// A word is stored with its least significant byte first on every host, so that peers of
/// different byte order agree on the bytes in memory and on the wire.
///
/// A value type without owned memory; const members may be called from any thread.
class Pattern {
  public:
    /// 2^64 divided by the golden ratio, odd: neighbouring words differ in about half of their
    /// bits, and because it is odd the low bytes of two words are equal only if the words are a
    /// multiple of 256 apart.
    static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15U;

    Pattern(const RunId& run, std::uint32_t server_rank) noexcept;

    /// The word at `index`, as a number.
    [[nodiscard]] std::uint64_t word(std::uint64_t index) const noexcept {
        return base_ + index * kStep;
    }

    /// The index at which `word` stands in this pattern. Every number is a word at some index
    /// (kStep is invertible modulo 2^64), so the caller compares the answer with the buffer's
    /// length: a number that is not from this pattern is almost surely far outside.
    [[nodiscard]] std::uint64_t index_of(std::uint64_t word) const noexcept {
        return (word - base_) * kStepInverse;
    }

    /// Writes the bytes that stand from byte `offset` of the exposed buffer on into all of `out`.
    /// `out` has any length and alignment. Precondition: `offset` is a multiple of 8.
    void fill(std::span<std::byte> out, std::uint64_t offset = 0) const noexcept;

    /// Whether every byte of `data` is what stands from byte `offset` of the exposed buffer on.
    /// `data` has any length and alignment; no byte at all matches. Precondition: `offset` is a
    /// multiple of 8. Runs at the speed of memory and never allocates.
    [[nodiscard]] bool matches(std::span<const std::byte> data,
                               std::uint64_t offset) const noexcept;

    /// The word at index 0.
    [[nodiscard]] std::uint64_t base() const noexcept { return base_; }

  private:
    static constexpr std::uint64_t kStepInverse = [] {
        // Newton's iteration modulo a power of two: an odd number is its own inverse modulo 8, and
        // each round doubles the number of right bits.
        std::uint64_t inverse = kStep;
        for (int right_bits = 3; right_bits < 64; right_bits *= 2) {
            inverse *= 2 - kStep * inverse;
        }
        return inverse;
    }();
    static_assert(kStep * kStepInverse == 1);

    std::uint64_t base_;
};

}  // namespace rdma_read::verify
