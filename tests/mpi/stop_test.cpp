// Claims about runs that are told to stop, in phases that need no device.
#include "command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace rdma_read::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kPretender = RDMA_READ_PRETENDER;
// Of mpirun when a rank ended by itself with "nothing read".
constexpr int kNothingRead = 3;

class Stopped : public ::testing::Test {
  protected:
    Stopped() {
        std::string name = std::filesystem::temp_directory_path() / "rdma_read_stop.XXXXXX";
        EXPECT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    ~Stopped() override {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    Stopped(const Stopped&) = delete;
    Stopped& operator=(const Stopped&) = delete;
    Stopped(Stopped&&) = delete;
    Stopped& operator=(Stopped&&) = delete;

    // One rank for each part; each leaves its process id in the folder.
    [[nodiscard]] std::vector<std::string> launch(const std::vector<std::string>& parts,
                                                  const std::vector<std::string>& options = {},
                                                  const std::string& json = "") const {
        std::vector<std::string> words{"mpirun"};
        for (const std::string& part : parts) {
            if (words.size() > 1) {
                words.emplace_back(":");
            }
            words.insert(words.end(), {"-np", "1", "sh", "-c",
                                       "echo $$ > \"$0/pid.$OMPI_COMM_WORLD_RANK\"; exec \"$@\"",
                                       folder_.string(), kPretender, part, "--json",
                                       json.empty() ? report_path() : json, "--timeout", "60"});
            words.insert(words.end(), options.begin(), options.end());
        }
        return words;
    }
    [[nodiscard]] std::string held() const { return "held:" + (folder_ / "go").string(); }
    void let_go() const { std::ofstream(folder_ / "go").close(); }
    [[nodiscard]] std::string report_path() const { return folder_ / "report.json"; }
    // Null if there is none.
    [[nodiscard]] nlohmann::json report() const {
        std::ifstream stream(report_path());
        return nlohmann::json::parse(stream, nullptr, false);
    }
    [[nodiscard]] pid_t process_of(int rank) const {
        pid_t pid = -1;
        std::ifstream(folder_ / ("pid." + std::to_string(rank))) >> pid;
        return pid;
    }
    // Waits until the rank catches SIGTERM, as it does from MPI_Init on.
    [[nodiscard]] bool wait_until_caught(int rank) const {
        const auto caught = [&] {
            std::ifstream status("/proc/" + std::to_string(process_of(rank)) + "/status");
            for (std::string word; status >> word;) {
                std::string mask;
                if (word == "SigCgt:" && status >> mask) {
                    return (std::stoull(mask, nullptr, 16) >> (SIGTERM - 1U) & 1U) != 0;
                }
            }
            return false;
        };
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (!caught()) {
            if (std::chrono::steady_clock::now() >= limit) {
                return false;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        return true;
    }
    // That the table, the report and what is left behind are those of a run that was stopped.
    [[nodiscard]] nlohmann::json expect_told(const CommandResult& result) const {
        const std::string said = result.out + "\n" + result.err;
        EXPECT_FALSE(result.timed_out) << said;
        EXPECT_NE(result.status, 0) << said;
        EXPECT_THAT(result.left_over, IsEmpty());
        EXPECT_THAT(result.out, AllOf(StartsWith("rank  host"),
                                      ContainsRegex("\nFAIL .*; stopped by SIG[A-Z]+\n$")))
            << said;
        auto json = report();
        std::filesystem::remove(report_path());  // nobody takes it for that of the next run
        EXPECT_TRUE(json.is_object()) << said;
        if (json.is_object()) {
            EXPECT_THAT(json.at("interrupted").get<std::string>(), StartsWith("SIG"));
            EXPECT_EQ(json.at("verdict").at("outcome"), "FAIL");
            EXPECT_EQ(json.at("verdict").at("bad_hosts"), nlohmann::json::array());
        }
        for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
            EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("rdma_read")))
                << "a temporary file";
        }
        return json;
    }
    // "1 NOT_RUN", by rank.
    [[nodiscard]] static std::vector<std::string> outcomes(const nlohmann::json& json) {
        std::vector<std::string> all;
        if (json.is_object()) {
            for (const auto& result : json.at("results")) {
                all.push_back(std::to_string(result.at("reader_rank").get<int>()) + " "
                              + result.at("outcome").get<std::string>());
            }
        }
        return all;
    }

  private:
    std::filesystem::path folder_;
};

TEST_F(Stopped, WhileRanksComeTogetherTheRootReportsWhoHadNotCome) {
    for (const bool launcher : {false, true}) {
        Command command(launch({"passes", held(), "passes"}), patient_launcher());
        ASSERT_TRUE(command.wait_for_stderr("held"));
        ASSERT_TRUE(wait_until_caught(0)) << "SIGTERM ends a rank that waits for the others";
        ASSERT_TRUE(wait_until_caught(2));
        if (launcher) {
            command.send_signal(SIGTERM);
        } else {
            kill(process_of(0), SIGTERM);
        }
        const auto result = command.finish();
        EXPECT_THAT(outcomes(expect_told(result)), ElementsAre("1 NOT_RUN", "2 NOT_RUN"));
        EXPECT_THAT(result.err, HasSubstr("stopped by SIGTERM before rank"));
        if (!launcher) {
            EXPECT_EQ(result.status, kNothingRead) << result.err;
        }
    }
}

TEST_F(Stopped, WithoutASignalRanksThatDoNotComeAreReportedByTheirNumbers) {
    CommandSettings impatient;
    impatient.environment = {{"PRETENDER_PATIENCE", "8"}};
    const auto result = run(launch({"passes", held(), "passes", held()}), impatient);
    EXPECT_EQ(result.status, kNothingRead) << result.err;
    EXPECT_THAT(result.err, HasSubstr("ranks 1, 3 did not come within 8 s of the start; "));
    EXPECT_THAT(result.out, AllOf(StartsWith("rank  host"), HasSubstr("\nFAIL  0 of 3 readers")));
    const auto json = report();
    EXPECT_THAT(outcomes(json), ElementsAre("1 NOT_RUN", "2 NOT_RUN", "3 NOT_RUN"));
    EXPECT_EQ(json.at("interrupted"), nullptr);
    EXPECT_THAT(result.left_over, IsEmpty());
}

TEST_F(Stopped, WhileRanksComeTogetherAReaderLeavesTheOthersAlone) {
    Command command(launch({"passes", "reads", held()}));
    ASSERT_TRUE(command.wait_for_stderr("held"));
    ASSERT_TRUE(wait_until_caught(1));
    kill(process_of(1), SIGTERM);
    let_go();
    const auto result = command.finish();
    EXPECT_THAT(outcomes(expect_told(result)), ElementsAre("1 NOT_RUN", "2 PASS"));
    EXPECT_EQ(result.status, 1) << result.err;
}

TEST_F(Stopped, BeforeTheServerIsReadyEveryReaderIsNotRun) {
    for (const int signal_number : {SIGTERM, SIGINT}) {
        Command command(launch({"passes", "unready", "passes"}, {"--server", "1"}));
        ASSERT_TRUE(command.wait_for_stderr("rank 1 prepares"));
        kill(process_of(0), signal_number);
        const auto result = command.finish();
        EXPECT_THAT(outcomes(expect_told(result)), ElementsAre("0 NOT_RUN", "2 NOT_RUN"));
        EXPECT_THAT(result.out, HasSubstr("before the server was ready"));
        EXPECT_EQ(result.status, kNothingRead) << result.err;
    }
}

TEST_F(Stopped, BeforeTheServerIsReadyTheServersRankSaysSo) {
    for (const std::string server : {"0", "1"}) {
        std::vector<std::string> parts{"passes", "passes", "passes"};
        parts.at(std::stoul(server)) = "unready";
        Command command(launch(parts, {"--server", server}));
        ASSERT_TRUE(command.wait_for_stderr("rank " + server + " prepares"));
        kill(process_of(std::stoi(server)), SIGTERM);
        const auto result = command.finish();
        const auto json = expect_told(result);
        EXPECT_THAT(outcomes(json), ElementsAre(AnyOf("0 NOT_RUN", "1 NOT_RUN"), "2 NOT_RUN"));
        EXPECT_EQ(result.status, kNothingRead) << result.err;
        EXPECT_LT(result.seconds, 20);
    }
}

TEST_F(Stopped, BeforeTheServerIsReadyByTheLauncherItIsReported) {
    Command command(launch({"unready", "passes", "passes"}), patient_launcher());
    ASSERT_TRUE(command.wait_for_stderr("rank 0 prepares"));
    command.send_signal(SIGTERM);
    EXPECT_THAT(outcomes(expect_told(command.finish())), ElementsAre("1 NOT_RUN", "2 NOT_RUN"));
}

TEST_F(Stopped, OneReaderAloneByAnyStopSignalLeavesTheOthersAlone) {
    for (const int signal_number : {SIGINT, SIGTERM}) {
        Command command(launch({"passes", "reads", "passes"}));
        ASSERT_TRUE(command.wait_for_stderr("rank 1 reads"));
        kill(process_of(1), signal_number);
        const auto result = command.finish();
        const auto json = expect_told(result);
        EXPECT_THAT(outcomes(json), ElementsAre("1 NOT_RUN", "2 PASS"));
        EXPECT_EQ(result.status, 1) << result.err;
        EXPECT_EQ(json.at("interrupted"), signal_number == SIGINT ? "SIGINT" : "SIGTERM");
    }
}

TEST_F(Stopped, RankZeroReportsForReadersThatWereNotTold) {
    Command command(launch({"passes", "reads", "passes"}, {"--progress", "always"}));
    ASSERT_TRUE(command.wait_for_stderr("rank 1 reads"));
    ASSERT_TRUE(command.wait_for_stderr("1 of 2 readers done"));
    kill(process_of(0), SIGTERM);
    const auto result = command.finish();
    EXPECT_THAT(outcomes(expect_told(result)), ElementsAre("1 NOT_RUN", "2 PASS"));
    EXPECT_EQ(result.status, 1) << result.err;
}

TEST_F(Stopped, WhenEveryReaderHasPassedNothingIsCutShort) {
    const auto result = run(launch({"late", "late", "late"}));
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out, AllOf(HasSubstr("\nPASS  2 of 2 readers"), Not(HasSubstr("stopped"))));
    const auto json = report();
    EXPECT_THAT(outcomes(json), ElementsAre("1 PASS", "2 PASS"));
    EXPECT_EQ(json.at("interrupted"), nullptr);
    EXPECT_EQ(json.at("verdict").at("exit_code"), 0);
    EXPECT_THAT(result.left_over, IsEmpty());
}

TEST_F(Stopped, WithTheReportOnStdoutNothingElseIsThere) {
    Command command(launch({"unready", "passes"}, {}, "-"));
    ASSERT_TRUE(command.wait_for_stderr("rank 0 prepares"));
    kill(process_of(0), SIGTERM);
    const auto result = command.finish();
    EXPECT_EQ(result.status, kNothingRead) << result.err;
    const auto json = nlohmann::json::parse(result.out, nullptr, false);
    EXPECT_THAT(outcomes(json), ElementsAre("1 NOT_RUN")) << result.out;
    EXPECT_EQ(json.at("interrupted"), "SIGTERM");
}

TEST_F(Stopped, ByASignalThatKillsItIsTheLaunchersStatus) {
    for (const int signal_number : {SIGKILL, SIGUSR1}) {
        const auto result = run(launch({"passes", "ends:" + std::to_string(signal_number)}));
        EXPECT_EQ(result.status, 128 + signal_number) << result.err;
        EXPECT_THAT(result.left_over, IsEmpty());
    }
}

}  // namespace
}  // namespace rdma_read::test
