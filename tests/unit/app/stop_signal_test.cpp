// Signals that ask for an orderly stop.
#include "app/stop_signal.hpp"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <stdexcept>
#include <thread>

namespace rdma_read::app {
namespace {

bool readable(int fd) {
    pollfd entry{fd, POLLIN, 0};
    return poll(&entry, 1, 0) == 1 && (entry.revents & POLLIN) != 0;
}

void (*handler_of(int signal_number))(int) {
    struct sigaction action {};
    sigaction(signal_number, nullptr, &action);
    return action.sa_handler;
}

/// The tests may run under nohup or in the background of a shell, where some of these are ignored.
class StopSignalTest : public ::testing::TestWithParam<int> {
  protected:
    StopSignalTest() {
        for (const int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
            std::signal(signal_number, SIG_DFL);
        }
    }
};

using StopSignalDeathTest = StopSignalTest;

TEST_F(StopSignalTest, IsNotRequestedAtFirst) {
    const StopSignal stop;
    EXPECT_FALSE(stop.requested());
    EXPECT_FALSE(stop.flag().load());
    EXPECT_EQ(stop.signal_number(), 0);
    EXPECT_FALSE(readable(stop.fd()));
}

TEST_P(StopSignalTest, SetsTheFlagAndMakesTheDescriptorReadableForGood) {
    const StopSignal stop;
    raise(GetParam());
    EXPECT_TRUE(stop.requested());
    EXPECT_TRUE(stop.flag().load());
    EXPECT_EQ(stop.signal_number(), GetParam());
    EXPECT_TRUE(readable(stop.fd()));
    EXPECT_TRUE(readable(stop.fd()));
}

TEST_P(StopSignalDeathTest, ARepetitionAtOnceIsTheSameRequest) {
    // On a busy machine the second may be late, but not every time.
    const auto survives = [] {
        const pid_t child = fork();
        if (child == 0) {
            const StopSignal stop;
            raise(GetParam());
            raise(GetParam());
            _exit(stop.requested() ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    };
    EXPECT_TRUE(survives() || survives() || survives() || survives());
}

TEST_P(StopSignalDeathTest, TheSameSignalLaterKills) {
    EXPECT_EXIT(
        {
            const StopSignal stop;
            raise(GetParam());
            std::this_thread::sleep_for(StopSignal::kSameRequest + std::chrono::milliseconds(100));
            raise(GetParam());
        },
        ::testing::KilledBySignal(GetParam()), "");
}

INSTANTIATE_TEST_SUITE_P(Signals, StopSignalTest, ::testing::Values(SIGINT, SIGTERM, SIGHUP));
INSTANTIATE_TEST_SUITE_P(Signals, StopSignalDeathTest, ::testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST_F(StopSignalTest, AnotherSignalDoesNotKillAndDoesNotHideTheFirst) {
    const StopSignal stop;
    raise(SIGTERM);
    raise(SIGINT);
    EXPECT_EQ(stop.signal_number(), SIGTERM);
}

TEST_F(StopSignalTest, AClosedPipeIsAnErrorAndNoDeath) {
    const StopSignal stop;
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    close(ends[0]);
    EXPECT_EQ(write(ends[1], "x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
    close(ends[1]);
}

TEST_F(StopSignalTest, RestoresTheFormerHandlers) {
    {
        const StopSignal stop;
        EXPECT_NE(handler_of(SIGINT), SIG_DFL);
        EXPECT_EQ(handler_of(SIGPIPE), SIG_IGN);
    }
    for (const int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
        EXPECT_EQ(handler_of(signal_number), SIG_DFL) << signal_number;
    }
}

TEST_F(StopSignalTest, LeavesASignalIgnoredThatWasIgnored) {
    std::signal(SIGHUP, SIG_IGN);
    const StopSignal stop;
    raise(SIGHUP);
    EXPECT_FALSE(stop.requested());
    EXPECT_EQ(handler_of(SIGHUP), SIG_IGN);
}

TEST_F(StopSignalTest, ExistsOnceAtATimeAndStartsAnew) {
    std::optional<StopSignal> first(std::in_place);
    EXPECT_THROW(StopSignal(), std::logic_error);
    raise(SIGTERM);
    EXPECT_TRUE(first->requested());
    first.reset();
    const StopSignal second;
    EXPECT_FALSE(second.requested());
    EXPECT_EQ(second.signal_number(), 0);
}

}  // namespace
}  // namespace rdma_read::app
