// Claims about the check of a reader's reads: what passes, what does not, and what is counted.
#include "rdma_read/verify/checker.hpp"

#include "allocation_count.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace rdma_read::verify {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr RunId kRun{9, 8, 7};

/// A checker with a server's buffer in memory that reads are copied from.
class Bench {
  public:
    explicit Bench(std::uint64_t read_bytes, std::uint32_t slots, bool verify = true,
                   const RunId& run = kRun)
        : buffer_(Window::bytes_needed(read_bytes)),
          memory_(Checker::bytes_needed(read_bytes, slots)),
          checker_({.run = run,
                    .server_rank = 1,
                    .ranks = 3,
                    .buffer_bytes = buffer_.size(),
                    .read_bytes = read_bytes,
                    .slots = slots,
                    .verify = verify,
                    .keep_mismatches = 16},
                   memory_) {
        Pattern(run, 1).fill(buffer_);
    }
    void read(const Checker::Target& target) const {
        std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(target.remote_offset),
                    target.destination.size(), target.destination.begin());
    }
    Checker& checker() { return checker_; }

  private:
    std::vector<std::byte> buffer_;
    std::vector<std::byte> memory_;
    Checker checker_;
};

TEST(Checker, PassesRightReadsOfAnySizeAndCountsTheirBytes) {
    for (const std::uint64_t size : {1U, 7U, 8U, 1000U, 65536U}) {
        Bench bench(size, 4);
        for (std::uint32_t i = 0; i < 100; ++i) {
            bench.read(bench.checker().next(i % 4));
            ASSERT_TRUE(bench.checker().finished(i % 4));
        }
        EXPECT_EQ(bench.checker().reads(), 100U);
        EXPECT_EQ(bench.checker().bytes_verified(), 100 * size);
        EXPECT_EQ(bench.checker().mismatched_reads(), 0U);
        EXPECT_THAT(bench.checker().mismatches(), IsEmpty());
        EXPECT_TRUE(bench.checker().guards_intact());
    }
}

TEST(Checker, DoesNotAllocateWhileDataIsRight) {
    Bench bench(4096, 8);
    const std::size_t before = allocation_count();
    for (std::uint32_t i = 0; i < 1000; ++i) {
        bench.read(bench.checker().next(i % 8));
        (void)bench.checker().finished(i % 8);
    }
    EXPECT_EQ(allocation_count(), before);
    const std::vector<int> one(1);
    EXPECT_EQ(allocation_count(), before + 1) << "the count must be able to go up";
}

TEST(Checker, AReadThatWritesNothingNeverPasses) {
    // With reads of one byte, what was there before is right by chance once in 256 runs, unless the
    // checker sees to it.
    for (unsigned run = 0; run < 600; ++run) {
        Bench bench(1, 3, true,
                    {static_cast<std::uint8_t>(run), static_cast<std::uint8_t>(run >> 8U)});
        for (std::uint32_t i = 0; i < 3; ++i) {
            (void)bench.checker().next(i);
            ASSERT_FALSE(bench.checker().finished(i)) << "run " << run;
            ASSERT_EQ(bench.checker().mismatches().back().kind, MismatchKind::untouched);
        }
    }
}

TEST(Checker, StaleDataNeverPassesEvenInReadsOfOneByte) {
    for (const std::uint64_t size : {1U, 2U, 8U, 100U}) {
        Bench bench(size, 3);
        for (std::uint32_t i = 0; i < 2000; ++i) {
            const auto target = bench.checker().next(i % 3);
            if (i % 2 == 0 || i < 3) {
                bench.read(target);
                ASSERT_TRUE(bench.checker().finished(i % 3));
            } else {
                ASSERT_FALSE(bench.checker().finished(i % 3));
            }
        }
        for (const Mismatch& mismatch : bench.checker().mismatches()) {
            EXPECT_EQ(mismatch.kind, MismatchKind::stale);
        }
    }
}

