// How the time of looking before a sleep follows what answers take.
#include "rdma_read/rdma/poll_budget.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

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

// Waits where a sleep costs nothing: somebody else needs the processor, or answers take very long.
std::uint32_t looks_among(PollBudget& budget, nanoseconds answer, std::uint32_t waits) {
    std::uint32_t looks = 0;
    for (std::uint32_t i = 0; i < waits; ++i) {
        const auto look = budget.begin_wait();
        looks += look > nanoseconds::zero() ? 1U : 0U;
        budget.answered(std::max(look, answer), answer > look);
    }
    return looks;
}

TEST(PollBudget, SleepsAtOnceWhereAnswersTakeLongAndLookingGainsNothing) {
    PollBudget budget;
    wait(budget, microseconds(200), 20);
    EXPECT_TRUE(budget.sleeping());
    EXPECT_EQ(looks_among(budget, microseconds(230), 10 * PollBudget::kWaitsPerTry),
              10 * PollBudget::kTryLength);
    EXPECT_TRUE(budget.sleeping());
}

TEST(PollBudget, LooksForLongWhereThatBringsAnswersSooner) {
    PollBudget budget;
    wait(budget, microseconds(200), 20);
    EXPECT_TRUE(budget.sleeping());
    // A try of the other way shows that the wake-up is spared.
    wait(budget, microseconds(200), PollBudget::kWaitsPerTry);
    EXPECT_FALSE(budget.sleeping());
    EXPECT_EQ(budget.begin_wait(), microseconds(400));
    budget.answered(microseconds(200), false);
    // And goes on to do so, but for a try now and then.
    std::uint32_t sleeps = 0;
    for (std::uint32_t i = 0; i < 10 * PollBudget::kWaitsPerTry; ++i) {
        const bool sleeps_at_once = budget.begin_wait() == nanoseconds::zero();
        sleeps += sleeps_at_once ? 1U : 0U;
        budget.answered(microseconds(sleeps_at_once ? 230 : 200), sleeps_at_once);
    }
    EXPECT_EQ(sleeps, 10 * PollBudget::kTryLength);
}

TEST(PollBudget, FewVeryLateAnswersDoNotEndLongLooks) {
    PollBudget budget;
    wait(budget, microseconds(200), PollBudget::kWaitsPerTry);
    int sleeps = 0;
    for (std::uint32_t i = 1; i < PollBudget::kFirstTry; ++i) {
        const auto look = budget.begin_wait();
        sleeps += look == nanoseconds::zero() ? 1 : 0;
        const bool late = i % 10 == 0;
        budget.answered(late ? microseconds(20'000) : microseconds(200), late);
    }
    EXPECT_EQ(sleeps, 0);
}

TEST(PollBudget, AFewEarlyAnswersAmongLateOnesDoNotBeginLongLooks) {
    PollBudget budget;
    wait(budget, microseconds(200), 20);
    for (std::uint32_t i = 0; i < PollBudget::kWaitsPerTry; ++i) {
        const auto look = budget.begin_wait();
        // Two of eight, and it is as late as ever otherwise.
        const bool early = i % 4 == 0 && look > nanoseconds::zero();
        budget.answered(early ? microseconds(100) : microseconds(230), !early);
    }
    EXPECT_TRUE(budget.sleeping());
}

TEST(PollBudget, GivesUpLongLooksThatNoLongerGainAnything) {
    PollBudget budget;
    wait(budget, microseconds(200), PollBudget::kWaitsPerTry);
    EXPECT_FALSE(budget.sleeping());
    // Somebody else wants the processor now.
    for (int i = 0; i < 20; ++i) {
        const auto look = budget.begin_wait();
        budget.answered(look + microseconds(20), true);
    }
    EXPECT_TRUE(budget.sleeping());
}

TEST(PollBudget, NoLookIsLongerThanTheLongest) {
    PollBudget budget;
    wait(budget, seconds(1), 20);
    nanoseconds longest{};
    for (std::uint32_t i = 0; i < 2 * PollBudget::kWaitsPerTry; ++i) {
        const auto look = budget.begin_wait();
        longest = std::max(longest, look);
        budget.answered(seconds(1), true);
    }
    EXPECT_EQ(longest, PollBudget::kLongest);
    EXPECT_TRUE(budget.sleeping());
}

TEST(PollBudget, LooksAgainSoonAfterAnswersHaveBecomeShort) {
    PollBudget budget;
    wait(budget, microseconds(200), 20);
    wait(budget, microseconds(25), PollBudget::kWaitsPerTry);
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
    std::uint32_t looks = 0;
    for (std::uint32_t i = 0; i < PollBudget::kWaitsPerTry; ++i) {
        const auto look = budget.begin_wait();
        looks += look > nanoseconds::zero() ? 1U : 0U;
        budget.answered(look + microseconds(20), true);
    }
    EXPECT_EQ(looks, PollBudget::kTryLength);
}

}  // namespace
}  // namespace rdma_read::rdma
