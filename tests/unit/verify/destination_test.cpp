// Claims about slots and guards.
#include "rdma_read/verify/destination.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

namespace rdma_read::verify {
namespace {

TEST(Destination, SlotsAreAlignedApartAndInsideTheMemory) {
    for (const std::uint64_t read : {1U, 63U, 64U, 65U, 1000U, 4096U}) {
        for (const std::uint32_t slots : {1U, 2U, 16U}) {
            std::vector<std::byte> memory(Destination::bytes_needed(read, slots));
            Destination destination(memory, read, slots);
            const std::byte* free = memory.data();
            for (std::uint32_t i = 0; i < slots; ++i) {
                const auto slot = destination.slot(i);
                ASSERT_EQ(slot.size(), read);
                ASSERT_EQ((slot.data() - memory.data()) % 64, 0);
                ASSERT_GE(slot.data() - free, 64) << "too few guard bytes before slot " << i;
                free = slot.data() + slot.size();
            }
            ASSERT_GE(memory.data() + memory.size() - free, 64);
        }
    }
}

TEST(Destination, SlotsBeginAsUntouched) {
    std::vector<std::byte> memory(Destination::bytes_needed(20, 2));
    Destination destination(memory, 20, 2);
    for (const std::uint32_t i : {0U, 1U}) {
        EXPECT_EQ(std::memcmp(destination.slot(i).data(), "NOT READNOT READNOT ", 20), 0);
    }
}

TEST(Destination, EveryByteOutsideTheSlotsIsGuarded) {
    std::vector<std::byte> memory(Destination::bytes_needed(100, 3));
    Destination destination(memory, 100, 3);
    const auto in_slot = [&](std::size_t at) {
        for (std::uint32_t i = 0; i < 3; ++i) {
            const auto slot = destination.slot(i);
            if (memory.data() + at >= slot.data()
                && memory.data() + at < slot.data() + slot.size()) {
                return true;
            }
        }
        return false;
    };
    for (std::size_t at = 0; at < memory.size(); ++at) {
        memory[at] ^= std::byte{0x04};
        ASSERT_EQ(destination.guards_intact(), in_slot(at)) << "byte " << at;
        memory[at] ^= std::byte{0x04};
    }
    EXPECT_TRUE(destination.guards_intact());
}

TEST(Destination, FillingASlotLeavesTheGuardsIntact) {
    std::vector<std::byte> memory(Destination::bytes_needed(77, 4));
    Destination destination(memory, 77, 4);
    for (std::uint32_t i = 0; i < 4; ++i) {
        std::ranges::fill(destination.slot(i), std::byte{0x55});
    }
    EXPECT_TRUE(destination.guards_intact());
}

TEST(Destination, LeavesMemoryThatItDoesNotNeedAlone) {
    std::vector<std::byte> memory(Destination::bytes_needed(8, 1) + 10, std::byte{0x77});
    Destination destination(memory, 8, 1);
    EXPECT_EQ(std::ranges::count(std::span(memory).last(10), std::byte{0x77}), 10);
}

TEST(Destination, RefusesWhatDoesNotFit) {
    std::vector<std::byte> memory(Destination::bytes_needed(100, 3) - 1);
    EXPECT_THROW(Destination(memory, 100, 3), std::invalid_argument);
    EXPECT_THROW(Destination(memory, 0, 3), std::invalid_argument);
    EXPECT_THROW(Destination(memory, 1, 0), std::invalid_argument);
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
    for (const std::uint64_t read : {kMost, kMost - 64, kMost - 128, kMost - 192, kMost / 2}) {
        EXPECT_THROW((void)Destination::bytes_needed(read, 3), std::invalid_argument) << read;
    }
    EXPECT_THROW((void)Destination::bytes_needed(std::uint64_t{1} << 60U, 1U << 10U),
                 std::invalid_argument);
}

}  // namespace
}  // namespace rdma_read::verify
