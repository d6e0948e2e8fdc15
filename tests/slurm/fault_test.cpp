// Claims about jobs on nodes that are not well, are cut off, or are told to stop.
#include "slurm_test.hpp"

#include <gmock/gmock.h>

namespace rdma_read::test {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;

// More packets than the latency phase takes: at most 1000 reads of 64 KiB.
constexpr std::uint64_t kWellUnderWay = 40'000;

class Fault : public SlurmTest {
  protected:
    // What was read until the job was stopped, and nothing against a host.
    static void expect_partial(const nlohmann::json& json) {
        EXPECT_EQ(json.at("interrupted"), "SIGTERM");
        EXPECT_EQ(json.at("verdict").at("outcome"), "FAIL");
        EXPECT_EQ(json.at("verdict").at("bad_hosts"), nlohmann::json::array());
        ASSERT_EQ(json.at("results").size(), 1);
        const auto& result = json.at("results").at(0);
        EXPECT_EQ(result.at("reader_host"), "node2");
        EXPECT_EQ(result.at("outcome"), "NOT_RUN") << result.dump(2);
        ASSERT_EQ(result.at("sizes").size(), 1) << result.dump(2);
        const auto& size = result.at("sizes").at(0);
        EXPECT_GT(size.at("bytes_verified"), 0);
        EXPECT_EQ(size.at("bytes_verified"), size.at("bytes_read"));
    }
};

// A job of a user who first verifies the nodes.
std::string verifying_job(const std::string& budget) {
    return "#!/bin/bash\n"
           "#SBATCH --output=rdma-read-%j.txt\n"
           "#SBATCH --error=rdma-read-%j.err\n"
           "bad=$(" + job_script("verify_before.sh") + " --budget " + budget + " -- --size 4K --iterations 50)\n"
           "status=$?\n"
           "echo \"exclude '$bad'\"\n"
           "exit $status\n";
}

TEST_F(Fault, ADeletedDeviceIsReportedExcludedAndDrained) {
    write("own.sbatch", verifying_job("90"));
    control("unplug");
    const auto outcome = run_job({run_script()});
    EXPECT_EQ(outcome.state, "FAILED");
    EXPECT_THAT(outcome.exit_code, AnyOf(Eq("1:0"), Eq("3:0"))) << told(outcome);
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("NO_DEVICE"), HasSubstr("rdma link"), HasSubstr("look at node2")));
    EXPECT_THAT(outcome.err, HasSubstr("node2: no RDMA device")) << told(outcome);
    const auto json = report_of(outcome);
    EXPECT_EQ(json.at("verdict").at("bad_hosts"), nlohmann::json::array({"node2"}));

    const auto own = run_job({"--nodes=2", "own.sbatch"});
    EXPECT_EQ(own.state, "FAILED");
    EXPECT_EQ(own.out, "exclude 'node2'\n") << told(own);
    EXPECT_THAT(own.err, AllOf(HasSubstr("node2"), HasSubstr("NO_DEVICE"))) << told(own);

    const std::string file = "rdma-read-" + outcome.id + ".json";
    const auto proposed = run({job_script("drain_bad_nodes.sh"), file});
    EXPECT_EQ(proposed.status, 0) << told(proposed);
    EXPECT_THAT(proposed.out, ContainsRegex("scontrol update .*node2.* state=drain"));
    EXPECT_THAT(proposed.out, Not(HasSubstr("node1"))) << told(proposed);
    EXPECT_THAT(run({"sinfo", "--noheader", "--Node", "--format=%N %T"}).out,
                HasSubstr("node2 idle"));

    const auto applied = run({job_script("drain_bad_nodes.sh"), "--apply", file});
    EXPECT_EQ(applied.status, 0) << told(applied);
    const auto nodes = run({"sinfo", "--noheader", "--Node", "--format=%N %T %E"}).out;
    EXPECT_THAT(nodes, AllOf(ContainsRegex("node2 drained .*(device|NO_DEVICE|RDMA)"),
                             HasSubstr("node1 idle")));
}

