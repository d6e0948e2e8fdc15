// Reads in flight: what is posted, in what lists, and what becomes of each completion.
#include "rdma_read/rdma/read_stream.hpp"

#include "allocation_count.hpp"
#include "support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace rdma_read::rdma {
namespace {

using fakes::far;
using fakes::near;
using fakes::not_too_near;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Notes what it is asked, and that no slot is used twice at a time.
class RecordingSink : public ReadSink {
  public:
    explicit RecordingSink(std::function<ReadRequest(std::uint32_t)> requests)
        : requests_(std::move(requests)) {}

    ReadRequest next(std::uint32_t slot) override {
        EXPECT_FALSE(open[slot]) << "slot " << slot << " is not free";
        open[slot] = true;
        ++begun;
        return requests_(slot);
    }
    void finished(std::uint32_t slot) override {
        EXPECT_TRUE(open[slot]) << "slot " << slot << " has no read";
        open[slot] = false;
        order.push_back(slot);
        if (on_finished) {
            on_finished(slot);
        }
    }

    std::map<std::uint32_t, bool> open;
    std::uint64_t begun = 0;
    std::vector<std::uint32_t> order;
    std::function<void(std::uint32_t)> on_finished;

  private:
    std::function<ReadRequest(std::uint32_t)> requests_;
};

class ReadStreamTest : public fakes::ClientTest {
  protected:
    ReadClient& connect(std::uint32_t depth) {
        client_ = std::make_unique<ReadClient>(config(depth), far());
        return *client_;
    }
    void TearDown() override {
        client_.reset();
        ClientTest::TearDown();
    }

    [[nodiscard]] fakes::Qp& qp() const { return *world.all<fakes::Qp>().back(); }

    // Each slot reads `bytes` from its own place in the remote buffer to the same place here.
    [[nodiscard]] RecordingSink sink_of(std::size_t bytes) {
        return RecordingSink([this, bytes](std::uint32_t slot) {
            return ReadRequest{slot * bytes, std::span(destination).subspan(slot * bytes, bytes)};
        });
    }
    static StreamPlan plan_of(std::uint32_t slots, std::uint64_t reads) {
        StreamPlan plan;
        plan.slots = slots;
        plan.reads = reads;
        return plan;
    }
    [[nodiscard]] std::vector<std::size_t> list_lengths() const {
        std::vector<std::size_t> lengths;
        std::ranges::transform(qp().posts, std::back_inserter(lengths),
                               [](const auto& post) { return post.size(); });
        return lengths;
    }
    // Runs one read that must fail before anything is posted, or with nothing received.
    [[nodiscard]] static ReadFailure failure_of(const StreamSummary& summary) {
        EXPECT_TRUE(summary.failure);
        return summary.failure.value_or(ReadFailure{});
    }

    std::unique_ptr<ReadClient> client_;
};

TEST_F(ReadStreamTest, AllThatFitsIsPostedAsOneListWithOneCall) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(8));
    RecordingSink sink = sink_of(64);
    const StreamSummary summary = stream.run(sink, plan_of(8, 8), far());
    EXPECT_FALSE(summary.failure);
    EXPECT_EQ(summary.reads, 8U);
    EXPECT_EQ(list_lengths(), std::vector<std::size_t>{8});
    EXPECT_EQ(std::memcmp(destination.data(), exposed.data(), 8 * 64), 0);
}

TEST_F(ReadStreamTest, EachRequestNamesRemoteAddressKeyPlaceAndLength) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(2));
    RecordingSink sink = sink_of(100);
    (void)stream.run(sink, plan_of(2, 2), far());
    ASSERT_EQ(qp().posts.front().size(), 2U);
    const fakes::Read& second = qp().posts.front()[1];
    EXPECT_EQ(second.remote, reinterpret_cast<std::uintptr_t>(exposed.data()) + 100);
    EXPECT_EQ(second.local, reinterpret_cast<std::uintptr_t>(destination.data()) + 100);
    EXPECT_EQ(second.length, 100U);
    EXPECT_EQ(second.rkey, fakes::kRemoteKey);
}

TEST_F(ReadStreamTest, WhatIsFinishedIsRefilledAtOnceAsOneList) {
    // Two of the reads in flight complete after each post.
    world.after_posting([&](fakes::Qp& poster) {
        for (int i = 0; i < 2 && !poster.in_flight.empty(); ++i) {
            world.complete_read(poster);
        }
    });
    ReadStream stream(connect(4));
    RecordingSink sink = sink_of(16);
    // The last reads complete when the stream sleeps.
    world.before_sleeping([&] {
        while (!qp().in_flight.empty()) {
            world.complete_read(qp());
        }
    });
    const StreamSummary summary = stream.run(sink, plan_of(3, 8), far());
    EXPECT_FALSE(summary.failure);
    EXPECT_EQ(summary.reads, 8U);
    EXPECT_EQ(list_lengths(), (std::vector<std::size_t>{3, 2, 2, 1}));
}

TEST_F(ReadStreamTest, TheSameSlotsAreUsedAgainAndAgain) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(4));
    RecordingSink sink = sink_of(16);
    const StreamSummary summary = stream.run(sink, plan_of(3, 100), far());
    EXPECT_EQ(summary.reads, 100U);
    EXPECT_EQ(sink.begun, 100U);
    EXPECT_EQ(sink.order.size(), 100U);
    EXPECT_EQ(sink.open.size(), 3U);
}

// Counts nothing itself, so that what is counted is the stream's.
class PlainSink : public ReadSink {
  public:
    explicit PlainSink(std::span<std::byte> memory) : memory_(memory) {}
    ReadRequest next(std::uint32_t /*slot*/) override { return {0, memory_}; }
    void finished(std::uint32_t /*slot*/) override {}

  private:
    std::span<std::byte> memory_;
};

TEST_F(ReadStreamTest, NothingIsAllocatedWhileReadsAreGood) {
    world.complete_reads_at_once(true);
    auto several = config(8);
    several.queue_pairs = 2;
    ReadClient client(several, far());
    ReadStream stream(client);
    PlainSink sink{std::span(destination).first(64)};
    const std::size_t before = allocation_count();
    const StreamSummary summary = stream.run(sink, plan_of(16, 1000), far());
    const StreamSummary one = stream.run_one(sink, far());
    const std::size_t after = allocation_count();
    EXPECT_EQ(summary.reads, 1000U);
    EXPECT_EQ(one.reads, 1U);
    EXPECT_EQ(after, before);
    const std::vector<int> some(1);
    EXPECT_EQ(allocation_count(), after + 1) << "the count must be able to go up";
}

