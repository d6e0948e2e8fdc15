// Lays slots and guards into memory, and looks at the guards.
#include "rdma_read/verify/destination.hpp"

#include "verify/pattern_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace rdma_read::verify {

namespace {

// In a dump of memory: "GUARDED!".
constexpr std::uint64_t kGuardWord = 0x2144'4544'5241'5547U;

// Guards and slots alike hold one word over and over, counted from the start of the memory (slots
// begin at multiples of 8).
void fill_with(std::span<std::byte> memory, std::size_t begin, std::size_t end,
               std::uint64_t word) noexcept {
    word = kernels::little_endian(word);
    std::array<std::byte, sizeof word> bytes{};
    std::memcpy(bytes.data(), &word, sizeof word);
    std::rotate(bytes.begin(), bytes.begin() + begin % bytes.size(), bytes.end());
    // Whole words: slots are large.
    std::size_t at = begin;
    for (; end - at >= bytes.size(); at += bytes.size()) {
        std::memcpy(&memory[at], bytes.data(), bytes.size());
    }
    std::memcpy(memory.data() + at, bytes.data(), end - at);
}

std::size_t stride_of(std::uint64_t read_bytes, std::uint32_t slots) {
    if (read_bytes == 0 || slots == 0) {
        throw std::invalid_argument("a destination needs reads of at least one byte and a slot");
    }
    constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
    constexpr std::size_t kRoom = Destination::kGuardBytes + Destination::kSlotAlignment;
    if (read_bytes > kMost - 2 * kRoom
        || read_bytes + kRoom > (kMost - Destination::kGuardBytes) / slots) {
        throw std::invalid_argument(
            fmt::format("{} slots of {} bytes fit no memory", slots, read_bytes));
    }
    const std::size_t used = static_cast<std::size_t>(read_bytes) + Destination::kGuardBytes;
    return (used + Destination::kSlotAlignment - 1) / Destination::kSlotAlignment
           * Destination::kSlotAlignment;
}

}  // namespace

std::size_t Destination::bytes_needed(std::uint64_t read_bytes, std::uint32_t slots) {
    return kGuardBytes + slots * stride_of(read_bytes, slots);
}

Destination::Destination(std::span<std::byte> memory, std::uint64_t read_bytes, std::uint32_t slots)
    : read_bytes_(static_cast<std::size_t>(read_bytes)),
      stride_(stride_of(read_bytes, slots)),
      slots_(slots) {
    const std::size_t needed = bytes_needed(read_bytes, slots);
    if (memory.size() < needed) {
        throw std::invalid_argument(
            fmt::format("{} slots of {} bytes need {} bytes of memory, not {}", slots, read_bytes,
                        needed, memory.size()));
    }
    memory_ = memory.first(needed);
    for (std::uint32_t gap = 0; gap <= slots_; ++gap) {
        fill_with(memory_, guard_begin(gap), guard_end(gap), kGuardWord);
        if (gap < slots_) {
            fill_with(memory_, guard_end(gap), guard_end(gap) + read_bytes_, kUntouchedWord);
        }
    }
}

bool Destination::guards_intact() const noexcept {
    const std::uint64_t word = kernels::little_endian(kGuardWord);
    std::array<std::byte, sizeof word> bytes{};
    std::memcpy(bytes.data(), &word, sizeof word);
    for (std::uint32_t gap = 0; gap <= slots_; ++gap) {
        for (std::size_t i = guard_begin(gap); i < guard_end(gap); ++i) {
            if (memory_[i] != bytes[i % bytes.size()]) {
                return false;
            }
        }
    }
    return true;
}

std::size_t Destination::guard_begin(std::uint32_t gap) const noexcept {
    return gap == 0 ? 0 : kGuardBytes + (gap - 1) * stride_ + read_bytes_;
}

}  // namespace rdma_read::verify