TEST_F(Fault, TheServersDeviceIsMissing) {
    control("unplug");
    // Node 2 comes first in this job, and serves.
    const auto outcome = run_job(
        {"--nodes=1", "--nodelist=node2", "--ntasks=2", "--ntasks-per-node=2", run_script()});
    EXPECT_EQ(outcome.exit_code, "3:0") << told(outcome);
    EXPECT_THAT(outcome.out + outcome.err,
                AllOf(HasSubstr("node2"), HasSubstr("rdma_create_event_channel")));
}

TEST_F(Fault, ACutInTheMiddleEndsTheJobAndTheNextOnePasses) {
    auto job = submit({run_script(), "--duration", "25", "--timeout", "40"});
    wait_for_reads();
    control("drop");
    const auto outcome = end_of(std::move(job), seconds(70));
    EXPECT_EQ(outcome.state, "FAILED") << told(outcome);
    EXPECT_EQ(outcome.exit_code, "1:0") << told(outcome);
    const auto result = report_of(outcome).at("results").at(0);
    EXPECT_THAT(result.at("outcome"), AnyOf(Eq("READ_FAILED"), Eq("TIMEOUT"))) << result.dump(2);
    EXPECT_NE(result.at("error"), nullptr);
    expect_no_rank_left();

    control("restore");
    const auto next = run_job({run_script(), "--iterations", "100"});
    EXPECT_EQ(next.exit_code, "0:0") << told(next);
}

TEST_F(Fault, ALinkThatGoesDownInTheMiddleEndsTheJob) {
    auto job = submit({run_script(), "--duration", "25", "--timeout", "40"});
    wait_for_reads();
    control("down");
    const auto outcome = end_of(std::move(job), seconds(70));
    EXPECT_EQ(outcome.exit_code, "1:0") << told(outcome);
    EXPECT_NE(report_of(outcome).at("results").at(0).at("error"), nullptr);
    expect_no_rank_left();
}

TEST_F(Fault, ScancelInTheMiddleLeavesAReportAndNoProcess) {
    auto job = submit({run_script(), "--duration", "60", "--timeout", "100"});
    wait_for_reads(kWellUnderWay);
    ASSERT_EQ(run({"scancel", job.id}).status, 0);
    const auto outcome = end_of(std::move(job), seconds(60));
    EXPECT_EQ(outcome.state, "CANCELLED") << told(outcome);
    expect_no_rank_left();
    expect_partial(report_of(outcome));
}

TEST_F(Fault, TheTimeLimitLeavesAReportAndNoProcess) {
    auto job = submit({"--time=1", run_script(), "--duration", "200", "--timeout", "300"});
    wait_for_reads();
    const auto outcome = end_of(std::move(job), seconds(150));
    EXPECT_EQ(outcome.state, "TIMEOUT") << told(outcome);
    expect_no_rank_left();
    expect_partial(report_of(outcome));
}

TEST_F(Fault, AMemlockLimitOfSlurmdAloneIsReportedFromInsideTheJob) {
    limit_slurmd("64");
    // Root may lock what it likes.
    auto job = submit({run_script(), "--size", "1M"}, {}, "nobody");
    const auto outcome = end_of(std::move(job));
    EXPECT_EQ(outcome.state, "FAILED") << told(outcome);
    EXPECT_THAT(outcome.exit_code, AnyOf(Eq("1:0"), Eq("3:0"))) << told(outcome);
    EXPECT_THAT(outcome.out + outcome.err, AllOf(HasSubstr("64 KiB"), HasSubstr("LimitMEMLOCK")))
        << told(outcome);
    EXPECT_THAT(outcome.err, HasSubstr("node1: locked memory 64 KiB")) << told(outcome);
}

}  // namespace
}  // namespace rdma_read::test
