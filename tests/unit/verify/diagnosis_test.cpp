// Claims about what wrong data is called, and where it is said to be.
#include "rdma_read/verify/diagnosis.hpp"

#include "rdma_read/verify/destination.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace rdma_read::verify {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr RunId kRun{0xA1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
constexpr std::uint32_t kServer = 2;
constexpr std::uint32_t kRanks = 5;
constexpr std::uint64_t kBuffer = 8191 * 8 + 4096;
constexpr std::array<std::uint64_t, 3> kEarlier{40496, 65528, 0};
constexpr std::uint64_t kOffset = 15464;

using Bytes = std::vector<std::byte>;

class Diagnosis : public testing::Test {
  protected:
    // What `pattern` has from any byte on, multiple of 8 or not.
    static Bytes bytes_of(const Pattern& pattern, std::uint64_t offset, std::size_t length) {
        Bytes bytes(length + offset % 8);
        pattern.fill(bytes, offset - offset % 8);
        bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(offset % 8));
        return bytes;
    }
    [[nodiscard]] Bytes right(std::size_t length) const {
        return bytes_of(pattern_, kOffset, length);
    }
    [[nodiscard]] std::vector<Mismatch> find(const Bytes& data, std::size_t limit = 16) const {
        return diagnose({pattern_, kBuffer, kRun, kServer, kRanks, earlier_}, data, kOffset, limit);
    }
    // The one mismatch that `data` must have.
    [[nodiscard]] Mismatch only(const Bytes& data) const {
        const auto found = find(data);
        if (found.size() != 1) {
            ADD_FAILURE() << found.size() << " stretches instead of one";
            for (const Mismatch& m : found) {
                ADD_FAILURE() << m.offset << "+" << m.length << " " << to_string(m.kind) << " "
                              << m.detail;
            }
            return {};
        }
        return found.front();
    }
    void expect_whole(const Bytes& data, MismatchKind kind, const std::string& detail) const {
        const Mismatch mismatch = only(data);
        EXPECT_EQ(to_string(mismatch.kind), to_string(kind)) << mismatch.detail;
        // The outermost bytes may be right by chance.
        EXPECT_GE(mismatch.offset, kOffset);
        EXPECT_LE(mismatch.offset + mismatch.length, kOffset + data.size());
        EXPECT_GE(mismatch.length + 2, std::min<std::size_t>(data.size(), 3));
        EXPECT_THAT(mismatch.detail, HasSubstr(detail));
    }
    static void put(Bytes& into, std::size_t at, const Bytes& from) {
        std::ranges::copy(from, into.begin() + static_cast<std::ptrdiff_t>(at));
    }
    static Bytes sentinel(std::size_t length) {
        Bytes bytes(length);
        for (std::size_t i = 0; i < length; ++i) {
            bytes[i] = static_cast<std::byte>(kUntouchedWord >> (8 * (i % 8)) & 0xFFU);
        }
        return bytes;
    }

    Pattern pattern_{kRun, kServer};
    std::vector<std::uint64_t> earlier_{kEarlier.begin(), kEarlier.end()};
};

constexpr std::array<std::size_t, 12> kLengths{2, 3, 5, 7, 8, 9, 15, 16, 17, 64, 1003, 4096};

TEST_F(Diagnosis, OfRightDataIsEmpty) {
    for (const std::size_t length : kLengths) {
        EXPECT_THAT(find(right(length)), IsEmpty());
    }
    EXPECT_THAT(find({}), IsEmpty());
}

TEST_F(Diagnosis, OneWrongByteIsExactlyThatByte) {
    for (const std::size_t length : {1U, 2U, 7U, 8U, 9U, 24U, 31U}) {
        for (std::size_t at = 0; at < length; ++at) {
            for (unsigned flip = 1; flip < 256; ++flip) {
                Bytes data = right(length);
                data[at] ^= static_cast<std::byte>(flip);
                const Mismatch mismatch = only(data);
                ASSERT_EQ(mismatch.offset, kOffset + at);
                ASSERT_EQ(mismatch.length, 1U);
                ASSERT_THAT(mismatch.detail,
                            HasSubstr("; byte " + std::to_string(at) + " of the read"));
                if (at < length / 8 * 8) {
                    ASSERT_EQ(mismatch.kind, MismatchKind::bit_flip);
                }
            }
        }
    }
}

