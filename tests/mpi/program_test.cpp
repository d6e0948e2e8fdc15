// Claims about the programs where nothing can be read: no device, too few ranks, a wrong command
// line.
#include "command.hpp"
#include "rdma_read/rdma/error.hpp"
#include "rdma_read/rdma/event_channel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace rdma_read::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

const std::string kTool = RDMA_READ_TOOL;
const std::string kPairTool = RDMA_READ_PAIR_TOOL;

// What the program itself said, without the launcher's remarks about its exit status.
std::vector<std::string> own_lines(const CommandResult& result, const std::string& program) {
    std::vector<std::string> lines;
    std::istringstream stream(result.err);
    for (std::string line; std::getline(stream, line);) {
        if (line.starts_with(program + ":")) {
            lines.push_back(line);
        }
    }
    return lines;
}

CommandResult run_ranks(const std::string& ranks, const std::vector<std::string>& options,
                        const CommandSettings& settings = {}) {
    std::vector<std::string> words{"mpirun", "-np", ranks, kTool};
    words.insert(words.end(), options.begin(), options.end());
    return run(words, settings);
}

bool has_rdma() {
    try {
        const rdma::EventChannel channel;
        return true;
    } catch (const rdma::Error&) {
        return false;
    }
}

class WithoutADevice : public ::testing::Test {
  protected:
    void SetUp() override {
        if (has_rdma()) {
            GTEST_SKIP() << "this machine has RDMA";
        }
    }
};

TEST_F(WithoutADevice, TheClusterToolNamesCauseAndCureOnce) {
    const auto result = run_ranks("4", {});
    EXPECT_EQ(result.status, 3) << result.err;
    EXPECT_LT(result.seconds, 10);
    const auto lines = own_lines(result, "rdma_read_mpi");
    ASSERT_THAT(lines, SizeIs(1)) << result.err;
    EXPECT_THAT(lines.front(),
                AllOf(HasSubstr("rdma_create_event_channel"), HasSubstr("modprobe")));
}

TEST_F(WithoutADevice, TheReportStillNamesEveryReader) {
    const auto result = run_ranks("3", {"--json", "-"});
    EXPECT_EQ(result.status, 3) << result.err;
    EXPECT_THAT(result.out, AllOf(HasSubstr("\"reader_rank\": 1"), HasSubstr("\"reader_rank\": 2"),
                                  HasSubstr("NOT_RUN"), HasSubstr("\"exit_code\": 3")));
}

TEST_F(WithoutADevice, TheTableStillHasEveryReaderAndTheVerdict) {
    const auto result = run_ranks("3", {});
    EXPECT_EQ(result.status, 3) << result.err;
    EXPECT_THAT(result.out, AllOf(StartsWith("rank  host"), ContainsRegex("\n   1 .*NOT_RUN\n"),
                                  ContainsRegex("\n   2 .*NOT_RUN\n"),
                                  ContainsRegex("\nFAIL  0 of 2 readers.*\n$")));
}

TEST_F(WithoutADevice, ThePairNamesCauseAndCure) {
    for (const auto& words : {std::vector<std::string>{kPairTool, "-s"},
                              std::vector<std::string>{kPairTool, "-c", "10.0.0.1"}}) {
        const auto result = run(words);
        EXPECT_EQ(result.status, 3) << result.err;
        EXPECT_LT(result.seconds, 10);
        EXPECT_EQ(result.out, "");
        const auto lines = own_lines(result, "rdma_read");
        ASSERT_THAT(lines, SizeIs(1)) << result.err;
        EXPECT_THAT(lines.front(), HasSubstr("modprobe"));
    }
}

TEST(OneRank, HasNobodyToReadFrom) {
    const auto result = run_ranks("1", {});
    EXPECT_EQ(result.status, 3) << result.err;
    EXPECT_THAT(own_lines(result, "rdma_read_mpi"), SizeIs(1));
    EXPECT_EQ(result.out, "");
}

TEST(OneRank, OfSeveralSlurmTasksLacksAPmi) {
    CommandSettings slurm;
    slurm.environment = {{"SLURM_NTASKS", "4"}};
    const auto result = run({kTool}, slurm);
    EXPECT_EQ(result.status, 3) << result.err;
    const auto lines = own_lines(result, "rdma_read_mpi");
    ASSERT_THAT(lines, SizeIs(1)) << result.err;
    EXPECT_THAT(lines.front(), AllOf(HasSubstr("PMI"), HasSubstr("--mpi=pmix")));
}

