// Claims about runs that are told to stop.
#include "device_test.hpp"

#include <gmock/gmock.h>

#include <csignal>
#include <fstream>

namespace rdma_read::test {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// More packets than two readers' latency phases take: each has at most 1000 reads of 64 KiB.
constexpr std::uint64_t kWellUnderWay = 60'000;

class Stop : public DeviceTest {
  protected:
    // A run of this many seconds, in which each rank leaves its process id in the folder.
    [[nodiscard]] std::vector<std::string> long_run(int ranks, const std::string& seconds = "60",
                                                    const std::string& server = "0") const {
        const std::vector<std::string> options{"--duration", seconds, "--timeout", "100",
                                               "--server",   server,  "--json",    report_path()};
        return launch({{ranks,
                        {"sh", "-c", "echo $$ > \"$0/$OMPI_COMM_WORLD_RANK\"; exec \"$@\"",
                         folder().string(), tool()}}},
                      options);
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
    static void expect_ended(const CommandResult& result) {
        EXPECT_FALSE(result.timed_out) << told(result);
        EXPECT_NE(result.status, 0) << told(result);
        EXPECT_THAT(result.left_over, IsEmpty());
        EXPECT_THAT(lines_of(result.out), Contains(StartsWith("FAIL"))) << told(result);
    }
};

TEST_F(Stop, OfTheLauncherReportsWhatEachReaderHasReadUntilThen) {
    for (const int signal_number : {SIGTERM, SIGINT}) {
        Command command(long_run(3));
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
    Command command(long_run(3, "60", "2"));
    wait_for_packets(kWellUnderWay);
    command.send_signal(SIGTERM);
    expect_ended(command.finish());
    expect_partial(result_of(report(), 0));
    expect_partial(result_of(report(), 1));
}

TEST_F(Stop, OfOneReaderLeavesTheOthersAlone) {
    Command command(long_run(3, "4"));
    wait_for_packets(kWellUnderWay);
    kill(process_of(1), SIGTERM);
    const auto result = command.finish();
    expect_status(result, 1);
    const auto json = report();
    EXPECT_EQ(json.at("interrupted"), "SIGTERM");
    expect_partial(result_of(json, 1));
    EXPECT_EQ(result_of(json, 2).at("outcome"), "PASS") << told(result);
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
