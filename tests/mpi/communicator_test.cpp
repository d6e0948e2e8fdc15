// Bytes between ranks, and waits that end and cost nothing. Every rank runs every test, in step.
#include "rdma_read/cluster/communicator.hpp"

#include "rdma_read/cluster/error.hpp"
#include "world.hpp"

#include <gmock/gmock.h>
#include <mpi.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>

namespace rdma_read::cluster {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::Not;
using Bytes = std::vector<std::byte>;

constexpr int kTag = 1;
constexpr int kOtherTag = 2;
constexpr int kUnusedTag = 3;

/// Bytes that differ from place to place and from one seed to another.
Bytes sample(std::size_t length, int seed) {
    Bytes bytes(length);
    auto state = static_cast<std::uint32_t>(seed) * 2654435761U + 1U;
    for (auto& byte : bytes) {
        state = state * 1664525U + 1013904223U;
        byte = static_cast<std::byte>(state >> 24U);
    }
    return bytes;
}

/// Ends each test together, so that no message of one is taken by the next.
class CommunicatorTest : public ::testing::Test {
  protected:
    void TearDown() override { ASSERT_TRUE(world().barrier(long_enough())); }
};

using MpiSessionTest = CommunicatorTest;

TEST_F(MpiSessionTest, ExistsOncePerProcess) {
    EXPECT_THROW(MpiSession(), Error);
}

TEST_F(MpiSessionTest, NamesTheLibraryInOneLine) {
    const std::string version = MpiSession::library_version();
    EXPECT_EQ(version.find('\0'), std::string::npos);
    EXPECT_THAT(version, Not(::testing::IsEmpty()));
    EXPECT_EQ(version.find('\n'), std::string::npos);
}

TEST_F(MpiSessionTest, KeepsOpenMpiOffTheFabric) {
    if (!MpiSession::library_version().starts_with("Open MPI")) {
        GTEST_SKIP() << "another MPI library";
    }
    // Whether set by the session or by the user: never left to MPI.
    EXPECT_TRUE(std::getenv("OMPI_MCA_pml") != nullptr || std::getenv("OMPI_MCA_btl") != nullptr);
}

TEST_F(MpiSessionTest, KeepsHwlocFromItsPlugins) {
    // Whether set by the session or by the user.
    EXPECT_NE(std::getenv("HWLOC_PLUGINS_PATH"), nullptr);
}

TEST_F(CommunicatorTest, EveryRankHasANumberOfItsOwn) {
    const int size = world().size();
    ASSERT_TRUE(world().send(0, kTag, {}, long_enough()));
    if (world().rank() == 0) {
        std::set<int> sources;
        for (int i = 0; i < size; ++i) {
            const auto message = world().receive(kTag, long_enough());
            ASSERT_TRUE(message);
            sources.insert(message->source);
        }
        EXPECT_EQ(sources.size(), static_cast<std::size_t>(size));
        EXPECT_EQ(*sources.rbegin(), size - 1);
    }
}

TEST_F(CommunicatorTest, ABroadcastGivesEveryRankTheBytesOfAnyRoot) {
    for (int root = 0; root < world().size(); ++root) {
        // About 2 KiB what fits in one message and what takes two part company.
        for (const std::size_t length :
             {std::size_t{0}, std::size_t{1}, std::size_t{2039}, std::size_t{2040},
              std::size_t{2041}, std::size_t{2048}, std::size_t{1} << 20U}) {
            const Bytes expected = sample(length, root);
            // What the others have before must not shine through, be it longer or shorter.
            Bytes bytes = world().rank() == root ? expected : sample(4711, world().rank());
            ASSERT_TRUE(world().broadcast(bytes, root, long_enough()));
            EXPECT_TRUE(bytes == expected) << length << " bytes from rank " << root;
        }
    }
}

TEST_F(CommunicatorTest, ARootThatDoesNotExistIsAnErrorOfTheCall) {
    Bytes bytes;
    try {
        (void)world().broadcast(bytes, world().size(), long_enough());
        ADD_FAILURE() << "no error";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("MPI_Ibcast: MPI_ERR_ROOT"));
    }
}

TEST_F(CommunicatorTest, ARankThatDoesNotExistIsAnErrorOfTheCall) {
    try {
        (void)world().send(world().size(), kTag, {}, long_enough());
        ADD_FAILURE() << "no error";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("MPI_Isend: MPI_ERR_RANK"));
    }
}

