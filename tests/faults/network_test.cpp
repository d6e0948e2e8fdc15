// The rows in which the network loses, doubles, reorders or delays packets, or goes away.
#include "matrix.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>

namespace rdma_read::test {
namespace {

// Two software-RoCE devices at the ends of a cable (veth). Software RoCE hands packets to its own
// addresses over without any interface, and the kernel sends those to other addresses of the host
// through the loopback one; rules that come before the table of local addresses send them through
// the cable, where netem(8) sees them.
const std::string kLay = R"sh(set -e
ip link add rrf0 mtu 9000 type veth peer name rrf1 mtu 9000
for here in 0 1; do
    ip address add 198.51.100.$here/32 dev rrf$here
    ip link set rrf$here up
    echo 1 >/proc/sys/net/ipv4/conf/rrf$here/accept_local
    echo 0 >/proc/sys/net/ipv4/conf/rrf$here/rp_filter
done
echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
ip rule add pref 100 lookup local
ip rule delete pref 0
for here in 0 1; do
    there=$((1 - here))
    ip rule add pref 1$here iif lo to 198.51.100.$there lookup 8379$here
    ip rule add pref 2$here oif rrf$here to 198.51.100.$there lookup 8379$here
    rdma link add rrfx$here type rxe netdev rrf$here
done
)sh";
// What an interface forgets when it goes down.
const std::string kWay = R"sh(
for here in 0 1; do
    there=$((1 - here))
    ip route replace 198.51.100.$there dev rrf$here src 198.51.100.$here table 8379$here
    ip neighbour replace 198.51.100.$there lladdr "$(cat /sys/class/net/rrf$there/address)" dev rrf$here nud permanent
done
)sh";
const std::string kTakeAway = R"sh(
for here in 0 1; do
    rdma link delete rrfx$here
    ip rule delete pref 1$here
    ip rule delete pref 2$here
done
ip rule add pref 0 lookup local
ip rule delete pref 100
ip link delete rrf0
)sh";
const std::string kServer = "198.51.100.1";

CommandResult shell(const std::string& script) {
    return run({"sh", "-c", script}, {std::chrono::seconds(20), {}});
}

class Network : public FaultMatrix {
  protected:
    void SetUp() override {
        FaultMatrix::SetUp();
        if (IsSkipped() || HasFatalFailure()) {
            return;
        }
        if (geteuid() != 0) {
            lacks("only root can make devices");
            return;
        }
        const auto laid = shell("modprobe veth 2>/dev/null; " + kLay + kWay);
        if (laid.status != 0) {
            (void)shell(kTakeAway);
            lacks("two more devices cannot be made: " + told(laid));
        }
    }
    void TearDown() override {
        (void)shell(kTakeAway);
        FaultMatrix::TearDown();
    }

    static void expect_done(const std::string& script) {
        const auto result = shell(script);
        EXPECT_EQ(result.status, 0) << told(result);
    }
    static std::vector<std::string> reader(const PairServer& serving, int seconds) {
        auto words = pair_client(kServer, serving.port);
        words.insert(words.end(), {"--timeout", std::to_string(seconds)});
        return words;
    }
    static PairServer server(const std::string& size) {
        return start_pair_server({"--bind", kServer, "--clients", "0", "--size", size},
                                 {std::chrono::seconds(60), {}});
    }
    void expect_serves_on(const PairServer& serving) const {
        const auto again = run(reader(serving, 5), {std::chrono::seconds(20), {}});
        expect_status(again, 0);
        EXPECT_EQ(again.out, kPairLine);
        serving.command->send_signal(SIGTERM);
        expect_status(serving.command->finish(), 0);
    }

    // The whole way from the request to the goodbye over a bad cable; it passes or ends in time.
    Play bad_cable(const std::string& fault, const std::optional<int>& status, int seconds) {
        return {"network", fault, seconds + 8, [=, this] {
                    const PairServer serving = server("64K");
                    for (const std::string end : {"rrf0", "rrf1"}) {
                        expect_done("tc qdisc replace dev " + end + " root netem " + fault);
                    }
                    const auto reading =
                        run(reader(serving, seconds), {std::chrono::seconds(seconds + 5), {}});
                    EXPECT_FALSE(reading.timed_out) << told(reading);
                    expect_status(reading, status.value_or(reading.status == 0 ? 0 : 1));
                    EXPECT_EQ(reading.out, reading.status == 0 ? kPairLine : "") << told(reading);
                    EXPECT_EQ(reading.err.empty(), reading.status == 0) << told(reading);
                    for (const std::string end : {"rrf0", "rrf1"}) {
                        expect_done("tc qdisc delete dev " + end + " root");
                    }
                    expect_serves_on(serving);
                    return fmt::format("exit {}; serves on without it", reading.status);
                }};
    }

