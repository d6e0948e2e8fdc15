// The fixture of the device tests.
#include "device_test.hpp"

#include "rdma_read/rdma/device.hpp"
#include "rdma_read/rdma/error.hpp"
#include "rdma_read/rdma/event_channel.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace rdma_read::test {

std::string tool() {
    return RDMA_READ_TOOL;
}
std::string pair_tool() {
    return RDMA_READ_PAIR_TOOL;
}
std::string faulty_root() {
    return RDMA_READ_FAULTY_ROOT;
}
std::string faulty_reader() {
    return RDMA_READ_FAULTY_READER;
}
std::string faulty_server() {
    return RDMA_READ_FAULTY_SERVER;
}
std::string strangers() {
    return RDMA_READ_STRANGERS;
}

namespace {

std::string environment(const char* name) {
    const char* const given = std::getenv(name);
    return given == nullptr ? "" : given;
}

// The hosts to spread the ranks over, "node1,node2"; empty: this one.
std::string hosts() {
    return environment("RDMA_READ_TEST_HOSTS");
}

}  // namespace

std::vector<std::string> launch(const std::vector<Program>& programs,
                                const std::vector<std::string>& options) {
    std::vector<std::string> words{"mpirun"};
    if (!hosts().empty()) {
        words.insert(words.end(), {"--map-by", "node"});
    }
    for (const Program& program : programs) {
        if (&program != &programs.front()) {
            words.emplace_back(":");
        }
        words.insert(words.end(), {"-np", std::to_string(program.ranks)});
        if (!hosts().empty()) {
            words.insert(words.end(), {"--host", hosts()});
        }
        words.insert(words.end(), program.words.begin(), program.words.end());
        words.insert(words.end(), options.begin(), options.end());
    }
    return words;
}

std::vector<std::string> launch(int ranks, const std::vector<std::string>& options) {
    return launch({{ranks, {tool()}}}, options);
}

namespace {

// The number behind the last such word of what a command has said on stderr.
std::string number_behind(const std::string& word, const std::string& said) {
    const auto at = said.rfind(word);
    const std::string rest = at == std::string::npos ? "" : said.substr(at + word.size());
    return rest.substr(0, rest.find_first_not_of("0123456789"));
}

}  // namespace

PairServer start_pair_server(const std::vector<std::string>& options,
                             const CommandSettings& settings) {
    std::vector<std::string> words{pair_tool(), "-s", "--port", "0"};
    words.insert(words.end(), options.begin(), options.end());
    auto command = std::make_unique<Command>(words, settings);
    (void)command->wait_for_stderr("\n");
    std::string port = number_behind("--port ", command->said_on_stderr());
    return {std::move(command), std::move(port)};
}

PairServer start_faulty_server(const std::string& fault, const std::string& address) {
    // It ends with its stdin.
    auto command = std::make_unique<Command>(std::vector<std::string>{
        "sh", "-c", "sleep 60 | \"$0\" --fault \"$1\" --address \"$2\" 1>&2", faulty_server(),
        fault, address});
    (void)command->wait_for_stderr("\n");
    std::string port = number_behind(" ", command->said_on_stderr());
    return {std::move(command), std::move(port)};
}

std::vector<std::string> pair_client(const std::string& address, const std::string& port) {
    return {pair_tool(), "-c", address, "--port", port};
}

void DeviceTest::lacks(const std::string& what) {
    if (environment("RDMA_READ_REQUIRE_DEVICE") == "1") {
        FAIL() << what;
    }
    GTEST_SKIP() << what;
}

void DeviceTest::SetUp() {
    std::string pattern = std::filesystem::temp_directory_path() / "rdma_read_test_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::filesystem::permissions(folder_, std::filesystem::perms::all);
    if (!hosts().empty() && environment("RDMA_READ_SOFTROCE_NODES") != "2") {
        lacks("needs tests/softroce/run --nodes 2");
        return;
    }
    try {
        const rdma::EventChannel channel;
        for (const auto& port : rdma::list_device_ports(channel)) {
            if (!port.active) {
                continue;
            }
            std::string& address = port.address.family() == AF_INET ? ipv4_ : ipv6_;
            if (address.empty()) {
                address = port.address.to_string();
                device_ = device_.empty() ? port.device : device_;
            }
        }
    } catch (const rdma::Error& error) {
        lacks(fmt::format("no RDMA device: {}", error.what()));
        return;
    }
    if (device_.empty()) {
        lacks("no ACTIVE RDMA port with an IP address");
    }
}

void DeviceTest::TearDown() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

nlohmann::json DeviceTest::report() const {
    std::ifstream file(report_path());
    auto parsed = nlohmann::json::parse(file, nullptr, false);
    EXPECT_FALSE(parsed.is_discarded()) << report_path() << " is no JSON";
    return parsed.is_discarded() ? nlohmann::json() : parsed;
}

std::uint64_t DeviceTest::packets_sent(const std::string& device) {
    const auto port = std::filesystem::path("/sys/class/infiniband") / device / "ports/1";
    // The first is software RoCE's, which keeps no port counters.
    for (const char* const name : {"hw_counters/sent_pkts", "counters/port_xmit_packets"}) {
        std::uint64_t packets = 0;
        if (std::ifstream(port / name) >> packets) {
            return packets;
        }
    }
    return 0;
}

void DeviceTest::wait_for_packets_since(std::uint64_t before, std::uint64_t count,
                                        const std::string& device) {
    const auto enough = before + count;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (packets_sent(device) < enough) {
        ASSERT_LT(std::chrono::steady_clock::now(), limit)
            << packets_sent(device) << " of " << enough;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

std::string told(const CommandResult& result) {
    return fmt::format("status {} after {:.1f} s{}\n--- stdout ---\n{}--- stderr ---\n{}",
                       result.status, result.seconds, result.timed_out ? ", timed out" : "",
                       result.out, result.err);
}

nlohmann::json result_of(const nlohmann::json& report, int rank) {
    if (report.is_object()) {
        for (const auto& result : report.at("results")) {
            if (result.at("reader_rank") == rank) {
                return result;
            }
        }
    }
    ADD_FAILURE() << "no result of rank " << rank << " in " << report.dump(2);
    return nlohmann::json::object({{"outcome", "missing"},
                                   {"phase", ""},
                                   {"error", ""},
                                   {"hint", ""},
                                   {"path", nlohmann::json::object()},
                                   {"sizes", nlohmann::json::array()}});
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        if (!line.empty()) {
            lines.push_back(line);
        }
    }
    return lines;
}

void expect_status(const CommandResult& result, int status) {
    EXPECT_FALSE(result.timed_out) << told(result);
    EXPECT_EQ(result.status, status) << told(result);
    EXPECT_THAT(result.left_over, ::testing::IsEmpty());
}

}  // namespace rdma_read::test
