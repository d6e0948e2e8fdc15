// Claims about percentiles and rates.
#include "rdma_read/verify/measurement.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace rdma_read::verify {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

TEST(Latency, WithoutSamplesHasNoSummary) {
    EXPECT_FALSE(LatencyRecorder(10).summary());
}

TEST(Latency, OfOneSampleIsThatSample) {
    LatencyRecorder recorder(1);
    recorder.add(nanoseconds(1500));
    const auto summary = recorder.summary();
    ASSERT_TRUE(summary);
    for (const double value :
         {summary->min, summary->p50, summary->p90, summary->p99, summary->p999, summary->max}) {
        EXPECT_DOUBLE_EQ(value, 1.5);
    }
    EXPECT_EQ(summary->samples, 1U);
}

TEST(Latency, PercentilesAreExactNearestRanks) {
    LatencyRecorder recorder(2000);
    // 1 to 2000 microseconds, in an order that is not sorted (7 and 2000 have no common divisor).
    for (int i = 0; i < 2000; ++i) {
        recorder.add(microseconds(i * 7 % 2000 + 1));
    }
    const auto summary = recorder.summary();
    ASSERT_TRUE(summary);
    EXPECT_DOUBLE_EQ(summary->min, 1);
    EXPECT_DOUBLE_EQ(summary->p50, 1000);
    EXPECT_DOUBLE_EQ(summary->p90, 1800);
    EXPECT_DOUBLE_EQ(summary->p99, 1980);
    EXPECT_DOUBLE_EQ(summary->p999, 1998);
    EXPECT_DOUBLE_EQ(summary->max, 2000);
    EXPECT_EQ(summary->samples, 2000U);
}

TEST(Latency, NearestRankRoundsUp) {
    LatencyRecorder recorder(5);
    for (int i = 1; i <= 5; ++i) {
        recorder.add(microseconds(i));
    }
    const auto summary = recorder.summary();
    ASSERT_TRUE(summary);
    EXPECT_DOUBLE_EQ(summary->p50, 3);   // rank 2.5
    EXPECT_DOUBLE_EQ(summary->p90, 5);   // rank 4.5
    EXPECT_DOUBLE_EQ(summary->p999, 5);  // rank 4.995
}

TEST(Latency, SamplesBeyondTheCapacityAreCountedAndIgnored) {
    LatencyRecorder recorder(2);
    recorder.add(microseconds(1));
    recorder.add(microseconds(2));
    recorder.add(microseconds(3));
    EXPECT_EQ(recorder.overflow(), 1U);
    EXPECT_EQ(recorder.samples(), 2U);
    EXPECT_DOUBLE_EQ(recorder.summary()->max, 2);
}

TEST(Latency, IsNeverNegative) {
    LatencyRecorder recorder(1);
    recorder.add(nanoseconds(-5));
    EXPECT_DOUBLE_EQ(recorder.summary()->min, 0);
}

TEST(Rate, CountsBytesAndReadsOfTheTimeThatPassed) {
    const auto rate = Rate::of(1000, 4096, std::chrono::milliseconds(500));
    ASSERT_TRUE(rate);
    EXPECT_DOUBLE_EQ(rate->reads_per_s, 2000);
    EXPECT_DOUBLE_EQ(rate->bytes_per_s, 2000 * 4096.0);
    EXPECT_DOUBLE_EQ(rate->seconds, 0.5);
}

TEST(Rate, IsUnknownWhenNoTimePassed) {
    EXPECT_FALSE(Rate::of(1000, 4096, nanoseconds(0)));
    EXPECT_FALSE(Rate::of(1000, 4096, nanoseconds(-1)));
}

}  // namespace
}  // namespace rdma_read::verify