TEST_F(ReadStreamTest, MoreSlotsThanTheQueueHoldsAreNotUsed) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(4));
    RecordingSink sink = sink_of(16);
    const StreamSummary summary = stream.run(sink, plan_of(1000, 50), far());
    EXPECT_EQ(summary.reads, 50U);
    EXPECT_EQ(sink.open.size(), 4U);
}

TEST_F(ReadStreamTest, NoSlotAtAllIsOne) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(4));
    RecordingSink sink = sink_of(16);
    EXPECT_EQ(stream.run(sink, plan_of(0, 3), far()).reads, 3U);
    EXPECT_EQ(sink.open.size(), 1U);
}

TEST_F(ReadStreamTest, AReadLongerThanTheLongestMessageIsSplitWithoutGapOrOverlap) {
    device.port.max_msg_sz = 1000;
    world.complete_reads_at_once(true);
    ReadStream stream(connect(8));
    RecordingSink sink([&](std::uint32_t) {
        return ReadRequest{100, std::span(destination).subspan(7, 3500)};
    });
    const StreamSummary summary = stream.run_one(sink, far());
    EXPECT_FALSE(summary.failure);
    EXPECT_EQ(summary.reads, 1U);
    EXPECT_EQ(sink.order.size(), 1U);
    ASSERT_EQ(list_lengths(), std::vector<std::size_t>{4});
    const auto remote = reinterpret_cast<std::uintptr_t>(exposed.data()) + 100;
    const auto local = reinterpret_cast<std::uintptr_t>(destination.data()) + 7;
    for (std::size_t i = 0; i < 4; ++i) {
        const fakes::Read& part = qp().posts.front()[i];
        EXPECT_EQ(part.remote, remote + i * 1000);
        EXPECT_EQ(part.local, local + i * 1000);
        EXPECT_EQ(part.length, i == 3 ? 500U : 1000U);
    }
    EXPECT_EQ(std::memcmp(destination.data() + 7, exposed.data() + 100, 3500), 0);
    EXPECT_EQ(destination[6], std::byte{0});
    EXPECT_EQ(destination[3507], std::byte{0});
}

TEST_F(ReadStreamTest, AReadOfExactlyTheLongestMessageIsOneRequest) {
    device.port.max_msg_sz = 1000;
    world.complete_reads_at_once(true);
    ReadStream stream(connect(8));
    RecordingSink sink = sink_of(1000);
    EXPECT_EQ(stream.run(sink, plan_of(2, 2), far()).reads, 2U);
    EXPECT_EQ(list_lengths(), std::vector<std::size_t>{2});
}

TEST_F(ReadStreamTest, PartsOfLongReadsNeverExceedTheQueue) {
    device.port.max_msg_sz = 1000;
    std::size_t most = 0;
    // Two parts complete at a time.
    world.after_posting([&](fakes::Qp& poster) {
        most = std::max(most, poster.in_flight.size());
        for (int i = 0; i < 2 && !poster.in_flight.empty(); ++i) {
            world.complete_read(poster);
        }
    });
    ReadStream stream(connect(3));
    world.before_sleeping([&] {
        while (!qp().in_flight.empty()) {
            world.complete_read(qp());
        }
    });
    RecordingSink sink = sink_of(7777);
    sink.on_finished = [&](std::uint32_t slot) {
        EXPECT_EQ(std::memcmp(&destination[slot * 7777], &exposed[slot * 7777], 7777), 0);
        std::fill_n(&destination[slot * 7777], 7777, std::byte{0xee});
    };
    const StreamSummary summary = stream.run(sink, plan_of(3, 9), far());
    EXPECT_FALSE(summary.failure);
    EXPECT_EQ(summary.reads, 9U);
    EXPECT_EQ(sink.order.size(), 9U);
    EXPECT_EQ(most, 3U);
    std::uint64_t bytes = 0;
    for (const auto& list : qp().posts) {
        for (const fakes::Read& part : list) {
            bytes += part.length;
        }
    }
    EXPECT_EQ(bytes, 9U * 7777U);
}

TEST_F(ReadStreamTest, AReadOfMoreThanFourGiBIsWholeAndInPartsOfOneGiB) {
    constexpr std::uint64_t kLength = (1ULL << 32U) + 1;
    serve(RemoteBuffer{1ULL << 40U, kLength, 9});
    world.reads_carry_data(false);
    world.complete_reads_at_once(true);
    ReadClientConfig huge = config(2);
    // Memory that nothing in this test touches.
    huge.destination = {reinterpret_cast<std::byte*>(1ULL << 41U), kLength};
    ReadClient client(huge, far());
    ReadStream stream(client);
    RecordingSink sink([&](std::uint32_t) { return ReadRequest{0, huge.destination}; });
    EXPECT_EQ(stream.run_one(sink, far()).reads, 1U);
    std::uint64_t bytes = 0;
    for (const auto& list : qp().posts) {
        for (const fakes::Read& part : list) {
            EXPECT_EQ(part.remote, (1ULL << 40U) + bytes);
            EXPECT_GT(part.length, 0U);
            EXPECT_LE(part.length, 1U << 30U);
            bytes += part.length;
        }
    }
    EXPECT_EQ(bytes, kLength);
}

// ---- which reads report ----

using Signaled = std::vector<bool>;

// Which reads of each list report their completion.
class SignalingTest : public ReadStreamTest {
  protected:
    void SetUp() override {
        ReadStreamTest::SetUp();
        (void)connect(16);
    }
    [[nodiscard]] std::vector<Signaled> signaled_of(std::size_t bytes, std::uint32_t in_flight,
                                                    std::uint64_t reads) {
        ReadStream stream(*client_);
        RecordingSink sink([this, bytes](std::uint32_t /*slot*/) {
            return ReadRequest{0, std::span(destination).first(bytes)};
        });
        EXPECT_EQ(stream.run(sink, plan_of(in_flight, reads), far()).reads, reads);
        std::vector<Signaled> lists;
        for (const auto& post : qp().posts) {
            std::ranges::transform(post, std::back_inserter(lists.emplace_back()),
                                   &fakes::Read::signaled);
        }
        return lists;
    }
};

TEST_F(SignalingTest, OfShortReadsThatAreFoundTogetherTwoOfSoManyReport) {
    world.complete_reads_at_once(true);
    EXPECT_EQ(signaled_of(8, 8, 23),
              (std::vector<Signaled>{Signaled(8, true),
                                     {false, false, false, true, false, false, false, true},
                                     {false, false, false, true, false, false, true}}));
}