TEST(Checker, ReportsAWrongByteWithItsReadAndItsPhase) {
    Bench bench(4096, 2);
    bench.checker().begin_phase(Phase::throughput);
    for (std::uint32_t i = 0; i < 10; ++i) {
        const auto target = bench.checker().next(i % 2);
        bench.read(target);
        if (i == 7) {
            target.destination[1234] ^= std::byte{8};
        }
        ASSERT_EQ(bench.checker().finished(i % 2), i != 7);
        if (i == 7) {
            ASSERT_THAT(bench.checker().mismatches(), SizeIs(1));
            EXPECT_EQ(bench.checker().mismatches()[0].offset, target.remote_offset + 1234);
        }
    }
    const Mismatch& mismatch = bench.checker().mismatches().at(0);
    EXPECT_EQ(mismatch.read, 7U);
    EXPECT_EQ(mismatch.phase, "throughput");
    EXPECT_EQ(mismatch.length, 1U);
    EXPECT_EQ(mismatch.kind, MismatchKind::bit_flip);
    EXPECT_EQ(bench.checker().bytes_verified(), 9 * 4096U) << "a wrong read verifies nothing";
    EXPECT_EQ(bench.checker().mismatched_reads(), 1U);
    EXPECT_EQ(bench.checker().reads(), 10U);
}

TEST(Checker, NumbersReadsInTheOrderOfIssueWhateverOrderTheyFinishIn) {
    Bench bench(64, 3);
    for (const std::uint32_t slot : {0U, 1U, 2U}) {
        bench.read(bench.checker().next(slot));
    }
    bench.checker().finished(2);
    const auto target = bench.checker().next(2);
    bench.read(target);
    target.destination[0] ^= std::byte{1};
    bench.checker().finished(0);
    bench.checker().finished(2);
    EXPECT_EQ(bench.checker().mismatches().at(0).read, 3U);
}

TEST(Checker, CountsByPhaseAndInTotal) {
    Bench bench(64, 1);
    const auto run = [&](int reads) {
        for (int i = 0; i < reads; ++i) {
            bench.read(bench.checker().next(0));
            bench.checker().finished(0);
        }
    };
    run(3);
    bench.checker().begin_phase(Phase::throughput);
    EXPECT_EQ(bench.checker().reads(), 0U);
    run(5);
    EXPECT_EQ(bench.checker().reads(), 5U);
    EXPECT_EQ(bench.checker().bytes_verified(), 5 * 64U);
    EXPECT_EQ(bench.checker().total().reads, 8U);
    EXPECT_EQ(bench.checker().total().bytes_verified, 8 * 64U);
}

TEST(Checker, CountsEveryWrongReadButDescribesOnlyTheFirst) {
    Bench bench(64, 1);
    for (int i = 0; i < 50; ++i) {
        const auto target = bench.checker().next(0);
        bench.read(target);
        target.destination[3] ^= std::byte{1};
        bench.checker().finished(0);
    }
    EXPECT_EQ(bench.checker().mismatched_reads(), 50U);
    EXPECT_THAT(bench.checker().mismatches(), SizeIs(16));
}

TEST(Checker, NoticesDataBesideItsSlot) {
    Bench bench(100, 2);
    const auto target = bench.checker().next(0);
    bench.read(target);
    target.destination.data()[100] = std::byte{0};
    EXPECT_TRUE(bench.checker().finished(0));
    EXPECT_FALSE(bench.checker().guards_intact());
}

TEST(Checker, WithVerifyOffCountsReadsAndVerifiesNothing) {
    Bench bench(64, 1, false);
    (void)bench.checker().next(0);
    EXPECT_TRUE(bench.checker().finished(0));
    EXPECT_EQ(bench.checker().reads(), 1U);
    EXPECT_EQ(bench.checker().bytes_verified(), 0U);
}

TEST(Checker, RefusesABufferOrMemoryThatIsTooSmall) {
    std::vector<std::byte> memory(Checker::bytes_needed(64, 2));
    Checker::Config config{.run = kRun, .buffer_bytes = 1000, .read_bytes = 64, .slots = 2};
    EXPECT_THROW(Checker(config, memory), std::invalid_argument);
    config.buffer_bytes = Window::bytes_needed(64);
    EXPECT_NO_THROW(Checker(config, memory));
    EXPECT_THROW(Checker(config, std::span(memory).first(100)), std::invalid_argument);
}

}  // namespace
}  // namespace rdma_read::verify
