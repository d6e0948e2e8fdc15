// Claims about what a run prints and writes.
#include "device_test.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

namespace rdma_read::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Output : public DeviceTest {
  protected:
    static void expect_keys(const nlohmann::json& object, const std::vector<std::string>& keys) {
        ASSERT_TRUE(object.is_object()) << object.dump();
        for (const auto& key : keys) {
            EXPECT_TRUE(object.contains(key)) << "missing: " << key << " in " << object.dump();
        }
    }

    static void expect_table(const CommandResult& result, std::size_t readers) {
        auto lines = lines_of(result.out);
        std::erase_if(lines, [](const auto& line) { return line.starts_with("      note: "); });
        ASSERT_EQ(lines.size(), readers + 2) << told(result);
        EXPECT_THAT(lines.front(),
                    AllOf(HasSubstr("rank"), HasSubstr("host"), HasSubstr("result")));
        EXPECT_THAT(lines.back(), StartsWith("PASS"));
        EXPECT_THAT(result.out, Not(HasSubstr("\033")));
    }

    static inline const std::vector<std::string> kShort{"--iterations", "10"};
};

TEST_F(Output, JsonOnStdoutIsOneObjectWithEveryKey) {
    const auto result = run(launch(3, {"--iterations", "10", "--json", "-"}));
    expect_status(result, 0);
    // Strict: nothing before it, nothing behind it.
    const auto parsed = nlohmann::json::parse(result.out, nullptr, false);
    ASSERT_FALSE(parsed.is_discarded()) << told(result);
    expect_keys(parsed, {"schema", "tool_version", "run_id", "started", "elapsed_s", "interrupted",
                         "ranks", "hosts", "pattern", "options", "mpi", "slurm", "servers",
                         "self_test", "results", "verdict"});
    EXPECT_EQ(parsed.at("schema"), "rdma-read-report/1");
    expect_keys(parsed.at("servers").at(0),
                {"rank", "host", "device", "port_num", "address", "port", "link_layer", "mtu",
                 "rate_gbps", "cpu_s_while_serving", "connections"});
    expect_keys(parsed.at("results").at(0),
                {"server_rank", "reader_rank", "server_host",  "reader_host", "outcome",
                 "phase",       "error",       "hint",         "confirmed",   "path",
                 "connect_ms",  "attempts",    "read_started", "read_ended",  "sizes",
                 "counters",    "self_test",   "clock_ns",     "notes",       "warnings"});
    expect_keys(parsed.at("results").at(0).at("path"),
                {"local_device", "local_port_num", "local_address", "remote_address", "gid", "mtu",
                 "depth_negotiated"});
    const auto& size = parsed.at("results").at(0).at("sizes").at(0);
    expect_keys(size,
                {"size", "reads", "bytes_read", "bytes_verified", "mismatches", "guard_intact",
                 "latency_us", "bandwidth_bytes_per_s", "reads_per_s", "seconds"});
    expect_keys(size.at("latency_us"), {"min", "p50", "p90", "p99", "p999", "max", "samples"});
    expect_keys(parsed.at("verdict"),
                {"outcome", "exit_code", "expected", "passed", "failed", "degraded",
                 "bytes_verified", "mismatches", "bad_hosts", "bad_hostlist"});
    EXPECT_EQ(parsed.at("verdict").at("expected"), 2);
}

TEST_F(Output, StdoutIsTheTableOnly) {
    const auto result = run(launch(3, kShort));
    expect_status(result, 0);
    expect_table(result, 2);
}