TEST_F(Diagnosis, ABitFlipNamesItsBitAndItsByteOfTheBuffer) {
    Bytes data = right(64);
    data[17] ^= std::byte{0x20};
    EXPECT_THAT(only(data).detail,
                StartsWith("bit 5 of byte " + std::to_string(kOffset + 17) + ";"));
    data[17] ^= std::byte{0x81};
    EXPECT_THAT(only(data).detail,
                StartsWith("bits 0+5+7 of byte " + std::to_string(kOffset + 17) + ";"));
}

TEST_F(Diagnosis, BitFlipsWithRightBytesBetweenAreTwo) {
    Bytes data = right(64);
    data[18] ^= std::byte{1};
    data[21] ^= std::byte{1};
    const auto found = find(data);
    ASSERT_THAT(found, SizeIs(2));
    EXPECT_EQ(found[0].offset, kOffset + 18);
    EXPECT_EQ(found[1].offset, kOffset + 21);
    EXPECT_EQ(found[0].length + found[1].length, 2U);
}

TEST_F(Diagnosis, BitFlipsInNeighbouringBytesAreOne) {
    Bytes data = right(64);
    data[23] ^= std::byte{1};
    data[24] ^= std::byte{0x40};
    const Mismatch mismatch = only(data);
    EXPECT_EQ(mismatch.offset, kOffset + 23);
    EXPECT_EQ(mismatch.length, 2U);
    EXPECT_EQ(mismatch.kind, MismatchKind::bit_flip);
    EXPECT_THAT(mismatch.detail, StartsWith("bit 0 of byte " + std::to_string(kOffset + 23)
                                            + ", bit 6 of byte " + std::to_string(kOffset + 24)));
}

TEST_F(Diagnosis, ALongRowOfBitFlipsIsNotNamedBitByBit) {
    Bytes data = right(4096);
    for (std::size_t at = 100; at < 103; ++at) {
        data[at] ^= std::byte{0x7F};
    }
    EXPECT_LT(only(data).detail.size(), 200U);
}

TEST_F(Diagnosis, AnEarlierReadsDataIsStale) {
    for (const std::size_t length : kLengths) {
        for (const std::uint64_t earlier : kEarlier) {
            expect_whole(bytes_of(pattern_, earlier, length), MismatchKind::stale,
                         "from offset " + std::to_string(earlier));
        }
    }
}

TEST_F(Diagnosis, AStretchGoesOnAfterAByteThatIsRightByChance) {
    const auto last_byte = [&](std::uint64_t offset) { return pattern_.word(offset / 8) >> 56U; };
    std::uint64_t alike = 0;
    while (alike == kOffset || last_byte(alike) != last_byte(kOffset)) {
        alike += 8;
    }
    earlier_ = {alike};
    const Bytes data = bytes_of(pattern_, alike, 64);
    ASSERT_EQ(data[7], right(64)[7]);
    EXPECT_EQ(only(data).kind, MismatchKind::stale);
}

TEST_F(Diagnosis, MemoryThatWasNeverWrittenIsUntouched) {
    for (const std::size_t length : kLengths) {
        expect_whole(sentinel(length), MismatchKind::untouched, "before the first read");
        Bytes complement = sentinel(length);
        std::ranges::transform(complement, complement.begin(), [](std::byte b) { return ~b; });
        expect_whole(complement, MismatchKind::untouched, "before the first read");
    }
}

TEST_F(Diagnosis, ZeroBytesAreZeros) {
    for (const std::size_t length : kLengths) {
        expect_whole(Bytes(length), MismatchKind::zeros, "zero");
    }
}

