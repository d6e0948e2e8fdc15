// The server of a run against a pretended device: what is left when it fails.
#include "app/buffer_server.hpp"

#include "support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

namespace rdma_read::app {
namespace {

namespace fakes = rdma::fakes;

class BufferServerTest : public fakes::WorldTest {
  protected:
    BufferServerTest() { world.add_interface("eth0", "10.0.0.1"); }

    [[nodiscard]] fakes::Id& listener() const {
        for (fakes::Id* const id : world.all<fakes::Id>()) {
            if (id->live && id->backlog > 0) {
                return *id;
            }
        }
        throw std::logic_error("nobody listens");
    }
    // Waits for what the serving thread does.
    void await(const std::string& what, const std::function<bool()>& happened) {
        const rdma::Deadline limit = fakes::far();
        for (;;) {
            {
                const std::scoped_lock lock(world.mutex());
                if (happened()) {
                    return;
                }
            }
            ASSERT_FALSE(limit.expired()) << what;
            std::this_thread::yield();
        }
    }
    // A reader that has its descriptor, or waits for it.
    fakes::Id& ready_reader(std::uint32_t rank) {
        fakes::Id& id = world.connect_request(listener(), device, fakes::hello_of(rank));
        await("accepted", [&] { return id.asked.has_value(); });
        const std::scoped_lock lock(world.mutex());
        world.happen(id, {RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, 0});
        world.receive(*id.qp, fakes::bytes_of(rdma::encode_ready()));
        return id;
    }

    Options options_;
    ServerTask task_{options_, fakes::kRun, 0, 4, "node1"};
};

TEST_F(BufferServerTest, OneThatFailsEndsItsConnectionsAtOnceAndKeepsWhatItKnows) {
    options_.concurrency = 1;
    BufferServer server(task_, filled_buffer(task_));
    fakes::Id& reading = ready_reader(1);
    await("told where to read", [&] { return !reading.qp->sent.empty(); });
    fakes::Id& waiting = ready_reader(2);
    testing::internal::CaptureStderr();
    world.happen(listener(), {RDMA_CM_EVENT_DEVICE_REMOVAL, 0, {}, 0, 0});
    await("let go", [&] { return world.held().empty(); });
    EXPECT_FALSE(reading.live);
    EXPECT_FALSE(waiting.live);
    const verify::ServerInfo info = server.finish();
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                testing::HasSubstr("server (rank 0) stopped: device fake0 was removed"));
    EXPECT_EQ(info.connections, 1U);
    EXPECT_GT(info.serving_s, 0);
    EXPECT_GT(info.cpu_s_while_serving, 0);
}

TEST_F(BufferServerTest, OneThatFailsMayBeDestroyedWithoutItsEnd) {
    const BufferServer server(task_, filled_buffer(task_));
    testing::internal::CaptureStderr();
    world.happen(listener(), {RDMA_CM_EVENT_DEVICE_REMOVAL, 0, {}, 0, 0});
    await("let go", [&] { return world.held().empty(); });
    EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("stopped: "));
}

TEST_F(BufferServerTest, OneThatServesIsStoppedByItsEnd) {
    BufferServer server(task_, filled_buffer(task_));
    const verify::ServerInfo info = server.finish();
    EXPECT_EQ(info.connections, 0U);
    EXPECT_EQ(info.device, "fake0");
}

}  // namespace
}  // namespace rdma_read::app
