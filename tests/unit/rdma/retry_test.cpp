// Connecting again while the failure is one that may pass.
#include "rdma_read/rdma/read_client.hpp"
#include "support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

namespace rdma_read::rdma {
namespace {

using fakes::error_of;
using fakes::far;
using testing::HasSubstr;

class RetryTest : public fakes::ClientTest {
  protected:
    // Lets the first `times` connects end in this event.
    void fail_first(int times, const std::string& call, const fakes::Event& event,
                    const fakes::Event& good) {
        world.answer(call, [=](int nth) { return std::vector{nth <= times ? event : good}; });
    }
    void fail_first_connects(int times, const fakes::Event& event) {
        fail_first(times, "rdma_connect", event, {RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, 16});
    }
    // How often it was tried before it was given up at once, or at the deadline.
    [[nodiscard]] std::uint32_t tries_until_error(Deadline deadline) {
        std::uint32_t attempts = 0;
        last_ = error_of([&] { (void)connect_with_retry(config(), deadline, attempts); });
        expect_clean();
        return attempts;
    }

    std::optional<Error> last_;
};

TEST_F(RetryTest, OneAttemptIsEnoughWhereNothingFails) {
    std::uint32_t attempts = 0;
    const Connected connected = connect_with_retry(config(), far(), attempts);
    EXPECT_EQ(attempts, 1U);
    EXPECT_EQ(connected.attempts, 1U);
    EXPECT_GT(connected.took.count(), 0);
    EXPECT_EQ(connected.client->remote().length, exposed.size());
}

TEST_F(RetryTest, WaitingForTheDescriptorIsNoPartOfConnecting) {
    // What is sent asks for it.
    std::optional<Deadline::Clock::time_point> asked;
    world.after_posting([&](fakes::Qp& /*poster*/) { asked = Deadline::Clock::now(); });
    const auto begun = Deadline::Clock::now();
    std::uint32_t attempts = 0;
    const Connected connected = connect_with_retry(config(), far(), attempts);
    EXPECT_LE(begun + connected.took, asked.value());
}

TEST_F(RetryTest, ARequestToStopEndsThePauseAndKeepsTheCause) {
    fail_first_connects(1000, {RDMA_CM_EVENT_REJECTED, 8, {}, 0, 0});
    fakes::Stopper stopper;
    auto stoppable = config();
    stoppable.stop = stopper.request();
    std::uint32_t attempts = 0;
    const auto error = error_of([&] {
        (void)connect_with_retry(stoppable, far(), attempts, [&](const Error& /*cause*/) {
            if (attempts == 3) {
                stopper.ask();
            }
        });
    });
    EXPECT_EQ(error->failure(), Failure::stopped);
    EXPECT_THAT(error->what(), HasSubstr("nobody listens there"));
    EXPECT_EQ(attempts, 3U);
}

TEST_F(RetryTest, EachAttemptIsMadeOnAFreshIdAndToldOf) {
    fail_first_connects(2, {RDMA_CM_EVENT_REJECTED, 8, {}, 0, 0});
    std::uint32_t attempts = 0;
    std::vector<std::string> told;
    const Connected connected = connect_with_retry(
        config(), far(), attempts, [&](const Error& error) { told.emplace_back(error.what()); });
    EXPECT_EQ(attempts, 3U);
    EXPECT_EQ(connected.attempts, 3U);
    ASSERT_EQ(told.size(), 2U);
    EXPECT_THAT(told.front(), HasSubstr("nobody listens there"));
    for (const std::string id : {"id1", "id2", "id3"}) {
        EXPECT_EQ(world.count("rdma_connect " + id), 1) << id;
    }
    EXPECT_LT(world.place("rdma_destroy_id id1"), world.place("rdma_create_id id2"));
    EXPECT_GE(connected.took, std::chrono::milliseconds(10 + 20));
}

TEST_F(RetryTest, WhatMayPassIsTriedAgain) {
    std::uint32_t attempts = 0;
    for (const fakes::Event& event :
         {fakes::Event{RDMA_CM_EVENT_REJECTED, 8, {}, 0, 0},
          fakes::Event{RDMA_CM_EVENT_REJECTED, 10, {}, 0, 0},
          fakes::Event{RDMA_CM_EVENT_REJECTED, 28, fakes::bytes_of(encode(Refusal::server_busy)), 0,
                       0},
          fakes::Event{RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, {}, 0, 0},
          fakes::Event{RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, {}, 0, 0}}) {
        int calls = 0;
        world.answer("rdma_connect", [&, event](int) {
            return std::vector{
                ++calls == 1 ? event : fakes::Event{RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, 16}};
        });
        (void)connect_with_retry(config(), far(), attempts);
        EXPECT_EQ(attempts, 2U) << fakes::name_of(event.type) << event.status;
    }
}

TEST_F(RetryTest, AResolutionThatTimedOutIsTriedAgain) {
    std::uint32_t attempts = 0;
    fail_first(1, "rdma_resolve_addr", {RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, {}, 0, 0},
               {RDMA_CM_EVENT_ADDR_RESOLVED, 0, {}, 0, 0});
    (void)connect_with_retry(config(), far(), attempts);
    EXPECT_EQ(attempts, 2U);
    fail_first(4, "rdma_resolve_route", {RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, {}, 0, 0},
               {RDMA_CM_EVENT_ROUTE_RESOLVED, 0, {}, 0, 0});
    (void)connect_with_retry(config(), far(), attempts);
    EXPECT_EQ(attempts, 4U);  // the route had been resolved once before
}

TEST_F(RetryTest, WhatWillNotPassIsGivenUpAtOnce) {
    for (const fakes::Event& event :
         {fakes::Event{RDMA_CM_EVENT_REJECTED, 28, {}, 0, 0},
          fakes::Event{RDMA_CM_EVENT_REJECTED, 28, fakes::bytes_of(encode(Refusal::other_run)), 0,
                       0},
          fakes::Event{RDMA_CM_EVENT_DEVICE_REMOVAL, 0, {}, 0, 0},
          fakes::Event{RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, 0}}) {
        world.answer("rdma_connect", event);
        EXPECT_EQ(tries_until_error(far()), 1U) << fakes::name_of(event.type) << event.status;
    }
}

TEST_F(RetryTest, AMissingDeviceOrRouteIsGivenUpAtOnceHoweverItIsTold) {
    for (const int number : {ENODEV, ENETUNREACH, EHOSTUNREACH}) {
        world.answer("rdma_resolve_addr", {RDMA_CM_EVENT_ADDR_ERROR, -number, {}, 0, 0});
        EXPECT_EQ(tries_until_error(Deadline::after(std::chrono::milliseconds(100))), 1U) << number;
    }
    for (const int number : {ENODEV, ENETUNREACH, EHOSTUNREACH}) {
        const auto calls = world.attempted();
        const auto before = std::ranges::count(calls, "rdma_resolve_addr");
        world.fail("rdma_resolve_addr", number, static_cast<int>(before) + 1);
        EXPECT_EQ(tries_until_error(Deadline::after(std::chrono::milliseconds(100))), 1U) << number;
    }
}

TEST_F(RetryTest, LocalFailuresAreGivenUpAtOnce) {
    world.fail("ibv_reg_mr", ENOMEM);
    EXPECT_EQ(tries_until_error(far()), 1U);
    EXPECT_EQ(last_->failure(), Failure::limit);
}

TEST_F(RetryTest, GivesUpForTheDeadlineWithTheLastCauseAndTheCount) {
    fail_first_connects(1 << 30, {RDMA_CM_EVENT_REJECTED, 8, {}, 0, 0});
    const std::uint32_t attempts = tries_until_error(fakes::not_too_near());
    EXPECT_GE(attempts, 2U);
    EXPECT_LE(attempts, 6U);
    EXPECT_THAT(last_->what(), HasSubstr("nobody listens there"));
}

TEST_F(RetryTest, AnAttemptThatTheDeadlineCutsShortDoesNotHideTheCause) {
    // Refused once; the next attempt is still unanswered when the time is over.
    world.answer("rdma_connect", [](int nth) {
        return nth == 1 ? std::vector{fakes::Event{RDMA_CM_EVENT_REJECTED, 8, {}, 0, 0}}
                        : std::vector<fakes::Event>{};
    });
    EXPECT_EQ(tries_until_error(fakes::not_too_near()), 2U);
    EXPECT_EQ(last_->failure(), Failure::unreachable);
    EXPECT_THAT(last_->what(), HasSubstr("nobody listens there"));
}

TEST_F(RetryTest, ThePauseNeverOutlivesTheDeadline) {
    // Of many short budgets, each ends in the cause and not in a deadline that was slept through.
    fail_first_connects(1 << 30, {RDMA_CM_EVENT_REJECTED, 8, {}, 0, 0});
    for (int budget = 21; budget < 31; ++budget) {
        (void)tries_until_error(Deadline::after(std::chrono::milliseconds(budget)));
        EXPECT_EQ(last_->failure(), Failure::unreachable) << budget;
    }
}

}  // namespace
}  // namespace rdma_read::rdma