TEST_F(Output, StdoutIsTheTableOnlyWhenMpiAndUcxAreTalkative) {
    CommandSettings noisy;
    // UCX logs to stdout; over its own transports for shared memory and TCP, since as the user of a
    // software device it can fail for reasons of its own.
    noisy.environment = {{"OMPI_MCA_pml", "ucx"},
                         {"OMPI_MCA_pml_base_verbose", "100"},
                         {"OMPI_MCA_btl_base_verbose", "100"},
                         {"UCX_LOG_LEVEL", "info"},
                         {"UCX_TLS", "self,sm,tcp"},
                         {"OMPI_MCA_opal_common_ucx_tls", "any"},
                         {"OMPI_MCA_opal_common_ucx_devices", "any"}};
    const auto result = run(launch(3, kShort), noisy);
    expect_status(result, 0);
    EXPECT_THAT(result.err, HasSubstr("UCX")) << "the noise was not there to be kept out";
    expect_table(result, 2);
}

TEST_F(Output, ALocaleWithAnotherDecimalPointChangesNothing) {
    CommandSettings german;
    german.environment = {{"LC_ALL", "de_DE.UTF-8"}, {"LANG", "de_DE.UTF-8"}};
    const auto result = run(launch(2, kShort), german);
    expect_status(result, 0);
    EXPECT_THAT(result.out, Not(ContainsRegex("[0-9],[0-9]")));
}

TEST_F(Output, AFullDeviceForTheReportIsNamedAndTheTableStillAppears) {
    const auto result = run(launch(2, {"--iterations", "10", "--json", "/dev/full"}));
    expect_status(result, 1);
    expect_table(result, 1);
    EXPECT_THAT(result.err, AllOf(HasSubstr("/dev/full"), HasSubstr("No space left")));
}

TEST_F(Output, AFullFileSystemForTheReportLeavesNoHalfFile) {
    if (geteuid() != 0) {
        lacks("only root can mount a small file system");
        return;
    }
    const std::string small = folder() / "small";
    std::filesystem::create_directory(small);
    const std::string script =
        "mount -t tmpfs -o size=4k,nr_inodes=16 none \"$0\" && { \"$@\"; status=$?; } ; "
        "echo \"in the folder: $(ls -A \"$0\" | tr '\\n' ' ')\" >&2; exit $status";
    std::vector<std::string> words{"unshare", "-m", "sh", "-c", script, small};
    // More than a page of report.
    const auto command = launch(
        8, {"--size", "8,16,32,64,128", "--iterations", "5", "--json", small + "/report.json"});
    words.insert(words.end(), command.begin(), command.end());
    const auto result = run(words);
    expect_status(result, 1);
    EXPECT_THAT(lines_of(result.out), Contains(StartsWith("PASS"))) << told(result);
    EXPECT_THAT(result.err, AllOf(HasSubstr("report.json"), HasSubstr("No space left")));
    EXPECT_THAT(lines_of(result.err), Contains("in the folder: ")) << told(result);
}

// mpirun gives its ranks a pipe whatever its own stdout is, so it is the rank's that is closed.
TEST_F(Output, AStdoutThatTakesNothingIsAFailureAndNotACrash) {
    for (const std::string redirection : {">&-", ">/dev/full"}) {
        const auto result =
            run(launch({{2, {"sh", "-c", "exec \"$0\" \"$@\" " + redirection, tool()}}},
                       {"--iterations", "10", "--json", report_path()}));
        expect_status(result, 1);
        EXPECT_EQ(result.out, "") << redirection;
        EXPECT_THAT(result.err,
                    HasSubstr("rdma_read_mpi: the table was not printed: write to stdout: "
                              + std::string(redirection == ">&-" ? "Bad file descriptor"
                                                                 : "No space left on device")));
        // Whoever reads the report is told of the reads all the same.
        EXPECT_EQ(result_of(report(), 1).at("outcome"), "PASS") << redirection;
        EXPECT_EQ(report().at("verdict").at("outcome"), "PASS");
    }
}

TEST_F(Output, ProgressGoesToStderrWhenAskedFor) {
    const auto result = run(launch(2, {"--iterations", "10", "--progress", "always"}));
    expect_status(result, 0);
    expect_table(result, 1);
    EXPECT_THAT(result.err, HasSubstr("1 of 1 readers done"));
}

}  // namespace
}  // namespace rdma_read::test
