// Claims about runs that are told to stop.
#include "device_test.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

namespace rdma_read::test {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// More packets than two readers' latency phases take: each has at most 1000 reads of 64 KiB.
constexpr std::uint64_t kWellUnderWay = 60'000;

class Stop : public DeviceTest {
  protected:
    // A program each of whose ranks leaves its process id in the folder.
    [[nodiscard]] Program program(int ranks, const std::vector<std::string>& words) const {
        Program known{
            ranks,
            {"sh", "-c", "echo $$ > \"$0/$OMPI_COMM_WORLD_RANK\"; exec \"$@\"", folder().string()}};
        known.words.insert(known.words.end(), words.begin(), words.end());
        return known;
    }
    // A run of this many seconds.
    [[nodiscard]] std::vector<std::string> long_run(int ranks, const std::string& seconds = "60",
                                                    const std::string& server = "0") const {
        const std::vector<std::string> options{"--duration", seconds, "--timeout", "100",
                                               "--server",   server,  "--json",    report_path()};
        return launch({program(ranks, {tool()})}, options);
    }
    [[nodiscard]] pid_t process_of(int rank) const {
        pid_t pid = -1;
        std::ifstream(folder() / std::to_string(rank)) >> pid;
        EXPECT_GT(pid, 1);
        return pid;
    }
    static void expect_partial(const nlohmann::json& result) {
        EXPECT_EQ(result.at("outcome"), "NOT_RUN") << result.dump(2);
        EXPECT_EQ(result.at("phase"), "read") << result.dump(2);
        EXPECT_THAT(result.at("error").get<std::string>(), StartsWith("stopped while reading"));
        ASSERT_EQ(result.at("sizes").size(), 1U);
        const auto& size = result.at("sizes").at(0);
        EXPECT_GT(size.at("bytes_verified"), 0) << size.dump(2);
        EXPECT_EQ(size.at("bytes_verified"), size.at("bytes_read"));
        EXPECT_TRUE(size.at("latency_us").is_object());
    }
    void expect_ended(const CommandResult& result) const {
        EXPECT_FALSE(result.timed_out) << told(result);
        EXPECT_NE(result.status, 0) << told(result);
        EXPECT_THAT(result.left_over, IsEmpty());
        EXPECT_THAT(lines_of(result.out), Contains(StartsWith("FAIL"))) << told(result);
        for (const auto& entry : std::filesystem::directory_iterator(folder())) {
            EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("rdma_read")))
                << "a temporary file";
        }
    }
};

TEST_F(Stop, OfTheLauncherReportsWhatEachReaderHasReadUntilThen) {
    for (const int signal_number : {SIGTERM, SIGINT}) {
        Command command(long_run(3), patient_launcher());
        wait_for_packets(kWellUnderWay);
        command.send_signal(signal_number);
        const auto result = command.finish();
        expect_ended(result);
        EXPECT_THAT(result.out, ContainsRegex("\nFAIL .*; stopped by SIG[A-Z]+\n"));
        const auto json = report();
        EXPECT_THAT(json.at("interrupted").get<std::string>(), StartsWith("SIG"));
        EXPECT_EQ(json.at("verdict").at("outcome"), "FAIL");
        EXPECT_EQ(json.at("verdict").at("bad_hosts"), nlohmann::json::array())
            << "nothing speaks against a host";
        expect_partial(result_of(json, 1));
        expect_partial(result_of(json, 2));
    }
}

TEST_F(Stop, OfTheLauncherIsReportedAlsoWhereRankZeroReads) {
    Command command(long_run(3, "60", "2"), patient_launcher());
    wait_for_packets(kWellUnderWay);
    command.send_signal(SIGTERM);
    expect_ended(command.finish());
    expect_partial(result_of(report(), 0));
    expect_partial(result_of(report(), 1));
}

TEST_F(Stop, OfOneReaderLeavesTheOthersAlone) {
    Command command(long_run(3, "12"));
    wait_for_packets(kWellUnderWay);
    kill(process_of(1), SIGINT);
    const auto result = command.finish();
    expect_status(result, 1);
    const auto json = report();
    EXPECT_EQ(json.at("interrupted"), "SIGINT");
    expect_partial(result_of(json, 1));
    EXPECT_EQ(result_of(json, 2).at("outcome"), "PASS") << told(result);
}

class StopOfRankZero : public Stop {
  protected:
    // Ends the run of three ranks in which nobody has read all; the report.
    nlohmann::json stop_rank_zero(Command& command) {
        kill(process_of(0), SIGTERM);
        const auto result = command.finish();
        expect_ended(result);
        auto json = report();
        EXPECT_EQ(result.status, json.at("verdict").at("exit_code")) << told(result);
        EXPECT_EQ(json.at("interrupted"), "SIGTERM");
        for (const int rank : {1, 2}) {
            EXPECT_EQ(result_of(json, rank).at("outcome"), "NOT_RUN") << told(result);
        }
        return json;
    }
};

TEST_F(StopOfRankZero, AloneReportsItsReadersAsNotRun) {
    Command command(long_run(3));
    wait_for_packets(kWellUnderWay);
    const auto json = stop_rank_zero(command);
    EXPECT_EQ(json.at("verdict").at("bad_hosts"), nlohmann::json::array());
}

TEST_F(StopOfRankZero, AfterThatOfAReaderThatWaitedForItsTurn) {
    const std::string turn = folder() / "turn";
    Command command(launch({program(1, {tool()}), program(1, {faulty_reader(), "stays:" + turn}),
                            program(1, {faulty_reader(), "follows:" + turn})},
                           {"--concurrency", "1", "--timeout", "60", "--progress", "always",
                            "--json", report_path()}));
    // Rank 1 has its turn and keeps it: rank 2 is about to connect, or waits.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!std::filesystem::exists(turn)) {
        ASSERT_LT(std::chrono::steady_clock::now(), limit);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill(process_of(2), SIGINT);
    EXPECT_TRUE(command.wait_for_stderr("1 of 2 readers done"));
    const auto waited = result_of(stop_rank_zero(command), 2);
    EXPECT_THAT(waited.at("error").get<std::string>(), StartsWith("stopped")) << waited.dump(2);
}

TEST_F(Stop, OfTheServersRankEndsItsReadersWithTheCause) {
    Command command(long_run(3, "60", "1"));
    wait_for_packets(kWellUnderWay);
    kill(process_of(1), SIGTERM);
    const auto result = command.finish();
    expect_status(result, 1);
    const auto json = report();
    EXPECT_EQ(json.at("interrupted"), "SIGTERM");
    for (const int rank : {0, 2}) {
        EXPECT_EQ(result_of(json, rank).at("outcome"), "READ_FAILED") << told(result);
        EXPECT_THAT(result_of(json, rank).at("hint").get<std::string>(), HasSubstr("server"));
    }
}

}  // namespace
}  // namespace rdma_read::test
