// Memory on normal and on huge pages.
#include "rdma_read/rdma/buffer.hpp"

#include "support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace rdma_read::rdma {
namespace {

using fakes::error_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kMeminfo =
    "MemTotal:       16303428 kB\n"
    "AnonHugePages:     77824 kB\n"
    "HugePages_Total:      12\n"
    "HugePages_Free:       10\n"
    "HugePages_Rsvd:        7\n"
    "HugePages_Surp:        0\n"
    "Hugepagesize:       2048 kB\n"
    "Hugetlb:           24576 kB\n";

constexpr std::size_t kMiB = 1U << 20U;

TEST(Buffer, BeginsOnAPageFilledWithZerosAndIsAsLongAsAskedFor) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    for (const std::size_t size : {std::size_t{1}, std::size_t{4097}, kMiB}) {
        const Buffer buffer(size);
        ASSERT_EQ(buffer.bytes().size(), size);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.bytes().data()) % page, 0U);
        EXPECT_TRUE(std::ranges::all_of(buffer.bytes(), [](auto b) { return b == std::byte{0}; }));
        buffer.bytes().back() = std::byte{1};
    }
}

TEST(Buffer, OfNothingIsEmptyOnAnyPages) {
    EXPECT_TRUE(Buffer(0).bytes().empty());
    EXPECT_TRUE(Buffer(0, Pages::huge).bytes().empty());
}

TEST(Buffer, ThatMovesLeavesNothingBehind) {
    Buffer first(100);
    const std::byte* const memory = first.bytes().data();
    const Buffer second(std::move(first));
    EXPECT_EQ(second.bytes().data(), memory);
    EXPECT_EQ(second.bytes().size(), 100U);
    EXPECT_TRUE(first.bytes().empty());  // NOLINT(bugprone-use-after-move)
}

TEST(Buffer, MoreThanTheSystemHasIsALimitThatNamesTheBytes) {
    const auto error = error_of([] { const Buffer buffer(1ULL << 60U); });
    EXPECT_EQ(error->failure(), Failure::limit);
    EXPECT_THAT(error->what(), HasSubstr("mmap(1152921504606846976 bytes)"));
}

TEST(Buffer, OnHugePagesWorksOrSaysHowManyAreNeededAndHowToGetThem) {
    const HugePages pages = HugePages::of_this_system();
    const std::size_t size = 3 * kMiB;
    try {
        const Buffer buffer(size, Pages::huge);
        EXPECT_EQ(buffer.bytes().size(), size);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.bytes().data()) % pages.page_bytes, 0U);
        std::ranges::fill(buffer.bytes(), std::byte{1});
    } catch (const Error& error) {
        EXPECT_EQ(error.failure(), Failure::limit);
        EXPECT_EQ(error.what(), no_huge_pages(size, pages, error.code()).what()
                                    + std::string());  // the numbers of this system
        EXPECT_FALSE(error.hint().empty());
    }
}

TEST(Buffer, MoreHugePagesThanAnySystemHasAreALimit) {
    for (const std::size_t size :
         {std::size_t{1} << 50U, std::numeric_limits<std::size_t>::max()}) {
        const auto error = error_of([&] { const Buffer buffer(size, Pages::huge); });
        EXPECT_EQ(error->failure(), Failure::limit);
        EXPECT_EQ(error->phase(), Phase::setup);
        EXPECT_THAT(error->what(), HasSubstr("huge pages"));
    }
}

TEST(HugePages, AreReadFromMeminfoWithoutThoseThatAreReserved) {
    const HugePages pages = HugePages::parse(kMeminfo);
    EXPECT_EQ(pages.page_bytes, 2 * kMiB);
    EXPECT_EQ(pages.total, 12U);
    EXPECT_EQ(pages.available, 3U);
}

TEST(HugePages, AreNoneWhereMeminfoDoesNotSaySo) {
    for (const std::string_view text :
         {std::string_view(), std::string_view("MemTotal: 1 kB\n"), std::string_view("\n\n"),
          std::string_view("Hugepagesize"), std::string_view("Hugepagesize:\n"),
          std::string_view("Hugepagesize: x kB"), std::string_view("XHugepagesize: 2048 kB\n")}) {
        const HugePages pages = HugePages::parse(text);
        EXPECT_EQ(pages.page_bytes, 0U) << text;
        EXPECT_EQ(pages.total, 0U) << text;
        EXPECT_EQ(pages.needed(1), 0U) << text;
    }
}

TEST(HugePages, ThatAreNeededAreRoundedUp) {
    const HugePages pages = HugePages::parse(kMeminfo);
    EXPECT_EQ(pages.needed(1), 1U);
    EXPECT_EQ(pages.needed(2 * kMiB), 1U);
    EXPECT_EQ(pages.needed(2 * kMiB + 1), 2U);
    EXPECT_EQ(pages.needed(std::numeric_limits<std::size_t>::max()),
              (std::numeric_limits<std::size_t>::max() >> 21U) + 1);
}

TEST(HugePages, ThatAreMissingAreNamedWithTheCommandThatProvidesThem) {
    const Error error = no_huge_pages(9 * kMiB, HugePages::parse(kMeminfo), ENOMEM);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("mmap(9437184 bytes on huge pages)"),
                                    HasSubstr("5 huge pages of 2048 KiB are needed"),
                                    HasSubstr("3 of 12 are available")));
    EXPECT_THAT(error.hint(), AllOf(HasSubstr("sysctl vm.nr_hugepages=14;"),
                                    HasSubstr("HugePages_Free"), HasSubstr("/proc/meminfo")));
    EXPECT_EQ(error.code(), ENOMEM);
}

TEST(HugePages, ThatAreEnoughAndStillNotHadAreNotAskedForAgain) {
    const Error error = no_huge_pages(kMiB, HugePages::parse(kMeminfo), ENOMEM);
    EXPECT_THAT(error.hint(), AllOf(HasSubstr("control group"), Not(HasSubstr("sysctl"))));
}

TEST(HugePages, OfAKernelWithoutThemAreNotAskedFor) {
    const Error error = no_huge_pages(kMiB, HugePages{}, ENOMEM);
    EXPECT_THAT(error.what(), HasSubstr("this kernel has no huge pages"));
    EXPECT_THAT(error.hint(), Not(HasSubstr("sysctl")));
}

}  // namespace
}  // namespace rdma_read::rdma
