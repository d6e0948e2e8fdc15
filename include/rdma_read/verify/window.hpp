// Where each read reads: a window that moves through the exposed buffer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rdma_read::verify {

/// Chooses the offset of every read so that the data of a slot's previous read can never pass for
/// the data of its next one: what is expected changes with every read, in every word and, because
/// the distance is never a multiple of 256 words, in the low byte of every word, so that even a
/// read of one byte tells the two apart.
///
/// The sequence depends on the constructor's arguments and on the order of next() calls only, so a
/// peer can work out where the n-th read goes: the first read is from offset 0, the second from the
/// last offset of the window, each further one an odd stride further on, modulo the window.
///
/// Not thread safe: one thread calls next().
class Window {
  public:
    /// The window that bytes_needed() provides, in words: the offset takes 8192 values.
    static constexpr std::uint64_t kDefaultWords = 8192;
    /// The smallest window that keeps the promise about low bytes, in words.
    static constexpr std::uint64_t kFewestWords = 256;
    /// How many offsets recent() remembers for each slot.
    static constexpr std::size_t kRemembered = 4;

    /// A window for reads of `read_bytes` from a buffer of `buffer_bytes` into `slots` slots: the
    /// largest power of two of words for which the furthest read still ends inside the buffer.
    /// Throws std::invalid_argument when an argument is zero or the buffer cannot hold
    /// kFewestWords.
    Window(std::uint64_t buffer_bytes, std::uint64_t read_bytes, std::uint32_t slots);

    /// The length of the exposed buffer that gives reads of up to `largest_read` bytes a window of
    /// at least kDefaultWords. Throws std::invalid_argument when it does not fit 64 bits.
    [[nodiscard]] static std::uint64_t bytes_needed(std::uint64_t largest_read);

    /// The byte offset in the exposed buffer, a multiple of 8, for the next read into `slot`.
    /// Precondition: `slot` is less than the number of slots.
    std::uint64_t next(std::uint32_t slot) noexcept;

    /// The offsets of the last reads into `slot`, newest first, at most kRemembered of them. Valid
    /// until next() is called for the same slot or the window is destroyed.
    [[nodiscard]] std::span<const std::uint64_t> recent(std::uint32_t slot) const noexcept {
        return std::span(slots_[slot].offsets).first(slots_[slot].count);
    }

    /// How many offsets there are, a power of two.
    [[nodiscard]] std::uint64_t words() const noexcept { return words_; }

  private:
    struct History {
        std::array<std::uint64_t, kRemembered> offsets{};
        std::size_t count = 0;
    };

    std::uint64_t words_;
    std::uint64_t stride_;
    std::uint64_t reads_ = 0;
    std::uint64_t position_ = 0;  // word offset of the newest read
    std::vector<History> slots_;
};

}  // namespace rdma_read::verify
