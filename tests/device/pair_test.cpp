// Claims about the two-process form.
#include "device_test.hpp"

#include <gmock/gmock.h>

#include <memory>

namespace rdma_read::test {
namespace {

using ::testing::HasSubstr;

class Pair : public DeviceTest {
  protected:
    // A server that has said on which port it listens; "" if it did not start.
    std::unique_ptr<Command> server(std::vector<std::string> options, std::string& port) {
        std::vector<std::string> words{pair_tool(), "-s", "--port", "0"};
        words.insert(words.end(), options.begin(), options.end());
        auto command = std::make_unique<Command>(words);
        const std::string sign = "--port ";
        EXPECT_TRUE(command->wait_for_stderr("\n"));
        const std::string said = command->said_on_stderr();
        const auto at = said.rfind(sign);
        port = at == std::string::npos ? "" : said.substr(at + sign.size());
        port = port.substr(0, port.find_first_not_of("0123456789"));
        EXPECT_NE(port, "") << said;
        return command;
    }

    static std::vector<std::string> client(const std::string& address, const std::string& port) {
        return {pair_tool(), "-c", address, "--port", port};
    }

    static inline const std::string kLine =
        "RDMA Read completed. Data received: Hello from RDMA server memory!\n";
};

TEST_F(Pair, TheClientPrintsTheExactLineAndBothExitWell) {
    std::string port;
    const auto serving = server({}, port);
    const auto reading = run(client(ipv4(), port));
    expect_status(reading, 0);
    EXPECT_EQ(reading.out, kLine);
    expect_status(serving->finish(), 0);
}

TEST_F(Pair, TheDefaultPortAndTheDefaultAddressMeet) {
    Command serving({pair_tool(), "-s"});
    ASSERT_TRUE(serving.wait_for_stderr("serving"));
    const auto reading = run({pair_tool(), "-c", ipv4()});
    EXPECT_EQ(reading.out, kLine) << told(reading);
    expect_status(serving.finish(), 0);
}

TEST_F(Pair, ItWorksOverIPv6) {
    if (ipv6().empty()) {
        lacks("no RDMA device with a global IPv6 address");
        return;
    }
    std::string port;
    const auto serving = server({}, port);
    const auto reading = run(client(ipv6(), port));
    expect_status(reading, 0);
    EXPECT_EQ(reading.out, kLine);
    expect_status(serving->finish(), 0);
}

TEST_F(Pair, ABoundAddressServesToo) {
    std::string port;
    const auto serving = server({"--bind", ipv4()}, port);
    EXPECT_EQ(run(client(ipv4(), port)).out, kLine);
    expect_status(serving->finish(), 0);
}

TEST_F(Pair, ThreeClientsAtOnceReadTheServersMessage) {
    std::string port;
    const auto serving =
        server({"--message", "grüße, \"quoted\" and  spaced", "--clients", "3"}, port);
    Command first(client(ipv4(), port));
    Command second(client(ipv4(), port));
    Command third(client(ipv4(), port));
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
        (void)run(client(ipv4(), port));
        (void)earlier->finish();
    }
    Command reading(client(ipv4(), port));
    ASSERT_TRUE(reading.wait_for_stderr("trying again"));
    Command serving({pair_tool(), "-s", "--port", port});
    const auto result = reading.finish();
    expect_status(result, 0);
    EXPECT_EQ(result.out, kLine);
    expect_status(serving.finish(), 0);
}

TEST_F(Pair, NoServerIsAFailureThatNamesItsAddressInTime) {
    const auto result = run({pair_tool(), "-c", ipv4(), "--port", "1", "--timeout", "2"});
    expect_status(result, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(ipv4() + ":1"));
    EXPECT_LT(result.seconds, 12);
}

TEST_F(Pair, AStoppedServerEndsWell) {
    std::string port;
    const auto serving = server({"--clients", "0"}, port);
    EXPECT_EQ(run(client(ipv4(), port)).out, kLine);
    EXPECT_EQ(run(client(ipv4(), port)).out, kLine);
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
        (void)run(client(ipv4(), port));
        (void)earlier->finish();
    }
    Command serving({"sh", "-c", "exec \"$0\" -s --port \"$1\" 2>&-", pair_tool(), port});
    EXPECT_EQ(run(client(ipv4(), port)).out, kLine);
    expect_status(serving.finish(), 0);
}

TEST_F(Pair, AReadThatTheDeviceRefusesIsAFailureThatSaysSo) {
    Command serving({"sh", "-c", "sleep 60 | \"$0\" --fault wrong-rkey:0 --address \"$1\" 1>&2",
                     faulty_server(), ipv4()});
    ASSERT_TRUE(serving.wait_for_stderr("\n"));
    std::string port = lines_of(serving.said_on_stderr()).at(0);
    port = port.substr(port.find(' ') + 1);
    const auto result = run({pair_tool(), "-c", ipv4(), "--port", port, "--timeout", "8"});
    expect_status(result, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr("remote access error"));
}

}  // namespace
}  // namespace rdma_read::test
