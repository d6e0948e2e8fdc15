// The two-process form against a pretended device.
#include "app/pair.hpp"

#include "support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace rdma_read::app {
namespace {

namespace fakes = rdma::fakes;
using testing::HasSubstr;

class PairServerTest : public fakes::WorldTest {
  protected:
    PairServerTest() {
        world.add_interface("eth0", "10.0.0.1");
        options_.bind = "10.0.0.1";
    }

    [[nodiscard]] fakes::Id& listener() const {
        const auto ids = world.all<fakes::Id>();
        const auto listening =
            std::ranges::find_if(ids, [](const auto* id) { return id->live && id->backlog > 0; });
        return **listening;
    }
    // Serves; `peers` is called each time the server is about to sleep.
    int serve(const std::function<void(int sleeps)>& peers) {
        int sleeps = 0;
        world.before_sleeping([&] { peers(++sleeps); });
        testing::internal::CaptureStderr();
        const int code = serve_text(options_);
        said_ = testing::internal::GetCapturedStderr();
        return code;
    }

    PairServerOptions options_;
    std::string said_;
};

TEST_F(PairServerTest, PeersThatSayNothingLeavePlacesToOthersWhoMayTryAgain) {
    constexpr std::size_t kMany = 600;
    std::vector<fakes::Id*> silent;
    fakes::Id* client = nullptr;
    const int code = serve([&](int sleeps) {
        if (sleeps == 1) {
            fakes::Id& listening = listener();
            for (std::size_t i = 0; i < kMany; ++i) {
                silent.push_back(&world.connect_request(listening, device, fakes::hello_of(0, {})));
            }
        } else if (client == nullptr && silent.back()->rejected_with) {
            // One of those who say nothing goes, and a client takes the place.
            const auto let_in = std::ranges::find_if(silent, &fakes::Id::live);
            world.happen(**let_in, {RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0});
            client = &world.connect_request(listener(), device, fakes::hello_of(0, {}));
        } else if (client != nullptr && client->asked) {
            raise(SIGTERM);
        }
    });
    EXPECT_EQ(code, 1);
    EXPECT_THAT(said_, HasSubstr("stopped after 0 of 1 clients"));
    const auto let_in = std::ranges::count_if(silent, [](const auto* id) { return !!id->asked; });
    EXPECT_LE(let_in, 256);
    EXPECT_GE(let_in, 64);
    for (const fakes::Id* const id : silent) {
        if (!id->asked) {
            EXPECT_EQ(id->rejected_with, fakes::bytes_of(rdma::encode(rdma::Refusal::server_busy)));
        }
    }
}

class PairClientTest : public fakes::ClientTest {
  protected:
    // What a client prints of a server's buffer that begins with this text.
    std::string printed(std::string text) {
        text += '\0';
        std::ranges::copy(std::as_bytes(std::span(text)), exposed.begin());
        world.complete_reads_at_once(true);
        world.answer("rdma_disconnect", {RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0});
        PairClientOptions options;
        options.server = "10.0.0.2";
        testing::internal::CaptureStdout();
        EXPECT_EQ(read_text(options), 0);
        return testing::internal::GetCapturedStdout();
    }
};

TEST_F(PairClientTest, PrintsTheExactLine) {
    EXPECT_EQ(printed(PairServerOptions{}.message),
              "RDMA Read completed. Data received: Hello from RDMA server memory!\n");
}

TEST_F(PairClientTest, PrintsNothingOfAStrangersTextThatATerminalWouldObey) {
    EXPECT_EQ(printed("a\x1b[2Jb\xc2\x9b"
                      "31mc\xff"
                      "d grüße"),
              "RDMA Read completed. Data received: a?[2Jb?31mc?d grüße\n");
}

}  // namespace
}  // namespace rdma_read::app
