// What the tests on two nodes share: the fixture, jobs, and what can be done to the second node.
#pragma once

#include "command.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rdma_read::test {

using Words = std::vector<std::string>;

[[nodiscard]] std::string tool();
[[nodiscard]] std::string pair_tool();
[[nodiscard]] std::string job_script(const std::string& name);
/// The batch script of a run.
[[nodiscard]] std::string run_script();

/// A job that was submitted with `sbatch --wait`, which still runs until end_of() was called.
struct Job {
    std::string id;
    std::unique_ptr<Command> submission;
};

/// What became of a job.
struct Outcome {
    std::string id;
    std::string state;       ///< of the job, as scontrol tells it
    std::string exit_code;   ///< "status:signal", as scontrol tells it
    int sbatch_status = -1;  ///< of sbatch --wait, if that was waited for
    double seconds = 0;      ///< from submission, or the call of end_of(), to the end
    std::string out;         ///< rdma-read-<id>.txt
    std::string err;         ///< rdma-read-<id>.err
};

/// Needs two nodes in one Slurm and the commands of tests/softroce. Without them a test is skipped,
/// or fails where the environment variable RDMA_READ_REQUIRE_SLURM is 1.
class SlurmTest : public ::testing::Test {
  protected:
    void SetUp() override;
    /// Brings back whatever was done to the nodes.
    void TearDown() override;

    /// A folder that both nodes share; the current folder of the test.
    [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
    void write(const std::string& file, const std::string& text) const;
    [[nodiscard]] std::string content(const std::string& file) const;
    /// The report in a file of the folder; a null value, and a failure, if it cannot be read.
    [[nodiscard]] nlohmann::json report(const std::string& file) const;
    [[nodiscard]] nlohmann::json report_of(const Outcome& outcome) const;

    /// `sbatch --wait` with these words, to its end. It looks for the end ever more rarely.
    Outcome submit_and_wait(const Words& words);
    /// Submits a job; as another user if `user` is not empty.
    static Job submit(const Words& words,
                      const std::map<std::string, std::string>& environment = {},
                      const std::string& user = {});
    /// Submits a job and waits for its end, as soon as it comes.
    Outcome run_job(const Words& words,
                    const std::map<std::string, std::string>& environment = {}) {
        return end_of(submit(words, environment));
    }
    /// Waits for the end of a job.
    Outcome end_of(Job job, std::chrono::seconds limit = std::chrono::seconds(120));

    /// Runs a command on node 1 or 2.
    static CommandResult at(int node, const Words& words);
    /// control-node 2 ACTION; what it does is undone after the test.
    void control(const std::string& action);
    /// The limit of locked memory for slurmd on both nodes; undone after the test.
    void limit_slurmd(const std::string& kib);

    /// Waits until reads are under way on this node: until it has sent so many packets.
    static void wait_for_reads(std::uint64_t packets = 200);
    /// Expects that no rank is left on either node, after a moment.
    static void expect_no_rank_left();

  private:
    static void lacks(const std::string& what);

    std::filesystem::path folder_;
    bool touched_ = false;
    bool limited_ = false;
};

/// Tries again until it holds or the limit has passed; says whether it held.
bool holds_within(std::chrono::seconds limit, const std::function<bool()>& check);

/// Everything of a command, or a job, in one text, for a failing assertion.
[[nodiscard]] std::string told(const CommandResult& result);
[[nodiscard]] std::string told(const Outcome& outcome);

/// Expects that reads went between the two nodes' RDMA addresses, in every result with a reader on
/// the other node, and that there is such a result.
void expect_path_between_the_nodes(const nlohmann::json& report);

}  // namespace rdma_read::test
