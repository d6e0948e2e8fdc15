// The serving side: who is let in, what they are given, and what is left when they are gone.
#include "rdma_read/rdma/read_server.hpp"

#include "rdma_read/rdma/unique_fd.hpp"
#include "support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace rdma_read::rdma {
namespace {

using fakes::address_of;
using fakes::bytes_of;
using fakes::error_of;
using fakes::far;
using fakes::hello_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

fakes::Bytes ready() {
    return bytes_of(encode_ready());
}

// A server that is driven step by step: serve() with a stop already asked for looks once at what
// has happened, and returns.
class SteppedServer {
  public:
    SteppedServer(const ReadServerConfig& config, std::span<std::byte> exposed)
        : server(config, exposed) {
        server.on_notice([this](const std::string& text) { notices.push_back(text); });
        server.stop();
    }
    // Takes all that has happened so far.
    ServeSummary step() {
        ServeSummary summary = server.serve();
        while (events_wait()) {
            summary = server.serve();
        }
        return summary;
    }
    [[nodiscard]] static bool events_wait() {
        return std::ranges::any_of(fakes::World::current().all<fakes::Channel>(),
                                   [](const auto* each) { return !each->pending.empty(); });
    }

    ReadServer server;
    std::vector<std::string> notices;
};

class ReadServerTest : public fakes::WorldTest {
  protected:
    ReadServerTest() {
        config_.address = address_of("10.0.0.1");
        config_.run = fakes::kRun;
        config_.ranks = 8;
        config_.max_connections = 4;
    }
    void start() { server_.emplace(config_, exposed_); }
    static void await(Deadline deadline) {
        while (!deadline.expired()) {
            std::this_thread::yield();
        }
    }
    static void pass(std::chrono::nanoseconds time) { await(Deadline::after(time)); }
    void TearDown() override {
        server_.reset();
        WorldTest::TearDown();
    }
    [[nodiscard]] fakes::Id& listener() const { return *world.all<fakes::Id>().front(); }
    [[nodiscard]] fakes::Mr& exposed_region() const { return *world.all<fakes::Mr>().front(); }

    // A request that the server has seen.
    fakes::Id& request(const fakes::Bytes& private_data) {
        fakes::Id& id = world.connect_request(listener(), device, private_data);
        summary_ = server_->step();
        return id;
    }
    fakes::Id& request(std::uint32_t rank) { return request(hello_of(rank)); }
    void happen(fakes::Id& id, unsigned int type, int status = 0) {
        world.happen(id, {type, status, {}, 0, 0});
        summary_ = server_->step();
    }
    void receive(fakes::Id& id, const fakes::Bytes& message) {
        world.receive(*id.qp, message);
        summary_ = server_->step();
    }
    // A reader that has its descriptor.
    fakes::Id& reader(std::uint32_t rank) {
        fakes::Id& id = request(rank);
        happen(id, RDMA_CM_EVENT_ESTABLISHED);
        receive(id, ready());
        EXPECT_EQ(id.qp->sent.size(), 1U);
        return id;
    }
    [[nodiscard]] fakes::Bytes descriptor() const {
        return bytes_of(encode(RemoteBuffer{reinterpret_cast<std::uintptr_t>(exposed_.data()),
                                            exposed_.size(), exposed_region().raw.rkey}));
    }
    void expect_refused(const fakes::Bytes& private_data, Refusal refusal) {
        const auto before = summary_.refused;
        const fakes::Id& id = request(private_data);
        EXPECT_EQ(id.rejected_with, bytes_of(encode(refusal))) << to_string(refusal);
        EXPECT_FALSE(id.live);
        EXPECT_FALSE(id.asked);
        EXPECT_EQ(summary_.refused, before + 1);
        ASSERT_FALSE(server_->notices.empty());
        EXPECT_THAT(server_->notices.back(), HasSubstr(std::string(to_string(refusal))));
    }

