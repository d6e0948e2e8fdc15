// Claims about what keeps a reader from being faster.
#include "rdma_read/verify/bound.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace rdma_read::verify {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;
using ::testing::StartsWith;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

// One reader at 100 Gbit/s (12.5 GB/s) on both sides, 64 KiB, depth 16, 10 us alone: depth would
// carry 104.9 GB/s.
BoundInput fast_port() {
    BoundInput input;
    input.reader_rate_gbps = 100;
    input.server_rate_gbps = 100;
    input.size = 65536;
    input.reads_in_flight = 16;
    input.latency_us = 10;
    input.checking_s = 0.2;
    input.phase_s = 1;
    input.bandwidth_bytes_per_s = 12.0e9;
    return input;
}

TEST(Bound, IsThePortWhenItIsNearlyFull) {
    const Bound bound = explain(fast_port());
    EXPECT_EQ(bound.kind, BoundKind::port);
    EXPECT_THAT(bound.bytes_per_s, Optional(12.5e9));
    EXPECT_THAT(bound.used, Optional(DoubleNear(0.96, 1e-12)));
    EXPECT_EQ(bound.text, "bound by the port, 100 Gbit/s: at most 12.5 GB/s, 96 % used");
}

TEST(Bound, BindsFromEightyFivePercentOn) {
    BoundInput input = fast_port();
    input.bandwidth_bytes_per_s = 0.8501 * 12.5e9;
    EXPECT_EQ(explain(input).kind, BoundKind::port);
    input.bandwidth_bytes_per_s = 0.8499 * 12.5e9;
    const Bound bound = explain(input);
    EXPECT_EQ(bound.kind, BoundKind::unknown);
    EXPECT_THAT(bound.bytes_per_s, Optional(12.5e9)) << "the nearest is still told";
    EXPECT_THAT(bound.text, StartsWith("no known bound is reached; nearest is the port, "));
}

TEST(Bound, IsTheSlowerOfTwoPorts) {
    BoundInput input = fast_port();
    input.server_rate_gbps = 40;
    input.bandwidth_bytes_per_s = 4.8e9;
    Bound bound = explain(input);
    EXPECT_EQ(bound.kind, BoundKind::port);
    EXPECT_THAT(bound.bytes_per_s, Optional(5e9));
    EXPECT_THAT(bound.text, HasSubstr("the server's port, 40 Gbit/s"));

    input.server_rate_gbps = 400;
    input.reader_rate_gbps = 40;
    bound = explain(input);
    EXPECT_EQ(bound.kind, BoundKind::port);
    EXPECT_THAT(bound.text, HasSubstr("the reader's port, 40 Gbit/s"));
}

TEST(Bound, IsNoPortThatMoreThanItsRateWasReadThrough) {
    BoundInput input = fast_port();
    input.bandwidth_bytes_per_s = 1.16 * 12.5e9;  // one host, never on the wire
    const Bound bound = explain(input);
    EXPECT_EQ(bound.kind, BoundKind::unknown);
    EXPECT_THAT(bound.text, Not(HasSubstr("port")));
    input.bandwidth_bytes_per_s = 1.14 * 12.5e9;
    EXPECT_EQ(explain(input).kind, BoundKind::port);
}

TEST(Bound, IsDepthWhenTheReadsInFlightTakeTheirLatency) {
    BoundInput input = fast_port();
    input.size = 4096;
    input.reads_in_flight = 4;
    input.latency_us = 4;
    input.bandwidth_bytes_per_s = 4.0e9;
    const Bound bound = explain(input);
    EXPECT_EQ(bound.kind, BoundKind::depth);
    EXPECT_THAT(bound.bytes_per_s, Optional(DoubleNear(4.096e9, 1)));
    EXPECT_EQ(bound.text, "bound by 4 reads in flight of 4 us each: at most 4.096 GB/s, 98 % used");
}

TEST(Bound, IsCheckingWhenItTakesNearlyAllTheTime) {
    BoundInput input = fast_port();
    input.bandwidth_bytes_per_s = 2.7e9;
    input.checking_s = 1.8;
    input.phase_s = 2;
    const Bound bound = explain(input);
    EXPECT_EQ(bound.kind, BoundKind::checking);
    EXPECT_THAT(bound.bytes_per_s, Optional(DoubleNear(3e9, 1)));
    EXPECT_EQ(bound.text, "bound by checking: at most 3 GB/s, 90 % used");
}

TEST(Bound, OfCheckingIsNeverMoreThanAllTheTime) {
    BoundInput input;
    input.bandwidth_bytes_per_s = 2e6;
    input.checking_s = 3;
    input.phase_s = 2;
    const Bound bound = explain(input);
    EXPECT_EQ(bound.kind, BoundKind::checking);
    EXPECT_THAT(bound.bytes_per_s, Optional(2e6));
    EXPECT_THAT(bound.used, Optional(1.0));
    EXPECT_THAT(bound.text, HasSubstr("2 MB/s, 100 % used"));
}

TEST(Bound, IsTheServersPortWhenSeveralReadersShareIt) {
    BoundInput input = fast_port();
    input.readers_at_server = 5;
    input.bandwidth_bytes_per_s = 2.4e9;
    const Bound bound = explain(input);
    EXPECT_EQ(bound.kind, BoundKind::server_port);
    EXPECT_THAT(bound.bytes_per_s, Optional(2.5e9));
    EXPECT_EQ(bound.text,
              "bound by the server's port, 100 Gbit/s for 5 readers: at most 2.5 GB/s, 96 % used");
}

