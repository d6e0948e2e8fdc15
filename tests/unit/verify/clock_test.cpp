// Claims about the cost of reading a clock, most of them with clocks that are pretended.
#include "rdma_read/verify/clock.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace rdma_read::verify {
namespace {

using std::chrono::nanoseconds;

TEST(ClockCost, IsWhatEachReadingTakes) {
    std::int64_t time = 1'000'000;
    const ClockCost cost = clock_cost_of([&] { return nanoseconds(time += 25); });
    EXPECT_DOUBLE_EQ(cost.read_ns, 25);
    EXPECT_DOUBLE_EQ(cost.step_ns, 25);
    EXPECT_FALSE(cost.coarse());
}

TEST(ClockCost, OfACoarseClockIsTheSameAndItsStepIsTold) {
    std::int64_t time = 0;
    const ClockCost cost = clock_cost_of([&] {
        time += 30;
        return nanoseconds(time / 1000 * 1000);
    });
    EXPECT_NEAR(cost.read_ns, 30, 2);
    EXPECT_DOUBLE_EQ(cost.step_ns, 1000);
    EXPECT_TRUE(cost.coarse());
}

TEST(ClockCost, IsNotDisturbedByRareInterruptions) {
    std::int64_t time = 0;
    std::uint64_t readings = 0;
    const ClockCost cost = clock_cost_of([&] {
        time += ++readings % 1009 == 0 ? 1'000'000 : 40;
        return nanoseconds(time);
    });
    EXPECT_DOUBLE_EQ(cost.read_ns, 40);
}

TEST(ClockCost, OfAClockThatStandsStillIsFoundAfterABoundedNumberOfReadings) {
    std::uint64_t readings = 0;
    const ClockCost cost = clock_cost_of([&] {
        ++readings;
        return nanoseconds(5);
    });
    EXPECT_DOUBLE_EQ(cost.read_ns, 0);
    EXPECT_DOUBLE_EQ(cost.step_ns, 0);
    EXPECT_FALSE(cost.coarse());
    EXPECT_LT(readings, 1'000'000U);
}

TEST(ClockCost, OfThisMachinesClockIsPositiveAndSmall) {
    const ClockCost cost = clock_cost();
    EXPECT_GT(cost.read_ns, 0);
    EXPECT_LT(cost.read_ns, 100'000);
    EXPECT_GT(cost.step_ns, 0);
}

}  // namespace
}  // namespace rdma_read::verify
