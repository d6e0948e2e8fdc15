// Claims about the reads of a run: where they go, that each is checked, and what that took.
#include "app/checked_reads.hpp"

#include "rdma_read/verify/window.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace rdma_read::app {
namespace {

// As a check that takes its time.
bool slow_check(verify::Checker& checker, std::uint32_t slot) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
    while (std::chrono::steady_clock::now() < until) {
    }
    return checker.finished(slot);
}

class CheckedReadsTest : public testing::Test {
  protected:
    static constexpr std::uint64_t kReadBytes = 64;
    static constexpr std::uint32_t kSlots = 2;

    // Reads that bring nothing.
    void read(CheckedReads& reads, int count) {
        for (int i = 0; i < count; ++i) {
            (void)reads.next(0);
            reads.finished(0);
        }
    }

    std::vector<std::byte> memory_ =
        std::vector<std::byte>(verify::Checker::bytes_needed(kReadBytes, kSlots));
    verify::Checker checker_{{.buffer_bytes = verify::Window::bytes_needed(kReadBytes),
                              .read_bytes = kReadBytes,
                              .slots = kSlots},
                             memory_};
};

TEST_F(CheckedReadsTest, GoWhereTheCheckerSays) {
    CheckedReads reads(checker_, check_read);
    const auto request = reads.next(1);
    EXPECT_EQ(request.remote_offset, checker_.landed(1).remote_offset);
    EXPECT_EQ(request.destination.data(), checker_.landed(1).destination.data());
    EXPECT_EQ(request.destination.size(), kReadBytes);
}

TEST_F(CheckedReadsTest, AreLookedAtEachAndEvery) {
    CheckedReads reads(checker_, check_read);
    read(reads, 100);
    EXPECT_EQ(checker_.reads(), 100U);
    EXPECT_EQ(checker_.mismatched_reads(), 100U);
}

TEST_F(CheckedReadsTest, TellTheTimeOfAllFromASample) {
    CheckedReads reads(checker_, slow_check);
    EXPECT_EQ(reads.checking_s(), std::nullopt);
    read(reads, 100);
    EXPECT_GE(reads.checking_s().value_or(0), 100 * 100e-6);
}

}  // namespace
}  // namespace rdma_read::app