TEST_F(CommunicatorTest, MessagesAreTakenByTagWhateverTheirOrder) {
    const int rank = world().rank();
    ASSERT_TRUE(world().send(0, kTag, sample(10, rank), long_enough()));
    ASSERT_TRUE(world().send(0, kOtherTag, sample(20, rank), long_enough()));
    if (rank != 0) {
        return;
    }
    for (const auto& [tag, length] : {std::pair{kOtherTag, 20U}, std::pair{kTag, 10U}}) {
        for (int i = 0; i < world().size(); ++i) {
            const auto message = world().receive(tag, long_enough());
            ASSERT_TRUE(message);
            EXPECT_EQ(message->tag, tag);
            EXPECT_EQ(message->error, "");
            EXPECT_TRUE(message->bytes == sample(length, message->source));
        }
    }
}

TEST_F(CommunicatorTest, AShortMessageDoesNotOvertakeALongOne) {
    constexpr std::size_t kLong = std::size_t{8} << 20U;
    const int rank = world().rank();
    if (rank != 0) {
        ASSERT_TRUE(world().send(0, kTag, sample(kLong, rank), long_enough()));
        ASSERT_TRUE(world().send(0, kTag, sample(3, rank), long_enough()));
        return;
    }
    std::vector<int> seen(static_cast<std::size_t>(world().size()), 0);
    for (int i = 0; i < 2 * (world().size() - 1); ++i) {
        const auto message = world().receive(kTag, long_enough());
        ASSERT_TRUE(message);
        int& count = seen.at(static_cast<std::size_t>(message->source));
        EXPECT_TRUE(message->bytes == sample(count == 0 ? kLong : 3, message->source))
            << message->bytes.size() << " bytes from rank " << message->source;
        ++count;
    }
}

TEST_F(CommunicatorTest, AnEmptyMessageIsAMessage) {
    const int next = (world().rank() + 1) % world().size();
    ASSERT_TRUE(world().send(next, kTag, {}, long_enough()));
    const auto message = world().receive(kTag, long_enough());
    ASSERT_TRUE(message);
    EXPECT_TRUE(message->bytes.empty());
    EXPECT_EQ(message->error, "");
}

TEST_F(CommunicatorTest, TryingToReceiveFindsNothingWhereNothingWasSent) {
    EXPECT_EQ(world().try_receive(kUnusedTag), std::nullopt);
}

TEST_F(CommunicatorTest, AReceiveEndsAtItsDeadlineAndLeavesTheCommunicatorUsable) {
    const auto start = Clock::now();
    EXPECT_FALSE(world().receive(kUnusedTag, Wait::lasting(300ms)));
    EXPECT_GE(Clock::now() - start, 300ms);
    EXPECT_FALSE(world().receive(kUnusedTag, Wait::lasting(-1s)));
    EXPECT_FALSE(session().abandoned());
    ASSERT_TRUE(world().send(world().rank(), kUnusedTag, sample(5, 1), long_enough()));
    const auto message = world().receive(kUnusedTag, long_enough());
    ASSERT_TRUE(message);
    EXPECT_TRUE(message->bytes == sample(5, 1));
}

TEST_F(CommunicatorTest, AMessageThatIsThereIsTakenEvenAfterTheDeadline) {
    ASSERT_TRUE(world().send(world().rank(), kTag, sample(5, 2), long_enough()));
    EXPECT_TRUE(world().receive(kTag, Wait::lasting(-1s)));
}

TEST_F(CommunicatorTest, AStopFlagEndsAWait) {
    std::atomic<bool> stop{false};
    const std::jthread stopper([&] {
        std::this_thread::sleep_for(200ms);
        stop = true;
    });
    const auto start = Clock::now();
    EXPECT_FALSE(world().receive(kUnusedTag, Wait::lasting(30s, &stop)));
    EXPECT_LT(Clock::now() - start, 15s);
    EXPECT_TRUE(stop);
}

TEST_F(CommunicatorTest, AMessageBeyondTheBoundIsAnErrorAndTheNextOneArrives) {
    if (world().size() < 2) {
        GTEST_SKIP() << "needs two ranks";
    }
    if (world().rank() == 1) {
        // The communicator refuses to send this much, so MPI does it.
        const Bytes bytes(Communicator::kLargestMessage + 1);
        MPI_Request request = MPI_REQUEST_NULL;
        ASSERT_EQ(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, kTag,
                            MPI_COMM_WORLD, &request),
                  MPI_SUCCESS);
        int done = 0;
        for (const auto end = Clock::now() + 30s; done == 0 && Clock::now() < end;) {
            ASSERT_EQ(MPI_Test(&request, &done, MPI_STATUS_IGNORE), MPI_SUCCESS);
            std::this_thread::sleep_for(1ms);
        }
        ASSERT_EQ(done, 1) << "the sender was left waiting";
        ASSERT_TRUE(world().send(0, kTag, sample(3, 1), long_enough()));
    }
    if (world().rank() == 0) {
        const auto message = world().receive(kTag, long_enough());
        ASSERT_TRUE(message);
        EXPECT_EQ(message->source, 1);
        EXPECT_THAT(message->error,
                    HasSubstr("67108865 bytes is longer than the allowed 67108864"));
        EXPECT_TRUE(message->bytes.empty());
        const auto next = world().receive(kTag, long_enough());
        ASSERT_TRUE(next);
        EXPECT_TRUE(next->bytes == sample(3, 1));
    }
}

