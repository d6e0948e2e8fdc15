// One connection attempt: its order, its errors, and what it releases.
#include "rdma_read/rdma/read_client.hpp"

#include "support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace rdma_read::rdma {
namespace {

using fakes::bytes_of;
using fakes::error_of;
using fakes::far;
using fakes::near;
using fakes::not_too_near;
using testing::HasSubstr;
using testing::IsEmpty;

class ReadClientTest : public fakes::ClientTest {
  protected:
    [[nodiscard]] std::unique_ptr<ReadClient> connect(std::uint32_t depth = 4) {
        return std::make_unique<ReadClient>(config(depth), far());
    }
    [[nodiscard]] std::optional<Error> failure(Deadline deadline = far()) {
        const auto error = error_of([&] { const ReadClient client(config(), deadline); });
        expect_clean();
        return error;
    }
    [[nodiscard]] fakes::Id& id() const { return *world.all<fakes::Id>().back(); }
    [[nodiscard]] fakes::Qp& qp() const { return *world.all<fakes::Qp>().back(); }
    [[nodiscard]] const fakes::Asked& asked() const { return id().asked.value(); }
};

TEST_F(ReadClientTest, KnowsTheDescriptorAndThePathOnceItIsConnected) {
    const auto client = connect();
    EXPECT_EQ(client->remote().address, reinterpret_cast<std::uintptr_t>(exposed.data()));
    EXPECT_EQ(client->remote().length, exposed.size());
    EXPECT_EQ(client->remote().rkey, fakes::kRemoteKey);
    EXPECT_EQ(client->path().device, "fake0");
    EXPECT_EQ(client->path().port_num, 1);
    EXPECT_EQ(client->path().local_address, "10.0.0.1");
    EXPECT_EQ(client->path().remote_address, "10.0.0.2");
    EXPECT_EQ(client->path().gid, "::");
    EXPECT_EQ(client->path().mtu, 1024U);
    EXPECT_EQ(client->path().depth_negotiated, 16U);
    EXPECT_EQ(client->send_entries(), 4U);
    EXPECT_EQ(client->max_message(), 1U << 30U);
}

TEST_F(ReadClientTest, IntroducesItselfAndThenSaysReady) {
    const auto client = connect();
    EXPECT_EQ(asked().private_data, fakes::hello_of(3));
    EXPECT_EQ(asked().private_data.size(), 32U);
    ASSERT_EQ(qp().sent.size(), 1U);
    EXPECT_EQ(qp().sent.front(), bytes_of(encode_ready()));
}

TEST_F(ReadClientTest, TellsTheDeviceBeforeItRegistersMemory) {
    auto asking = config();
    std::vector<std::string> told;
    std::ptrdiff_t registered = -1;
    asking.on_device = [&](const std::string& name) {
        told.push_back(name);
        registered = std::ranges::count(world.attempted(), "ibv_reg_mr");
    };
    const ReadClient client(asking, far());
    EXPECT_THAT(told, testing::ElementsAre("fake0"));
    EXPECT_EQ(registered, 0);
    EXPECT_GT(std::ranges::count(world.attempted(), "ibv_reg_mr"), 0);
}

TEST_F(ReadClientTest, PostsTheDescriptorsReceiveBeforeItConnects) {
    const auto client = connect();
    EXPECT_LT(world.place("rdma_create_qp"), world.place("ibv_post_recv"));
    EXPECT_LT(world.place("ibv_post_recv"), world.place("rdma_connect"));
    EXPECT_LT(world.place("rdma_connect"), world.place("ibv_post_send"));
}

TEST_F(ReadClientTest, AsksForEndlessReceiverNotReadyRetriesAndFiniteRetries) {
    const auto client = connect();
    EXPECT_EQ(asked().parameters.rnr_retry_count, 7);
    EXPECT_EQ(asked().parameters.retry_count, 6);
    EXPECT_EQ(asked().parameters.initiator_depth, 4);
    EXPECT_EQ(asked().parameters.responder_resources, 0);
}

TEST_F(ReadClientTest, DepthIsClampedToWhatTheDeviceCan) {
    struct Case {
        std::uint32_t wanted;
        int max_reads;
        int max_requests;
        std::uint8_t asked;
        std::uint32_t entries;
    };
    for (const Case& at : {Case{0, 16, 1024, 1, 1}, Case{64, 16, 1024, 16, 64},
                           Case{4000, 128, 1024, 128, 1023}, Case{300, 1000, 1024, 255, 300},
                           Case{8, 0, 1024, 1, 8}, Case{8, 16, 1, 1, 1}, Case{8, -1, 0, 1, 1}}) {
        // The last two devices have no place for the first message beside a read.
        device.attributes.max_qp_init_rd_atom = at.max_reads;
        device.attributes.max_qp_wr = at.max_requests;
        if (at.max_requests < 2) {
            EXPECT_THAT(
                error_of([&] { const ReadClient client(config(at.wanted), far()); })->what(),
                HasSubstr("rdma_create_qp(2 send"));
            continue;
        }
        const auto client = connect(at.wanted);
        EXPECT_EQ(asked().parameters.initiator_depth, at.asked) << at.wanted;
        EXPECT_EQ(client->send_entries(), at.entries) << at.wanted;
    }
}

TEST_F(ReadClientTest, LongestMessageIsThePortsLimitAtMostOneGiB) {
    device.port.max_msg_sz = 8U << 20U;
    EXPECT_EQ(connect()->max_message(), 8U << 20U);
    device.port.max_msg_sz = 0xffffffff;
    EXPECT_EQ(connect()->max_message(), 1U << 30U);
}

TEST_F(ReadClientTest, APortThatTellsNoLongestMessageDoesNotMakeReadsEmpty) {
    device.port.max_msg_sz = 0;
    EXPECT_EQ(connect()->max_message(), 1U << 30U);
}

TEST_F(ReadClientTest, DestinationMayOnlyBeWrittenLocallyExceptOnIwarp) {
    const auto access = [&] { return world.all<fakes::Mr>().back()->access; };
    {
        const auto client = connect();
        EXPECT_EQ(access(), static_cast<unsigned int>(IBV_ACCESS_LOCAL_WRITE));
    }
    device.device.transport_type = IBV_TRANSPORT_IWARP;
    const auto client = connect();
    EXPECT_EQ(access(),
              static_cast<unsigned int>(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
}

TEST_F(ReadClientTest, DestinationCanComeAfterTheDescriptor) {
    ReadClientConfig later = config();
    later.destination = {};
    ReadClient client(later, far());
    client.set_destination(destination);
    EXPECT_EQ(client.destination().memory().data(), destination.data());
}

TEST_F(ReadClientTest, ReleasesInTheOrderThatTheManualsAskFor) {
    connect().reset();
    EXPECT_LT(world.place("rdma_destroy_qp"), world.place("ibv_dereg_mr"));
    EXPECT_LT(world.place("ibv_dereg_mr", 2), world.place("ibv_destroy_cq"));
    EXPECT_LT(world.place("ibv_destroy_cq"), world.place("ibv_destroy_comp_channel"));
    EXPECT_LT(world.place("ibv_destroy_comp_channel"), world.place("ibv_dealloc_pd"));
    EXPECT_LT(world.place("ibv_dealloc_pd"), world.place("rdma_destroy_id"));
    EXPECT_LT(world.place("rdma_destroy_id"), world.place("rdma_destroy_event_channel"));
    EXPECT_THAT(world.held(), IsEmpty());
}

class ReadClientFailures : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(QueuePairs, ReadClientFailures, testing::Values(1U, 2U));

TEST_P(ReadClientFailures, EveryCallThatFailsIsNamedAndEverythingIsReleased) {
    // What a connection is not given up for: it only tells the MTU.
    const std::set<std::string> forgiven{"ibv_query_qp"};
    std::vector<std::string> calls;
    for (std::size_t failing = 0; failing == 0 || failing <= calls.size(); ++failing) {
        fakes::World world;
        world.add_device("fake0", {"10.0.0.1"});
        fakes::Bytes exposed(64);
        fakes::Bytes destination(64);
        world.answer_sends_with(bytes_of(encode(
            RemoteBuffer{reinterpret_cast<std::uintptr_t>(exposed.data()), exposed.size(), 1})));
        ReadClientConfig config;
        config.server = fakes::address_of("10.0.0.2", 7471);
        config.destination = destination;
        config.queue_pairs = GetParam();
        if (failing == 0) {
            const ReadClient client(config, far());
            calls = world.attempted();
            ASSERT_GE(calls.size(), 18U);
            continue;
        }
        const std::string& call = calls[failing - 1];
        SCOPED_TRACE(call + ", call " + std::to_string(failing));
        world.fail_call(failing - 1, EIO);
        if (forgiven.contains(call)) {
            const ReadClient client(config, far());
        } else {
            const auto error = error_of([&] { const ReadClient client(config, far()); });
            ASSERT_TRUE(error);
            EXPECT_THAT(error->what(), HasSubstr(call));
            if (call != "ibv_poll_cq") {
                EXPECT_EQ(error->code(), EIO);
            }
        }
        EXPECT_THAT(world.violations(), IsEmpty());
        EXPECT_THAT(world.held(), IsEmpty());
    }
    for (const std::string call :
         {"rdma_create_event_channel", "rdma_create_id", "rdma_resolve_addr", "rdma_resolve_route",
          "rdma_get_cm_event", "ibv_query_device", "ibv_query_port", "ibv_alloc_pd",
          "ibv_create_comp_channel", "ibv_create_cq", "ibv_reg_mr", "rdma_create_qp",
          "ibv_post_recv", "rdma_connect", "ibv_post_send", "ibv_poll_cq", "ibv_query_qp"}) {
        EXPECT_THAT(calls, testing::Contains(call));
    }
}

TEST_F(ReadClientTest, RegistrationThatMeetsTheLockedMemoryLimitNamesSizePurposeAndLimit) {
    world.fail("ibv_reg_mr", ENOMEM, 2);
    const auto error = failure();
    EXPECT_EQ(error->failure(), Failure::limit);
    EXPECT_THAT(error->what(), HasSubstr("ibv_reg_mr(65536 bytes for the read destination)"));
    EXPECT_THAT(error->hint(), HasSubstr(memlock_limit_text()));
}

TEST_F(ReadClientTest, ANegotiatedDepthOfNothingIsAnErrorAtOnce) {
    world.answer("rdma_connect", {RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, 0});
    const auto error = failure();
    EXPECT_EQ(error->failure(), Failure::limit);
    EXPECT_EQ(error->phase(), Phase::connect);
    EXPECT_THAT(error->what(), HasSubstr("the negotiated read depth is 0"));
}

TEST_F(ReadClientTest, EveryUnexpectedEventAtEveryStepIsAnErrorThatNamesIt) {
    const std::vector<std::pair<std::string, unsigned int>> steps{
        {"rdma_resolve_addr", RDMA_CM_EVENT_ADDR_RESOLVED},
        {"rdma_resolve_route", RDMA_CM_EVENT_ROUTE_RESOLVED},
        {"rdma_connect", RDMA_CM_EVENT_ESTABLISHED}};
    for (const auto& [call, expected] : steps) {
        for (unsigned int type = RDMA_CM_EVENT_ADDR_RESOLVED;
             type <= RDMA_CM_EVENT_TIMEWAIT_EXIT + 3; ++type) {
            if (type == expected || type == RDMA_CM_EVENT_CONNECT_REQUEST) {
                continue;
            }
            SCOPED_TRACE(call + " and then " + fakes::name_of(type));
            world.answer(call, {type, -EIO, {}, 0, 0});
            const auto error = failure();
            ASSERT_TRUE(error);
            EXPECT_THAT(error->what(), HasSubstr(fakes::name_of(type)));
            EXPECT_THAT(error->what(), HasSubstr("10.0.0.2:7471"));
            EXPECT_EQ(error->phase(), call == "rdma_connect" ? Phase::connect : Phase::resolve);
            EXPECT_FALSE(error->hint().empty());
        }
        world.answer(call, {expected, 0, {}, 0, 16});
    }
}

TEST_F(ReadClientTest, ARejectionWithoutAWordOfOursIsToldByItsStatus) {
    const auto rejected = [&](int status, const fakes::Bytes& data = {}) {
        world.answer("rdma_connect", {RDMA_CM_EVENT_REJECTED, status, data, 0, 0});
        return failure().value();
    };
    EXPECT_EQ(rejected(8).failure(), Failure::unreachable);
    EXPECT_THAT(rejected(8).what(), HasSubstr("status 8: nobody listens there"));
    EXPECT_EQ(rejected(8).code(), 8);
    EXPECT_EQ(rejected(10).failure(), Failure::unreachable);
    EXPECT_THAT(rejected(10).what(), HasSubstr("status 10: stale connection"));
    EXPECT_EQ(rejected(28).failure(), Failure::refused);
    EXPECT_THAT(rejected(28).what(), HasSubstr("status 28: refused by the peer's program"));
    EXPECT_EQ(rejected(28, fakes::Bytes(148)).failure(), Failure::refused);
    EXPECT_EQ(rejected(8, fakes::Bytes(148)).failure(), Failure::unreachable);
}

TEST_F(ReadClientTest, ARejectionWithAReasonOfOursIsToldInWordsAlsoPadded) {
    for (std::uint16_t reason = 1; reason <= 9; ++reason) {
        const auto refusal = static_cast<Refusal>(reason);
        for (const std::size_t size : {kRefusalBytes, std::size_t{148}}) {
            auto data = bytes_of(encode(refusal));
            data.resize(size);
            world.answer("rdma_connect", {RDMA_CM_EVENT_REJECTED, 28, data, 0, 0});
            const auto error = failure();
            EXPECT_EQ(error->failure(),
                      refusal == Refusal::server_busy ? Failure::busy : Failure::refused);
            EXPECT_THAT(error->what(), HasSubstr(std::string(to_string(refusal))));
            EXPECT_FALSE(error->hint().empty());
        }
    }
}

TEST_F(ReadClientTest, ARefusalsHintFitsItsReason) {
    const auto hint = [&](Refusal refusal) {
        world.answer("rdma_connect", {RDMA_CM_EVENT_REJECTED, 28, bytes_of(encode(refusal)), 0, 0});
        return failure()->hint();
    };
    EXPECT_THAT(hint(Refusal::other_run), HasSubstr("the same run and build"));
    EXPECT_THAT(hint(Refusal::server_full), HasSubstr("fewer readers"));
    EXPECT_THAT(hint(Refusal::server_error), HasSubstr("the server's output"));
}

TEST_F(ReadClientTest, AnUnreachablePeerAndAMissingDeviceAreToldApart) {
    world.answer("rdma_connect", {RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, {}, 0, 0});
    EXPECT_EQ(failure()->failure(), Failure::unreachable);
    world.answer("rdma_connect", {RDMA_CM_EVENT_DEVICE_REMOVAL, 0, {}, 0, 0});
    EXPECT_EQ(failure()->failure(), Failure::no_device);
    world.answer("rdma_connect", {RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0});
    EXPECT_EQ(failure()->failure(), Failure::disconnected);
    world.answer("rdma_resolve_addr", {RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, {}, 0, 0});
    EXPECT_EQ(failure()->failure(), Failure::bad_address);
}

TEST_F(ReadClientTest, AServerThatSaysNothingIsATimeoutThatSaysWhatWasWaitedFor) {
    const auto silent = [](int) { return std::vector<fakes::Event>{}; };
    world.answer("rdma_connect", silent);
    auto error = failure(not_too_near());
    EXPECT_EQ(error->failure(), Failure::timeout);
    EXPECT_EQ(error->phase(), Phase::connect);
    EXPECT_THAT(error->what(), HasSubstr("the connection (10.0.0.2:7471)"));
    world.answer("rdma_resolve_route", silent);
    error = failure(not_too_near());
    EXPECT_EQ(error->phase(), Phase::resolve);
    EXPECT_THAT(error->what(), HasSubstr("route resolution"));
    world.answer("rdma_resolve_addr", silent);
    EXPECT_THAT(failure(not_too_near())->what(), HasSubstr("address resolution"));
}

TEST_F(ReadClientTest, AServerThatSendsNoDescriptorIsATimeout) {
    world.answer_sends_with({});
    const auto error = failure(not_too_near());
    EXPECT_EQ(error->failure(), Failure::timeout);
    EXPECT_EQ(error->phase(), Phase::descriptor);
}

TEST_F(ReadClientTest, AServerThatLeavesBeforeItsDescriptorIsNamedWithTheEvent) {
    world.answer_sends_with({});
    world.answer("rdma_connect", [](int) {
        return std::vector<fakes::Event>{{RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, 16},
                                         {RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0}};
    });
    const auto error = failure();
    EXPECT_EQ(error->failure(), Failure::disconnected);
    EXPECT_EQ(error->phase(), Phase::descriptor);
    EXPECT_THAT(error->what(), HasSubstr("RDMA_CM_EVENT_DISCONNECTED"));
}

TEST_F(ReadClientTest, AServerThatLeavesIsNamedAlsoIfItsFlushIsSeenBeforeTheEvent) {
    world.answer_sends_with({});
    world.after_posting([&](fakes::Qp& poster) {
        ibv_wc flushed{};
        flushed.wr_id = poster.receives.front().wr_id;
        flushed.status = IBV_WC_WR_FLUSH_ERR;
        world.complete(*poster.cq, flushed);
    });
    const auto error = failure();
    EXPECT_EQ(error->failure(), Failure::disconnected);
    EXPECT_EQ(error->code(), IBV_WC_WR_FLUSH_ERR);
    EXPECT_THAT(error->what(), HasSubstr("ended the connection before it sent the descriptor"));
}

TEST_F(ReadClientTest, ADescriptorThatIsNoneIsAProtocolErrorWithItsSize) {
    auto wrong = bytes_of(encode(RemoteBuffer{4096, 16, 1}));
    wrong.push_back(std::byte{0});
    for (const fakes::Bytes& message :
         {fakes::Bytes(1), fakes::Bytes(28), fakes::Bytes(128), wrong, bytes_of(encode_ready()),
          bytes_of(encode(RemoteBuffer{4096, 0, 1}))}) {
        world.answer_sends_with(message);
        const auto error = failure();
        EXPECT_EQ(error->failure(), Failure::protocol);
        EXPECT_THAT(error->what(), HasSubstr("sent " + std::to_string(message.size()) + " bytes"));
    }
}

TEST_F(ReadClientTest, AFailedExchangeOfTheDescriptorNamesTheCompletion) {
    world.answer_sends_with(fakes::Bytes(129));  // longer than the receive
    const auto error = failure();
    EXPECT_EQ(error->phase(), Phase::descriptor);
    EXPECT_EQ(error->code(), IBV_WC_LOC_LEN_ERR);
    EXPECT_THAT(error->what(), HasSubstr(ibv_wc_status_str(IBV_WC_LOC_LEN_ERR)));
}

TEST_F(ReadClientTest, TheDescriptorMayBeSeenBeforeTheSendThatAskedForIt) {
    const auto descriptor = bytes_of(encode(RemoteBuffer{4096, 16, 5}));
    world.answer_sends_with({});
    world.after_posting([&](fakes::Qp& poster) {
        world.receive(poster, descriptor);
        std::swap(poster.cq->pending[0], poster.cq->pending[1]);
    });
    EXPECT_EQ(connect()->remote().rkey, 5U);
}

// ---- several queue pairs ----

class QueuePairsClientTest : public ReadClientTest {
  protected:
    [[nodiscard]] ReadClientConfig config_of(std::uint32_t queue_pairs) {
        ReadClientConfig made = config();
        made.queue_pairs = queue_pairs;
        return made;
    }
    [[nodiscard]] std::unique_ptr<ReadClient> connect_with(std::uint32_t queue_pairs) {
        return std::make_unique<ReadClient>(config_of(queue_pairs), far());
    }
    [[nodiscard]] std::optional<Error> failure_with(std::uint32_t queue_pairs) {
        const auto error =
            error_of([&] { const ReadClient client(config_of(queue_pairs), far()); });
        expect_clean();
        return error;
    }
};

TEST_F(QueuePairsClientTest, ShareDomainQueueAndDestinationAndIntroduceThemselvesByIndex) {
    const auto client = connect_with(3);
    EXPECT_EQ(client->queue_pairs(), 3U);
    const auto ids = world.all<fakes::Id>();
    const auto qps = world.all<fakes::Qp>();
    ASSERT_EQ(ids.size(), 3U);
    ASSERT_EQ(qps.size(), 3U);
    for (std::uint32_t i = 0; i < 3; ++i) {
        EXPECT_EQ(ids[i]->asked->private_data, fakes::hello_of(3, fakes::kRun, i));
        EXPECT_EQ(qps[i]->id, ids[i]);
        EXPECT_THAT(qps[i]->sent, testing::ElementsAre(bytes_of(encode_ready())));
        EXPECT_EQ(qps[i]->cap.max_send_wr, 5U);
        EXPECT_EQ(client->queue_pair(i).number(), qps[i]->raw.qp_num);
    }
    EXPECT_EQ(world.all<fakes::Channel>().size(), 1U);
    EXPECT_EQ(world.all<fakes::Pd>().size(), 1U);
    ASSERT_EQ(world.all<fakes::Cq>().size(), 1U);
    EXPECT_GE(world.all<fakes::Cq>().front()->raw.cqe, 3 * (4 + 2));
    EXPECT_EQ(world.all<fakes::Mr>().size(), 2U);
    EXPECT_EQ(client->remote().length, exposed.size());
}

TEST_F(QueuePairsClientTest, AreNumberedFromTheIndexThatWasGiven) {
    ReadClientConfig later = config_of(2);
    later.hello.queue_pair = 5;
    const ReadClient client(later, far());
    const auto ids = world.all<fakes::Id>();
    ASSERT_EQ(ids.size(), 2U);
    EXPECT_EQ(ids[0]->asked->private_data, fakes::hello_of(3, fakes::kRun, 5));
    EXPECT_EQ(ids[1]->asked->private_data, fakes::hello_of(3, fakes::kRun, 6));
}

TEST_F(QueuePairsClientTest, NoQueuePairAtAllIsOne) {
    EXPECT_EQ(connect_with(0)->queue_pairs(), 1U);
}

TEST_F(QueuePairsClientTest, NoneSaysReadyBeforeAllAreConnected) {
    const auto client = connect_with(3);
    EXPECT_LT(world.place("rdma_connect", 3), world.place("ibv_post_send"));
}

TEST_F(QueuePairsClientTest, ConnectTogetherButNotAllAtOnce) {
    // Nobody is answered before the client has nothing left to do but to wait.
    std::vector<fakes::Id*> asked;
    std::size_t most = 0;
    world.answer("rdma_connect", [&](int nth) {
        asked.push_back(world.all<fakes::Id>().at(static_cast<std::size_t>(nth) - 1));
        most = std::max(most, asked.size());
        return std::vector<fakes::Event>{};
    });
    world.before_sleeping([&] {
        if (!asked.empty()) {
            world.happen(*asked.back(), {RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, 16});
            asked.pop_back();
        }
    });
    EXPECT_EQ(connect_with(20)->queue_pairs(), 20U);
    EXPECT_GT(most, 1U);
    EXPECT_LT(most, 20U);
}

TEST_F(QueuePairsClientTest, OneThatIsConnectedTwiceDoesNotStandForAnother) {
    world.answer("rdma_connect", [this](int nth) {
        if (nth == 2) {
            world.happen(*world.all<fakes::Id>().front(),
                         {RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, 16});
            return std::vector<fakes::Event>{};
        }
        return std::vector<fakes::Event>{{RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, 16}};
    });
    const auto error = failure_with(2);
    EXPECT_EQ(error->phase(), Phase::connect);
    EXPECT_THAT(error->what(), HasSubstr("RDMA_CM_EVENT_ESTABLISHED"));
}

TEST_F(QueuePairsClientTest, TheirDepthIsTheSmallestThatWasNegotiated) {
    world.answer("rdma_connect", [](int nth) {
        const auto depth = static_cast<std::uint8_t>(nth == 2 ? 3 : 16);
        return std::vector<fakes::Event>{{RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, depth}};
    });
    EXPECT_EQ(connect_with(3)->path().depth_negotiated, 3U);
}

TEST_F(QueuePairsClientTest, TogetherTheyFitTheDevicesLongestQueue) {
    device.attributes.max_cqe = 40;
    const auto client = connect_with(4);
    EXPECT_EQ(client->send_entries(), 4U);
    const ReadClient deep = [&] {
        auto wanted = config_of(4);
        wanted.depth = 100;
        return ReadClient(wanted, far());
    }();
    EXPECT_EQ(deep.send_entries(), 8U);
}

TEST_F(QueuePairsClientTest, OneThatCannotConnectEndsTheAttempt) {
    world.answer("rdma_connect", [](int nth) {
        return std::vector<fakes::Event>{
            nth == 2 ? fakes::Event{RDMA_CM_EVENT_REJECTED, 28,
                                    bytes_of(encode(Refusal::queue_pair_out_of_range)), 0, 0}
                     : fakes::Event{RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, 16}};
    });
    const auto error = failure_with(2);
    EXPECT_EQ(error->failure(), Failure::refused);
    EXPECT_THAT(error->what(), HasSubstr("more queue pairs than the server allows"));
    EXPECT_EQ(world.count("ibv_post_send"), 0);
}

TEST_F(QueuePairsClientTest, OneThatIsLostWhileTheNextConnectsEndsTheAttempt) {
    world.answer("rdma_connect", [this](int nth) {
        if (nth == 2) {
            world.happen(*world.all<fakes::Id>().front(),
                         {RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0});
        }
        return std::vector<fakes::Event>{{RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, 16}};
    });
    EXPECT_EQ(failure_with(2)->failure(), Failure::disconnected);
}

TEST_F(QueuePairsClientTest, DifferentDevicesAreAnErrorThatNamesThem) {
    fakes::Device& second = world.add_device("fake1", {"10.0.1.1"});
    world.answer("rdma_resolve_addr", [&](int nth) {
        if (nth == 2) {
            world.all<fakes::Id>().back()->raw.verbs = &second.context;
        }
        return std::vector<fakes::Event>{{RDMA_CM_EVENT_ADDR_RESOLVED, 0, {}, 0, 0}};
    });
    EXPECT_THAT(failure_with(2)->what(),
                testing::AllOf(HasSubstr("different devices"), HasSubstr("fake0 and fake1")));
}

TEST_F(QueuePairsClientTest, DifferentDescriptorsAreAProtocolError) {
    for (const RemoteBuffer& other :
         {RemoteBuffer{4096, 16, 2}, RemoteBuffer{4096, 17, 1}, RemoteBuffer{8192, 16, 1}}) {
        world.answer_sends_with({});
        world.after_posting([&](fakes::Qp& poster) {
            const bool first = poster.id->asked->private_data == fakes::hello_of(3);
            world.receive(poster, bytes_of(encode(first ? RemoteBuffer{4096, 16, 1} : other)));
        });
        const auto error = failure_with(2);
        EXPECT_EQ(error->failure(), Failure::protocol);
        EXPECT_THAT(error->what(), HasSubstr("different descriptors"));
    }
}

TEST_F(QueuePairsClientTest, LosingAnyEndsTheWait) {
    std::array<ibv_wc, 4> room{};
    std::span<ibv_wc> done;
    for (std::size_t lost = 0; lost < 3; ++lost) {
        const auto client = connect_with(3);
        EXPECT_FALSE(client->ended());
        const auto ids = world.all<fakes::Id>();
        world.happen(*ids[ids.size() - 3 + lost], {RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0});
        EXPECT_EQ(client->wait(room, done, far()), WaitEnd::disconnected);
        EXPECT_TRUE(client->ended());
    }
}

TEST_F(QueuePairsClientTest, EachSaysGoodbyeAndAllAnswersAreWaitedFor) {
    const auto client = connect_with(3);
    const auto ids = world.all<fakes::Id>();
    world.answer("rdma_disconnect", [&](int nth) {
        return nth == 2 ? std::vector<fakes::Event>{}
                        : std::vector<fakes::Event>{{RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0}};
    });
    Deadline deadline = near();
    client->disconnect(deadline);
    EXPECT_TRUE(deadline.expired());
    world.answer("rdma_disconnect", {RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0});
    deadline = far();
    client->disconnect(deadline);
    EXPECT_FALSE(deadline.expired());
    for (const fakes::Id* const id : ids) {
        EXPECT_EQ(id->disconnects, 2);
    }
}

TEST_F(QueuePairsClientTest, AreReleasedInTheOrderThatTheManualsAskFor) {
    connect_with(3).reset();
    EXPECT_LT(world.place("rdma_destroy_qp", 3), world.place("ibv_dereg_mr"));
    EXPECT_LT(world.place("ibv_dealloc_pd"), world.place("rdma_destroy_id"));
    EXPECT_LT(world.place("rdma_destroy_id", 3), world.place("rdma_destroy_event_channel"));
    EXPECT_THAT(world.held(), IsEmpty());
}

// ---- wait ----

TEST_F(ReadClientTest, AWaitFindsWhatIsThereAlready) {
    const auto client = connect();
    world.complete(*qp().cq, {});
    std::array<ibv_wc, 4> room{};
    std::span<ibv_wc> done;
    EXPECT_EQ(client->wait(room, done, far()), WaitEnd::completions);
    EXPECT_EQ(done.size(), 1U);
}

TEST_F(ReadClientTest, WhatFinishesJustBeforeTheArmingIsNotLost) {
    const auto client = connect();
    world.before_arming([&](fakes::Cq& cq) {
        world.before_arming({});
        world.complete(cq, {});
    });
    std::array<ibv_wc, 4> room{};
    std::span<ibv_wc> done;
    EXPECT_EQ(client->wait(room, done, far()), WaitEnd::completions);
    EXPECT_EQ(done.size(), 1U);
}

TEST_F(ReadClientTest, ASleepingWaitIsWokenByACompletion) {
    const auto client = connect();
    int sleeps = 0;
    world.before_sleeping([&] {
        ++sleeps;
        world.complete(*qp().cq, {});
        if (sleeps == 1) {
            qp().cq->pending.clear();  // a wake-up for what is not there any more
        }
    });
    std::array<ibv_wc, 4> room{};
    std::span<ibv_wc> done;
    EXPECT_EQ(client->wait(room, done, far()), WaitEnd::completions);
    EXPECT_EQ(sleeps, 2);
}

TEST_F(ReadClientTest, EachSleepCostsOneArmingAndNoneIsLost) {
    const auto client = connect();
    std::array<ibv_wc, 4> room{};
    std::span<ibv_wc> done;
    int sleeps = 0;
    int armings = 0;
    world.before_arming([&](fakes::Cq&) { ++armings; });
    world.before_sleeping([&] {
        ++sleeps;
        world.complete(*qp().cq, {});
    });
    for (int i = 1; i <= 200; ++i) {
        EXPECT_EQ(client->wait(room, done, far()), WaitEnd::completions);
        EXPECT_EQ(sleeps, i);
        EXPECT_EQ(armings, i);
    }
}

TEST_F(ReadClientTest, AQueueThatIsArmedAlreadyIsNotArmedAgainAndStillWakes) {
    const auto client = connect();
    std::array<ibv_wc, 4> room{};
    std::span<ibv_wc> done;
    int armings = 0;
    world.before_arming([&](fakes::Cq&) { ++armings; });
    EXPECT_EQ(client->wait(room, done, near()), WaitEnd::timeout);
    EXPECT_EQ(client->wait(room, done, near()), WaitEnd::timeout);
    EXPECT_EQ(armings, 1);
    // Seen by a look: its wake-up is left over, and the next sleep is not disturbed for long.
    world.complete(*qp().cq, {});
    EXPECT_EQ(client->wait(room, done, far()), WaitEnd::completions);
    EXPECT_EQ(client->wait(room, done, not_too_near()), WaitEnd::timeout);
    EXPECT_EQ(armings, 2);
    world.before_sleeping([&] { world.complete(*qp().cq, {}); });
    EXPECT_EQ(client->wait(room, done, far()), WaitEnd::completions);
}

TEST_F(ReadClientTest, WhereAnswersTakeLongAWaitSleepsAfterOneLook) {
    const auto client = connect();
    std::array<ibv_wc, 4> room{};
    std::span<ibv_wc> done;
    int looks = 0;
    world.before_sleeping([&] {
        looks = qp().cq->looks;
        world.complete(*qp().cq, {});
    });
    for (int i = 0; i < 20; ++i) {
        qp().cq->looks = 0;
        EXPECT_EQ(client->wait(room, done, far()), WaitEnd::completions);
    }
    EXPECT_EQ(looks, 2);  // and one after arming
}

TEST_F(ReadClientTest, ADisconnectWithoutCompletionsEndsTheWait) {
    const auto client = connect();
    world.happen(id(), {RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0});
    std::array<ibv_wc, 4> room{};
    std::span<ibv_wc> done;
    EXPECT_EQ(client->wait(room, done, far()), WaitEnd::disconnected);
    EXPECT_TRUE(done.empty());
    EXPECT_EQ(client->wait(room, done, far()), WaitEnd::disconnected);
}

TEST_F(ReadClientTest, CompletionsThatCameWithTheDisconnectComeFirst) {
    const auto client = connect();
    world.happen(id(), {RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0});
    world.complete(*qp().cq, {});
    std::array<ibv_wc, 4> room{};
    std::span<ibv_wc> done;
    EXPECT_EQ(client->wait(room, done, far()), WaitEnd::completions);
    EXPECT_EQ(client->wait(room, done, far()), WaitEnd::disconnected);
}

TEST_F(ReadClientTest, CompletionsThatComeWhileTheDisconnectIsTakenComeFirst) {
    const auto client = connect();
    world.happen(id(), {RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0});
    world.before_taking([&] { world.complete(*qp().cq, {}); });
    std::array<ibv_wc, 4> room{};
    std::span<ibv_wc> done;
    EXPECT_EQ(client->wait(room, done, far()), WaitEnd::completions);
    EXPECT_EQ(done.size(), 1U);
    EXPECT_EQ(client->wait(room, done, far()), WaitEnd::disconnected);
}

TEST_F(ReadClientTest, AnyEventThatMeansTheEndEndsTheWaitAndAnAddressChangeDoesNot) {
    std::array<ibv_wc, 4> room{};
    std::span<ibv_wc> done;
    for (const unsigned int type : std::initializer_list<unsigned int>{
             RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_UNREACHABLE, RDMA_CM_EVENT_DEVICE_REMOVAL,
             RDMA_CM_EVENT_TIMEWAIT_EXIT, 77}) {
        const auto client = connect();
        world.happen(id(), {RDMA_CM_EVENT_ADDR_CHANGE, 0, {}, 0, 0});
        EXPECT_EQ(client->wait(room, done, near()), WaitEnd::timeout);
        world.happen(id(), {type, 0, {}, 0, 0});
        EXPECT_EQ(client->wait(room, done, far()), WaitEnd::disconnected);
    }
}

TEST_F(ReadClientTest, AWaitEndsAtItsDeadline) {
    const auto client = connect();
    std::array<ibv_wc, 4> room{};
    std::span<ibv_wc> done;
    const Deadline deadline = near();
    EXPECT_EQ(client->wait(room, done, deadline), WaitEnd::timeout);
    EXPECT_TRUE(deadline.expired());
}

TEST_F(ReadClientTest, ARequestToStopEndsAWaitThatSleeps) {
    fakes::Stopper stopper;
    auto stoppable = config();
    stoppable.stop = stopper.request();
    const auto client = std::make_unique<ReadClient>(stoppable, far());
    EXPECT_FALSE(client->stop_requested());
    const std::jthread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        stopper.ask();
    });
    std::array<ibv_wc, 4> room{};
    std::span<ibv_wc> done;
    EXPECT_EQ(client->wait(room, done, far()), WaitEnd::stopped);
    EXPECT_TRUE(client->stop_requested());
    // What has finished by then still counts.
    world.complete(*qp().cq, {});
    EXPECT_EQ(client->wait(room, done, far()), WaitEnd::completions);
}

TEST_F(ReadClientTest, ARequestToStopEndsTheWaitForTheDescriptor) {
    fakes::Stopper stopper;
    auto stoppable = config();
    stoppable.stop = stopper.request();
    world.answer_sends_with({});
    world.before_taking([&] { stopper.ask(); });
    const auto error = error_of([&] { const ReadClient client(stoppable, far()); });
    EXPECT_EQ(error->failure(), Failure::stopped);
}

// ---- disconnect ----

TEST_F(ReadClientTest, AGoodbyeWaitsForTheAnswer) {
    world.answer("rdma_disconnect", {RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0});
    const auto client = connect();
    client->disconnect(far());
    EXPECT_EQ(id().disconnects, 1);
}

TEST_F(ReadClientTest, AGoodbyeThatNobodyAnswersEndsAtItsDeadline) {
    const auto client = connect();
    client->disconnect(near());
    EXPECT_EQ(id().disconnects, 1);
}

TEST_F(ReadClientTest, AGoodbyeThatFailsIsNotWaitedFor) {
    const auto client = connect();
    world.fail("rdma_disconnect", EINVAL);
    client->disconnect(far());
    world.happen(id(), {RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0});
    world.fail("rdma_get_cm_event", EIO, 4);
    client->disconnect(far());
}

}  // namespace
}  // namespace rdma_read::rdma
