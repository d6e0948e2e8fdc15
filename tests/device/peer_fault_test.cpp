// Claims about peers that misbehave or die: the readers end in time, and say why.
#include "device_test.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

namespace rdma_read::test {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kTimeout = 8;
// mpirun's own start and end, on a slow machine, beside the run's deadline and grace.
constexpr double kLatest = kTimeout + 5 + 25;

class PeerFault : public DeviceTest {
  protected:
    // Three readers at a server with the fault; returns the report of the failed run.
    nlohmann::json failed_run(const std::string& fault, const std::string& iterations = "50") {
        const auto result = run(launch({{1, {faulty_root(), fault}}, {3, {tool()}}},
                                       {"--iterations", iterations, "--timeout",
                                        std::to_string(kTimeout), "--json", report_path()}));
        expect_status(result, 1);
        EXPECT_LT(result.seconds, kLatest) << told(result);
        EXPECT_THAT(lines_of(result.out), Contains(StartsWith("FAIL"))) << told(result);
        auto parsed = report();
        EXPECT_EQ(parsed.at("results").size(), 3U);
        return parsed;
    }

    static void expect_all(const nlohmann::json& parsed, const std::string& outcome,
                           const std::string& phase) {
        for (int rank = 1; rank <= 3; ++rank) {
            const auto reader = result_of(parsed, rank);
            EXPECT_EQ(reader.at("outcome"), outcome) << reader.dump(2);
            EXPECT_EQ(reader.at("phase"), phase) << reader.dump(2);
            EXPECT_TRUE(reader.at("error").is_string());
            EXPECT_TRUE(reader.at("hint").is_string());
        }
    }