TEST_F(SignalingTest, ReadsThatArriveOneByOneAllReport) {
    // The oldest arrives when the stream sleeps, and from the third time on all.
    int sleeps = 0;
    world.before_sleeping([&] {
        ++sleeps;
        for (bool more = true; more && !qp().in_flight.empty(); more = sleeps >= 3) {
            world.complete_read(qp());
        }
    });
    const auto lists = signaled_of(8, 8, 20);
    EXPECT_EQ(lists, (std::vector<Signaled>{Signaled(8, true),
                                            {true},
                                            {true},
                                            {false, false, false, true, false, false, false, true},
                                            {false, true}}));
}

TEST_F(SignalingTest, NotMoreArrivesUnsaidThanStaysInACache) {
    world.complete_reads_at_once(true);
    EXPECT_EQ(signaled_of(32768, 4, 8).back(), Signaled(4, true));
    EXPECT_EQ(signaled_of(16384, 8, 16).back(),
              (Signaled{false, true, false, true, false, true, false, true}));
}

TEST_F(SignalingTest, EachRunBeginsWithReportsOfAll) {
    world.complete_reads_at_once(true);
    ReadStream stream(*client_);
    for (int run = 0; run < 2; ++run) {
        RecordingSink sink = sink_of(8);
        qp().posts.clear();
        EXPECT_EQ(stream.run(sink, plan_of(8, 16), far()).reads, 16U);
        EXPECT_TRUE(std::ranges::all_of(qp().posts.front(), &fakes::Read::signaled));
        EXPECT_FALSE(qp().posts.back().front().signaled);
    }
}

// The second list is [silent, reports, silent, reports].
class SilentReadsTest : public ReadStreamTest {
  protected:
    // Runs eight reads; what becomes of the second four is up to the action.
    StreamSummary run(RecordingSink& sink, const std::function<void(fakes::Qp&)>& second_list) {
        world.after_posting([this, second_list](fakes::Qp& poster) {
            if (poster.posts.size() == 2 && !poster.in_flight.empty()) {
                second_list(poster);
                return;
            }
            while (!poster.in_flight.empty()) {
                world.complete_read(poster);
            }
        });
        stream_.emplace(connect(4));
        return stream_->run(sink, plan_of(4, 8), far());
    }
    std::optional<ReadStream> stream_;
};

TEST_F(SilentReadsTest, OneReportSpeaksForTheReadBeforeIt) {
    RecordingSink sink = sink_of(32);
    std::vector<std::size_t> finished;
    world.before_sleeping([&] {
        finished.push_back(sink.order.size());
        while (!qp().in_flight.empty()) {
            world.complete_read(qp());
        }
    });
    const StreamSummary summary = run(sink, [&](fakes::Qp& poster) {
        for (int i = 0; i < 3; ++i) {
            world.complete_read(poster);
        }
    });
    EXPECT_FALSE(summary.failure);
    EXPECT_EQ(summary.reads, 8U);
    // The third has arrived, and nobody has said so.
    ASSERT_FALSE(finished.empty());
    EXPECT_EQ(finished.front(), 6U);
    EXPECT_EQ(std::memcmp(destination.data(), exposed.data(), 4 * 32), 0);
}

TEST_F(SilentReadsTest, WhatArrivedUnsaidBeforeAFailureIsChecked) {
    RecordingSink sink = sink_of(32);
    const StreamSummary summary = run(sink, [&](fakes::Qp& poster) {
        for (int i = 0; i < 3; ++i) {
            world.complete_read(poster);
        }
        world.complete_read(poster, 0, IBV_WC_RETRY_EXC_ERR);
    });
    EXPECT_THAT(failure_of(summary).message, HasSubstr(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR)));
    EXPECT_EQ(summary.reads, 7U);
    EXPECT_EQ(sink.order.size(), 7U);
}

TEST_F(SilentReadsTest, AFailureIsReportedByAReadThatWouldHaveBeenSilent) {
    RecordingSink sink = sink_of(32);
    const StreamSummary summary = run(sink, [&](fakes::Qp& poster) {
        world.complete_read(poster);
        world.complete_read(poster);
        world.complete_read(poster, 0, IBV_WC_REM_ACCESS_ERR);
    });
    EXPECT_THAT(failure_of(summary).message, HasSubstr(ibv_wc_status_str(IBV_WC_REM_ACCESS_ERR)));
    EXPECT_EQ(summary.reads, 6U);
}

TEST_F(SilentReadsTest, AFailureSpeaksForNoneBeforeAReadThatWasToReportFirst) {
    RecordingSink sink = sink_of(32);
    const StreamSummary summary =
        run(sink, [&](fakes::Qp& poster) { world.complete_read(poster, 3, IBV_WC_RETRY_EXC_ERR); });
    EXPECT_THAT(failure_of(summary).message, HasSubstr(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR)));
    EXPECT_EQ(summary.reads, 4U);
}

TEST_F(SilentReadsTest, AReportOutOfOrderSpeaksForNoneBeforeIt) {
    RecordingSink sink = sink_of(32);
    const StreamSummary summary =
        run(sink, [&](fakes::Qp& poster) { world.complete_read(poster, 3); });
    EXPECT_THAT(failure_of(summary).message, HasSubstr("another read than the next in order"));
    EXPECT_EQ(summary.reads, 4U);
    EXPECT_EQ(sink.order.size(), 4U);
}

TEST_F(ReadStreamTest, ACompletionOutOfOrderIsAFailureAndWhatMayNotHaveArrivedIsNotChecked) {
    for (const std::uint32_t in_flight : {2U, 4U}) {
        ReadStream stream(connect(4));
        world.after_posting([&](fakes::Qp& poster) {
            if (!poster.in_flight.empty()) {
                world.complete_read(poster, poster.in_flight.size() - 1);
            }
        });
        RecordingSink sink = sink_of(32);
        const StreamSummary summary = stream.run(sink, plan_of(in_flight, 4), far());
        EXPECT_EQ(failure_of(summary).failure, Failure::read);
        EXPECT_THAT(failure_of(summary).message, HasSubstr("another read than the next in order"));
        EXPECT_EQ(summary.reads, 0U);
        EXPECT_TRUE(sink.order.empty());
        world.after_posting({});
    }
}