TEST_F(CommunicatorTest, TheLongestMessageArrives) {
    if (world().size() < 2) {
        GTEST_SKIP() << "needs two ranks";
    }
    if (world().rank() == 1) {
        ASSERT_TRUE(world().send(0, kTag, sample(Communicator::kLargestMessage, 5), long_enough()));
    }
    if (world().rank() == 0) {
        const auto message = world().receive(kTag, long_enough());
        ASSERT_TRUE(message);
        EXPECT_EQ(message->error, "");
        EXPECT_TRUE(message->bytes == sample(Communicator::kLargestMessage, 5));
    }
}

TEST_F(CommunicatorTest, WhatIsTooLongIsNotSent) {
    Bytes bytes(Communicator::kLargestMessage + 1);
    EXPECT_THROW((void)world().send(0, kTag, bytes, long_enough()), Error);
    EXPECT_THROW((void)world().broadcast(bytes, world().rank(), long_enough()), Error);
    EXPECT_EQ(world().try_receive(kTag), std::nullopt);
}

TEST_F(CommunicatorTest, ABarrierHoldsEveryRankUntilTheLastOneIsThere) {
    if (world().rank() == world().size() - 1) {
        std::this_thread::sleep_for(300ms);
    }
    // One machine, one monotonic clock: the ranks' times can be compared.
    const auto entered = Clock::now();
    ASSERT_TRUE(world().barrier(long_enough()));
    const auto left = Clock::now();
    const std::array own{entered.time_since_epoch().count(), left.time_since_epoch().count()};
    ASSERT_TRUE(world().send(0, kTag, std::as_bytes(std::span(own)), long_enough()));
    if (world().rank() == 0) {
        auto last_entered = own[0];
        auto first_left = own[1];
        for (int i = 0; i < world().size(); ++i) {
            const auto message = world().receive(kTag, long_enough());
            ASSERT_TRUE(message);
            auto theirs = own;
            ASSERT_EQ(message->bytes.size(), sizeof theirs);
            std::memcpy(theirs.data(), message->bytes.data(), sizeof theirs);
            last_entered = std::max(last_entered, theirs[0]);
            first_left = std::min(first_left, theirs[1]);
        }
        EXPECT_GE(first_left, last_entered);
    }
}

/// Seconds of CPU that this process has used, in user and kernel mode.
double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// The share of one core that this process used during the call.
template <typename Call>
double core_share(Call call) {
    const auto start = Clock::now();
    const double cpu = cpu_seconds();
    call();
    return (cpu_seconds() - cpu) / std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr double kLittle = 0.5;  // a rank that spins uses 1.0, one that sleeps a few hundredths

TEST_F(CommunicatorTest, ARankThatWaitsForAMessageLeavesItsCoreToOthers) {
    const double share =
        core_share([] { EXPECT_FALSE(world().receive(kUnusedTag, Wait::lasting(2s))); });
    RecordProperty("core_share", std::to_string(share));
    EXPECT_LT(share, kLittle);
}

TEST_F(CommunicatorTest, ARankThatWaitsInABroadcastLeavesItsCoreToOthers) {
    const int root = world().size() - 1;
    Bytes bytes = sample(1000, 1);
    if (world().rank() == root) {
        std::this_thread::sleep_for(2s);
        ASSERT_TRUE(world().broadcast(bytes, root, long_enough()));
        return;
    }
    EXPECT_LT(core_share([&] { EXPECT_TRUE(world().broadcast(bytes, root, long_enough())); }),
              kLittle);
}

TEST_F(CommunicatorTest, ARankThatWaitsInABarrierLeavesItsCoreToOthers) {
    if (world().rank() == 0) {
        std::this_thread::sleep_for(2s);
        ASSERT_TRUE(world().barrier(long_enough()));
        return;
    }
    EXPECT_LT(core_share([] { EXPECT_TRUE(world().barrier(long_enough())); }), kLittle);
}

}  // namespace
}  // namespace rdma_read::cluster
