// Claims about the payload, for each of its implementations.
#include "rdma_read/verify/pattern.hpp"

#include "verify/pattern_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace rdma_read::verify {
namespace {

constexpr RunId kAscending{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// Byte by byte, from the definition.
std::byte reference(const Pattern& pattern, std::uint64_t at) {
    return static_cast<std::byte>(pattern.word(at / 8) >> (8 * (at % 8)) & 0xFFU);
}

std::vector<std::byte> reference(const Pattern& pattern, std::uint64_t offset, std::size_t length) {
    std::vector<std::byte> bytes(length);
    for (std::size_t i = 0; i < length; ++i) {
        bytes[i] = reference(pattern, offset + i);
    }
    return bytes;
}

TEST(Pattern, BaseIsAFixedHashOfRunAndRank) {
    EXPECT_EQ(Pattern(RunId{}, 0).base(), 0x74963FA799894AB9U);
    EXPECT_EQ(Pattern(RunId{}, 1).base(), 0x08EE82DF505F4C1FU);
    EXPECT_EQ(Pattern(kAscending, 0).base(), 0x27E30B041387D67DU);
    EXPECT_EQ(Pattern(kAscending, 7).base(), 0x6BBD040D1BB4A0FFU);
}

TEST(Pattern, BytesInMemoryAreFixed) {
    constexpr std::array kGolden{0xFFU, 0xA0U, 0xB4U, 0x1BU, 0x0DU, 0x04U, 0xBDU,
                                 0x6BU, 0x14U, 0x1DU, 0xFFU, 0x9AU, 0xC6U, 0x7DU,
                                 0xF4U, 0x09U, 0x29U, 0x99U, 0x49U};
    std::vector<std::byte> bytes(kGolden.size());
    Pattern(kAscending, 7).fill(bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), kGolden[i]) << "byte " << i;
    }
}

TEST(Pattern, ServersOfARunNeverShareABase) {
    std::set<std::uint64_t> bases;
    for (std::uint32_t rank = 0; rank < 10000; ++rank) {
        bases.insert(Pattern(kAscending, rank).base());
    }
    EXPECT_EQ(bases.size(), 10000U);
}

TEST(Pattern, EveryBitOfTheRunIdChangesTheBase) {
    for (std::size_t bit = 0; bit < 128; ++bit) {
        RunId other = kAscending;
        other[bit / 8] = static_cast<std::uint8_t>(other[bit / 8] ^ 1U << (bit % 8));
        EXPECT_NE(Pattern(other, 0).base(), Pattern(kAscending, 0).base()) << "bit " << bit;
    }
}

TEST(Pattern, AWordTellsItsIndex) {
    const Pattern pattern(kAscending, 3);
    for (const std::uint64_t index : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{8191},
                                      std::uint64_t{1} << 40U, ~std::uint64_t{0}}) {
        EXPECT_EQ(pattern.index_of(pattern.word(index)), index);
    }
}

TEST(Pattern, FillsAndMatchesEveryLengthAtEveryAlignment) {
    const Pattern pattern(kAscending, 1);
    const std::vector<std::byte> all = reference(pattern, 0, 8192);
    std::vector<std::byte> memory(4096 + 256);
    for (std::size_t length = 0; length <= 4096; ++length) {
        for (std::size_t alignment = 0; alignment < 64; ++alignment) {
            const std::uint64_t offset = 8 * (length % 500);
            const auto data = std::span(memory).subspan(64 + alignment, length);
            std::memset(memory.data(), 0xEE, 64 + alignment + length + 64);
            pattern.fill(data, offset);
            ASSERT_EQ(std::memcmp(data.data(), all.data() + offset, length), 0)
                << length << " bytes at alignment " << alignment;
            ASSERT_EQ(memory[64 + alignment - 1], std::byte{0xEE}) << "before " << length;
            ASSERT_EQ(memory[64 + alignment + length], std::byte{0xEE}) << "after " << length;
            ASSERT_TRUE(pattern.matches(data, offset)) << length << " bytes at " << alignment;
            if (length > 0) {
                // Every word differs between two places, but a tail of a few bytes may not.
                ASSERT_TRUE(length < 8 || !pattern.matches(data, offset + 8));
                for (const std::size_t at : {std::size_t{0}, length / 2, length - 1}) {
                    data[at] ^= std::byte{0x10};
                    ASSERT_FALSE(pattern.matches(data, offset))
                        << "byte " << at << " of " << length;
                    data[at] ^= std::byte{0x10};
                }
            }
        }
    }
}