TEST_F(ReadStreamTest, ACompletionOfNoReadIsAFailure) {
    for (const std::uint64_t number :
         {0ULL, 1ULL, 8ULL, 1ULL << 62U, 1ULL << 63U, 1ULL << 63U | 8U}) {
        ReadStream stream(connect(4));
        world.after_posting([&](fakes::Qp& poster) {
            ibv_wc completion{};
            completion.wr_id = number;
            completion.opcode = IBV_WC_RDMA_READ;
            completion.qp_num = poster.raw.qp_num;
            if (number == 0) {
                world.complete_read(poster);
            }
            world.complete(*poster.cq, completion);
        });
        RecordingSink sink = sink_of(32);
        const StreamSummary summary = stream.run(sink, plan_of(1, 1), far());
        EXPECT_THAT(failure_of(summary).message, HasSubstr("another read than the next in order"));
        world.after_posting({});
    }
}

// Reads of three parts through a queue of eight: the second list is the last part of the read that
// the first had no room for, two whole reads and the first part of another, and of these eight
// requests the fourth and the last report.
class LongSilentReadsTest : public ReadStreamTest {
  protected:
    static constexpr std::size_t kBytes = 2500;

    ReadStream& stream() {
        device.port.max_msg_sz = 1000;
        return stream_.emplace(connect(8));
    }
    // How many reads are handed over if this request of the second list fails.
    std::uint64_t reads_before_failure(int request) {
        world.after_posting([this, request](fakes::Qp& poster) {
            const auto arrive =
                poster.posts.size() == 2 ? request : static_cast<int>(poster.in_flight.size());
            for (int i = 0; i < arrive; ++i) {
                world.complete_read(poster);
            }
            if (poster.posts.size() == 2) {
                world.complete_read(poster, 0, IBV_WC_RETRY_EXC_ERR);
            }
        });
        RecordingSink sink = sink_of(kBytes);
        const StreamSummary summary = stream().run(sink, plan_of(4, 20), far());
        EXPECT_THAT(failure_of(summary).message,
                    HasSubstr(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR)));
        EXPECT_EQ(sink.order.size(), summary.reads);
        return summary.reads;
    }
    std::optional<ReadStream> stream_;
};

TEST_F(LongSilentReadsTest, EachReadIsHandedOverOnceAndWhole) {
    world.complete_reads_at_once(true);
    RecordingSink sink = sink_of(kBytes);
    sink.on_finished = [&](std::uint32_t slot) {
        EXPECT_EQ(std::memcmp(&destination[slot * kBytes], &exposed[slot * kBytes], kBytes), 0);
        std::fill_n(&destination[slot * kBytes], kBytes, std::byte{0xee});
    };
    const StreamSummary summary = stream().run(sink, plan_of(4, 20), far());
    EXPECT_FALSE(summary.failure);
    EXPECT_EQ(summary.reads, 20U);
    Signaled signaled;
    std::ranges::transform(qp().posts[1], std::back_inserter(signaled), &fakes::Read::signaled);
    EXPECT_EQ(signaled, (Signaled{false, false, false, true, false, false, false, true}));
}

TEST_F(LongSilentReadsTest, AReadOfWhichAPartFailedIsNotHandedOver) {
    EXPECT_EQ(reads_before_failure(0), 2U);
    EXPECT_EQ(reads_before_failure(2), 3U);
    EXPECT_EQ(reads_before_failure(3), 3U);
    EXPECT_EQ(reads_before_failure(5), 4U);
}

TEST_F(LongSilentReadsTest, TheLastPartOfAReadThatReportsFirstIsAFailure) {
    world.after_posting([&](fakes::Qp& poster) {
        if (!poster.in_flight.empty()) {
            world.complete_read(poster, 2);
        }
    });
    RecordingSink sink = sink_of(kBytes);
    const StreamSummary summary = stream().run_one(sink, far());
    EXPECT_THAT(failure_of(summary).message, HasSubstr("another read than the next in order"));
    EXPECT_EQ(summary.reads, 0U);
}

TEST_F(ReadStreamTest, AQueueOfOneTakesOneRequestAtATime) {
    device.port.max_msg_sz = 1000;
    world.complete_reads_at_once(true);
    ReadStream stream(connect(1));
    RecordingSink sink = sink_of(32);
    EXPECT_EQ(stream.run(sink, plan_of(4, 5), far()).reads, 5U);
    EXPECT_EQ(list_lengths(), std::vector<std::size_t>(5, 1));
    RecordingSink long_reads = sink_of(2500);
    EXPECT_EQ(stream.run_one(long_reads, far()).reads, 1U);
    EXPECT_EQ(stream.run(long_reads, plan_of(2, 2), far()).reads, 2U);
    EXPECT_EQ(list_lengths(), std::vector<std::size_t>(5 + 9, 1));
}

TEST_F(ReadStreamTest, ReadsThatWereListedBeforeOneThatIsNotExposedAreForgotten) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(8));
    // The third read of the list is not exposed: nothing is posted.
    std::uint64_t asked = 0;
    RecordingSink bad([&](std::uint32_t slot) {
        return ReadRequest{++asked == 3 ? exposed.size() : 0,
                           std::span(destination).subspan(slot * std::size_t{32}, 32)};
    });
    EXPECT_TRUE(stream.run(bad, plan_of(8, 8), far()).failure);
    EXPECT_TRUE(list_lengths().empty());
    RecordingSink good = sink_of(32);
    EXPECT_EQ(stream.run(good, plan_of(8, 20), far()).reads, 20U);
    EXPECT_EQ(qp().posts.front().size(), 8U);
}

TEST_F(ReadStreamTest, ASinkSeesItsBytesWhenItsSlotIsFinished) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(4));
    RecordingSink sink = sink_of(32);
    sink.on_finished = [&](std::uint32_t slot) {
        EXPECT_EQ(std::memcmp(&destination[slot * 32], &exposed[slot * 32], 32), 0);
        std::fill_n(&destination[slot * 32], 32, std::byte{0xee});
    };
    EXPECT_EQ(stream.run(sink, plan_of(4, 20), far()).reads, 20U);
}

TEST_F(ReadStreamTest, OneReadTakesSomeTimeAndAFailedOneNone) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(4));
    RecordingSink sink = sink_of(32);
    const StreamSummary good = stream.run_one(sink, far());
    EXPECT_EQ(good.reads, 1U);
    EXPECT_GT(good.duration.count(), 0);
    world.fail("ibv_post_send", EINVAL, 3);
    const StreamSummary bad = stream.run_one(sink, far());
    EXPECT_TRUE(bad.failure);
    EXPECT_EQ(bad.reads, 0U);
    EXPECT_EQ(bad.duration.count(), 0);
}