TEST_F(Diagnosis, DataFromAnotherOffsetIsShiftedAndNamesTheOffset) {
    for (const std::size_t length : {8U, 9U, 12U, 15U, 16U, 64U, 1003U, 4096U}) {
        for (const std::uint64_t from :
             {kOffset + 8, kOffset - 8, kOffset + 4096, std::uint64_t{8}}) {
            const Mismatch mismatch = only(bytes_of(pattern_, from, length));
            EXPECT_EQ(mismatch.kind, MismatchKind::shifted);
            const std::uint64_t origin = from + (mismatch.offset - kOffset);
            EXPECT_THAT(mismatch.detail,
                        HasSubstr("belongs to offset " + std::to_string(origin) + ";"));
        }
    }
}

TEST_F(Diagnosis, DataDisplacedBySomeBytesIsShifted) {
    for (const std::size_t length : {16U, 23U, 64U, 1003U}) {
        for (std::uint64_t shift = 1; shift < 8; ++shift) {
            for (const std::uint64_t from : {kOffset + shift, kOffset - shift}) {
                const Mismatch mismatch = only(bytes_of(pattern_, from, length));
                EXPECT_EQ(mismatch.kind, MismatchKind::shifted) << shift;
                EXPECT_THAT(mismatch.detail,
                            HasSubstr(std::to_string(from + mismatch.offset - kOffset)));
            }
        }
    }
}

TEST_F(Diagnosis, FourToSevenBytesOfAnotherOffsetAreShifted) {
    for (std::size_t length = 4; length < 8; ++length) {
        const Mismatch mismatch = only(bytes_of(pattern_, kOffset + 88, length));
        EXPECT_EQ(mismatch.kind, MismatchKind::shifted);
        EXPECT_THAT(mismatch.detail, HasSubstr("offset " + std::to_string(kOffset + 88)));
    }
}

TEST_F(Diagnosis, OneByteIsNeverCalledMoreThanItCanShow) {
    std::array<bool, 8> seen{};
    for (unsigned value = 0; value < 256; ++value) {
        const Bytes data{static_cast<std::byte>(value)};
        if (data == right(1)) {
            continue;
        }
        const MismatchKind kind = only(data).kind;
        seen[static_cast<std::size_t>(kind)] = true;
        ASSERT_TRUE(kind == MismatchKind::stale || kind == MismatchKind::untouched
                    || kind == MismatchKind::zeros || kind == MismatchKind::bit_flip)
            << to_string(kind);
    }
    EXPECT_TRUE(seen[static_cast<std::size_t>(MismatchKind::stale)]);
    EXPECT_TRUE(seen[static_cast<std::size_t>(MismatchKind::untouched)]);
    EXPECT_TRUE(seen[static_cast<std::size_t>(MismatchKind::zeros)]);
    EXPECT_TRUE(seen[static_cast<std::size_t>(MismatchKind::bit_flip)]);
    EXPECT_EQ(only(bytes_of(pattern_, kEarlier[0], 1)).kind, MismatchKind::stale);
}

TEST_F(Diagnosis, AnotherServersDataNamesItsRankAndOffset) {
    for (const std::uint32_t rank : {0U, 1U, 4U}) {
        for (const std::size_t length : {8U, 13U, 64U, 1003U}) {
            expect_whole(bytes_of(Pattern(kRun, rank), kOffset, length), MismatchKind::other_server,
                         "rank " + std::to_string(rank) + ", offset ");
        }
    }
    EXPECT_THAT(only(bytes_of(Pattern(kRun, 4), 4800, 8)).detail,
                HasSubstr("rank 4, offset 4800;"));
}

TEST_F(Diagnosis, AnotherRunsDataIsRecognizedByItsSteps) {
    RunId other = kRun;
    other[0] ^= 1U;
    for (const std::size_t length : {16U, 23U, 24U, 1003U}) {
        expect_whole(bytes_of(Pattern(other, kServer), kOffset, length), MismatchKind::other_run,
                     "no server of this run");
    }
    EXPECT_EQ(only(bytes_of(Pattern(other, kServer), kOffset, 8)).kind, MismatchKind::unknown)
        << "one word has no neighbour to show a step";
}