TEST(Pattern, EachWrongByteIsFound) {
    const Pattern pattern(kAscending, 1);
    for (const std::size_t length :
         {1U, 2U, 7U, 8U, 9U, 63U, 64U, 65U, 127U, 129U, 1000U, 4095U, 4096U, 4103U, 12345U}) {
        std::vector<std::byte> data = reference(pattern, 80, length);
        for (std::size_t at = 0; at < length; ++at) {
            const std::byte flip{static_cast<unsigned char>(1U << (at % 8))};
            data[at] ^= flip;
            ASSERT_FALSE(pattern.matches(data, 80)) << "byte " << at << " of " << length;
            data[at] ^= flip;
        }
        ASSERT_TRUE(pattern.matches(data, 80)) << length;
    }
}

TEST(Pattern, NeitherAnotherServerNorAnotherRunMatches) {
    const Pattern pattern(kAscending, 1);
    RunId other_run = kAscending;
    other_run[15] ^= 1U;
    const std::vector<std::byte> data = reference(pattern, 0, 64);
    EXPECT_FALSE(Pattern(kAscending, 2).matches(data, 0));
    EXPECT_FALSE(Pattern(other_run, 1).matches(data, 0));
}

struct Implementation {
    std::string name;
    const kernels::Kernels* kernels;
    bool runs_here;
};

std::vector<Implementation> implementations() {
    std::vector<Implementation> all{{"portable", &kernels::portable(), true}};
#ifdef RDMA_READ_HAVE_AVX2
    all.push_back({"avx2", &kernels::avx2(), static_cast<bool>(__builtin_cpu_supports("avx2"))});
#endif
    return all;
}

class PatternKernels : public testing::TestWithParam<Implementation> {
  protected:
    void SetUp() override {
        if (!GetParam().runs_here) {
            GTEST_SKIP() << "this processor has no " << GetParam().name;
        }
    }
    const kernels::Kernels& loops = *GetParam().kernels;
    Pattern pattern{kAscending, 5};
};

TEST_P(PatternKernels, FillAndMatchEveryCountOfWordsAtEveryAlignment) {
    const std::vector<std::byte> all = reference(pattern, 0, std::size_t{8} * 600);
    std::vector<std::byte> memory(all.size() + 128);
    for (std::size_t alignment = 0; alignment < 64; ++alignment) {
        for (std::size_t count = 0; count <= 600; ++count) {
            std::memset(memory.data(), 0xEE, memory.size());
            std::byte* const out = memory.data() + 1 + alignment;
            loops.fill(out, count, pattern.word(0), Pattern::kStep);
            ASSERT_EQ(std::memcmp(out, all.data(), 8 * count), 0) << count << " at " << alignment;
            ASSERT_EQ(out[-1], std::byte{0xEE});
            ASSERT_EQ(out[8 * count], std::byte{0xEE});
            ASSERT_TRUE(loops.matches(out, count, pattern.word(0), Pattern::kStep));
            if (count > 0) {
                for (const std::size_t at : {std::size_t{0}, 4 * count, 8 * count - 1}) {
                    out[at] ^= std::byte{0x10};
                    ASSERT_FALSE(loops.matches(out, count, pattern.word(0), Pattern::kStep))
                        << "byte " << at << " of " << count << " words at " << alignment;
                    out[at] ^= std::byte{0x10};
                }
            }
        }
    }
}

TEST_P(PatternKernels, FindEachWrongByte) {
    for (const std::size_t count : {1U, 7U, 8U, 15U, 16U, 17U, 33U, 511U, 512U, 513U, 1100U}) {
        std::vector<std::byte> data = reference(pattern, std::uint64_t{8} * 77, 8 * count);
        for (std::size_t at = 0; at < data.size(); ++at) {
            const std::byte flip{static_cast<unsigned char>(0x80U >> (at % 8))};
            data[at] ^= flip;
            ASSERT_FALSE(loops.matches(data.data(), count, pattern.word(77), Pattern::kStep))
                << "byte " << at << " of " << data.size();
            data[at] ^= flip;
        }
        ASSERT_TRUE(loops.matches(data.data(), count, pattern.word(77), Pattern::kStep));
    }
}

TEST_P(PatternKernels, FindTwoWrongWordsThatDifferAlike) {
    // Differences are gathered by "or": equal ones must not cancel out.
    std::vector<std::byte> data = reference(pattern, 0, std::size_t{8} * 64);
    for (const std::size_t other : {1U, 4U, 8U, 16U, 32U}) {
        data[0] ^= std::byte{1};
        data[8 * other] ^= std::byte{1};
        EXPECT_FALSE(loops.matches(data.data(), 64, pattern.word(0), Pattern::kStep));
        data[0] ^= std::byte{1};
        data[8 * other] ^= std::byte{1};
    }
}

INSTANTIATE_TEST_SUITE_P(, PatternKernels, testing::ValuesIn(implementations()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace rdma_read::verify