    ReadServerConfig config_;
    mutable fakes::Bytes exposed_ = fakes::Bytes(4096);
    std::optional<SteppedServer> server_;
    ServeSummary summary_;
};

// ---- construction ----

TEST_F(ReadServerTest, ListensOnARealPortOfTheDeviceBehindTheAddress) {
    start();
    EXPECT_EQ(server_->server.address().to_string(), "10.0.0.1");
    EXPECT_GT(server_->server.address().port(), 0);
    ASSERT_TRUE(server_->server.port());
    EXPECT_EQ(server_->server.port()->device, "fake0");
    EXPECT_EQ(server_->server.port()->address.with_port_text(), "10.0.0.1:0");
}

TEST_F(ReadServerTest, ListensLastAndForAllReadersAtOnce) {
    start();
    EXPECT_LT(world.place("ibv_reg_mr", 2), world.place("rdma_listen"));
    EXPECT_EQ(listener().backlog, 4);
}

TEST_F(ReadServerTest, ExposesTheBufferForReadingAndNothingElse) {
    start();
    EXPECT_EQ(exposed_region().raw.addr, exposed_.data());
    EXPECT_EQ(exposed_region().access, static_cast<unsigned int>(IBV_ACCESS_REMOTE_READ));
    for (const fakes::Mr* const region : world.all<fakes::Mr>()) {
        EXPECT_EQ(
            region->access
                & static_cast<unsigned int>(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC),
            0U);
    }
}

TEST_F(ReadServerTest, AnAddressWithoutADeviceIsABadAddressWithAHint) {
    config_.address = address_of("10.9.9.9");
    const auto error = error_of([&] { const ReadServer server(config_, exposed_); });
    EXPECT_EQ(error->failure(), Failure::bad_address);
    EXPECT_THAT(error->what(), HasSubstr("rdma_bind_addr(10.9.9.9:0)"));
    EXPECT_THAT(error->hint(), HasSubstr("no RDMA device has this address"));
}

// ---- a reader ----

TEST_F(ReadServerTest, GivesAReaderTheExactDescriptorOnceItIsReady) {
    start();
    fakes::Id& id = reader(2);
    EXPECT_THAT(id.qp->sent, ElementsAre(descriptor()));
    EXPECT_EQ(summary_.connections, 1U);
    EXPECT_EQ(summary_.finished, 0U);
    EXPECT_EQ(summary_.refused, 0U);
    EXPECT_THAT(server_->notices, IsEmpty());
}

TEST_F(ReadServerTest, PostsTheReceiveBeforeItAcceptsOnTheEventsOwnId) {
    start();
    const fakes::Id& id = request(2);
    EXPECT_EQ(id.qp->id, &id);
    EXPECT_LT(world.place("rdma_create_qp"), world.place("ibv_post_recv"));
    EXPECT_LT(world.place("ibv_post_recv"), world.place("rdma_accept " + id.name));
    EXPECT_EQ(world.count("rdma_create_id"), 1);
    EXPECT_EQ(id.qp->cap.max_send_wr, 1U);
    EXPECT_EQ(id.qp->cap.max_recv_wr, 1U);
}

TEST_F(ReadServerTest, GrantsAsManyReadsAsAskedForAtMostWhatTheDeviceCan) {
    start();
    for (const auto& [wanted, given] : {std::pair{4, 4}, std::pair{255, 16}, std::pair{0, 0}}) {
        fakes::Id& id = world.connect_request(listener(), device, hello_of(1),
                                              static_cast<std::uint8_t>(wanted));
        summary_ = server_->step();
        EXPECT_EQ(id.asked->parameters.responder_resources, given);
        EXPECT_EQ(id.asked->parameters.initiator_depth, 0);
        EXPECT_EQ(id.asked->parameters.rnr_retry_count, 7);
    }
}

TEST_F(ReadServerTest, AFirstMessageMayOvertakeTheEventThatTheConnectionStands) {
    start();
    fakes::Id& id = request(2);
    receive(id, ready());
    EXPECT_THAT(id.qp->sent, IsEmpty());
    happen(id, RDMA_CM_EVENT_ESTABLISHED);
    EXPECT_THAT(id.qp->sent, ElementsAre(descriptor()));
}

TEST_F(ReadServerTest, TellsNothingBeforeTheFirstMessage) {
    start();
    fakes::Id& id = request(2);
    happen(id, RDMA_CM_EVENT_ESTABLISHED);
    happen(id, RDMA_CM_EVENT_ESTABLISHED);
    EXPECT_THAT(id.qp->sent, IsEmpty());
    EXPECT_EQ(summary_.connections, 0U);
}

TEST_F(ReadServerTest, DropsAReaderWhoseFirstMessageIsNotOfThisProtocol) {
    start();
    auto other_version = ready();
    other_version[5] = std::byte{9};
    auto longer = ready();
    longer.push_back(std::byte{0});
    for (const fakes::Bytes& message :
         {fakes::Bytes{}, fakes::Bytes(8), fakes::Bytes(32), other_version, longer, descriptor()}) {
        fakes::Id& id = request(2);
        happen(id, RDMA_CM_EVENT_ESTABLISHED);
        receive(id, message);
        EXPECT_FALSE(id.live);
        EXPECT_EQ(id.disconnects, 1);
        EXPECT_THAT(server_->notices.back(), HasSubstr("rank 2: its first message is not of this"));
    }
    EXPECT_EQ(summary_.connections, 0U);
    EXPECT_EQ(summary_.finished, 0U);
    (void)reader(2);
}

TEST_F(ReadServerTest, DropsAReaderWhoseFirstMessageIsTooLong) {
    start();
    fakes::Id& id = request(2);
    receive(id, fakes::Bytes(33));
    EXPECT_FALSE(id.live);
    EXPECT_THAT(server_->notices.back(), HasSubstr(ibv_wc_status_str(IBV_WC_LOC_LEN_ERR)));
}

TEST_F(ReadServerTest, DropsASilentReaderAtTheHandshakeLimitWithoutBeingWoken) {
    config_.handshake_limit = std::chrono::milliseconds(2);
    ReadServer server(config_, exposed_);
    std::vector<std::string> notices;
    server.on_notice([&](const std::string& text) {
        notices.push_back(text);
        server.stop();
    });
    fakes::Id& id = world.connect_request(listener(), device, hello_of(5));
    const ServeSummary summary = server.serve();
    EXPECT_THAT(notices, ElementsAre(HasSubstr("rank 5: connected and then said nothing")));
    EXPECT_FALSE(id.live);
    EXPECT_EQ(id.disconnects, 1);
    EXPECT_EQ(summary.connections, 0U);
}

TEST_F(ReadServerTest, SilentReadersAreDroppedInTheOrderInWhichTheyCame) {
    config_.handshake_limit = std::chrono::milliseconds(2);
    ReadServer server(config_, exposed_);
    std::vector<std::string> notices;
    server.on_notice([&](const std::string& text) {
        notices.push_back(text);
        if (notices.size() == 3) {
            server.stop();
        }
    });
    for (const std::uint32_t rank : {5U, 2U, 7U}) {
        (void)world.connect_request(listener(), device, hello_of(rank));
    }
    EXPECT_EQ(server.serve().connections, 0U);
    EXPECT_THAT(notices,
                ElementsAre(HasSubstr("rank 5"), HasSubstr("rank 2"), HasSubstr("rank 7")));
}

TEST_F(ReadServerTest, AReaderThatHasItsDescriptorMayStayLongerThanTheHandshakeLimit) {
    config_.handshake_limit = fakes::kNotTooNear;
    start();
    const Deadline limit = Deadline::after(config_.handshake_limit);
    fakes::Id& id = reader(5);
    await(limit);
    summary_ = server_->step();
    EXPECT_TRUE(id.live);
    EXPECT_THAT(server_->notices, IsEmpty());
}

// ---- how many at a time ----

class ConcurrencyTest : public ReadServerTest {
  protected:
    // A reader that is ready, with or without its descriptor.
    fakes::Id& ready_reader(std::uint32_t rank) {
        fakes::Id& id = request(rank);
        happen(id, RDMA_CM_EVENT_ESTABLISHED);
        receive(id, ready());
        return id;
    }
    [[nodiscard]] static bool may_read(const fakes::Id& id) {
        return id.live && !id.qp->sent.empty();
    }
};

TEST_F(ConcurrencyTest, OnlySoManyReadersHaveTheDescriptorAtATime) {
    config_.concurrency = 2;
    start();
    const std::vector<fakes::Id*> readers{&ready_reader(3), &ready_reader(0), &ready_reader(2),
                                          &ready_reader(1)};
    EXPECT_TRUE(may_read(*readers[0]));
    EXPECT_TRUE(may_read(*readers[1]));
    EXPECT_FALSE(may_read(*readers[2]));
    EXPECT_FALSE(may_read(*readers[3]));
    EXPECT_EQ(summary_.connections, 2U);
    happen(*readers[1], RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_TRUE(may_read(*readers[2]));
    EXPECT_FALSE(may_read(*readers[3]));
    happen(*readers[2], RDMA_CM_EVENT_UNREACHABLE);
    EXPECT_THAT(readers[3]->qp->sent, ElementsAre(descriptor()));
    EXPECT_EQ(summary_.connections, 4U);
    EXPECT_EQ(summary_.finished, 2U);
}

TEST_F(ConcurrencyTest, ReadersThatAreToStartTogetherDoSo) {
    config_.start_together = 3;
    config_.start_patience = std::chrono::hours(1);
    start();
    const std::vector<fakes::Id*> readers{&ready_reader(0), &ready_reader(1)};
    EXPECT_FALSE(may_read(*readers[0]));
    fakes::Id& last = ready_reader(2);
    EXPECT_TRUE(may_read(*readers[0]));
    EXPECT_TRUE(may_read(*readers[1]));
    EXPECT_TRUE(may_read(last));
    // Who comes later does not wait for anybody.
    happen(last, RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_TRUE(may_read(ready_reader(2)));
}

TEST_F(ConcurrencyTest, AReaderThatDoesNotComeDoesNotHoldUpTheOthers) {
    config_.start_together = 3;
    config_.start_patience = std::chrono::milliseconds(20);
    start();
    fakes::Id& first = ready_reader(0);
    pass(config_.start_patience);
    summary_ = server_->step();
    EXPECT_TRUE(may_read(first));
}

TEST_F(ConcurrencyTest, ReadersGetTheirTurnInTheOrderInWhichTheyBecameReadyNotInWhichTheyCame) {
    config_.concurrency = 1;
    start();
    fakes::Id& reading = ready_reader(0);
    fakes::Id& came_first = request(1);
    happen(came_first, RDMA_CM_EVENT_ESTABLISHED);
    fakes::Id& ready_first = ready_reader(2);
    receive(came_first, ready());
    happen(reading, RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_TRUE(may_read(ready_first));
    EXPECT_FALSE(may_read(came_first));
}

TEST_F(ConcurrencyTest, AReaderThatLeavesWhileItWaitsIsPassedOver) {
    config_.concurrency = 1;
    start();
    fakes::Id& reading = ready_reader(0);
    fakes::Id& leaving = ready_reader(1);
    fakes::Id& staying = ready_reader(2);
    happen(leaving, RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_EQ(summary_.finished, 0U);
    EXPECT_FALSE(may_read(staying));
    happen(reading, RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_TRUE(may_read(staying));
    EXPECT_EQ(summary_.connections, 2U);
    EXPECT_EQ(summary_.finished, 1U);
}

TEST_F(ConcurrencyTest, AReaderThatWaitsForItsTurnIsNotSilent) {
    config_.concurrency = 1;
    config_.handshake_limit = fakes::kNotTooNear;
    start();
    const Deadline limit = Deadline::after(config_.handshake_limit);
    fakes::Id& reading = ready_reader(0);
    fakes::Id& waiting = ready_reader(1);
    await(limit);
    summary_ = server_->step();
    EXPECT_THAT(server_->notices, IsEmpty());
    happen(reading, RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_TRUE(may_read(waiting));
}

TEST_F(ConcurrencyTest, ATurnEndsAtItsLimitWhenOthersWait) {
    config_.concurrency = 1;
    config_.turn_limit = std::chrono::milliseconds(20);
    start();
    fakes::Id& keeping = ready_reader(5);
    pass(config_.turn_limit);
    summary_ = server_->step();
    EXPECT_TRUE(may_read(keeping));
    fakes::Id& waiting = ready_reader(1);
    EXPECT_FALSE(keeping.live);
    EXPECT_EQ(keeping.disconnects, 1);
    EXPECT_TRUE(may_read(waiting));
    EXPECT_THAT(server_->notices,
                ElementsAre(AllOf(
                    HasSubstr("rank 5: dropped, it is still there after 0.02 s and others wait"),
                    EndsWith("look at 10.0.0.99"))));
    EXPECT_EQ(summary_.finished, 1U);
}

TEST_F(ConcurrencyTest, WhereTurnsEndAlwaysAReaderThatStaysIsDroppedAndCountsAsFinished) {
    config_.turn_limit = std::chrono::milliseconds(20);
    config_.turns_end_always = true;
    ReadServer server(config_, exposed_);
    std::vector<std::string> notices;
    server.on_notice([&](const std::string& text) { notices.push_back(text); });
    fakes::Id& id = world.connect_request(listener(), device, hello_of(5));
    // It has its descriptor, and nothing is heard of it any more.
    world.answer("rdma_accept", [&](int) {
        world.receive(*world.all<fakes::Qp>().back(), ready());
        return std::vector<fakes::Event>{{RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, 0}};
    });
    std::jthread watchdog([&](const std::stop_token& ended) {
        const Deadline limit = far();
        while (!ended.stop_requested() && !limit.expired()) {
            pass(std::chrono::milliseconds(1));
        }
        server.stop();
    });
    const ServeSummary summary = server.serve(1);
    watchdog.request_stop();
    watchdog.join();
    EXPECT_EQ(summary.connections, 1U);
    EXPECT_EQ(summary.finished, 1U);
    EXPECT_FALSE(id.live);
    EXPECT_EQ(id.disconnects, 1);
    EXPECT_THAT(notices,
                ElementsAre(HasSubstr("rank 5: dropped, it is still there after 0.02 s;")));
}

TEST_F(ConcurrencyTest, AsManyTurnsEndAtTheirLimitAsReadersWait) {
    config_.concurrency = 2;
    config_.turn_limit = std::chrono::milliseconds(20);
    start();
    fakes::Id& first = ready_reader(0);
    fakes::Id& second = ready_reader(1);
    pass(config_.turn_limit);
    EXPECT_TRUE(may_read(ready_reader(2)));
    EXPECT_FALSE(first.live);
    EXPECT_TRUE(second.live);
    EXPECT_TRUE(may_read(ready_reader(3)));
    EXPECT_FALSE(second.live);
}

TEST_F(ConcurrencyTest, TheEndOfATurnIsNotSleptThrough) {
    // As long as this is readable, serve() returns at once.
    const UniqueFd stepping(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
    config_.stop_fd = stepping.get();
    config_.concurrency = 1;
    config_.turn_limit = std::chrono::milliseconds(100);
    ReadServer server(config_, exposed_);
    server.on_notice([&](const std::string&) { server.stop(); });
    for (const std::uint32_t rank : {5U, 1U}) {
        fakes::Id& id = world.connect_request(listener(), device, hello_of(rank));
        (void)server.serve();
        world.happen(id, {RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, 0});
        world.receive(*id.qp, ready());
        (void)server.serve();
    }
    eventfd_t count = 0;
    ASSERT_EQ(eventfd_read(stepping.get(), &count), 0);
    EXPECT_EQ(server.serve().connections, 2U);
}

TEST_F(ConcurrencyTest, AWaitingReaderThatComesAgainReplacesItsFirstAttempt) {
    config_.concurrency = 1;
    start();
    fakes::Id& reading = ready_reader(0);
    fakes::Id& first = ready_reader(1);
    fakes::Id& second = ready_reader(1);
    EXPECT_FALSE(first.live);
    happen(reading, RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_TRUE(may_read(second));
    EXPECT_EQ(summary_.connections, 2U);
}

TEST_F(ConcurrencyTest, ADescriptorThatCannotBeSentLetsTheNextReaderIn) {
    config_.concurrency = 1;
    start();
    fakes::Id& reading = ready_reader(0);
    fakes::Id& failing = ready_reader(1);
    fakes::Id& next = ready_reader(2);
    world.fail("ibv_post_send", EIO, 2);
    happen(reading, RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_FALSE(failing.live);
    EXPECT_TRUE(may_read(next));
    EXPECT_EQ(summary_.connections, 2U);
    EXPECT_EQ(summary_.finished, 1U);
}

TEST_F(ConcurrencyTest, ReadersOfNoRankTakeTurnsToo) {
    config_.concurrency = 1;
    config_.ranks = 0;
    start();
    fakes::Id& first = ready_reader(7);
    fakes::Id& second = ready_reader(7);
    EXPECT_FALSE(may_read(second));
    happen(first, RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_TRUE(may_read(second));
}

// ---- several queue pairs of one reader ----

class QueuePairsTest : public ReadServerTest {
  protected:
    QueuePairsTest() { config_.queue_pairs_per_rank = 3; }
    fakes::Id& connected(std::uint32_t rank, std::uint32_t queue_pair) {
        fakes::Id& id = request(hello_of(rank, fakes::kRun, queue_pair));
        happen(id, RDMA_CM_EVENT_ESTABLISHED);
        return id;
    }
    fakes::Id& ready_connection(std::uint32_t rank, std::uint32_t queue_pair) {
        fakes::Id& id = connected(rank, queue_pair);
        receive(id, ready());
        return id;
    }
    [[nodiscard]] static bool may_read(const fakes::Id& id) {
        return id.live && !id.qp->sent.empty();
    }
};

TEST_F(QueuePairsTest, EachOfAReadersQueuePairsIsGivenTheDescriptorAndTheyCountAsOneReader) {
    start();
    std::vector<fakes::Id*> ids;
    for (const std::uint32_t queue_pair : {1U, 0U, 2U}) {
        ids.push_back(&ready_connection(5, queue_pair));
        EXPECT_THAT(ids.back()->qp->sent, ElementsAre(descriptor()));
        EXPECT_EQ(summary_.connections, 1U);
    }
    for (fakes::Id* const id : ids) {
        EXPECT_EQ(summary_.finished, 0U);
        happen(*id, RDMA_CM_EVENT_DISCONNECTED);
    }
    EXPECT_EQ(summary_.finished, 1U);
    EXPECT_EQ(summary_.refused, 0U);
}

TEST_F(QueuePairsTest, AReadersTurnEndsWithAllItsConnectionsAndItMayComeAgain) {
    config_.concurrency = 1;
    config_.max_connections = 8;
    config_.turn_limit = std::chrono::milliseconds(20);
    start();
    std::vector<fakes::Id*> ids{&ready_connection(1, 0), &connected(1, 1), &ready_connection(1, 2)};
    EXPECT_TRUE(may_read(*ids.front()));
    pass(config_.turn_limit);
    fakes::Id& other = ready_connection(2, 0);
    for (const fakes::Id* const id : ids) {
        EXPECT_FALSE(id->live);
        EXPECT_EQ(id->disconnects, 1);
    }
    EXPECT_THAT(server_->notices, ElementsAre(HasSubstr("rank 1: dropped")));
    EXPECT_EQ(summary_.finished, 1U);
    EXPECT_TRUE(may_read(other));
    fakes::Id& again = ready_connection(1, 0);
    happen(other, RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_TRUE(may_read(again));
}

TEST_F(QueuePairsTest, AnIndexBeyondTheBoundIsRefusedWithAReasonOfItsOwn) {
    start();
    expect_refused(hello_of(1, fakes::kRun, 3), Refusal::queue_pair_out_of_range);
    expect_refused(hello_of(1, fakes::kRun, 0xffffffff), Refusal::queue_pair_out_of_range);
    EXPECT_TRUE(request(hello_of(1, fakes::kRun, 2)).asked);
}

TEST_F(QueuePairsTest, ABoundOfNothingIsOne) {
    config_.queue_pairs_per_rank = 0;
    start();
    (void)ready_connection(1, 0);
    expect_refused(hello_of(1, fakes::kRun, 1), Refusal::queue_pair_out_of_range);
}

TEST_F(QueuePairsTest, EachIndexOfARankIsTakenOnce) {
    start();
    fakes::Id& first = ready_connection(1, 0);
    fakes::Id& half_open = connected(1, 1);
    expect_refused(hello_of(1), Refusal::rank_already_connected);
    EXPECT_TRUE(request(hello_of(1, fakes::kRun, 1)).asked);  // a second attempt
    EXPECT_FALSE(half_open.live);
    EXPECT_TRUE(first.live);
    EXPECT_EQ(summary_.connections, 1U);
}

TEST_F(QueuePairsTest, AllQueuePairsOfAReaderWaitForItsTurnTogether) {
    config_.concurrency = 1;
    start();
    const std::vector<fakes::Id*> reading{&ready_connection(1, 0), &ready_connection(1, 1)};
    fakes::Id& waiting = ready_connection(2, 0);
    fakes::Id& late = connected(2, 1);
    EXPECT_TRUE(may_read(*reading[1]));
    happen(*reading[0], RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_FALSE(may_read(waiting));
    happen(*reading[1], RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_TRUE(may_read(waiting));
    receive(late, ready());
    EXPECT_TRUE(may_read(late));
    EXPECT_EQ(summary_.connections, 2U);
}

TEST_F(QueuePairsTest, AReaderWhoseDescriptorsCannotBeSentIsNotCountedAndLetsTheNextIn) {
    config_.concurrency = 1;
    start();
    fakes::Id& reading = ready_connection(1, 0);
    const std::vector<fakes::Id*> failing{&ready_connection(2, 0), &ready_connection(2, 2)};
    fakes::Id& next = ready_connection(3, 0);
    world.fail("ibv_post_send", EIO, 2);
    world.fail("ibv_post_send", EIO, 3);
    happen(reading, RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_FALSE(failing[0]->live);
    EXPECT_FALSE(failing[1]->live);
    EXPECT_TRUE(may_read(next));
    EXPECT_EQ(summary_.connections, 2U);
    EXPECT_EQ(summary_.finished, 1U);
}

TEST_F(QueuePairsTest, AReaderThatStillConnectsItsQueuePairsIsNotSilent) {
    config_.handshake_limit = std::chrono::milliseconds(200);
    start();
    // Where a busy machine lets more time pass than the test, it cannot tell.
    const Deadline both_in_time = Deadline::after(config_.handshake_limit);
    fakes::Id& first = connected(1, 0);
    fakes::Id& other = connected(2, 0);
    const Deadline limit_of_first = Deadline::after(config_.handshake_limit);
    pass(std::chrono::milliseconds(120));
    const Deadline second_in_time = Deadline::after(config_.handshake_limit);
    fakes::Id& second = connected(1, 1);
    bool in_time = !both_in_time.expired();
    const Deadline limit_of_second = Deadline::after(config_.handshake_limit);
    pass(limit_of_first.remaining() + std::chrono::milliseconds(1));
    summary_ = server_->step();
    EXPECT_FALSE(other.live);
    in_time = in_time && !second_in_time.expired();
    if (in_time) {
        EXPECT_TRUE(first.live);
        EXPECT_TRUE(second.live);
    }
    pass(limit_of_second.remaining() + std::chrono::milliseconds(1));
    summary_ = server_->step();
    EXPECT_FALSE(first.live);
    EXPECT_FALSE(second.live);
}

TEST_F(QueuePairsTest, ASilentQueuePairOfAReaderIsDroppedAlone) {
    config_.handshake_limit = fakes::kNotTooNear;
    start();
    fakes::Id& reading = ready_connection(1, 0);
    fakes::Id& silent = connected(1, 1);
    pass(config_.handshake_limit);
    summary_ = server_->step();
    EXPECT_TRUE(reading.live);
    EXPECT_FALSE(silent.live);
    EXPECT_EQ(summary_.finished, 0U);
}

// ---- who is refused ----

TEST_F(ReadServerTest, RefusesWhatIsNoHelloOfThisProtocol) {
    start();
    const auto hello = hello_of(1);
    auto magic = hello;
    magic[0] = std::byte{0};
    auto kind = hello;
    kind[7] = std::byte{2};
    for (const fakes::Bytes& data : {fakes::Bytes{}, fakes::Bytes(56),
                                     fakes::Bytes(hello.begin(), hello.end() - 1), magic, kind}) {
        expect_refused(data, Refusal::not_this_protocol);
    }
    EXPECT_EQ(world.count("rdma_create_qp"), 0);
    EXPECT_EQ(summary_.connections, 0U);
}

TEST_F(ReadServerTest, RefusesARunThatDiffersInOneBit) {
    start();
    RunId run = fakes::kRun;
    for (std::uint8_t& byte : run) {
        byte ^= 0x80U;
        EXPECT_EQ(request(hello_of(1, run)).rejected_with, bytes_of(encode(Refusal::other_run)));
        byte ^= 0x80U;
    }
    EXPECT_EQ(summary_.refused, run.size());
}

TEST_F(ReadServerTest, TellsTheFirstRefusalsOneByOneAndThenTheirNumber) {
    ReadServer server(config_, exposed_);
    std::vector<std::string> told;
    server.on_notice([&](const std::string& text) {
        told.push_back(text);
        if (text.ends_with("; 2000 by now")) {
            server.stop();
        }
    });
    fakes::Id& listening = listener();
    for (int i = 0; i < 2000; ++i) {
        (void)world.connect_request(listening, device, {});
    }
    EXPECT_EQ(server.serve().refused, 2000U);
    ASSERT_EQ(told.size(), 13U);
    for (std::size_t i = 0; i < 12; ++i) {
        EXPECT_THAT(told[i], HasSubstr(std::string(to_string(Refusal::not_this_protocol))));
    }
    EXPECT_THAT(told[9], EndsWith("; of those to come one in 1000 is told"));
    EXPECT_THAT(told[10], EndsWith("; 1000 by now"));
    EXPECT_THAT(told[11], EndsWith("; 2000 by now"));
    EXPECT_EQ(told[12], "refused 2000 connections in all");
}

TEST_F(ReadServerTest, RefusesAnotherVersionAndARankOutOfRange) {
    start();
    auto version = hello_of(1);
    version[5] = std::byte{3};
    expect_refused(version, Refusal::other_version);
    expect_refused(hello_of(8), Refusal::rank_out_of_range);
    expect_refused(hello_of(0xffffffff), Refusal::rank_out_of_range);
    (void)reader(7);
}

TEST_F(ReadServerTest, LetsAHelloInThatTheNetworkPadded) {
    start();
    auto hello = hello_of(1);
    hello.resize(56);
    EXPECT_TRUE(request(hello).asked);
}

TEST_F(ReadServerTest, RefusesARankThatHasItsDescriptorAlready) {
    start();
    fakes::Id& first = reader(1);
    expect_refused(hello_of(1), Refusal::rank_already_connected);
    EXPECT_TRUE(first.live);
    happen(first, RDMA_CM_EVENT_DISCONNECTED);
    (void)reader(1);
    EXPECT_EQ(summary_.connections, 2U);
}

TEST_F(ReadServerTest, ARankThatComesAgainBeforeItsDescriptorReplacesItsFirstAttempt) {
    start();
    fakes::Id& first = request(1);
    fakes::Id& second = request(1);
    EXPECT_FALSE(first.live);
    EXPECT_TRUE(second.live);
    happen(second, RDMA_CM_EVENT_ESTABLISHED);
    receive(second, ready());
    EXPECT_THAT(second.qp->sent, ElementsAre(descriptor()));
    EXPECT_EQ(summary_.connections, 1U);
    EXPECT_EQ(summary_.refused, 0U);
}

TEST_F(ReadServerTest, RefusesWhomItHasNoRoomForUntilSomebodyLeaves) {
    start();
    fakes::Id& first = reader(0);
    for (const std::uint32_t rank : {1U, 2U, 3U}) {
        (void)reader(rank);
    }
    expect_refused(hello_of(4), Refusal::server_full);
    happen(first, RDMA_CM_EVENT_DISCONNECTED);
    (void)reader(4);
    expect_refused(hello_of(5), Refusal::server_full);
}

TEST_F(ReadServerTest, RefusesWhomItHasNoRoomForBetweenRequestAndFirstMessageUntilOneIsReady) {
    config_.max_half_open = 2;
    start();
    fakes::Id& first = request(0);
    happen(first, RDMA_CM_EVENT_ESTABLISHED);
    (void)request(1);
    expect_refused(hello_of(2), Refusal::server_busy);
    receive(first, ready());
    fakes::Id& third = request(2);
    EXPECT_TRUE(third.asked);
    expect_refused(hello_of(3), Refusal::server_busy);
    happen(third, RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_TRUE(request(3).asked);
}

TEST_F(ReadServerTest, ASecondAttemptIsLetInWhereItsFirstWasTheLastThatHadRoom) {
    config_.max_half_open = 1;
    start();
    (void)request(0);
    EXPECT_TRUE(request(0).asked);
}

TEST_F(ReadServerTest, WithoutRanksAnyoneOfTheRunMayComeAnyNumberOfTimes) {
    config_.ranks = 0;
    start();
    (void)reader(7);
    (void)reader(7);
    (void)reader(0xffffffff);
    EXPECT_EQ(summary_.connections, 3U);
}

TEST_F(ReadServerTest, AReaderOnADeviceThatCameLaterIsRefused) {
    start();
    fakes::Device& later = world.add_device("fake1", {"10.0.7.1"});
    fakes::Id& id = world.connect_request(listener(), later, hello_of(1));
    summary_ = server_->step();
    EXPECT_EQ(id.rejected_with, bytes_of(encode(Refusal::server_full)));
}

// ---- the end of a connection ----

TEST_F(ReadServerTest, ADisconnectIsAnsweredAndItsSlotIsUsedAgain) {
    config_.max_connections = 1;
    start();
    for (int i = 1; i <= 5; ++i) {
        fakes::Id& id = reader(1);
        const std::string queue_pair = id.qp->name;
        happen(id, RDMA_CM_EVENT_DISCONNECTED);
        EXPECT_EQ(id.disconnects, 1);
        EXPECT_FALSE(id.live);
        EXPECT_LT(world.place("rdma_destroy_qp " + queue_pair),
                  world.place("rdma_destroy_id " + id.name));
        EXPECT_EQ(summary_.finished, static_cast<std::uint64_t>(i));
    }
    EXPECT_THAT(server_->notices, IsEmpty());
}

TEST_F(ReadServerTest, AnyOtherEndOfAConnectionIsToldAndTheServiceGoesOn) {
    start();
    for (const unsigned int type : std::initializer_list<unsigned int>{
             RDMA_CM_EVENT_UNREACHABLE, RDMA_CM_EVENT_CONNECT_ERROR, RDMA_CM_EVENT_REJECTED,
             RDMA_CM_EVENT_DEVICE_REMOVAL, 99}) {
        fakes::Id& id = reader(1);
        happen(id, type, -EIO);
        EXPECT_FALSE(id.live);
        EXPECT_THAT(server_->notices.back(),
                    testing::AllOf(HasSubstr("rank 1"), HasSubstr(fakes::name_of(type))));
    }
    EXPECT_EQ(summary_.finished, 5U);
}

TEST_F(ReadServerTest, EventsThatEndNothingAreIgnored) {
    start();
    fakes::Id& id = reader(1);
    happen(id, RDMA_CM_EVENT_ADDR_CHANGE);
    happen(id, RDMA_CM_EVENT_TIMEWAIT_EXIT);
    happen(listener(), RDMA_CM_EVENT_CONNECT_ERROR);
    EXPECT_TRUE(id.live);
    EXPECT_THAT(server_->notices, IsEmpty());
}

TEST_F(ReadServerTest, WorkThatIsFlushedAfterItsConnectionIsGoneIsHarmless) {
    start();
    fakes::Id& id = request(1);
    fakes::Cq& cq = *id.qp->cq;
    ibv_wc flushed{};
    flushed.wr_id = id.qp->receives.front().wr_id;
    flushed.status = IBV_WC_WR_FLUSH_ERR;
    happen(id, RDMA_CM_EVENT_DISCONNECTED);
    world.complete(cq, flushed);
    world.complete(cq, flushed);
    summary_ = server_->step();
    EXPECT_THAT(server_->notices, IsEmpty());
    (void)reader(1);
}

TEST_F(ReadServerTest, AStormOfConnectionsThatComeAndGoNeverOverrunsTheQueue) {
    // All within one turn of the server: each reader leaves its flushed work behind and is followed
    // by the next, before the server looks at its completion queue.
    start();
    int storm = 300;
    world.answer("rdma_accept", [&](int) {
        fakes::Qp& qp = *world.all<fakes::Qp>().back();
        ibv_wc flushed{};
        flushed.wr_id = qp.receives.front().wr_id;
        flushed.qp_num = qp.raw.qp_num;
        flushed.status = IBV_WC_WR_FLUSH_ERR;
        world.complete(*qp.cq, flushed);
        world.complete(*qp.cq, flushed);
        return std::vector<fakes::Event>{{RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0}};
    });
    world.answer("rdma_disconnect", [&](int) {
        if (--storm > 0) {
            world.connect_request(listener(), device, hello_of(1));
        }
        return std::vector<fakes::Event>{};
    });
    (void)request(1);
    EXPECT_EQ(storm, 0);
    EXPECT_EQ(world.count("rdma_accept"), 300);
    EXPECT_THAT(server_->notices, IsEmpty());
}

TEST_F(ReadServerTest, TakesNoMoreReadersThanTheDevicesLongestQueueHasRoomFor) {
    device.attributes.max_cqe = 132;
    start();
    (void)reader(1);
    (void)reader(2);
    expect_refused(hello_of(3), Refusal::server_full);
    EXPECT_LE(world.all<fakes::Cq>().front()->raw.cqe, 132);
}

TEST_F(ReadServerTest, WorkThatIsFlushedBeforeTheDisconnectLeavesTheGoodbyeToTheEvent) {
    start();
    fakes::Id& id = reader(1);
    ibv_wc flushed{};
    flushed.wr_id = 1U << 1U;
    flushed.status = IBV_WC_WR_FLUSH_ERR;
    world.complete(*id.qp->cq, flushed);
    summary_ = server_->step();
    EXPECT_TRUE(id.live);
    happen(id, RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_EQ(summary_.finished, 1U);
}

TEST_F(ReadServerTest, AFailedSendOfTheDescriptorEndsThatConnectionWithItsStatus) {
    start();
    fakes::Id& id = reader(1);
    ibv_wc failed{};
    failed.wr_id = 1U << 1U | 1U;
    failed.status = IBV_WC_RETRY_EXC_ERR;
    world.complete(*id.qp->cq, failed);
    summary_ = server_->step();
    EXPECT_FALSE(id.live);
    EXPECT_THAT(server_->notices.back(), HasSubstr(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR)));
}

TEST_F(ReadServerTest, ConnectionsThatAreStillThereAtTheEndAreReleasedFirst) {
    start();
    (void)reader(1);
    (void)request(2);
    server_.reset();
    EXPECT_LT(world.place("rdma_destroy_qp", 2), world.place("ibv_dereg_mr"));
    EXPECT_LT(world.place("ibv_dealloc_pd"), world.place("rdma_destroy_id id1"));
    EXPECT_LT(world.place("rdma_destroy_id id1"), world.place("rdma_destroy_event_channel"));
}

// ---- every call fails once ----

// A reader's life; what it may meet on the way is up to the caller.
void live(fakes::World& world, SteppedServer& server, fakes::Device& device, std::uint32_t rank) {
    fakes::Id& id = world.connect_request(*world.all<fakes::Id>().front(), device, hello_of(rank));
    server.step();
    if (!id.live) {
        return;
    }
    world.happen(id, {RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, 0});
    world.receive(*id.qp, ready());
    server.step();
    if (!id.live) {
        return;
    }
    world.happen(id, {RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0});
    server.step();
}

TEST(ReadServerFailures, EveryCallThatFailsIsNamedAndEndsNoMoreThanItMust) {
    std::vector<std::string> calls;
    std::size_t to_construct = 0;
    for (std::size_t failing = 0; failing == 0 || failing <= calls.size(); ++failing) {
        fakes::World world;
        fakes::Device& device = world.add_device("fake0", {"10.0.0.1"});
        fakes::Bytes exposed(64);
        ReadServerConfig config;
        config.address = address_of("10.0.0.1");
        config.run = fakes::kRun;
        config.ranks = 8;
        config.max_connections = 1;
        if (failing == 0) {
            SteppedServer server(config, exposed);
            to_construct = world.attempted().size();
            live(world, server, device, 1);
            EXPECT_THAT(server.notices, IsEmpty());
            calls = world.attempted();
            continue;
        }
        const std::string& call = calls[failing - 1];
        SCOPED_TRACE(call + ", call " + std::to_string(failing));
        world.fail_call(failing - 1, EIO);
        if (failing <= to_construct) {
            const auto error = error_of([&] { const ReadServer server(config, exposed); });
            ASSERT_TRUE(error);
            EXPECT_THAT(error->what(), HasSubstr(call));
            EXPECT_EQ(error->code(), EIO);
        } else if (call == "rdma_get_cm_event" || call == "ibv_poll_cq"
                   || call == "ibv_req_notify_cq") {
            // These are everybody's: without them there is no service.
            SteppedServer server(config, exposed);
            const auto error = error_of([&] { live(world, server, device, 1); });
            ASSERT_TRUE(error);
            EXPECT_THAT(error->what(), HasSubstr(call));
        } else {
            SteppedServer server(config, exposed);
            live(world, server, device, 1);
            if (call == "rdma_disconnect") {
                EXPECT_THAT(server.notices, IsEmpty());
            } else {
                EXPECT_THAT(server.notices,
                            ElementsAre(testing::AllOf(HasSubstr("rank 1"), HasSubstr(call))));
                EXPECT_FALSE(world.all<fakes::Id>().at(1)->live);
            }
            if (call == "rdma_create_qp" || call == "ibv_post_recv" || call == "rdma_accept") {
                EXPECT_EQ(world.all<fakes::Id>().at(1)->rejected_with,
                          bytes_of(encode(Refusal::server_error)));
                EXPECT_EQ(server.step().refused, 1U);
            }
            // The only slot is free again, and the next reader is served.
            const auto before = server.step().finished;
            live(world, server, device, 2);
            EXPECT_EQ(server.step().finished, before + 1);
        }
        EXPECT_THAT(world.violations(), IsEmpty());
        EXPECT_THAT(world.held(), IsEmpty());
    }
    for (const std::string call :
         {"rdma_create_event_channel", "rdma_create_id", "rdma_bind_addr", "ibv_query_port",
          "ibv_query_device", "ibv_alloc_pd", "ibv_create_comp_channel", "ibv_create_cq",
          "ibv_reg_mr", "ibv_req_notify_cq", "rdma_listen", "rdma_get_cm_event", "rdma_create_qp",
          "ibv_post_recv", "rdma_accept", "ibv_poll_cq", "ibv_post_send", "rdma_disconnect"}) {
        EXPECT_THAT(calls, testing::Contains(call));
    }
}

TEST_F(ReadServerTest, ARefusalThatCannotBeSentIsStillCounted) {
    start();
    world.fail("rdma_reject", EINVAL);
    const fakes::Id& id = request(99);
    EXPECT_FALSE(id.live);
    EXPECT_EQ(summary_.refused, 1U);
}

// ---- the end of the service ----

TEST_F(ReadServerTest, EndsWhenAsManyReadersAsAskedForHaveComeAndGone) {
    ReadServer server(config_, exposed_);
    // Each reader says ready at once and leaves when it has its descriptor; then the next comes.
    std::uint32_t rank = 0;
    world.answer("rdma_accept", [&](int) {
        world.receive(*world.all<fakes::Qp>().back(), ready());
        return std::vector<fakes::Event>{{RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, 0}};
    });
    world.after_posting([&](fakes::Qp& poster) {
        world.happen(*poster.id, {RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0});
        world.connect_request(listener(), device, hello_of(++rank % 8));
    });
    world.connect_request(listener(), device, hello_of(0));
    const ServeSummary summary = server.serve(3);
    EXPECT_GE(summary.finished, 3U);
    EXPECT_LE(summary.finished, 4U);
    EXPECT_GT(summary.seconds, 0);
}

TEST_F(ReadServerTest, EndsWhenItsStopDescriptorBecomesReadable) {
    const UniqueFd stop(eventfd(1, EFD_CLOEXEC));
    config_.stop_fd = stop.get();
    ReadServer server(config_, exposed_);
    EXPECT_EQ(server.serve().connections, 0U);
}

TEST_F(ReadServerTest, AStopThatComesBeforeTheServiceIsNotLost) {
    ReadServer server(config_, exposed_);
    server.stop();
    EXPECT_EQ(server.serve().connections, 0U);
}

TEST_F(ReadServerTest, AStopIsSeenWhileRequestsKeepComing) {
    ReadServer server(config_, exposed_);
    constexpr int kMost = 5000;
    int requests = 1;
    // Whoever is turned away comes again before the server looks for something else.
    world.before_taking([&] {
        server.stop();
        if (requests < kMost) {
            ++requests;
            (void)world.connect_request(listener(), device, {});
        }
    });
    (void)world.connect_request(listener(), device, {});
    (void)server.serve();
    EXPECT_LT(requests, kMost);
}

TEST_F(ReadServerTest, AFirstMessageIsSeenWhileRequestsKeepComing) {
    start();
    fakes::Id& id = request(2);
    happen(id, RDMA_CM_EVENT_ESTABLISHED);
    world.receive(*id.qp, ready());
    constexpr int kMany = 500;
    for (int i = 0; i < kMany; ++i) {
        (void)world.connect_request(listener(), device, {});
    }
    EXPECT_LT(server_->server.serve().refused, kMany);
    EXPECT_THAT(id.qp->sent, ElementsAre(descriptor()));
    EXPECT_EQ(server_->step().refused, kMany);
}

TEST_F(ReadServerTest, AReaderWhoseEstablishmentIsBehindManyRequestsIsNotSilent) {
    config_.handshake_limit = fakes::kNotTooNear;
    start();
    fakes::Id& id = request(2);
    const Deadline limit = Deadline::after(config_.handshake_limit);
    receive(id, ready());
    await(limit);
    summary_ = server_->step();
    ASSERT_TRUE(id.live);
    happen(id, RDMA_CM_EVENT_ESTABLISHED);
    EXPECT_THAT(id.qp->sent, ElementsAre(descriptor()));
}

TEST_F(ReadServerTest, ARemovedDeviceEndsTheServiceWithAnError) {
    start();
    (void)reader(1);
    const auto error = error_of([&] { happen(listener(), RDMA_CM_EVENT_DEVICE_REMOVAL); });
    EXPECT_EQ(error->failure(), Failure::no_device);
    EXPECT_THAT(error->what(), HasSubstr("device fake0 was removed"));
    EXPECT_THAT(error->hint(), HasSubstr("dmesg"));
    EXPECT_EQ(server_->server.summary().connections, 1U);
    EXPECT_GT(server_->server.summary().seconds, 0);
    EXPECT_GT(server_->server.summary().cpu_seconds, 0);
}

TEST_F(ReadServerTest, ServesOnOneThreadAndIsStoppedFromAnother) {
    ReadServer server(config_, exposed_);
    std::vector<std::string> notices;
    server.on_notice([&](const std::string& text) { notices.push_back(text); });
    ServeSummary summary;
    std::thread serving([&] { summary = server.serve(); });
    const auto until = [&](const std::string& call, int times) {
        const Deadline deadline = far();
        while (world.count(call) < times && !deadline.expired()) {
            std::this_thread::yield();
        }
        EXPECT_EQ(world.count(call), times) << call;
    };
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
        const int nth = static_cast<int>(rank) + 1;
        fakes::Id& id = world.connect_request(listener(), device, hello_of(rank));
        until("rdma_accept", nth);
        {
            const std::scoped_lock lock(world.mutex());
            world.happen(id, {RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, 0});
            world.receive(*id.qp, ready());
        }
        until("ibv_post_send", nth);
        world.happen(id, {RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0});
        until("rdma_destroy_id", nth);
    }
    server.stop();
    serving.join();
    EXPECT_EQ(summary.connections, 3U);
    EXPECT_EQ(summary.finished, 3U);
    EXPECT_THAT(notices, IsEmpty());
}

// ---- the wildcard ----

class WildcardTest : public ReadServerTest {
  protected:
    WildcardTest() { config_.address = address_of("::"); }
    fakes::Device& second = world.add_device("fake1", {"10.0.1.1"});

    fakes::Id& reader_on(fakes::Device& at, std::uint32_t rank) {
        fakes::Id& id = world.connect_request(listener(), at, hello_of(rank));
        server_->step();
        world.happen(id, {RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, 0});
        world.receive(*id.qp, ready());
        summary_ = server_->step();
        return id;
    }
};

TEST_F(WildcardTest, ServesEachDeviceFromItsOwnDomainQueueAndRegion) {
    start();
    EXPECT_FALSE(server_->server.port());
    EXPECT_GT(server_->server.address().port(), 0);
    fakes::Id& on_first = reader_on(device, 1);
    fakes::Id& on_second = reader_on(second, 2);
    EXPECT_EQ(world.all<fakes::Pd>().size(), 2U);
    EXPECT_EQ(world.all<fakes::Cq>().size(), 2U);
    const auto regions = world.all<fakes::Mr>();
    ASSERT_EQ(regions.size(), 4U);
    EXPECT_NE(on_first.qp->cq, on_second.qp->cq);
    EXPECT_EQ(on_first.qp->raw.pd->context, &device.context);
    EXPECT_EQ(on_second.qp->raw.pd->context, &second.context);
    const auto address = reinterpret_cast<std::uintptr_t>(exposed_.data());
    EXPECT_THAT(on_first.qp->sent, ElementsAre(bytes_of(encode(RemoteBuffer{
                                       address, exposed_.size(), regions[0]->raw.rkey}))));
    EXPECT_THAT(on_second.qp->sent, ElementsAre(bytes_of(encode(RemoteBuffer{
                                        address, exposed_.size(), regions[2]->raw.rkey}))));
    EXPECT_EQ(summary_.connections, 2U);
}

TEST_F(WildcardTest, HasRoomForEachDevicesReaders) {
    config_.max_connections = 1;
    start();
    (void)reader_on(device, 1);
    (void)reader_on(second, 2);
    fakes::Id& third = world.connect_request(listener(), second, hello_of(3));
    summary_ = server_->step();
    EXPECT_EQ(third.rejected_with, bytes_of(encode(Refusal::server_full)));
}

TEST_F(WildcardTest, ADeviceThatIsRemovedEndsTheServerWithItsName) {
    world.add_interface("eth0", "10.0.0.1");
    world.add_interface("eth1", "10.0.1.1");
    world.add_interface("eth1", "10.0.1.2");
    start();
    const auto error = error_of([&] {
        world.happen(*world.all<fakes::Id>().back(), {RDMA_CM_EVENT_DEVICE_REMOVAL, 0, {}, 0, 0});
        server_->step();
    });
    EXPECT_EQ(error->failure(), Failure::no_device);
    EXPECT_THAT(error->what(), HasSubstr("device fake1 was removed while serving"));
}

TEST_F(WildcardTest, ASecondDeviceThatFailsReleasesTheFirst) {
    world.fail("ibv_alloc_pd", ENOMEM, 2);
    EXPECT_THAT(error_of([&] { const ReadServer server(config_, exposed_); })->what(),
                HasSubstr("ibv_alloc_pd(fake1)"));
}

TEST_F(WildcardTest, AHostWhoseDevicesCannotBeListedIsAnError) {
    world.fail("rdma_get_devices", EMFILE);
    const auto error = error_of([&] { const ReadServer server(config_, exposed_); });
    EXPECT_THAT(error->what(), HasSubstr("rdma_get_devices"));
    EXPECT_EQ(error->code(), EMFILE);
}

}  // namespace
}  // namespace rdma_read::rdma
