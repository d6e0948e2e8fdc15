// Walks a window of word offsets with a stride that spreads the reads evenly.
#include "rdma_read/verify/window.hpp"

#include "rdma_read/verify/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

namespace rdma_read::verify {

namespace {

std::uint64_t words_that_fit(std::uint64_t buffer_bytes, std::uint64_t read_bytes,
                             std::uint32_t slots) {
    if (read_bytes == 0 || slots == 0) {
        throw std::invalid_argument("a window needs reads of at least one byte and a slot");
    }
    const std::uint64_t positions =
        buffer_bytes < read_bytes ? 0 : (buffer_bytes - read_bytes) / 8 + 1;
    const std::uint64_t words = std::bit_floor(positions);
    if (words < Window::kFewestWords) {
        throw std::invalid_argument(
            fmt::format("a buffer of {} bytes is too short for reads of {} bytes from {} places",
                        buffer_bytes, read_bytes, Window::kFewestWords));
    }
    return words;
}

}  // namespace

Window::Window(std::uint64_t buffer_bytes, std::uint64_t read_bytes, std::uint32_t slots)
    : words_(words_that_fit(buffer_bytes, read_bytes, slots)),
      // The golden ratio's share of the window: successive places keep far from each other.
      stride_((Pattern::kStep >> (64 - std::countr_zero(words_))) | 1U),
      slots_(slots) {}

std::uint64_t Window::bytes_needed(std::uint64_t largest_read) {
    constexpr std::uint64_t kMoves = (kDefaultWords - 1) * 8;
    if (largest_read > std::numeric_limits<std::uint64_t>::max() - kMoves - 7) {
        throw std::invalid_argument(
            fmt::format("no buffer can be long enough for reads of {} bytes", largest_read));
    }
    return kMoves + (largest_read + 7) / 8 * 8;
}

std::uint64_t Window::next(std::uint32_t slot) noexcept {
    History& history = slots_[slot];
    if (reads_ == 0) {
        position_ = 0;
    } else if (reads_ == 1) {
        position_ = words_ - 1;
    } else {
        position_ = (position_ + stride_) & (words_ - 1);
    }
    ++reads_;
    if (history.count > 0) {
        // The window is a multiple of kFewestWords, so wrapping does not change a distance modulo
        // it, and one more odd stride takes the distance off zero.
        const std::uint64_t distance = position_ - history.offsets[0] / 8;
        if (distance % kFewestWords == 0) {
            position_ = (position_ + stride_) & (words_ - 1);
        }
    }
    std::shift_right(history.offsets.begin(), history.offsets.end(), 1);
    history.offsets[0] = 8 * position_;
    history.count = std::min(history.count + 1, kRemembered);
    return history.offsets[0];
}

}  // namespace rdma_read::verify