TEST_F(Diagnosis, GarbageIsUnknownAndOneStretchAlthoughSomeBytesAreRightByChance) {
    std::mt19937_64 random(7);
    Bytes data(4096);
    for (std::size_t at = 0; at < data.size(); at += 8) {
        const std::uint64_t word = random();
        std::memcpy(data.data() + at, &word, 8);
    }
    const Bytes right_data = right(data.size());
    for (const std::size_t at : {16U, 23U, 500U, 1007U, 1008U}) {
        data[at] = right_data[at];
    }
    data[0] ^= std::byte{data[0] == right_data[0]};
    const Mismatch mismatch = only(data);
    EXPECT_EQ(mismatch.kind, MismatchKind::unknown);
    EXPECT_EQ(mismatch.offset, kOffset);
    EXPECT_GE(mismatch.length, data.size() - 1);
    EXPECT_THAT(mismatch.detail, StartsWith("expected 0x"));
}

TEST_F(Diagnosis, UnknownWordsAreShownAsTheyAreAndAsTheyShouldBe) {
    Bytes data = right(24);
    std::ranges::fill(std::span(data).subspan(8, 8), std::byte{0x5A});
    EXPECT_THAT(only(data).detail, HasSubstr("found 0x5a5a5a5a5a5a5a5a; byte 8 of the read"));
}

TEST_F(Diagnosis, TwoStretchesWithRightBytesBetweenAreTwo) {
    Bytes data = right(4096);
    put(data, 64, Bytes(128));
    put(data, 1024, bytes_of(pattern_, 8, 256));
    const auto found = find(data);
    ASSERT_THAT(found, SizeIs(2));
    EXPECT_EQ(found[0].kind, MismatchKind::zeros);
    EXPECT_EQ(found[1].kind, MismatchKind::shifted);
    EXPECT_NEAR(static_cast<double>(found[0].offset - kOffset), 64, 1);
    EXPECT_NEAR(static_cast<double>(found[1].length), 256, 2);
}

// A transfer that stops anywhere leaves what was there before from exactly that byte on.
TEST_F(Diagnosis, AReadCutShortAtAnyByteLeavesOneStretch) {
    const Bytes stale = bytes_of(pattern_, kEarlier[0], 200);
    for (std::size_t cut = 0; cut + 2 <= stale.size(); ++cut) {
        Bytes data = right(stale.size());
        put(data, cut, {stale.begin() + static_cast<std::ptrdiff_t>(cut), stale.end()});
        const Mismatch mismatch = only(data);
        ASSERT_EQ(mismatch.kind, MismatchKind::stale) << "cut at " << cut << " " << mismatch.detail;
        ASSERT_GE(mismatch.offset, kOffset + cut);
        ASSERT_LE(mismatch.offset, kOffset + cut + 1);
    }
}

TEST_F(Diagnosis, AStretchThatEndsInsideAWordIsOneStretch) {
    for (const Bytes& wrong : {bytes_of(pattern_, kOffset + 48, 200), Bytes(200), sentinel(200),
                               bytes_of(Pattern(kRun, 0), kOffset, 200)}) {
        for (std::size_t end = 16; end < wrong.size(); ++end) {
            Bytes data = right(wrong.size());
            put(data, 0, {wrong.begin(), wrong.begin() + static_cast<std::ptrdiff_t>(end)});
            const Mismatch mismatch = only(data);
            ASSERT_LE(mismatch.offset + mismatch.length, kOffset + end);
            ASSERT_GE(mismatch.offset + mismatch.length + 2, kOffset + end);
        }
    }
}

TEST_F(Diagnosis, AStretchThatBeginsInsideAWordIsOneStretch) {
    for (const Bytes& wrong : {bytes_of(pattern_, kOffset + 48, 200), Bytes(200), sentinel(200),
                               bytes_of(Pattern(kRun, 0), kOffset, 200)}) {
        for (std::size_t begin = 0; begin + 16 < wrong.size(); ++begin) {
            Bytes data = right(wrong.size());
            put(data, begin, {wrong.begin() + static_cast<std::ptrdiff_t>(begin), wrong.end()});
            const Mismatch mismatch = only(data);
            ASSERT_GE(mismatch.offset, kOffset + begin);
            ASSERT_LE(mismatch.offset, kOffset + begin + 2);
        }
    }
}

