// How the time of looking before a sleep follows what answers take.
#include "rdma_read/rdma/poll_budget.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace rdma_read::rdma {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// Waits for answers that take so long; a sleep adds what it costs to wake up.
void wait(PollBudget& budget, nanoseconds answer, int times = 1) {
    constexpr microseconds kWakeUp{30};
    for (int i = 0; i < times; ++i) {
        const bool slept = answer > budget.begin_wait();
        budget.answered(slept ? answer + kWakeUp : answer, slept);
    }
}

TEST(PollBudget, BeginsWithLookingForAsLongAsASleepCosts) {
    EXPECT_EQ(PollBudget().begin_wait(), PollBudget::kMost);
}

TEST(PollBudget, LooksTwiceAsLongAsAnswersUsuallyTakeWithinBounds) {
    PollBudget budget;
    wait(budget, microseconds(10), 100);
    EXPECT_NEAR(static_cast<double>(budget.begin_wait().count()), 20e3, 500);
    wait(budget, nanoseconds(100), 100);
    EXPECT_EQ(budget.begin_wait(), PollBudget::kLeast);
    wait(budget, microseconds(40), 100);
    EXPECT_EQ(budget.begin_wait(), PollBudget::kMost);
}

TEST(PollBudget, SleepsAtOnceWhereAnswersTakeLongerThanASleep) {
    PollBudget budget;
    wait(budget, microseconds(200), 20);
    int looks = 0;
    for (std::uint32_t i = 0; i < 10 * PollBudget::kWaitsPerProbe; ++i) {
        looks += budget.begin_wait() > nanoseconds::zero() ? 1 : 0;
        budget.answered(microseconds(230), true);
    }
    EXPECT_EQ(looks, 10);
}

TEST(PollBudget, LooksAgainSoonAfterAnswersHaveBecomeShort) {
    PollBudget budget;
    wait(budget, microseconds(200), 20);
    wait(budget, microseconds(25), PollBudget::kWaitsPerProbe);
    EXPECT_EQ(budget.begin_wait(), PollBudget::kMost);
}

TEST(PollBudget, OneLongWaitIsForgottenSoon) {
    PollBudget budget;
    wait(budget, microseconds(5), 100);
    wait(budget, seconds(10));
    EXPECT_GT(budget.begin_wait(), nanoseconds::zero());
    wait(budget, microseconds(5), 20);
    EXPECT_LT(budget.begin_wait(), microseconds(15));
}

TEST(PollBudget, GivesUpLookingWhereAnswersComeOnlyWhenItSleeps) {
    // The peer needs this processor: however long the look, the answer comes after it.
    PollBudget budget;
    for (int i = 0; i < 100; ++i) {
        budget.answered(budget.begin_wait() + microseconds(20), true);
    }
    int looks = 0;
    for (std::uint32_t i = 0; i < PollBudget::kWaitsPerProbe; ++i) {
        const auto look = budget.begin_wait();
        looks += look > nanoseconds::zero() ? 1 : 0;
        budget.answered(look + microseconds(20), true);
    }
    EXPECT_EQ(looks, 1);
}

}  // namespace
}  // namespace rdma_read::rdma
