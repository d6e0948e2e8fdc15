// Claims about the tool and the batch script on two healthy nodes, under every way to start the
// ranks.
#include "slurm_test.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <set>

namespace rdma_read::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// The options of a short run.
Words short_run() {
    return {"--size", "4K,64K", "--iterations", "100"};
}

Words operator+(Words left, const Words& right) {
    left.insert(left.end(), right.begin(), right.end());
    return left;
}

class Batch : public SlurmTest {
  protected:
    // A PATH on which the programs of the test's folder come first.
    [[nodiscard]] std::string path_with_folder() const {
        return folder().string() + ":" + std::getenv("PATH");
    }

    void expect_success(const Outcome& outcome, std::size_t ranks) const {
        EXPECT_EQ(outcome.state, "COMPLETED") << told(outcome);
        EXPECT_EQ(outcome.exit_code, "0:0") << told(outcome);
        EXPECT_THAT(outcome.out, ContainsRegex("\nPASS  [0-9]+ of [0-9]+ reader")) << told(outcome);
        const auto json = report_of(outcome);
        expect_path_between_the_nodes(json);
        EXPECT_EQ(json.at("ranks"), ranks);
        const auto hosts = json.at("hosts").get<std::set<std::string>>();
        EXPECT_EQ(hosts, (std::set<std::string>{"node1", "node2"}));
    }
};

TEST_F(Batch, MpirunAloneReadsBetweenTheNodes) {
    const auto result =
        run(Words{"mpirun", "-np", "2", "--host", "node1,node2", tool(), "--json", "report.json"}
            + short_run());
    EXPECT_EQ(result.status, 0) << told(result);
    EXPECT_THAT(result.out, AllOf(HasSubstr("node2"), HasSubstr("\nPASS  1 of 1 reader")));
    const auto json = report("report.json");
    expect_path_between_the_nodes(json);
    EXPECT_EQ(json.at("slurm"), nullptr);
}

TEST_F(Batch, TheScriptCompletesAndReportsBothHosts) {
    const auto outcome = submit_and_wait(Words{run_script()} + short_run());
    EXPECT_EQ(outcome.sbatch_status, 0);
    expect_success(outcome, 2);
    // The server says on stderr where it listens; the table has the readers.
    EXPECT_THAT(outcome.out, ContainsRegex("\n +1 +node2 +rxe0 "));
    const auto json = report_of(outcome);
    EXPECT_EQ(json.at("slurm").at("job_id"), outcome.id);
    EXPECT_EQ(json.at("slurm").at("step_id"), "0");
    EXPECT_EQ(json.at("slurm").at("nodelist"), "node[1-2]");
}

TEST_F(Batch, TheScriptTakesTwoRanksANode) {
    const auto outcome = run_job(Words{"--ntasks-per-node=2", run_script()} + short_run());
    expect_success(outcome, 4);
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("node1"), HasSubstr("node2")));
}

TEST_F(Batch, TheScriptTakesMoreTasksThanCores) {
    const auto outcome = run_job(
        Words{"--ntasks=6", "--overcommit", run_script(), "--size", "4K", "--iterations", "50"});
    expect_success(outcome, 6);
}

TEST_F(Batch, TheScriptUsesMpirunWhereSrunHasNoPmix) {
    write("srun",
          "#!/bin/bash\n"
          "if [[ $* == --mpi=list ]]; then echo 'MPI plugin types are... none pmi2' >&2; exit; fi\n"
          "if [[ $* == *--mpi=pmix* ]]; then echo 'no pmix here' >&2; exit 1; fi\n"
          "exec /usr/bin/srun \"$@\"\n");
    const auto outcome = run_job(Words{run_script()} + short_run(), {{"PATH", path_with_folder()}});
    expect_success(outcome, 2);
    EXPECT_EQ(report_of(outcome).at("slurm").at("job_id"), outcome.id);
}

TEST_F(Batch, SrunAloneStartsTheRanks) {
    const auto result = run(
        Words{"srun", "--mpi=pmix", "--nodes=2", tool(), "--json", "report.json"} + short_run());
    EXPECT_EQ(result.status, 0) << told(result);
    expect_path_between_the_nodes(report("report.json"));
}

TEST_F(Batch, MoreTasksThanCoresReadFromSrunAndFromMpirun) {
    const std::string options = " --size 4K --iterations 50 --json ";
    write("own.sbatch", "#!/bin/bash\n"
                        "srun --mpi=pmix --overcommit --ntasks=6 " + tool() + options + "srun.json\n"
                        "echo \"status $?\"\n"
                        "mpirun --oversubscribe -np 6 " + tool() + options + "mpirun.json\n"
                        "echo \"status $?\"\n");
    const auto outcome = run_job({"--nodes=2", "--output=own.txt", "own.sbatch"});
    EXPECT_EQ(outcome.exit_code, "0:0");
    const std::string said = content("own.txt");
    EXPECT_THAT(said, AllOf(HasSubstr("status 0"), Not(HasSubstr("status 1")))) << said;
    for (const char* const file : {"srun.json", "mpirun.json"}) {
        const auto json = report(file);
        expect_path_between_the_nodes(json);
        EXPECT_EQ(json.at("ranks"), 6) << file;
    }
}

TEST_F(Batch, SrunWithoutAPmiEndsWithThreeAndTheOptionToGive) {
    // As where MpiDefault is none; an option of srun has the same effect.
    CommandSettings settings;
    settings.environment["SLURM_MPI_TYPE"] = "none";
    for (const Words& words :
         {Words{"srun", "--nodes=2", tool()}, Words{"srun", "--mpi=none", "--nodes=1", tool()}}) {
        const auto result = run(words, settings);
        EXPECT_EQ(result.status, 3) << told(result);
        EXPECT_EQ(result.out, "");
        EXPECT_THAT(result.err, AllOf(HasSubstr("--mpi=pmix"), Not(HasSubstr("MPI_Init"))))
            << told(result);
    }
}

TEST_F(Batch, WrongOptionsFailTheJobWithTwo) {
    const auto outcome = run_job({run_script(), "--size", "4X"});
    EXPECT_EQ(outcome.state, "FAILED");
    EXPECT_EQ(outcome.exit_code, "2:0") << told(outcome);
}

}  // namespace
}  // namespace rdma_read::test