TEST_F(ReadStreamTest, ASingleReadsTimeLeavesOutDecidingWhatToReadAndLookingAtIt) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(4));
    const auto linger = [] {
        const auto until = Deadline::after(std::chrono::milliseconds(20));
        while (!until.expired()) {
        }
    };
    RecordingSink sink([&](std::uint32_t) {
        linger();
        return ReadRequest{0, std::span(destination).first(32)};
    });
    sink.on_finished = [&](std::uint32_t) { linger(); };
    const auto begun = Deadline::Clock::now();
    const StreamSummary summary = stream.run_one(sink, far());
    const auto whole = Deadline::Clock::now() - begun;
    EXPECT_EQ(summary.reads, 1U);
    EXPECT_LT(summary.duration, whole - std::chrono::milliseconds(40));
}

// The calls of one single read, without the looks at the completion queue.
class SleepingStreamTest : public ReadStreamTest {
  protected:
    std::vector<std::string> calls_of_one(ReadStream& stream) {
        RecordingSink sink = sink_of(32);
        const std::size_t before = world.attempted().size();
        EXPECT_EQ(stream.run_one(sink, far()).reads, 1U);
        const auto all = world.attempted();
        std::vector<std::string> calls(all.begin() + static_cast<std::ptrdiff_t>(before),
                                       all.end());
        std::erase(calls, "ibv_poll_cq");
        return calls;
    }
};

TEST_F(SleepingStreamTest, WhereReadsTakeLongTheQueueIsArmedBeforeASingleReadIsPosted) {
    ReadStream stream(connect(4));
    world.before_sleeping([&] { world.complete_read(qp()); });
    // At first a read may be quick.
    EXPECT_EQ(calls_of_one(stream).front(), "ibv_post_send");
    for (int i = 0; i < 20; ++i) {
        (void)calls_of_one(stream);
    }
    EXPECT_THAT(calls_of_one(stream), testing::ElementsAre("ibv_req_notify_cq", "ibv_post_send"));
}

TEST_F(SleepingStreamTest, AQueueThatCannotBeArmedFailsASingleReadThatIsNotPosted) {
    ReadStream stream(connect(4));
    world.before_sleeping([&] { world.complete_read(qp()); });
    for (int i = 0; i < 20; ++i) {
        (void)calls_of_one(stream);
    }
    const auto armed = std::ranges::count(world.attempted(), "ibv_req_notify_cq");
    world.fail("ibv_req_notify_cq", EIO, static_cast<int>(armed) + 1);
    const std::size_t posts = qp().posts.size();
    RecordingSink sink = sink_of(32);
    EXPECT_THAT(failure_of(stream.run_one(sink, far())).message, HasSubstr("ibv_req_notify_cq"));
    EXPECT_EQ(qp().posts.size(), posts);
}

TEST_F(ReadStreamTest, ASingleReadAfterItsDeadlineIsNotPosted) {
    ReadStream stream(connect(4));
    RecordingSink sink = sink_of(32);
    const StreamSummary summary =
        stream.run_one(sink, Deadline::after(std::chrono::nanoseconds::zero()));
    ASSERT_TRUE(summary.failure);
    EXPECT_EQ(summary.failure->failure, Failure::timeout);
    EXPECT_TRUE(list_lengths().empty());
}

TEST_F(ReadStreamTest, TheDeadlineEndsAlsoASingleReadWhosePartsNeverCeaseToComplete) {
    device.port.max_msg_sz = 1;
    ReadStream stream(connect(1));
    RecordingSink sink = sink_of(100);
    // Each part is quick, and the last but a few come when the time is over.
    world.complete_reads_at_once(true);
    const Deadline deadline = not_too_near();
    world.after_posting([&](fakes::Qp& /*poster*/) {
        if (qp().posts.size() == 2) {
            while (!deadline.expired()) {
            }
        }
    });
    const StreamSummary summary = stream.run_one(sink, deadline);
    EXPECT_EQ(failure_of(summary).failure, Failure::timeout);
    EXPECT_EQ(qp().posts.size(), 2U);
}

TEST_F(ReadStreamTest, ARequestToStopEndsAlsoASingleReadWhosePartsNeverCeaseToComplete) {
    device.port.max_msg_sz = 1;
    fakes::Stopper stopper;
    world.complete_reads_at_once(true);
    world.after_posting([&](fakes::Qp& /*poster*/) {
        if (qp().posts.size() == 2) {
            stopper.ask();
        }
    });
    auto stoppable = config(1);
    stoppable.stop = stopper.request();
    ReadClient client(stoppable, far());
    ReadStream stream(client);
    RecordingSink sink = sink_of(100);
    EXPECT_EQ(failure_of(stream.run_one(sink, far())).failure, Failure::stopped);
    EXPECT_EQ(qp().posts.size(), 2U);
}

// ---- spare slots ----

TEST_F(ReadStreamTest, WithSpareSlotsTheNextReadsArePostedBeforeTheFinishedOnesAreChecked) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(8));
    RecordingSink sink = sink_of(16);
    StreamPlan plan = plan_of(8, 12);
    plan.in_flight = 4;
    std::vector<std::uint64_t> begun_at_check;
    sink.on_finished = [&](std::uint32_t) { begun_at_check.push_back(sink.begun); };
    const StreamSummary summary = stream.run(sink, plan, far());
    EXPECT_FALSE(summary.failure);
    EXPECT_EQ(summary.reads, 12U);
    EXPECT_EQ(list_lengths(), (std::vector<std::size_t>{4, 4, 4}));
    EXPECT_EQ(begun_at_check,
              (std::vector<std::uint64_t>{8, 8, 8, 8, 12, 12, 12, 12, 12, 12, 12, 12}));
    EXPECT_EQ(std::memcmp(destination.data(), exposed.data(), 8 * 16), 0);
}

TEST_F(ReadStreamTest, WithoutSpareSlotsTheFinishedOnesAreCheckedFirst) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(8));
    RecordingSink sink = sink_of(16);
    std::vector<std::uint64_t> begun_at_check;
    sink.on_finished = [&](std::uint32_t) { begun_at_check.push_back(sink.begun); };
    EXPECT_EQ(stream.run(sink, plan_of(4, 8), far()).reads, 8U);
    EXPECT_EQ(begun_at_check, (std::vector<std::uint64_t>{4, 4, 4, 4, 8, 8, 8, 8}));
}

TEST_F(ReadStreamTest, NoMoreReadsAreInFlightThanThePlanSaysHoweverManySlotsThereAre) {
    std::size_t most = 0;
    world.after_posting([&](fakes::Qp& poster) {
        most = std::max(most, poster.in_flight.size());
        // One of the reads stays in flight.
        while (poster.in_flight.size() > 1) {
            world.complete_read(poster);
        }
    });
    world.before_sleeping([&] {
        while (!qp().in_flight.empty()) {
            world.complete_read(qp());
        }
    });
    ReadStream stream(connect(8));
    RecordingSink sink = sink_of(16);
    StreamPlan plan = plan_of(1000, 50);
    plan.in_flight = 3;
    EXPECT_EQ(stream.run(sink, plan, far()).reads, 50U);
    EXPECT_EQ(most, 3U);
    EXPECT_GT(sink.open.size(), 3U);
    EXPECT_LE(sink.open.size(), 6U);
}

