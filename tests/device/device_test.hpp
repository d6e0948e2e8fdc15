// What the tests on a real device share: the fixture, the launch lines, the report.
#pragma once

#include "command.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rdma_read::test {

/// One program of an mpirun line, with the ranks it takes.
struct Program {
    int ranks = 1;
    std::vector<std::string> words;
};

/// The tested programs and the faulty peers, as built.
[[nodiscard]] std::string tool();
[[nodiscard]] std::string pair_tool();
[[nodiscard]] std::string faulty_root();
[[nodiscard]] std::string faulty_reader();
[[nodiscard]] std::string faulty_server();
[[nodiscard]] std::string strangers();

/// `mpirun -np …` for one or several programs, each with the options behind its own words.
[[nodiscard]] std::vector<std::string> launch(const std::vector<Program>& programs,
                                              const std::vector<std::string>& options);
[[nodiscard]] std::vector<std::string> launch(int ranks, const std::vector<std::string>& options);

/// A server of the two-process form, and the port on which it says it listens; "" if it ended
/// first.
struct PairServer {
    std::unique_ptr<Command> command;
    std::string port;
};
[[nodiscard]] PairServer start_pair_server(const std::vector<std::string>& options = {},
                                           const CommandSettings& settings = {});
/// The same for a server with a fault, which serves until it is killed.
[[nodiscard]] PairServer start_faulty_server(const std::string& fault, const std::string& address);
[[nodiscard]] std::vector<std::string> pair_client(const std::string& address,
                                                   const std::string& port);
/// What such a client prints of the default message.
inline constexpr const char* kPairLine =
    "RDMA Read completed. Data received: Hello from RDMA server memory!\n";

/// A test that needs an RDMA device with an address. Without one it is skipped, or fails where the
/// environment variable RDMA_READ_REQUIRE_DEVICE is 1: a test never passes by not running.
class DeviceTest : public ::testing::Test {
  protected:
    void SetUp() override;
    void TearDown() override;

    /// The first usable address of each family; empty if there is none.
    [[nodiscard]] const std::string& ipv4() const { return ipv4_; }
    [[nodiscard]] const std::string& ipv6() const { return ipv6_; }
    [[nodiscard]] const std::string& device() const { return device_; }

    /// A folder that vanishes with the test.
    [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
    [[nodiscard]] std::string report_path() const { return folder_ / "report.json"; }
    /// The report at report_path(); a null value, and a failure, if it cannot be read.
    [[nodiscard]] nlohmann::json report() const;

    /// Waits until this many packets more than now were sent: until reads are well under way.
    void wait_for_packets(std::uint64_t count) const { wait_for_packets(count, device_); }
    static void wait_for_packets(std::uint64_t count, const std::string& device) {
        wait_for_packets_since(packets_sent(device), count, device);
    }
    /// The same for reads that may be over before this test looks for the first time.
    void wait_for_packets_since(std::uint64_t before, std::uint64_t count) const {
        wait_for_packets_since(before, count, device_);
    }
    static void wait_for_packets_since(std::uint64_t before, std::uint64_t count,
                                       const std::string& device);
    [[nodiscard]] std::uint64_t packets_sent() const { return packets_sent(device_); }
    [[nodiscard]] static std::uint64_t packets_sent(const std::string& device);

    /// Skips or fails, as SetUp() does, because the machine lacks something.
    void lacks(const std::string& what);

  private:
    std::string ipv4_;
    std::string ipv6_;
    std::string device_;
    std::filesystem::path folder_;
};

/// Everything of a command in one text, for a failing assertion.
[[nodiscard]] std::string told(const CommandResult& result);

/// The result of one rank in a report.
[[nodiscard]] nlohmann::json result_of(const nlohmann::json& report, int rank);

/// The lines of a text that are not empty.
[[nodiscard]] std::vector<std::string> lines_of(const std::string& text);

/// Expects the exit status, and that nothing hung and nothing was left behind.
void expect_status(const CommandResult& result, int status);

}  // namespace rdma_read::test