TEST(ATaskOfSrun, WithoutAPmiSaysSoOnceAndAtOnce) {
    CommandSettings slurm;
    slurm.environment = {{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_ID", "0"}};
    for (const char* const task : {"0", "1"}) {
        slurm.environment["SLURM_PROCID"] = task;
        const auto result = run({kTool}, slurm);
        EXPECT_EQ(result.status, 3) << result.err;
        EXPECT_EQ(result.out, "");
        const auto lines = own_lines(result, "rdma_read_mpi");
        ASSERT_THAT(lines, SizeIs(task[0] == '0' ? 1 : 0)) << result.err;
        if (!lines.empty()) {
            EXPECT_THAT(lines.front(), AllOf(HasSubstr("2 tasks"), HasSubstr("--mpi=pmix")));
        }
    }
}

TEST(AWrongCommandLine, IsOneLineFromOneRankAtOnce) {
    const std::vector<std::vector<std::string>> command_lines{
        {"--sizes", "1"},
        {"--mesh"},
        {"-x"},
        {"stray"},
        {"--size"},
        {"--size", "0"},
        {"--size", "-1"},
        {"--size", "4X"},
        {"--size", "99999999999999999999"},
        {"--size", "1,,2"},
        {"--size", ""},
        {"--size", "1.5K"},
        {"--iterations", "0"},
        {"--iterations", "ten"},
        {"--iterations", "-5"},
        {"--duration", "0"},
        {"--duration", "1s"},
        {"--duration", "5", "--iterations", "10"},
        {"--duration", "40"},
        {"--depth", "0"},
        {"--depth", "99999999"},
        {"--buffer", "1"},
        {"--buffer", "1M", "--size", "2M"},
        {"--pattern", "ring"},
        {"--server", "-1"},
        {"--server", "7"},
        {"--server-ip", "node1"},
        {"--server-ip", "10.0.0.256"},
        {"--device", "rxe0:0"},
        {"--device", ""},
        {"--port", "65536"},
        {"--port", "-1"},
        {"--timeout", "0"},
        {"--timeout", "never"},
        {"--verify", "some"},
        {"--json", "/nonexistent/folder/report.json"},
        {"--json", "/dev/null/report.json"},
        {"--json", "/"},
        {"--json", ""},
        {"--progress", "maybe"},
        {"--size", "1", "--size", "2"},
    };
    for (const auto& options : command_lines) {
        const auto result = run_ranks("2", options);
        std::string shown;
        for (const auto& word : options) {
            shown += word + " ";
        }
        EXPECT_EQ(result.status, 2) << shown << "\n" << result.err;
        EXPECT_THAT(own_lines(result, "rdma_read_mpi"), SizeIs(1)) << shown << "\n" << result.err;
        EXPECT_EQ(result.out, "") << shown;
        EXPECT_LT(result.seconds, 20) << shown;
        EXPECT_THAT(result.left_over, IsEmpty()) << shown;
    }
}

TEST(AWrongCommandLine, OfOneProgramEndsTheJobOfTwo) {
    const auto result =
        run({"mpirun", "-np", "2", kTool, "--size", "1K", ":", "-np", "1", kTool, "--size", "1X"});
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_THAT(own_lines(result, "rdma_read_mpi"), SizeIs(1)) << result.err;
}

TEST(AWrongCommandLine, IsOneThatDiffersBetweenRanks) {
    const auto result =
        run({"mpirun", "-np", "2", kTool, "--size", "1K", ":", "-np", "1", kTool, "--size", "2K"});
    EXPECT_EQ(result.status, 2) << result.err;
    const auto lines = own_lines(result, "rdma_read_mpi");
    ASSERT_THAT(lines, SizeIs(1)) << result.err;
    EXPECT_THAT(lines.front(),
                AllOf(HasSubstr("rank 2"), HasSubstr("other options"),
                      HasSubstr("size=2048 and size=1024"), Not(HasSubstr("timeout"))));
}

TEST(AWrongCommandLine, OfThePairIsAnsweredWithTheUsage) {
    for (const auto& words : {std::vector<std::string>{kPairTool},
                              {kPairTool, "-s", "-c", "10.0.0.1"},
                              {kPairTool, "-c"},
                              {kPairTool, "-s", "--port", "70000"},
                              {kPairTool, "--what"}}) {
        const auto result = run(words);
        EXPECT_EQ(result.status, 2) << result.err;
        EXPECT_EQ(result.out, "");
        EXPECT_THAT(result.err, HasSubstr("usage: rdma_read"));
    }
}

TEST(AWrongCommandLine, IsSaidByALoneRankWhateverRankItInherited) {
    CommandSettings inherited;
    inherited.environment = {{"PMI_RANK", "5"}, {"SLURM_PROCID", "1"}};
    const auto result = run({kTool, "--bogus"}, inherited);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_THAT(own_lines(result, "rdma_read_mpi"), SizeIs(1)) << result.err;
}

TEST(Help, OfOneProgramDoesNotHoldTheOtherUp) {
    const auto result = run({"mpirun", "-np", "1", kTool, ":", "-np", "1", kTool, "--help"});
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_LT(result.seconds, 30);
}

TEST(Help, IsSaidOnceOnStdout) {
    const auto result = run_ranks("3", {"--help"});
    EXPECT_EQ(result.status, 0) << result.err;
    const auto first = result.out.find("--iterations");
    EXPECT_NE(first, std::string::npos);
    EXPECT_EQ(result.out.find("--iterations N", first + 1), std::string::npos) << result.out;
}

}  // namespace
}  // namespace rdma_read::test