TEST_F(ReadStreamTest, MoreReadsInFlightThanSlotsOrThanTheQueueHoldsAreLeftOut) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(4));
    for (const auto& [slots, in_flight, first_list] :
         {std::tuple{2U, 100U, 2U}, std::tuple{100U, 100U, 4U}, std::tuple{0U, 7U, 1U}}) {
        RecordingSink sink = sink_of(16);
        StreamPlan plan = plan_of(slots, 20);
        plan.in_flight = in_flight;
        const std::size_t lists = qp().posts.size();
        EXPECT_EQ(stream.run(sink, plan, far()).reads, 20U);
        EXPECT_EQ(qp().posts.at(lists).size(), first_list);
    }
}

TEST_F(ReadStreamTest, LongReadsWithSpareSlotsAreWhole) {
    device.port.max_msg_sz = 1000;
    world.after_posting([&](fakes::Qp& poster) {
        for (int i = 0; i < 2 && !poster.in_flight.empty(); ++i) {
            world.complete_read(poster);
        }
    });
    world.before_sleeping([&] {
        while (!qp().in_flight.empty()) {
            world.complete_read(qp());
        }
    });
    ReadStream stream(connect(3));
    RecordingSink sink = sink_of(7777);
    StreamPlan plan = plan_of(4, 20);
    plan.in_flight = 2;
    sink.on_finished = [&](std::uint32_t slot) {
        EXPECT_EQ(std::memcmp(&destination[slot * 7777], &exposed[slot * 7777], 7777), 0);
        std::fill_n(&destination[slot * 7777], 7777, std::byte{0xee});
    };
    const StreamSummary summary = stream.run(sink, plan, far());
    EXPECT_FALSE(summary.failure);
    EXPECT_EQ(summary.reads, 20U);
}

TEST_F(ReadStreamTest, WhatArrivedIsCheckedAlsoWhenTheNextReadsCannotBePosted) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(8));
    RecordingSink sink = sink_of(16);
    StreamPlan plan = plan_of(8, 12);
    plan.in_flight = 4;
    world.fail("ibv_post_send", EINVAL, 3);
    const StreamSummary summary = stream.run(sink, plan, far());
    EXPECT_TRUE(summary.failure);
    EXPECT_EQ(summary.reads, 4U);
    EXPECT_EQ(sink.order.size(), 4U);
}

// ---- several queue pairs ----

class QueuePairsStreamTest : public ReadStreamTest {
  protected:
    ReadClient& connect_with(std::uint32_t queue_pairs, std::uint32_t depth) {
        auto made = config(depth);
        made.queue_pairs = queue_pairs;
        client_ = std::make_unique<ReadClient>(made, far());
        return *client_;
    }
    [[nodiscard]] std::vector<std::size_t> list_lengths_of(std::size_t queue_pair) const {
        std::vector<std::size_t> lengths;
        std::ranges::transform(world.all<fakes::Qp>().at(queue_pair)->posts,
                               std::back_inserter(lengths),
                               [](const auto& post) { return post.size(); });
        return lengths;
    }
    void complete_all() {
        for (fakes::Qp* const queue_pair : world.all<fakes::Qp>()) {
            while (!queue_pair->in_flight.empty()) {
                world.complete_read(*queue_pair);
            }
        }
    }
};

using Lengths = std::vector<std::size_t>;

TEST_F(QueuePairsStreamTest, ReadsAreSpreadEvenlyAsOneListOnEach) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect_with(3, 8));
    RecordingSink sink = sink_of(64);
    const StreamSummary summary = stream.run(sink, plan_of(8, 16), far());
    EXPECT_FALSE(summary.failure);
    EXPECT_EQ(summary.reads, 16U);
    EXPECT_EQ(list_lengths_of(0), (Lengths{3, 3}));
    EXPECT_EQ(list_lengths_of(1), (Lengths{3, 3}));
    EXPECT_EQ(list_lengths_of(2), (Lengths{2, 2}));
    EXPECT_EQ(std::memcmp(destination.data(), exposed.data(), 8 * 64), 0);
}

TEST_F(QueuePairsStreamTest, TheQueuePairThatHasFinishedMostIsGivenMost) {
    ReadStream stream(connect_with(2, 8));
    RecordingSink sink = sink_of(64);
    // The second queue pair is fast: all of its reads are done when the stream first sleeps.
    world.before_sleeping([&] {
        fakes::Qp& fast = *world.all<fakes::Qp>().back();
        if (fast.posts.size() == 1) {
            while (!fast.in_flight.empty()) {
                world.complete_read(fast);
            }
        } else {
            complete_all();
        }
    });
    EXPECT_EQ(stream.run(sink, plan_of(8, 12), far()).reads, 12U);
    EXPECT_EQ(list_lengths_of(0), (Lengths{4}));
    EXPECT_EQ(list_lengths_of(1), (Lengths{4, 4}));
}

TEST_F(QueuePairsStreamTest, NoQueuePairIsGivenMoreThanItHolds) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect_with(2, 4));
    RecordingSink sink = sink_of(16);
    EXPECT_EQ(stream.run(sink, plan_of(1000, 50), far()).reads, 50U);
    EXPECT_EQ(sink.open.size(), 8U);
    for (std::size_t queue_pair = 0; queue_pair < 2; ++queue_pair) {
        EXPECT_THAT(list_lengths_of(queue_pair), testing::Each(testing::Le(4U)));
    }
}

TEST_F(QueuePairsStreamTest, ThePartsOfALongReadStayOnOneQueuePair) {
    device.port.max_msg_sz = 1000;
    ReadStream stream(connect_with(2, 3));
    world.before_sleeping([&] { complete_all(); });
    RecordingSink sink = sink_of(7777);
    const StreamSummary summary = stream.run(sink, plan_of(4, 12), far());
    EXPECT_FALSE(summary.failure);
    EXPECT_EQ(summary.reads, 12U);
    EXPECT_EQ(std::memcmp(destination.data(), exposed.data(), 4 * 7777), 0);
    for (const fakes::Qp* const queue_pair : world.all<fakes::Qp>()) {
        std::uint64_t bytes = 0;
        for (const auto& list : queue_pair->posts) {
            for (const fakes::Read& part : list) {
                bytes += part.length;
            }
        }
        EXPECT_EQ(bytes, 6U * 7777U);
    }
}

