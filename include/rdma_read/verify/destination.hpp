// Where reads land: slots in one piece of memory, with guard bytes between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rdma_read::verify {

/// What a slot holds before its first read, as a word stored least significant byte first. In a
/// dump of memory it spells "NOT READ".
inline constexpr std::uint64_t kUntouchedWord = 0x4441'4552'2054'4F4EU;

/// Divides memory into slots, one for each read in flight or being checked, with guard bytes before
/// the first, between any two and after the last: data that lands outside its slot is noticed.
///
/// Does not own the memory, which outlives it. Not thread safe.
class Destination {
  public:
    /// Slots begin at multiples of this, counted from the start of the memory.
    static constexpr std::size_t kSlotAlignment = 64;
    /// At least this many guard bytes are on either side of a slot.
    static constexpr std::size_t kGuardBytes = 64;

    /// How much memory `slots` slots of `read_bytes` need.
    /// Throws std::invalid_argument when an argument is zero or the sum does not fit size_t.
    [[nodiscard]] static std::size_t bytes_needed(std::uint64_t read_bytes, std::uint32_t slots);

    /// Divides `memory`, writes the guard bytes and fills the slots with kUntouchedWord.
    /// Throws std::invalid_argument when `memory` is smaller than bytes_needed().
    Destination(std::span<std::byte> memory, std::uint64_t read_bytes, std::uint32_t slots);

    /// The bytes of slot `index`. Precondition: `index` is less than the number of slots.
    [[nodiscard]] std::span<std::byte> slot(std::uint32_t index) noexcept {
        return memory_.subspan(guard_end(index), read_bytes_);
    }

    /// Whether every guard byte is as the constructor left it. Guards begin exactly after a slot's
    /// last byte. Looks at every guard byte, so call it after a phase and not after each read.
    [[nodiscard]] bool guards_intact() const noexcept;

  private:
    // Gap 0 is before slot 0, and gap i is between slot i - 1 and slot i or, for the last slot, the
    // end.
    [[nodiscard]] std::size_t guard_begin(std::uint32_t gap) const noexcept;
    [[nodiscard]] std::size_t guard_end(std::uint32_t gap) const noexcept {
        return kGuardBytes + gap * stride_;
    }

    std::span<std::byte> memory_;
    std::size_t read_bytes_;
    std::size_t stride_;
    std::uint32_t slots_;
};

}  // namespace rdma_read::verify