TEST(Bound, OfASharedPortIsJudgedByWhatAllGot) {
    BoundInput input = fast_port();
    input.readers_at_server = 5;
    input.bandwidth_bytes_per_s = 1.2e9;  // got less than its part
    EXPECT_EQ(explain(input).kind, BoundKind::unknown);
    input.server_bytes_per_s = 12.1e9;
    Bound bound = explain(input);
    EXPECT_EQ(bound.kind, BoundKind::server_port);
    EXPECT_THAT(bound.used, Optional(DoubleNear(0.968, 1e-9)));
    EXPECT_THAT(bound.bytes_per_s, Optional(2.5e9));

    input.bandwidth_bytes_per_s = 5e9;  // got more
    EXPECT_EQ(explain(input).kind, BoundKind::server_port);
    input.server_bytes_per_s = 6e9;  // the port has room
    EXPECT_EQ(explain(input).kind, BoundKind::unknown);
}

TEST(Bound, OfOneReaderIsNoSharedPort) {
    BoundInput input = fast_port();
    for (const std::uint32_t readers : {0U, 1U}) {
        input.readers_at_server = readers;
        EXPECT_EQ(explain(input).kind, BoundKind::port);
    }
}

TEST(Bound, IsTheOneOfWhichMostIsUsed) {
    BoundInput input = fast_port();
    input.checking_s = 0.97;
    EXPECT_EQ(explain(input).kind, BoundKind::checking);
    input.checking_s = 0.95;
    EXPECT_EQ(explain(input).kind, BoundKind::port);
    input.checking_s = 0.96;
    EXPECT_EQ(explain(input).kind, BoundKind::port) << "equal ones in the order of the kinds";
}

TEST(Bound, IsUnknownWithoutABandwidth) {
    BoundInput input = fast_port();
    for (const double nothing : {0.0, -1.0, kInfinity, -kInfinity, kNoNumber}) {
        input.bandwidth_bytes_per_s = nothing;
        const Bound bound = explain(input);
        EXPECT_EQ(bound.kind, BoundKind::unknown);
        EXPECT_FALSE(bound.bytes_per_s);
        EXPECT_FALSE(bound.used);
        EXPECT_EQ(bound.text, "no bandwidth was measured");
    }
}

TEST(Bound, IsUnknownWhenNothingElseIsKnown) {
    BoundInput input;
    input.bandwidth_bytes_per_s = 1e9;
    const Bound bound = explain(input);
    EXPECT_EQ(bound.kind, BoundKind::unknown);
    EXPECT_FALSE(bound.bytes_per_s);
    EXPECT_EQ(bound.text, "no bound is known");
}

TEST(Bound, TakesNumbersThatCannotBeForUnknown) {
    for (const double nonsense : {0.0, -3.0, kInfinity, -kInfinity, kNoNumber}) {
        BoundInput input;
        input.bandwidth_bytes_per_s = 1e9;
        input.reader_rate_gbps = nonsense;
        input.server_rate_gbps = nonsense;
        input.readers_at_server = 3;
        input.server_bytes_per_s = nonsense;
        input.size = 4096;
        input.reads_in_flight = 16;
        input.latency_us = nonsense;
        input.checking_s = nonsense;
        input.phase_s = nonsense;
        EXPECT_EQ(explain(input).text, "no bound is known") << nonsense;
    }
}

TEST(Bound, IsFiniteForTheLargestAndSmallestNumbers) {
    for (const double extreme :
         {std::numeric_limits<double>::max(), std::numeric_limits<double>::min(),
          std::numeric_limits<double>::denorm_min(), 1.0}) {
        for (const double measured :
             {std::numeric_limits<double>::max(), 1e9, std::numeric_limits<double>::denorm_min()}) {
            BoundInput input;
            input.bandwidth_bytes_per_s = measured;
            input.reader_rate_gbps = extreme;
            input.server_rate_gbps = extreme;
            input.readers_at_server = std::numeric_limits<std::uint32_t>::max();
            input.server_bytes_per_s = extreme;
            input.size = std::numeric_limits<std::uint64_t>::max();
            input.reads_in_flight = std::numeric_limits<std::uint64_t>::max();
            input.latency_us = extreme;
            input.checking_s = extreme;
            input.phase_s = 1;
            const Bound bound = explain(input);
            if (bound.bytes_per_s) {
                EXPECT_TRUE(std::isfinite(*bound.bytes_per_s) && *bound.bytes_per_s > 0);
                EXPECT_TRUE(std::isfinite(bound.used.value()));
            }
            EXPECT_THAT(bound.text, Not(HasSubstr("nan")));
            EXPECT_THAT(bound.text, Not(HasSubstr("inf")));
        }
    }
}

TEST(Bound, IsTheSameForTheSameInput) {
    const Bound one = explain(fast_port());
    const Bound two = explain(fast_port());
    EXPECT_EQ(one.text, two.text);
    EXPECT_EQ(one.bytes_per_s, two.bytes_per_s);
}

TEST(Bound, KindsHaveTheNamesOfTheReport) {
    EXPECT_EQ(to_string(BoundKind::port), "port");
    EXPECT_EQ(to_string(BoundKind::server_port), "server_port");
    EXPECT_EQ(to_string(BoundKind::depth), "depth");
    EXPECT_EQ(to_string(BoundKind::checking), "checking");
    EXPECT_EQ(to_string(BoundKind::unknown), "unknown");
}

}  // namespace
}  // namespace rdma_read::verify