TEST_F(QueuePairsStreamTest, APostThatFailsOnOneEndsTheStreamForAll) {
    ReadStream stream(connect_with(2, 4));
    RecordingSink sink = sink_of(16);
    world.fail("ibv_post_send", EINVAL, 4);
    EXPECT_EQ(failure_of(stream.run(sink, plan_of(8, 8), far())).message,
              "ibv_post_send: Invalid argument (22)");
    complete_all();
    EXPECT_THAT(failure_of(stream.run(sink, plan_of(8, 8), far())).message,
                HasSubstr("still in flight"));
}

TEST_F(QueuePairsStreamTest, LosingOneOfTheConnectionsEndsTheStream) {
    ReadStream stream(connect_with(2, 4));
    RecordingSink sink = sink_of(16);
    world.happen(*world.all<fakes::Id>().front(), {RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0});
    EXPECT_EQ(failure_of(stream.run(sink, plan_of(8, 8), far())).failure, Failure::disconnected);
}

// ---- failures ----

TEST_F(ReadStreamTest, AFailedCompletionIsToldWithItsStatusInWordsAndTheNextStep) {
    for (const ibv_wc_status status :
         {IBV_WC_REM_ACCESS_ERR, IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR,
          IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR, IBV_WC_GENERAL_ERR}) {
        ReadStream stream(connect(4));
        world.after_posting([&](fakes::Qp& poster) {
            if (!poster.in_flight.empty()) {
                world.complete_read(poster);
                world.complete_read(poster);
                world.complete_read(poster, 0, status);
            }
        });
        RecordingSink sink = sink_of(32);
        const StreamSummary summary = stream.run(sink, plan_of(4, 100), far());
        const ReadFailure failure = failure_of(summary);
        EXPECT_EQ(failure.failure, Failure::read);
        EXPECT_THAT(
            failure.message,
            AllOf(HasSubstr("read from 10.0.0.2"), HasSubstr(ibv_wc_status_str(status)),
                  HasSubstr("(" + std::to_string(status) + ")"), HasSubstr("vendor error 0x7b")));
        // What is not valid in a failed completion is not told.
        EXPECT_THAT(failure.message, Not(HasSubstr("deadbeef")));
        EXPECT_FALSE(failure.hint.empty());
        EXPECT_EQ(summary.reads, 2U);
        EXPECT_EQ(sink.order, (std::vector<std::uint32_t>{0, 1}));
        world.after_posting({});
    }
}

TEST_F(ReadStreamTest, AFailedPostIsToldWithItsErrno) {
    ReadStream stream(connect(4));
    RecordingSink sink = sink_of(32);
    world.fail("ibv_post_send", EINVAL, 2);
    const ReadFailure failure = failure_of(stream.run(sink, plan_of(4, 4), far()));
    EXPECT_EQ(failure.failure, Failure::read);
    EXPECT_EQ(failure.message, "ibv_post_send: Invalid argument (22)");
    // A part of the list may have been taken: what completes later is not to be mixed up.
    EXPECT_THAT(failure_of(stream.run(sink, plan_of(4, 4), far())).message,
                HasSubstr("still in flight"));
}

TEST_F(ReadStreamTest, AFailedPostOfAnOldProviderIsToldWithErrnoToo) {
    ReadStream stream(connect(4));
    RecordingSink sink = sink_of(32);
    world.fail("ibv_post_send", -1, 2);
    EXPECT_EQ(failure_of(stream.run(sink, plan_of(4, 4), far())).message,
              "ibv_post_send: Cannot allocate memory (12)");
}

TEST_F(ReadStreamTest, AReadThatEndsAtTheEndOfTheBufferIsMade) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(4));
    RecordingSink sink([&](std::uint32_t) {
        return ReadRequest{exposed.size() - 10, std::span(destination).first(10)};
    });
    EXPECT_EQ(stream.run_one(sink, far()).reads, 1U);
}

TEST_F(ReadStreamTest, AReadBeyondTheBufferIsNeverPosted) {
    struct Case {
        std::uint64_t offset;
        std::size_t length;
    };
    ReadStream stream(connect(4));
    serve(RemoteBuffer{4096, 16, 1});
    for (const Case& at :
         {Case{exposed.size() - 9, 10}, Case{exposed.size(), 1},
          Case{std::numeric_limits<std::uint64_t>::max(), 1},
          Case{std::numeric_limits<std::uint64_t>::max() - 1, 2},
          Case{std::numeric_limits<std::uint64_t>::max() - 99, 200}, Case{1, destination.size()}}) {
        RecordingSink sink([&](std::uint32_t) {
            return ReadRequest{at.offset, std::span(destination).first(at.length)};
        });
        const ReadFailure failure = failure_of(stream.run_one(sink, far()));
        EXPECT_EQ(failure.failure, Failure::protocol);
        EXPECT_THAT(failure.message, HasSubstr("exposes 65536 bytes"));
        EXPECT_THAT(failure.message, HasSubstr(std::to_string(at.offset)));
    }
    EXPECT_TRUE(qp().posts.empty());
}

TEST_F(ReadStreamTest, AReadLongerThanASmallBufferIsNeverPosted) {
    serve(RemoteBuffer{4096, 16, 1});
    ReadStream stream(connect(4));
    RecordingSink sink = sink_of(17);
    EXPECT_EQ(failure_of(stream.run_one(sink, far())).failure, Failure::protocol);
    EXPECT_TRUE(qp().posts.empty());
}

TEST_F(ReadStreamTest, APeerThatDisconnectsWithReadsInFlightIsNamed) {
    ReadStream stream(connect(4));
    world.after_posting([&](fakes::Qp& poster) {
        world.complete_read(poster);
        world.complete_read(poster);
        world.happen(*poster.id, {RDMA_CM_EVENT_DISCONNECTED, 0, {}, 0, 0});
    });
    RecordingSink sink = sink_of(32);
    const StreamSummary summary = stream.run(sink, plan_of(4, 4), far());
    EXPECT_EQ(failure_of(summary).failure, Failure::disconnected);
    EXPECT_THAT(summary.failure->message,
                AllOf(HasSubstr("10.0.0.2 ended"), HasSubstr("RDMA_CM_EVENT_DISCONNECTED")));
    EXPECT_EQ(summary.reads, 2U);
}

