// Claims about the two-process form.
#include "device_test.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <memory>

namespace rdma_read::test {
namespace {

using ::testing::HasSubstr;

class Pair : public DeviceTest {
  protected:
    // A server that has said on which port it listens.
    static std::unique_ptr<Command> server(const std::vector<std::string>& options,
                                           std::string& port) {
        PairServer started = start_pair_server(options);
        port = started.port;
        EXPECT_NE(port, "") << started.command->said_on_stderr();
        return std::move(started.command);
    }
};

TEST_F(Pair, TheClientPrintsTheExactLineAndBothExitWell) {
    std::string port;
    const auto serving = server({}, port);
    const auto reading = run(pair_client(ipv4(), port));
    expect_status(reading, 0);
    EXPECT_EQ(reading.out, kPairLine);
    expect_status(serving->finish(), 0);
}

TEST_F(Pair, TheDefaultPortAndTheDefaultAddressMeet) {
    Command serving({pair_tool(), "-s"});
    ASSERT_TRUE(serving.wait_for_stderr("serving"));
    const auto reading = run({pair_tool(), "-c", ipv4()});
    EXPECT_EQ(reading.out, kPairLine) << told(reading);
    expect_status(serving.finish(), 0);
}

TEST_F(Pair, ItWorksOverIPv6) {
    if (ipv6().empty()) {
        lacks("no RDMA device with a global IPv6 address");
        return;
    }
    std::string port;
    const auto serving = server({}, port);
    const auto reading = run(pair_client(ipv6(), port));
    expect_status(reading, 0);
    EXPECT_EQ(reading.out, kPairLine);
    expect_status(serving->finish(), 0);
}

TEST_F(Pair, ABoundAddressServesToo) {
    std::string port;
    const auto serving = server({"--bind", ipv4()}, port);
    EXPECT_EQ(run(pair_client(ipv4(), port)).out, kPairLine);
    expect_status(serving->finish(), 0);
}

TEST_F(Pair, ThreeClientsAtOnceReadTheServersMessage) {
    std::string port;
    const auto serving =
        server({"--message", "grüße, \"quoted\" and  spaced", "--clients", "3"}, port);
    Command first(pair_client(ipv4(), port));
    Command second(pair_client(ipv4(), port));
    Command third(pair_client(ipv4(), port));
    for (Command* const reading : {&first, &second, &third}) {
        const auto result = reading->finish();
        expect_status(result, 0);
        EXPECT_EQ(result.out,
                  "RDMA Read completed. Data received: grüße, \"quoted\" and  spaced\n");
    }
    expect_status(serving->finish(), 0);
}

TEST_F(Pair, AClientThatComesBeforeItsServerWaitsForIt) {
    // The port of a server that has gone is free again.
    std::string port;
    {
        const auto earlier = server({}, port);
        (void)run(pair_client(ipv4(), port));
        (void)earlier->finish();
    }
    Command reading(pair_client(ipv4(), port));
    ASSERT_TRUE(reading.wait_for_stderr("trying again"));
    Command serving({pair_tool(), "-s", "--port", port});
    const auto result = reading.finish();
    expect_status(result, 0);
    EXPECT_EQ(result.out, kPairLine);
    expect_status(serving.finish(), 0);
}

TEST_F(Pair, NoServerIsAFailureThatNamesItsAddressInTime) {
    const auto result = run({pair_tool(), "-c", ipv4(), "--port", "1", "--timeout", "2"});
    expect_status(result, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(ipv4() + ":1"));
    EXPECT_LT(result.seconds, 12);
}

TEST_F(Pair, ANameServerThatDoesNotAnswerIsWaitedForNoLongerThanTheDeadline) {
    // On the device's net, where nobody has this address.
    const std::string nobody = ipv4().substr(0, ipv4().rfind('.')) + ".253";
    const std::string file = folder() / "resolv.conf";
    std::ofstream(file) << "nameserver " << nobody << "\noptions timeout:20 attempts:1\n";
    const auto result = run(
        {"unshare", "--mount", "sh", "-c",
         "mount --bind \"$0\" /etc/resolv.conf || exit 77; exec \"$1\" -c a.example --timeout 2",
         file, pair_tool()});
    if (result.status == 77 || result.err.find("unshare") != std::string::npos) {
        lacks("only root can have another name server: " + told(result));
        return;
    }
    expect_status(result, 1);
    EXPECT_THAT(result.err, HasSubstr("getaddrinfo(a.example): no answer before the deadline"));
    EXPECT_GT(result.seconds, 1.5);
    EXPECT_LT(result.seconds, 8);
}

TEST_F(Pair, AStoppedServerEndsWell) {
    std::string port;
    const auto serving = server({"--clients", "0"}, port);
    EXPECT_EQ(run(pair_client(ipv4(), port)).out, kPairLine);
    EXPECT_EQ(run(pair_client(ipv4(), port)).out, kPairLine);
    serving->send_signal(SIGTERM);
    expect_status(serving->finish(), 0);
}

TEST_F(Pair, ASecondServerOnAPortIsToldWhoHoldsIt) {
    std::string port;
    const auto serving = server({"--bind", ipv4()}, port);
    const auto second = run({pair_tool(), "-s", "--bind", ipv4(), "--port", port});
    expect_status(second, 1);
    EXPECT_THAT(second.err, HasSubstr("another listener holds this port"));
}

TEST_F(Pair, ASecondServerOnAllAddressesIsToldTheSame) {
    std::string port;
    const auto serving = server({}, port);
    const auto second = run({pair_tool(), "-s", "--port", port});
    expect_status(second, 1);
    EXPECT_THAT(second.err, HasSubstr("another listener holds this port"));
}

TEST_F(Pair, AServerWithoutStderrServes) {
    std::string port;
    {
        // The port of a server that has gone is free again.
        const auto earlier = server({}, port);
        (void)run(pair_client(ipv4(), port));
        (void)earlier->finish();
    }
    Command serving({"sh", "-c", "exec \"$0\" -s --port \"$1\" 2>&-", pair_tool(), port});
    EXPECT_EQ(run(pair_client(ipv4(), port)).out, kPairLine);
    expect_status(serving.finish(), 0);
}

TEST_F(Pair, AReadThatTheDeviceRefusesIsAFailureThatSaysSo) {
    const PairServer serving = start_faulty_server("wrong-rkey:0", ipv4());
    const auto result = run({pair_tool(), "-c", ipv4(), "--port", serving.port, "--timeout", "8"});
    expect_status(result, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr("remote access error"));
}

}  // namespace
}  // namespace rdma_read::test