    // Something happens to the cable while a long read is under way.
    static Play in_the_middle(const std::string& what, const std::string& script,
                              const std::string& repair, const std::optional<int>& status,
                              int seconds) {
        return {
            "network", what, seconds + 10, [=] {
                const PairServer serving = server("64M");
                Command reading(reader(serving, seconds), {std::chrono::seconds(seconds + 6), {}});
                wait_for_packets(500, "rrfx1");
                Command changing({"sh", "-c", script}, {std::chrono::seconds(20), {}});
                const auto result = reading.finish();
                expect_status(changing.finish(), 0);
                EXPECT_FALSE(result.timed_out) << told(result);
                expect_status(result, status.value_or(result.status == 0 ? 0 : 1));
                EXPECT_EQ(result.out, result.status == 0 ? kPairLine : "") << told(result);
                expect_done(repair);
                serving.command->send_signal(SIGTERM);
                expect_status(serving.command->finish(), 0);
                const std::string said =
                    lines_of(result.err).empty() ? "" : lines_of(result.err).back();
                return fmt::format("exit {}{}{}", result.status, said.empty() ? "" : ": ",
                                   said.substr(0, 90));
            }};
    }
};

TEST_F(Network, ThatIsBadDelaysOrEndsARead) {
    play({bad_cable("delay 50ms", 0, 10), bad_cable("duplicate 30%", 0, 10),
          bad_cable("delay 10ms reorder 50% 50%", std::nullopt, 5),
          bad_cable("loss 5%", std::nullopt, 5), bad_cable("loss 20%", std::nullopt, 4),
          bad_cable("loss 100%", 1, 2)},
         Lanes::one);
}

TEST_F(Network, ThatGoesInTheMiddleOfAReadEndsItInTime) {
    play({in_the_middle("loss 100% in the middle", "tc qdisc replace dev rrf0 root netem loss 100%",
                        "tc qdisc delete dev rrf0 root", 1, 4),
          in_the_middle("ip link set down in the middle", "ip link set rrf1 down",
                        "ip link set rrf1 up; " + kWay, 1, 4),
          in_the_middle("ip link set down in the middle, and up again",
                        "ip link set rrf1 down; sleep 0.2; ip link set rrf1 up; " + kWay, "true",
                        std::nullopt, 10)},
         Lanes::one);
}

// The kernel may wait until nobody has the device open: whoever does must notice and end.
TEST_F(Network, ThatLosesItsDeviceEndsTheServerSoThatItCanGo) {
    const auto deleted = [](const PairServer& serving) {
        const auto deleting =
            run({"rdma", "link", "delete", "rrfx1"}, {std::chrono::seconds(15), {}});
        expect_status(deleting, 0);
        EXPECT_FALSE(deleting.timed_out) << "the device cannot go";
        const auto served = serving.command->finish();
        expect_status(served, 3);
        EXPECT_THAT(served.err, testing::HasSubstr("device rrfx1 was removed")) << told(served);
        expect_done("rdma link add rrfx1 type rxe netdev rrf1");
        return fmt::format("server: exit {}", served.status);
    };
    play(
        {{"server", "rdma link delete under an idle server on all addresses", 15,
          [=] {
              return deleted(start_pair_server({"--clients", "0"}, {std::chrono::seconds(30), {}}));
          }},
         {"server", "rdma link delete in the middle of a read", 20,
          [=] {
              const PairServer serving = server("64M");
              Command reading(reader(serving, 10), {std::chrono::seconds(20), {}});
              wait_for_packets(500, "rrfx1");
              std::string came = deleted(serving);
              return came + ", reader: " + expect_reader(reading.finish(), {1, ""});
          }}},
        Lanes::one);
}

}  // namespace
}  // namespace rdma_read::test