TEST_F(ReadStreamTest, ReadsThatNeverCompleteEndAtTheDeadline) {
    ReadStream stream(connect(4));
    RecordingSink sink = sink_of(32);
    const ReadFailure failure = failure_of(stream.run(sink, plan_of(4, 4), near()));
    EXPECT_EQ(failure.failure, Failure::timeout);
    EXPECT_THAT(failure.hint, HasSubstr("--timeout"));
}

TEST_F(ReadStreamTest, TheDeadlineEndsAlsoAStreamWhoseReadsNeverCeaseToComplete) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(4));
    RecordingSink sink = sink_of(32);
    const Deadline deadline = not_too_near();
    const StreamSummary summary = stream.run(sink, plan_of(4, 0), deadline);
    EXPECT_EQ(failure_of(summary).failure, Failure::timeout);
    EXPECT_TRUE(deadline.expired());
    EXPECT_GT(summary.reads, 0U);
    EXPECT_GT(summary.duration.count(), 0) << "a run that was cut short took its time as well";
}

TEST_F(ReadStreamTest, ARequestToStopEndsAlsoAStreamWhoseReadsNeverCeaseToComplete) {
    world.complete_reads_at_once(true);
    fakes::Stopper stopper;
    auto stoppable = config(4);
    stoppable.stop = stopper.request();
    ReadClient client(stoppable, far());
    ReadStream stream(client);
    RecordingSink sink = sink_of(32);
    sink.on_finished = [&](std::uint32_t /*slot*/) {
        if (sink.order.size() == 100) {
            stopper.ask();
        }
    };
    const StreamSummary summary = stream.run(sink, plan_of(4, 0), far());
    EXPECT_EQ(failure_of(summary).failure, Failure::stopped);
    EXPECT_THAT(failure_of(summary).message, HasSubstr("stopped while reading from 10.0.0.2"));
    EXPECT_GE(summary.reads, 100U);
    EXPECT_LT(summary.reads, 110U);
}

TEST_F(ReadStreamTest, ARequestToStopEndsAStreamThatWaits) {
    fakes::Stopper stopper;
    auto stoppable = config(4);
    stoppable.stop = stopper.request();
    ReadClient client(stoppable, far());
    ReadStream stream(client);
    stopper.ask();
    RecordingSink sink = sink_of(32);
    EXPECT_EQ(failure_of(stream.run(sink, plan_of(4, 4), far())).failure, Failure::stopped);
}

TEST_F(ReadStreamTest, AFailedWaitIsAValueToo) {
    ReadStream stream(connect(4));
    const auto calls = world.attempted();
    const auto polls = std::ranges::count(calls, "ibv_poll_cq");
    world.fail("ibv_poll_cq", EIO, static_cast<int>(polls) + 1);
    world.complete_reads_at_once(true);
    RecordingSink sink = sink_of(32);
    EXPECT_THAT(failure_of(stream.run(sink, plan_of(4, 4), far())).message,
                HasSubstr("ibv_poll_cq"));
}

TEST_F(ReadStreamTest, AfterAFailureWithReadsInFlightNothingIsReadAnymore) {
    ReadStream stream(connect(4));
    RecordingSink sink = sink_of(32);
    EXPECT_TRUE(stream.run(sink, plan_of(4, 4), not_too_near()).failure);
    // The old reads complete late: they must not pass for those of a new run.
    while (!qp().in_flight.empty()) {
        world.complete_read(qp());
    }
    RecordingSink second = sink_of(32);
    EXPECT_THAT(failure_of(stream.run(second, plan_of(4, 4), far())).message,
                HasSubstr("still in flight"));
    EXPECT_EQ(second.begun, 0U);
}

// ---- until ----

TEST_F(ReadStreamTest, OneReadIsMadeHoweverShortTheTimeAndNoneIsBegunAfterUntil) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(4));
    RecordingSink sink = sink_of(32);
    StreamPlan plan = plan_of(4, 0);
    plan.until = Deadline::after(std::chrono::seconds(-1));
    const StreamSummary summary = stream.run(sink, plan, far());
    EXPECT_FALSE(summary.failure);
    EXPECT_EQ(summary.reads, 1U);
    EXPECT_EQ(sink.begun, 1U);
}

TEST_F(ReadStreamTest, ReadsInFlightAtUntilAreAwaited) {
    ReadStream stream(connect(4));
    RecordingSink sink = sink_of(32);
    StreamPlan plan = plan_of(4, 0);
    plan.until = near();
    world.before_sleeping([&] {
        if (plan.until->expired()) {
            while (!qp().in_flight.empty()) {
                world.complete_read(qp());
            }
        } else if (!qp().in_flight.empty()) {
            world.complete_read(qp());
            world.complete_read(qp());
        }
    });
    const StreamSummary summary = stream.run(sink, plan, far());
    EXPECT_FALSE(summary.failure);
    EXPECT_TRUE(plan.until->expired());
    EXPECT_GT(summary.reads, 0U);
    EXPECT_EQ(summary.reads, sink.begun);
    EXPECT_EQ(summary.reads, sink.order.size());
}

TEST_F(ReadStreamTest, TheMiddleOfATimedRunIsCountedApart) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(4));
    RecordingSink sink = sink_of(32);
    sink.on_finished = [](std::uint32_t) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    StreamPlan plan = plan_of(4, 0);
    plan.until = Deadline::after(std::chrono::milliseconds(500));
    const StreamSummary summary = stream.run(sink, plan, far());
    EXPECT_GT(summary.steady_reads, 0U);
    EXPECT_LT(summary.steady_reads, summary.reads);
    EXPECT_GT(summary.steady_duration.count(), 0);
    EXPECT_LE(summary.steady_duration, std::chrono::milliseconds(400));
    EXPECT_GT(summary.duration, summary.steady_duration);
}

TEST_F(ReadStreamTest, ARunThatIsNotTimedOrHasOnlyOneLookHasNoMiddle) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(4));
    RecordingSink sink = sink_of(32);
    EXPECT_EQ(stream.run(sink, plan_of(4, 100), far()).steady_reads, 0U);
    StreamPlan plan = plan_of(4, 4);
    plan.until = far();
    const StreamSummary summary = stream.run(sink, plan, far());
    EXPECT_EQ(summary.steady_reads, 0U);
    EXPECT_EQ(summary.steady_duration.count(), 0);
}

TEST_F(ReadStreamTest, AsManyReadsAsAskedForAreMadeWhenUntilIsFar) {
    world.complete_reads_at_once(true);
    ReadStream stream(connect(4));
    RecordingSink sink = sink_of(32);
    StreamPlan plan = plan_of(4, 7);
    plan.until = far();
    EXPECT_EQ(stream.run(sink, plan, far()).reads, 7U);
}

}  // namespace
}  // namespace rdma_read::rdma
