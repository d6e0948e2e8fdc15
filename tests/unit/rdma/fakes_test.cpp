// The books of the pretended libraries notice what the other tests rely on them to notice.
#include "rdma_read/rdma/completion_queue.hpp"
#include "rdma_read/rdma/handles.hpp"
#include "support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace rdma_read::rdma::fakes {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Fakes : public testing::Test {
  protected:
    World world;
    Device& device = world.add_device("fake0", {"10.0.0.1"});
};

TEST_F(Fakes, NoticeWhatIsNotReleased) {
    ibv_pd* const pd = ibv_alloc_pd(&device.context);
    EXPECT_THAT(world.held(), ElementsAre("pd1"));
    ibv_dealloc_pd(pd);
    EXPECT_THAT(world.held(), IsEmpty());
}

TEST_F(Fakes, NoticeARegionThatOutlivesItsDomain) {
    std::array<std::byte, 8> memory{};
    ibv_pd* const pd = ibv_alloc_pd(&device.context);
    ibv_mr* const mr = ibv_reg_mr(pd, memory.data(), memory.size(),
                                  static_cast<unsigned int>(IBV_ACCESS_LOCAL_WRITE));
    ibv_dealloc_pd(pd);
    ibv_dereg_mr(mr);
    EXPECT_THAT(world.violations(), ElementsAre("pd1 was released before mr1"));
}

TEST_F(Fakes, NoticeAReleaseThatHappensTwice) {
    ibv_pd* const pd = ibv_alloc_pd(&device.context);
    ibv_dealloc_pd(pd);
    ibv_dealloc_pd(pd);
    EXPECT_THAT(world.violations(), ElementsAre("pd1 was released twice"));
}

TEST_F(Fakes, NoticeAQueuePairThatOutlivesItsId) {
    rdma_event_channel* const channel = rdma_create_event_channel();
    rdma_cm_id* id = nullptr;
    rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP);
    const Address here = address_of("10.0.0.1");
    rdma_bind_addr(id, here.raw());
    ibv_pd* const pd = ibv_alloc_pd(&device.context);
    ibv_comp_channel* const comp = ibv_create_comp_channel(&device.context);
    ibv_qp_init_attr attributes{};
    attributes.qp_type = IBV_QPT_RC;
    attributes.send_cq = attributes.recv_cq = ibv_create_cq(&device.context, 4, nullptr, comp, 0);
    ASSERT_EQ(rdma_create_qp(id, pd, &attributes), 0);
    rdma_destroy_id(id);
    rdma_destroy_event_channel(channel);
    EXPECT_THAT(world.violations(), Contains("id1 was released before qp1"));
}

TEST_F(Fakes, NoticeAnEventThatIsNotAcknowledged) {
    rdma_event_channel* const channel = rdma_create_event_channel();
    rdma_cm_id* id = nullptr;
    rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP);
    world.happen(*world.all<Id>().front(), {RDMA_CM_EVENT_ADDR_CHANGE, 0, {}, 0, 0});
    rdma_cm_event* event = nullptr;
    ASSERT_EQ(rdma_get_cm_event(channel, &event), 0);
    rdma_destroy_id(id);
    rdma_destroy_event_channel(channel);
    EXPECT_THAT(world.violations(), Contains(HasSubstr("would block")));
    EXPECT_THAT(world.held(), ElementsAre("an unacknowledged RDMA_CM_EVENT_ADDR_CHANGE"));
}

TEST_F(Fakes, WakeOnlyForWhatHappensAfterArming) {
    CompletionQueue queue(&device.context, 4);
    Cq& cq = *world.all<Cq>().front();
    world.complete(cq, {});
    EXPECT_TRUE(cq.channel->wakeups.empty());
    queue.arm();
    EXPECT_TRUE(cq.channel->wakeups.empty());
    world.complete(cq, {});
    world.complete(cq, {});
    EXPECT_EQ(cq.channel->wakeups.size(), 1U);
}

TEST_F(Fakes, NoticeACompletionQueueThatOverruns) {
    const CompletionQueue queue(&device.context, 1);
    Cq& cq = *world.all<Cq>().front();
    world.complete(cq, {});
    world.complete(cq, {});
    EXPECT_THAT(world.violations(), ElementsAre("cq1 overran"));
}

TEST_F(Fakes, AcknowledgedWakeupsAreCounted) {
    {
        CompletionQueue queue(&device.context, 4);
        Cq& cq = *world.all<Cq>().front();
        std::array<ibv_wc, 4> room{};
        for (int i = 0; i < 200; ++i) {
            queue.arm();
            world.complete(cq, {});
            queue.woken();
            EXPECT_EQ(queue.poll(room).size(), 1U);
            EXPECT_LE(cq.unacknowledged, 64U);
            EXPECT_LE(cq.channel->wakeups.size(), 1U);
        }
    }
    EXPECT_THAT(world.violations(), IsEmpty());
    EXPECT_THAT(world.held(), IsEmpty());
}

}  // namespace
}  // namespace rdma_read::rdma::fakes
