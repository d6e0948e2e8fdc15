// Claims about right runs: every reader, every size, every byte.
#include "device_test.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace rdma_read::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Star : public DeviceTest {
  protected:
    // A run in which everything is right; returns its report.
    nlohmann::json passing_run(int ranks, std::vector<std::string> options,
                               std::chrono::seconds limit = std::chrono::seconds(120)) {
        options.insert(options.end(), {"--json", report_path()});
        const auto result = run(launch(ranks, options), {limit, {}});
        expect_status(result, 0);
        const auto lines = lines_of(result.out);
        EXPECT_THAT(lines, Contains(StartsWith("PASS"))) << told(result);
        auto parsed = report();
        EXPECT_EQ(parsed.at("results").size(), static_cast<std::size_t>(ranks - 1));
        for (const auto& reader : parsed.at("results")) {
            EXPECT_EQ(reader.at("outcome"), "PASS") << reader.dump(2);
        }
        return parsed;
    }

    // bytes_verified = size times reads, for every reader and size.
    static void expect_all_verified(const nlohmann::json& parsed,
                                    const std::vector<std::uint64_t>& sizes, std::uint64_t reads) {
        for (const auto& reader : parsed.at("results")) {
            ASSERT_EQ(reader.at("sizes").size(), sizes.size());
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                const auto& size = reader.at("sizes").at(i);
                EXPECT_EQ(size.at("size"), sizes[i]);
                EXPECT_EQ(size.at("reads"), reads);
                EXPECT_EQ(size.at("bytes_read"), sizes[i] * reads);
                EXPECT_EQ(size.at("bytes_verified"), sizes[i] * reads);
                EXPECT_EQ(size.at("guard_intact"), true);
                EXPECT_TRUE(size.at("mismatches").empty());
                EXPECT_GT(size.at("latency_us").at("samples").get<std::uint64_t>(), 0U);
            }
        }
    }

    static inline const std::vector<std::string> kOddSizes{"--size", "1,1024,1025,4097,1048579",
                                                           "--iterations", "50"};
    static inline const std::vector<std::uint64_t> kOddBytes{1, 1024, 1025, 4097, 1048579};
};

TEST_F(Star, VerifiesEveryByteOfOddSizesWithTwoRanks) {
    expect_all_verified(passing_run(2, kOddSizes), kOddBytes, 50);
}

TEST_F(Star, VerifiesEveryByteOfOddSizesWithFourRanks) {
    expect_all_verified(passing_run(4, kOddSizes), kOddBytes, 50);
}

TEST_F(Star, VerifiesEveryByteOfOddSizesWithEightRanks) {
    expect_all_verified(
        passing_run(
            8, {"--size", "1,1024,1025,4097,1048579", "--iterations", "50", "--timeout", "100"},
            std::chrono::seconds(180)),
        kOddBytes, 50);
}

TEST_F(Star, SixteenRanksAreFifteenPasses) {
    const auto parsed =
        passing_run(16, {"--iterations", "100", "--timeout", "60"}, std::chrono::seconds(180));
    EXPECT_EQ(parsed.at("verdict").at("passed"), 15);
    EXPECT_EQ(parsed.at("servers").at(0).at("connections"), 15);
}

TEST_F(Star, ReadsLongerThanTheDevicesLongestMessageAreWholeAndVerified) {
    expect_all_verified(passing_run(4, {"--size", "9M", "--iterations", "5"}), {9U << 20U}, 5);
}

TEST_F(Star, ReadsOf64MiBAreWholeAndVerified) {
    expect_all_verified(passing_run(4, {"--size", "64M", "--iterations", "2", "--timeout", "100"}),
                        {64U << 20U}, 2);
}

TEST_F(Star, TheServersProcessorStaysOutOfTheReads) {
    const auto parsed = passing_run(3, {"--size", "64K", "--duration", "5"});
    const auto& server = parsed.at("servers").at(0);
    const double cpu = server.at("cpu_s_while_serving");
    const double wall = server.at("serving_s");
    EXPECT_GT(wall, 5);
    EXPECT_LT(cpu, 0.02 * wall);
}

TEST_F(Star, AnyRankCanServe) {
    const auto parsed = passing_run(3, {"--server", "2", "--iterations", "50"});
    EXPECT_EQ(parsed.at("servers").at(0).at("rank"), 2);
    EXPECT_EQ(result_of(parsed, 0).at("outcome"), "PASS");
    EXPECT_EQ(result_of(parsed, 1).at("server_rank"), 2);
    EXPECT_EQ(parsed.at("servers").at(0).at("connections"), 2);
}

TEST_F(Star, ADurationBoundsTheThroughputPhase) {
    const auto parsed = passing_run(2, {"--size", "4K", "--duration", "2"});
    const auto size = result_of(parsed, 1).at("sizes").at(0);
    EXPECT_GE(size.at("seconds").get<double>(), 1.9);
    EXPECT_EQ(size.at("bytes_verified"), size.at("reads").get<std::uint64_t>() * 4096);
}

TEST_F(Star, WithoutVerificationNothingIsCalledVerified) {
    const auto result =
        run(launch(2, {"--verify", "off", "--iterations", "50", "--json", report_path()}));
    expect_status(result, 0);
    EXPECT_THAT(result.out, HasSubstr("nothing verified"));
    const auto parsed = report();
    EXPECT_EQ(parsed.at("verdict").at("bytes_verified"), 0);
    EXPECT_EQ(result_of(parsed, 1).at("sizes").at(0).at("bytes_verified"), 0);
}

TEST_F(Star, ThePathIsReported) {
    const auto path = result_of(passing_run(2, {"--iterations", "10"}), 1).at("path");
    EXPECT_EQ(path.at("local_device"), device());
    EXPECT_EQ(path.at("remote_address"), ipv4());
    EXPECT_EQ(path.at("depth_negotiated"), 16);
    EXPECT_TRUE(path.at("gid").is_string());
    EXPECT_GE(path.at("mtu").get<int>(), 256);
}

TEST_F(Star, OneReadInFlightIsEnough) {
    const auto parsed = passing_run(2, {"--depth", "1", "--iterations", "20"});
    EXPECT_EQ(result_of(parsed, 1).at("path").at("depth_negotiated"), 1);
}

TEST_F(Star, IPv6AddressesServeToo) {
    if (ipv6().empty()) {
        lacks("no RDMA device with a global IPv6 address");
        return;
    }
    const auto parsed = passing_run(3, {"--server-ip", ipv6(), "--iterations", "20"});
    EXPECT_EQ(parsed.at("servers").at(0).at("address"), ipv6());
    EXPECT_EQ(result_of(parsed, 1).at("path").at("remote_address"), ipv6());
}

}  // namespace
}  // namespace rdma_read::test
