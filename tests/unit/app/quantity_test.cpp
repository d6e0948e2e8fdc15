// Numbers with units, and values that must not break a line.
#include "app/quantity.hpp"

#include "app/command_line.hpp"

#include <gmock/gmock.h>

namespace rdma_read::app {
namespace {

using namespace std::chrono_literals;
using ::testing::Optional;

TEST(Quantity, BytesTakeTheUnitsAsPowersOf1024) {
    EXPECT_THAT(parse_bytes("0"), Optional(0U));
    EXPECT_THAT(parse_bytes("7k"), Optional(7168U));
    EXPECT_THAT(parse_bytes("1M"), Optional(1048576U));
    EXPECT_THAT(parse_bytes("16777216G"), Optional(std::uint64_t{1} << 54U));
    EXPECT_THAT(parse_bytes("18446744073709551615"), Optional(UINT64_MAX));
    EXPECT_EQ(parse_bytes("18014398509481984K"), std::nullopt);
    EXPECT_EQ(parse_bytes("1KK"), std::nullopt);
    EXPECT_EQ(parse_bytes("1T"), std::nullopt);
}

TEST(Quantity, FormattedBytesAreReadBackAsTheSame) {
    for (const std::uint64_t bytes :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1023}, std::uint64_t{65536},
          std::uint64_t{65537}, std::uint64_t{3} << 30U, std::uint64_t{1} << 40U, UINT64_MAX}) {
        EXPECT_THAT(parse_bytes(format_bytes(bytes)), Optional(bytes));
    }
    EXPECT_EQ(format_bytes(65536), "64K");
}

TEST(Quantity, FormattedSecondsAreReadBackAsTheSame) {
    for (const auto duration : {1ns, 500'000'000ns, 30'000'000'000ns, 86'399'999'999'999ns}) {
        EXPECT_THAT(parse_seconds(format_seconds(duration)), Optional(duration));
    }
    EXPECT_EQ(format_seconds(30s), "30");
    EXPECT_EQ(format_seconds(2500ms), "2.5");
}

TEST(Quantity, AddressesAreLiteralAndComplete) {
    EXPECT_TRUE(is_ip_address("10.0.0.1"));
    EXPECT_TRUE(is_ip_address("::"));
    EXPECT_TRUE(is_ip_address("::ffff:10.0.0.1"));
    EXPECT_FALSE(is_ip_address("10.1"));
    EXPECT_FALSE(is_ip_address("fe80::1%lo"));
    EXPECT_FALSE(is_ip_address(" 10.0.0.1"));
    EXPECT_FALSE(is_ip_address(""));
    EXPECT_FALSE(is_ip_address(std::string("::1\0x", 5)));
}

TEST(Printable, LeavesAPlainWordAndQuotesTheRest) {
    EXPECT_EQ(printable("64K,1M"), "64K,1M");
    EXPECT_EQ(printable(""), "''");
    EXPECT_EQ(printable("a b"), "'a b'");
    EXPECT_EQ(printable("it's"), "'it\\'s'");
    EXPECT_EQ(printable("a\nb\x1b[31m\xff"), "'a\\x0ab\\x1b[31m\\xff'");
    EXPECT_EQ(printable(std::string(200, 'x')), std::string(100, 'x') + "...");
}

}  // namespace
}  // namespace rdma_read::app
