// Events are copied, acknowledged and only then looked at.
#include "rdma_read/rdma/event_channel.hpp"

#include "rdma_read/rdma/cm_id.hpp"
#include "support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <thread>
#include <vector>

namespace rdma_read::rdma {
namespace {

using fakes::bytes_of;
using fakes::error_of;
using testing::HasSubstr;

class EventChannelTest : public fakes::WorldTest {
  protected:
    [[nodiscard]] fakes::Id& listener() const { return *world.all<fakes::Id>().front(); }
};

TEST_F(EventChannelTest, HasNothingWhenNothingHappened) {
    EventChannel channel;
    EXPECT_FALSE(channel.try_next());
}

TEST_F(EventChannelTest, AcknowledgesEveryKindOfEventAtOnce) {
    EventChannel channel;
    const CmId id(channel);
    for (unsigned int type = RDMA_CM_EVENT_ADDR_RESOLVED; type <= 99; ++type) {
        if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
            continue;
        }
        world.happen(listener(), {type, -5, {}, 0, 0});
        const auto event = channel.try_next();
        ASSERT_TRUE(event);
        EXPECT_EQ(event->type, type);
        EXPECT_EQ(event->status, -5);
        EXPECT_EQ(event->id, id.get());
        EXPECT_TRUE(event->private_data().empty());
        EXPECT_EQ(listener().unacknowledged, 0);
    }
}

TEST_F(EventChannelTest, ARequestNobodyWantsIsReleased) {
    EventChannel channel;
    const CmId id(channel);
    fakes::Id& incoming = world.connect_request(listener(), device, fakes::hello_of(1));
    {
        const auto event = channel.try_next();
        ASSERT_TRUE(event);
        EXPECT_EQ(event->incoming.get(), &incoming.raw);
        EXPECT_EQ(event->responder_resources, 16);
        EXPECT_EQ(bytes_of(event->private_data()), fakes::hello_of(1));
    }
    EXPECT_EQ(world.count("rdma_destroy_id " + incoming.name), 1);
}

TEST_F(EventChannelTest, KeepsPrivateDataAfterTheEventIsGone) {
    EventChannel channel;
    const CmId id(channel);
    const fakes::Bytes longest(255, std::byte{0x42});
    world.happen(listener(), {RDMA_CM_EVENT_REJECTED, 28, longest, 0, 0});
    const auto event = channel.try_next();
    ASSERT_TRUE(event);
    EXPECT_EQ(bytes_of(event->private_data()), longest);
}

TEST_F(EventChannelTest, AWaitEndsAtItsDeadlineAndSaysWhatItWaitedFor) {
    EventChannel channel;
    const auto error =
        error_of([&] { (void)channel.next(fakes::near(), Phase::resolve, "a parrot"); });
    EXPECT_EQ(error->failure(), Failure::timeout);
    EXPECT_EQ(error->phase(), Phase::resolve);
    EXPECT_THAT(error->what(), HasSubstr("while waiting for a parrot"));
}

TEST_F(EventChannelTest, ARequestToStopEndsAWaitThatSleeps) {
    EventChannel channel;
    fakes::Stopper stopper;
    const std::jthread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        stopper.ask();
    });
    const auto error = error_of(
        [&] { (void)channel.next(fakes::far(), Phase::connect, "a parrot", stopper.request()); });
    EXPECT_EQ(error->failure(), Failure::stopped);
    EXPECT_EQ(error->phase(), Phase::connect);
    EXPECT_STREQ(error->what(), "stopped while waiting for a parrot");
}

TEST_F(EventChannelTest, WhatIsThereAlreadyIsTakenAlsoAfterTheDeadline) {
    EventChannel channel;
    const CmId id(channel);
    world.happen(listener(), {RDMA_CM_EVENT_ADDR_CHANGE, 0, {}, 0, 0});
    EXPECT_EQ(channel.next(Deadline::after(std::chrono::seconds(-1)), Phase::connect, "").type,
              RDMA_CM_EVENT_ADDR_CHANGE);
}

TEST_F(EventChannelTest, AnInterruptedCallIsNoError) {
    EventChannel channel;
    const CmId id(channel);
    world.happen(listener(), {RDMA_CM_EVENT_ADDR_CHANGE, 0, {}, 0, 0});
    world.fail("rdma_get_cm_event", EINTR);
    EXPECT_FALSE(channel.try_next());
    EXPECT_TRUE(channel.try_next());
}

TEST_F(EventChannelTest, IsAnErrorWithAHintWhereTheKernelHasNoRdma) {
    world.fail("rdma_create_event_channel", ENODEV);
    const auto error = error_of([] { const EventChannel channel; });
    EXPECT_EQ(error->failure(), Failure::no_device);
    EXPECT_THAT(error->what(), HasSubstr("rdma_create_event_channel"));
    EXPECT_THAT(error->hint(), HasSubstr("modprobe rdma_ucm"));
}

TEST(CmEvent, IsDescribedByItsNameAndCause) {
    CmEvent event;
    event.type = RDMA_CM_EVENT_DISCONNECTED;
    EXPECT_EQ(describe(event), "RDMA_CM_EVENT_DISCONNECTED");
    event.type = RDMA_CM_EVENT_UNREACHABLE;
    event.status = -ETIMEDOUT;
    EXPECT_EQ(describe(event), "RDMA_CM_EVENT_UNREACHABLE (Connection timed out (110))");
    event.type = RDMA_CM_EVENT_REJECTED;
    event.status = 8;
    EXPECT_THAT(describe(event), HasSubstr("status 8: nobody listens there"));
    event.status = 10;
    EXPECT_THAT(describe(event), HasSubstr("status 10: stale connection"));
    event.status = 28;
    EXPECT_THAT(describe(event), HasSubstr("status 28: refused"));
    event.status = 5;
    EXPECT_THAT(describe(event), HasSubstr("(status 5)"));
    event.type = 77;
    EXPECT_EQ(describe(event), "UNKNOWN EVENT 77 (status 5)");
}

}  // namespace
}  // namespace rdma_read::rdma