    // The faulty rank's read was refused by the device; the others are untouched by that.
    static void expect_one_refused(const nlohmann::json& parsed, int rank) {
        const auto refused = result_of(parsed, rank);
        EXPECT_EQ(refused.at("outcome"), "READ_FAILED") << refused.dump(2);
        EXPECT_EQ(refused.at("phase"), "read");
        EXPECT_THAT(refused.at("error").get<std::string>(), HasSubstr("remote access error"));
        EXPECT_THAT(refused.at("hint").get<std::string>(), HasSubstr("rkey"));
        for (int other = 1; other <= 3; ++other) {
            if (other != rank) {
                EXPECT_EQ(result_of(parsed, other).at("outcome"), "PASS");
            }
        }
    }
};

TEST_F(PeerFault, AWrongRkeyFailsThatReaderAlone) {
    expect_one_refused(failed_run("wrong-rkey:2"), 2);
}

TEST_F(PeerFault, AnAddressOutsideTheBufferFailsThatReaderAlone) {
    expect_one_refused(failed_run("wrong-address:3"), 3);
}

TEST_F(PeerFault, AServerThatDiesAfterTheDescriptorFailsEveryReaderInTime) {
    const auto parsed = failed_run("die-after-descriptor", "2000");
    for (int rank = 1; rank <= 3; ++rank) {
        const auto reader = result_of(parsed, rank);
        const std::string phase = reader.at("phase");
        // How far each of them had come by then; who comes later still finds nobody.
        EXPECT_THAT(phase, AnyOf("connect", "descriptor", "read")) << reader.dump(2);
        EXPECT_EQ(reader.at("outcome"), phase == "read" ? "READ_FAILED" : "CONNECT_FAILED")
            << reader.dump(2);
    }
}

TEST_F(PeerFault, AServerThatSendsNoDescriptorIsATimeout) {
    expect_all(failed_run("no-descriptor"), "TIMEOUT", "descriptor");
}

TEST_F(PeerFault, AServerThatAcceptsNothingIsATimeout) {
    expect_all(failed_run("no-accept"), "TIMEOUT", "connect");
}

TEST_F(PeerFault, AMisspeltFaultIsNoServer) {
    const auto result = run(launch({{1, {faulty_root(), "wrong-rkay:1"}}, {1, {tool()}}}, {}));
    expect_status(result, 3);
    EXPECT_THAT(result.err, HasSubstr("unknown fault"));
}

TEST_F(PeerFault, AForeignDescriptorIsNotBelieved) {
    expect_all(failed_run("foreign-descriptor"), "CONNECT_FAILED", "descriptor");
}

TEST_F(PeerFault, ADescriptorThatWrapsAroundIsNotBelieved) {
    expect_all(failed_run("wrapping-buffer"), "CONNECT_FAILED", "descriptor");
}

TEST_F(PeerFault, ATooLongDescriptorIsNotBelieved) {
    expect_all(failed_run("long-descriptor"), "CONNECT_FAILED", "descriptor");
}

TEST_F(PeerFault, ABufferSmallerThanAnnouncedIsNotRead) {
    expect_all(failed_run("small-buffer"), "CONNECT_FAILED", "descriptor");
}

TEST_F(PeerFault, AReaderThatNeverConnectsDoesNotHoldTheOthersUp) {
    const auto result = run(launch(
        {{3, {tool()}}, {1, {faulty_reader(), "never-connects"}}},
        {"--iterations", "50", "--timeout", std::to_string(kTimeout), "--json", report_path()}));
    expect_status(result, 1);
    EXPECT_LT(result.seconds, kLatest) << told(result);
    const auto parsed = report();
    EXPECT_EQ(result_of(parsed, 1).at("outcome"), "PASS");
    EXPECT_EQ(result_of(parsed, 2).at("outcome"), "PASS");
    EXPECT_EQ(result_of(parsed, 3).at("outcome"), "TIMEOUT");
    EXPECT_EQ(result_of(parsed, 3).at("phase"), "gather");
    EXPECT_NE(result_of(parsed, 3).at("reader_host"), "?");
}

TEST_F(PeerFault, AReaderThatWritesToTheServersBufferIsRefusedByTheDevice) {
    const auto result = run(launch(
        {{1, {tool()}}, {1, {faulty_reader(), "writes"}}, {1, {tool()}}},
        {"--iterations", "50", "--timeout", std::to_string(kTimeout), "--json", report_path()}));
    expect_status(result, 1);
    const auto parsed = report();
    EXPECT_EQ(result_of(parsed, 1).at("outcome"), "READ_FAILED");
    EXPECT_EQ(result_of(parsed, 1).at("error"), "remote access error");
    EXPECT_EQ(result_of(parsed, 2).at("outcome"), "PASS");
}

TEST_F(PeerFault, AReaderThatKeepsItsTurnIsDroppedAndTheOthersRead) {
    const std::string turn = folder() / "turn";
    const auto result = run(launch({{1, {tool()}},
                                    {1, {faulty_reader(), "stays:" + turn}},
                                    {2, {faulty_reader(), "follows:" + turn}}},
                                   {"--concurrency", "1", "--iterations", "50", "--timeout",
                                    std::to_string(kTimeout), "--json", report_path()}));
    expect_status(result, 1);
    EXPECT_LT(result.seconds, kLatest) << told(result);
    EXPECT_THAT(result.err, HasSubstr("rank 1: dropped, it is still there after"));
    const auto parsed = report();
    EXPECT_EQ(result_of(parsed, 1).at("outcome"), "READ_FAILED");
    EXPECT_EQ(result_of(parsed, 1).at("phase"), "read");
    EXPECT_EQ(result_of(parsed, 1).at("error"), "dropped by the server");
    EXPECT_EQ(result_of(parsed, 2).at("outcome"), "PASS");
    EXPECT_EQ(result_of(parsed, 3).at("outcome"), "PASS");
}

TEST_F(PeerFault, ADeviceThatGoesInTheMiddleOfARunIsNoPass) {
    if (run({"rdma", "link", "show"}).out.find("netdev") == std::string::npos || geteuid() != 0) {
        lacks("only root can take a device away");
        return;
    }
    const std::string make =
        "ip link add rrgone0 type dummy && ip addr add 198.51.100.9/24 dev rrgone0 && "
        "ip link set rrgone0 mtu 9000 up && rdma link add rrgone type rxe netdev rrgone0";
    const auto made = run({"sh", "-c", make});
    if (made.status != 0) {
        lacks("no second device can be made: " + told(made));
        return;
    }
    Command command(launch(3, {"--server-ip", "198.51.100.9", "--duration", "20", "--timeout", "30",
                               "--size", "4K", "--json", report_path()}));
    // More than connecting and the latency phases of both readers take: they have 1000 reads each.
    wait_for_packets(10'000, "rrgone");
    Command removing({"rdma", "link", "delete", "rrgone"});
    const auto result = command.finish();
    const auto removed = removing.finish();
    run({"ip", "link", "delete", "rrgone0"});
    expect_status(removed, 0);
    expect_status(result, 1);
    EXPECT_LT(result.seconds, 20 + 25) << told(result);
    const auto parsed = report();
    for (const int rank : {1, 2}) {
        const auto reader = result_of(parsed, rank);
        EXPECT_EQ(reader.at("outcome"), "READ_FAILED") << reader.dump(2);
        EXPECT_EQ(reader.at("phase"), "read") << reader.dump(2);
    }
    EXPECT_EQ(parsed.at("verdict").at("outcome"), "FAIL");
}

TEST_F(PeerFault, AReaderThatIsKilledDoesNotTakeTheReportWithIt) {
    const auto result = run(launch({{3, {tool()}}, {1, {faulty_reader(), "dies"}}},
                                   {"--iterations", "50", "--timeout", std::to_string(kTimeout),
                                    "--json", report_path()}),
                            patient_launcher());
    EXPECT_NE(result.status, 0) << told(result);
    EXPECT_FALSE(result.timed_out);
    EXPECT_THAT(lines_of(result.out), Contains(StartsWith("FAIL"))) << told(result);
    EXPECT_NE(result_of(report(), 3).at("outcome"), "PASS");
}

}  // namespace
}  // namespace rdma_read::test