TEST_F(Diagnosis, ListsNoMoreThanTheLimit) {
    Bytes data = right(4096);
    for (std::size_t at = 0; at < data.size(); at += 16) {
        data[at] ^= std::byte{2};
    }
    EXPECT_THAT(find(data, 0), IsEmpty());
    EXPECT_THAT(find(data, 1), SizeIs(1));
    EXPECT_THAT(find(data, 5), SizeIs(5));
    EXPECT_THAT(find(data, 100000), SizeIs(256));
}

TEST_F(Diagnosis, TheLastStretchWithinTheLimitIsWhole) {
    Bytes data = right(4096);
    put(data, 0, Bytes(1024));
    data[2000] ^= std::byte{1};
    const auto found = find(data, 1);
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_GE(found[0].length, 1022U);
}

// Every stretch lies in the data, begins and ends with a wrong byte, and together they hold all
// wrong bytes, whatever the data is.
TEST_F(Diagnosis, CoversAllWrongBytesOfAnyData) {
    std::mt19937 random(11);
    for (int round = 0; round < 3000; ++round) {
        const std::size_t length = 1 + random() % 80;
        Bytes data = right(length);
        const Bytes right_data = data;
        const Bytes sources[] = {bytes_of(pattern_, kOffset + random() % 64, length),
                                 bytes_of(pattern_, kEarlier[0], length), Bytes(length),
                                 bytes_of(Pattern(kRun, 3), 64, length), sentinel(length)};
        for (unsigned patches = random() % 4; patches > 0; --patches) {
            const Bytes& source = sources[random() % std::size(sources)];
            const std::size_t from = random() % length;
            const std::size_t to = from + random() % (length - from + 1);
            std::copy(source.begin() + static_cast<std::ptrdiff_t>(from),
                      source.begin() + static_cast<std::ptrdiff_t>(to),
                      data.begin() + static_cast<std::ptrdiff_t>(from));
        }
        data[random() % length] ^= static_cast<std::byte>(random() % 256);
        std::vector<bool> covered(length);
        std::uint64_t end = 0;
        for (const Mismatch& m : find(data, 1000)) {
            ASSERT_GE(m.offset, std::max(kOffset, end));
            ASSERT_GT(m.length, 0U);
            end = m.offset + m.length;
            ASSERT_LE(end, kOffset + length);
            ASSERT_NE(data[m.offset - kOffset], right_data[m.offset - kOffset]);
            ASSERT_NE(data[end - 1 - kOffset], right_data[end - 1 - kOffset]);
            std::fill_n(covered.begin() + static_cast<std::ptrdiff_t>(m.offset - kOffset), m.length,
                        true);
        }
        for (std::size_t at = 0; at < length; ++at) {
            ASSERT_TRUE(covered[at] || data[at] == right_data[at]) << "byte " << at << " is missed";
        }
    }
}

TEST_F(Diagnosis, OfGarbageInAHugeRunEnds) {
    std::mt19937_64 random(3);
    Bytes data(1 << 20U);
    for (std::size_t at = 0; at < data.size(); at += 8) {
        const std::uint64_t word = random();
        std::memcpy(data.data() + at, &word, 8);
    }
    const DiagnosisContext context{pattern_, kBuffer, kRun, kServer, 100000, earlier_};
    const auto found = diagnose(context, data, kOffset, 4);
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_EQ(found[0].kind, MismatchKind::unknown);
}

TEST(MismatchKind, HasANameForEachKind) {
    EXPECT_EQ(to_string(MismatchKind::untouched), "untouched");
    EXPECT_EQ(to_string(MismatchKind::stale), "stale");
    EXPECT_EQ(to_string(MismatchKind::shifted), "shifted");
    EXPECT_EQ(to_string(MismatchKind::other_server), "other server");
    EXPECT_EQ(to_string(MismatchKind::other_run), "other run");
    EXPECT_EQ(to_string(MismatchKind::bit_flip), "bit flip");
    EXPECT_EQ(to_string(MismatchKind::zeros), "zeros");
    EXPECT_EQ(to_string(MismatchKind::unknown), "unknown");
}

}  // namespace
}  // namespace rdma_read::verify
