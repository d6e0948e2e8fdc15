// Claims about the self-test of the check: it passes the real one, and no other.
#include "app/self_test.hpp"

#include "rdma_read/rdma/error.hpp"
#include "rdma_read/verify/pattern.hpp"
#include "rdma_read/verify/window.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace rdma_read::app {
namespace {

using ::testing::HasSubstr;

constexpr verify::RunId kRun{1, 2, 3};

// A server's buffer in memory that reads are copied from, and a checker of a reader of it.
class Bench {
  public:
    explicit Bench(std::uint64_t read_bytes, std::uint32_t slots = 4, bool verify = true)
        : buffer_(verify::Window::bytes_needed(read_bytes)),
          memory_(verify::Checker::bytes_needed(read_bytes, slots)),
          checker_({.run = kRun,
                    .server_rank = 0,
                    .ranks = 3,
                    .buffer_bytes = buffer_.size(),
                    .read_bytes = read_bytes,
                    .slots = slots,
                    .verify = verify,
                    .keep_mismatches = 16},
                   memory_) {
        verify::Pattern(kRun, 0).fill(buffer_);
    }

    std::vector<std::byte>& buffer() { return buffer_; }
    [[nodiscard]] const verify::SelfTest& proved() const { return proved_; }
    [[nodiscard]] int reads() const { return reads_; }

    std::optional<Disproof> test(std::uint32_t rank = 1, ReadCheck check = check_read) {
        const auto read = [this](rdma::ReadSink& sink) {
            const auto request = sink.next(0);
            std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(request.remote_offset),
                        request.destination.size(), request.destination.begin());
            ++reads_;
            sink.finished(0);
        };
        return test_check(checker_, rank, check, read, proved_);
    }

  private:
    std::vector<std::byte> buffer_;
    std::vector<std::byte> memory_;
    verify::Checker checker_;
    verify::SelfTest proved_;
    int reads_ = 0;
};

TEST(SelfTestOfTheCheck, PassesTheRealOneForEverySizeAndEveryPlace) {
    for (std::uint64_t size = 1; size <= 100; ++size) {
        for (std::uint32_t rank = 0; rank < size; ++rank) {
            Bench bench(size);
            const auto disproof = bench.test(rank);
            ASSERT_FALSE(disproof) << size << " bytes, rank " << rank << ": " << disproof->error;
            ASSERT_EQ(bench.proved().planted_error_found, true);
            ASSERT_EQ(bench.reads(), 2);
        }
    }
}

TEST(SelfTestOfTheCheck, PassesTheRealOneForLongReads) {
    for (const std::uint64_t size : {4095U, 65536U, 1048577U}) {
        Bench bench(size, 1);
        EXPECT_FALSE(bench.test(12345)) << size;
    }
}

TEST(SelfTestOfTheCheck, PlantsTheByteElsewhereForEachRank) {
    const auto looks_at_first_half = [](verify::Checker& checker, std::uint32_t slot) {
        // Puts right what is wrong in the second half, and looks then.
        const auto landed = checker.landed(slot);
        std::vector<std::byte> right(landed.destination.size());
        verify::Pattern(kRun, 0).fill(right, landed.remote_offset);
        const auto half = static_cast<std::ptrdiff_t>(right.size() / 2);
        std::copy(right.begin() + half, right.end(), landed.destination.begin() + half);
        return checker.finished(slot);
    };
    int found_out = 0;
    for (std::uint32_t rank = 1; rank <= 8; ++rank) {
        Bench bench(4096);
        found_out += bench.test(rank, looks_at_first_half) ? 1 : 0;
    }
    EXPECT_GT(found_out, 0);
    EXPECT_LT(found_out, 8);
}

TEST(SelfTestOfTheCheck, FindsOutACheckThatTakesEverythingForRight) {
    Bench bench(4096);
    const auto disproof = bench.test(1, [](verify::Checker& checker, std::uint32_t slot) {
        const auto landed = checker.landed(slot);
        verify::Pattern(kRun, 0).fill(landed.destination, landed.remote_offset);
        return checker.finished(slot);
    });
    ASSERT_TRUE(disproof);
    EXPECT_EQ(bench.proved().planted_error_found, false);
    EXPECT_EQ(disproof->outcome, verify::Outcome::corrupt);
    EXPECT_THAT(disproof->error, HasSubstr("did not find the wrong byte"));
    EXPECT_FALSE(disproof->hint.empty());
}

TEST(SelfTestOfTheCheck, FindsOutACheckThatFindsTheByteAtAnotherPlace) {
    Bench bench(4096);
    const auto disproof = bench.test(0, [](verify::Checker& checker, std::uint32_t slot) {
        // In the second read, whose offset is not 0, byte 0 was changed: moves that to byte 1.
        const auto landed = checker.landed(slot);
        if (landed.remote_offset != 0) {
            landed.destination[0] ^= std::byte{0x10};
            landed.destination[1] ^= std::byte{0x10};
        }
        return checker.finished(slot);
    });
    EXPECT_TRUE(disproof);
    EXPECT_EQ(bench.proved().planted_error_found, false);
}

TEST(SelfTestOfTheCheck, FindsOutACheckThatLooksAtNothing) {
    Bench off(4096, 4, false);
    EXPECT_TRUE(off.test());
    Bench idle(4096);
    EXPECT_TRUE(idle.test(1, [](verify::Checker&, std::uint32_t) { return true; }));
}

TEST(SelfTestOfTheCheck, DoesNotBlameTheCheckForWrongData) {
    Bench bench(4096);
    bench.buffer()[17] ^= std::byte{1};
    const auto disproof = bench.test();
    ASSERT_TRUE(disproof);
    EXPECT_EQ(disproof->outcome, verify::Outcome::corrupt);
    EXPECT_THAT(disproof->error, HasSubstr("nobody tampered with"));
    EXPECT_THAT(disproof->error, HasSubstr("offset 17, 1 bytes"));
    EXPECT_EQ(bench.proved().planted_error_found, std::nullopt);
}

TEST(SelfTestOfTheCheck, LetsAFailedReadThrough) {
    verify::SelfTest proved;
    std::vector<std::byte> memory(verify::Checker::bytes_needed(64, 1));
    verify::Checker checker({.run = kRun,
                             .server_rank = 0,
                             .ranks = 2,
                             .buffer_bytes = verify::Window::bytes_needed(64),
                             .read_bytes = 64,
                             .slots = 1,
                             .verify = true,
                             .keep_mismatches = 16},
                            memory);
    const auto fails = [](rdma::ReadSink&) {
        throw rdma::Error(rdma::Failure::timeout, rdma::Phase::read, "no answer");
    };
    EXPECT_THROW((void)test_check(checker, 1, check_read, fails, proved), rdma::Error);
    EXPECT_EQ(proved, verify::SelfTest{});
}

}  // namespace
}  // namespace rdma_read::app
