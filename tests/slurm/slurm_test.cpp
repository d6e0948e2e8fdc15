// The fixture of the tests on two nodes.
#include "slurm_test.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <thread>
#include <utility>

namespace rdma_read::test {
namespace {

constexpr const char* kNoJobs = "squeue --noheader";

std::string read_file(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

// The value of KEY=VALUE in the one line that scontrol says about a job.
std::string field(const std::string& text, const std::string& key) {
    std::smatch found;
    const std::regex pattern("(?:^|\\s)" + key + "=(\\S*)");
    return std::regex_search(text, found, pattern) ? found[1].str() : std::string();
}

std::string scontrol_on(const std::string& job) {
    return run({"scontrol", "--oneliner", "show", "job", job}).out;
}

bool has_ended(const std::string& scontrol) {
    const std::string state = field(scontrol, "JobState");
    return !state.empty() && state != "PENDING" && state != "RUNNING" && state != "COMPLETING"
           && state != "CONFIGURING";
}

std::string job_number(const std::string& text) {
    std::smatch found;
    const std::regex pattern("Submitted batch job (\\d+)\\s");
    return std::regex_search(text, found, pattern) ? found[1].str() : std::string();
}

std::uint64_t packets_sent() {
    std::uint64_t count = 0;
    std::ifstream("/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts") >> count;
    return count;
}

}  // namespace

std::string tool() {
    return RDMA_READ_TOOL;
}
std::string pair_tool() {
    return RDMA_READ_PAIR_TOOL;
}
std::string job_script(const std::string& name) {
    return std::string(RDMA_READ_JOB_SCRIPTS) + "/" + name;
}

std::string run_script() {
    return job_script("rdma_read_mpi.sbatch");
}

bool holds_within(std::chrono::seconds limit, const std::function<bool()>& check) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!check()) {
        if (std::chrono::steady_clock::now() >= end) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return true;
}

void SlurmTest::lacks(const std::string& what) {
    const char* const required = std::getenv("RDMA_READ_REQUIRE_SLURM");
    if (required != nullptr && std::string(required) == "1") {
        FAIL() << what;
    }
    GTEST_SKIP() << what;
}

void SlurmTest::SetUp() {
    const char* const nodes = std::getenv("RDMA_READ_SOFTROCE_NODES");
    const char* const results = std::getenv("RDMA_READ_RESULTS");
    if (nodes == nullptr || std::string(nodes) != "2" || results == nullptr) {
        lacks("needs tests/softroce/run --nodes 2 --slurm --results DIR");
        return;
    }
    if (run({"slurm-daemons", "wait"}).status != 0) {
        lacks("the nodes are not idle in Slurm, or there is no Slurm (--slurm)");
        return;
    }
    std::string pattern = std::filesystem::path(results) / "slurm_test_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::filesystem::permissions(folder_, std::filesystem::perms::all);
    std::filesystem::current_path(folder_);
}

void SlurmTest::TearDown() {
    if (folder_.empty()) {
        return;
    }
    run({"scancel", "--user=root,nobody"});
    if (touched_) {
        run({"control-node", "2", "continue"});
        run({"control-node", "2", "restore"});
    }
    if (limited_) {
        limit_slurmd("unlimited");
    }
    run({"bash", "-c", "scontrol update nodename=node[1-2] state=resume 2>/dev/null"});
    EXPECT_TRUE(holds_within(std::chrono::seconds(90), [] {
        return run({"bash", "-c", kNoJobs}).out.empty();
    }));
    std::filesystem::current_path("/");
    if (!HasFailure()) {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
}

void SlurmTest::write(const std::string& file, const std::string& text) const {
    std::ofstream stream(folder_ / file, std::ios::binary);
    stream << text;
    stream.close();
    ASSERT_TRUE(stream) << file;
    std::filesystem::permissions(folder_ / file, std::filesystem::perms(0755));
}

std::string SlurmTest::content(const std::string& file) const {
    return read_file(folder_ / file);
}

nlohmann::json SlurmTest::report(const std::string& file) const {
    auto parsed = nlohmann::json::parse(content(file), nullptr, false);
    EXPECT_FALSE(parsed.is_discarded()) << file << " is no JSON";
    return parsed.is_discarded() ? nlohmann::json() : parsed;
}

nlohmann::json SlurmTest::report_of(const Outcome& outcome) const {
    return report("rdma-read-" + outcome.id + ".json");
}

Outcome SlurmTest::submit_and_wait(const Words& words) {
    Words command{"sbatch", "--wait"};
    command.insert(command.end(), words.begin(), words.end());
    CommandSettings settings;
    settings.limit = std::chrono::seconds(200);
    settings.environment["RDMA_READ_MPI"] = tool();
    const auto result = run(command, settings);
    EXPECT_FALSE(result.timed_out) << told(result);
    EXPECT_THAT(result.left_over, ::testing::IsEmpty());
    Outcome outcome;
    outcome.id = job_number(result.out);
    EXPECT_NE(outcome.id, "") << told(result);
    const auto scontrol = scontrol_on(outcome.id);
    outcome.state = field(scontrol, "JobState");
    outcome.exit_code = field(scontrol, "ExitCode");
    outcome.sbatch_status = result.status;
    outcome.seconds = result.seconds;
    outcome.out = content("rdma-read-" + outcome.id + ".txt");
    outcome.err = content("rdma-read-" + outcome.id + ".err");
    return outcome;
}

Job SlurmTest::submit(const Words& words, const std::map<std::string, std::string>& environment,
                      const std::string& user) {
    // The job's number is wanted while sbatch waits.
    Words command{"bash", "-c", "exec \"$@\" >&2", "bash"};
    if (!user.empty()) {
        command.insert(command.end(),
                       {"setpriv", "--reuid=" + user, "--clear-groups", "env", "USER=" + user});
    }
    command.insert(command.end(), {"sbatch", "--wait"});
    command.insert(command.end(), words.begin(), words.end());
    CommandSettings settings;
    settings.limit = std::chrono::seconds(300);
    settings.environment = environment;
    settings.environment.emplace("RDMA_READ_MPI", tool());
    Job job;
    job.submission = std::make_unique<Command>(command, settings);
    job.submission->wait_for_stderr("Submitted batch job ");
    // The rest of the line is on its way.
    holds_within(std::chrono::seconds(5), [&] {
        job.submission->wait_for_stderr("\n");
        job.id = job_number(job.submission->said_on_stderr());
        return !job.id.empty();
    });
    EXPECT_NE(job.id, "") << job.submission->said_on_stderr();
    return job;
}

Outcome SlurmTest::end_of(Job job, std::chrono::seconds limit) {
    const auto start = std::chrono::steady_clock::now();
    Outcome outcome;
    outcome.id = job.id;
    std::string scontrol;
    EXPECT_TRUE(holds_within(limit, [&] { return has_ended(scontrol = scontrol_on(job.id)); }))
        << scontrol;
    outcome.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    outcome.state = field(scontrol, "JobState");
    outcome.exit_code = field(scontrol, "ExitCode");
    outcome.out = content("rdma-read-" + job.id + ".txt");
    outcome.err = content("rdma-read-" + job.id + ".err");
    return outcome;
}

CommandResult SlurmTest::at(int node, const Words& words) {
    Words command{"on-node", std::to_string(node), "--"};
    command.insert(command.end(), words.begin(), words.end());
    return run(command);
}

void SlurmTest::control(const std::string& action) {
    touched_ = true;
    const auto result = run({"control-node", "2", action});
    ASSERT_EQ(result.status, 0) << told(result);
}

void SlurmTest::limit_slurmd(const std::string& kib) {
    limited_ = true;
    for (const int node : {1, 2}) {
        const auto result = at(node, {"slurm-daemons", "restart", "--memlock", kib});
        ASSERT_EQ(result.status, 0) << told(result);
    }
    const auto result = run({"slurm-daemons", "wait"});
    ASSERT_EQ(result.status, 0) << told(result);
}

void SlurmTest::wait_for_reads(std::uint64_t packets) {
    const auto enough = packets_sent() + packets;
    ASSERT_TRUE(holds_within(std::chrono::seconds(90), [&] { return packets_sent() >= enough; }));
}

void SlurmTest::expect_no_rank_left() {
    for (const int node : {1, 2}) {
        std::string ranks;
        EXPECT_TRUE(holds_within(
            std::chrono::seconds(20),
            [&] {
                const auto result = at(
                    node, {"bash", "-c",
                           "ps -e -o comm= | grep -E 'rdma_read_mpi|srun|mpirun|orted' || true"});
                ranks = result.status == 0 ? result.out : told(result);
                return ranks.empty();
            }))
            << "on node" << node << ": " << ranks;
    }
}

std::string told(const CommandResult& result) {
    return fmt::format("status {} after {:.1f} s{}\n--- stdout ---\n{}--- stderr ---\n{}",
                       result.status, result.seconds, result.timed_out ? ", timed out" : "",
                       result.out, result.err);
}

std::string told(const Outcome& outcome) {
    return fmt::format("job {}: {} {}, sbatch {}, {:.1f} s\n--- output ---\n{}--- error ---\n{}",
                       outcome.id, outcome.state, outcome.exit_code, outcome.sbatch_status,
                       outcome.seconds, outcome.out, outcome.err);
}

void expect_path_between_the_nodes(const nlohmann::json& report) {
    int between = 0;
    for (const auto& result : report.value("results", nlohmann::json::array())) {
        EXPECT_EQ(result.at("outcome"), "PASS") << result.dump(2);
        EXPECT_EQ(result.at("server_host"), "node1");
        EXPECT_EQ(result.at("path").at("remote_address"), "10.83.79.1");
        if (result.at("reader_host") == "node2") {
            EXPECT_EQ(result.at("path").at("local_address"), "10.83.79.2");
            ++between;
        }
    }
    EXPECT_GE(between, 1) << report.dump(2);
}

}  // namespace rdma_read::test
