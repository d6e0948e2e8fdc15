// Claims about where reads go.
#include "rdma_read/verify/window.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>
#include <stdexcept>
#include <vector>

namespace rdma_read::verify {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

TEST(Window, NeedsRoomToMoveBesideTheLargestRead) {
    EXPECT_EQ(Window::bytes_needed(1), 8191 * 8 + 8U);
    EXPECT_EQ(Window::bytes_needed(8), 8191 * 8 + 8U);
    EXPECT_EQ(Window::bytes_needed(65536), 8191 * 8 + 65536U);
    EXPECT_EQ(Window::bytes_needed(65537), 8191 * 8 + 65544U);
    EXPECT_THROW((void)Window::bytes_needed(kMost - 100), std::invalid_argument);
}

TEST(Window, HasTheDefaultSizeInABufferOfTheBytesNeeded) {
    for (const std::uint64_t read : {1U, 7U, 8U, 4096U, 65536U, 1000001U}) {
        EXPECT_EQ(Window(Window::bytes_needed(read), read, 1).words(), Window::kDefaultWords)
            << read;
    }
}

TEST(Window, IsTheLargestPowerOfTwoThatFits) {
    EXPECT_EQ(Window(255 * 8 + 100, 100, 1).words(), 256U);
    EXPECT_EQ(Window(511 * 8 + 99, 100, 1).words(), 256U);
    EXPECT_EQ(Window(511 * 8 + 100, 100, 1).words(), 512U);
}

TEST(Window, RefusesABufferWithoutRoomToMove) {
    EXPECT_THROW(Window(255 * 8 + 99, 100, 1), std::invalid_argument);
    EXPECT_THROW(Window(99, 100, 1), std::invalid_argument);
    EXPECT_THROW(Window(0, 1, 1), std::invalid_argument);
    EXPECT_THROW(Window(1 << 20U, 0, 1), std::invalid_argument);
    EXPECT_THROW(Window(1 << 20U, 1, 0), std::invalid_argument);
    EXPECT_THROW(Window(1 << 20U, kMost, 1), std::invalid_argument);
}

TEST(Window, BeginsAtBothEndsAndGoesOnByAFixedStride) {
    Window window(Window::bytes_needed(64), 64, 1);
    std::vector<std::uint64_t> offsets;
    offsets.reserve(6);
    for (int i = 0; i < 6; ++i) {
        offsets.push_back(window.next(0));
    }
    EXPECT_THAT(offsets, ElementsAre(0, 65528, 40496, 15464, 55968, 30936));
}

TEST(Window, RemembersTheLastReadsOfEachSlotNewestFirst) {
    Window window(Window::bytes_needed(64), 64, 2);
    EXPECT_THAT(window.recent(0), IsEmpty());
    std::vector<std::uint64_t> offsets;
    offsets.reserve(6);
    for (int i = 0; i < 6; ++i) {
        offsets.push_back(window.next(0));
    }
    EXPECT_THAT(window.recent(0), ElementsAre(offsets[5], offsets[4], offsets[3], offsets[2]));
    EXPECT_THAT(window.recent(1), IsEmpty());
    const std::uint64_t other = window.next(1);
    EXPECT_THAT(window.recent(1), ElementsAre(other));
}

TEST(Window, EveryReadEndsInsideTheBuffer) {
    for (const std::uint64_t read : {1U, 8U, 1000U, 4096U}) {
        for (const std::uint64_t buffer :
             {Window::bytes_needed(read), std::uint64_t{255} * 8 + read, 300000 + read}) {
            Window window(buffer, read, 3);
            std::uint64_t furthest = 0;
            for (std::uint32_t i = 0; i < 50000; ++i) {
                const std::uint64_t offset = window.next(i % 3);
                ASSERT_EQ(offset % 8, 0U);
                ASSERT_LE(offset + read, buffer);
                furthest = std::max(furthest, offset);
            }
            EXPECT_EQ(furthest, 8 * (window.words() - 1)) << "the end of the window was never read";
        }
    }
}

TEST(Window, VisitsNearlyAllOfItself) {
    Window window(Window::bytes_needed(64), 64, 16);
    std::set<std::uint64_t> places;
    for (std::uint32_t i = 0; i < 4 * window.words(); ++i) {
        places.insert(window.next(i % 16));
    }
    EXPECT_GT(places.size(), window.words() * 9 / 10);
}

TEST(Window, ConsecutiveReadsOfOneSlotNeverShareTheLowByte) {
    std::minstd_rand random(1);
    for (const std::uint64_t words : {256U, 512U, 1024U, 8192U, 65536U}) {
        for (std::uint32_t slots = 1; slots <= 128; ++slots) {
            for (const bool in_turn : {true, false}) {
                Window window((words - 1) * 8 + 16, 16, slots);
                ASSERT_EQ(window.words(), words);
                std::vector<std::uint64_t> previous(slots, kMost);
                for (std::uint32_t i = 0; i < 1500; ++i) {
                    const std::uint32_t slot =
                        (in_turn ? i : static_cast<std::uint32_t>(random())) % slots;
                    const std::uint64_t word = window.next(slot) / 8;
                    // Words share their low byte only when they are a multiple of 256 apart.
                    ASSERT_TRUE(previous[slot] == kMost || (word - previous[slot]) % 256 != 0)
                        << words << " words, " << slots << " slots, read " << i;
                    previous[slot] = word;
                }
            }
        }
    }
}

TEST(Window, TheSameCallsGiveTheSameOffsets) {
    Window one(Window::bytes_needed(64), 64, 5);
    Window other(Window::bytes_needed(64), 64, 5);
    for (std::uint32_t i = 0; i < 1000; ++i) {
        ASSERT_EQ(one.next(i * i % 5), other.next(i * i % 5));
    }
}

}  // namespace
}  // namespace rdma_read::verify
