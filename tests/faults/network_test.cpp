// The rows in which the network loses, doubles, reorders or delays packets, or goes away.
#include "matrix.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <regex>
#include <thread>

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
const std::string kBacklog = "/proc/sys/net/core/netdev_max_backlog";

CommandResult shell(const std::string& script) {
    return run({"sh", "-c", script}, {std::chrono::seconds(120), {}});
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
        // As many packets as a long read sends at once, which would be lost on the way otherwise.
        backlog_ = run({"cat", kBacklog}).out;
        const auto laid =
            shell("modprobe veth 2>/dev/null; echo 100000 >" + kBacklog + "; " + kLay + kWay);
        if (laid.status != 0) {
            (void)shell(kTakeAway);
            lacks("two more devices cannot be made: " + told(laid));
        }
    }
    void TearDown() override {
        (void)shell(kTakeAway);
        if (!backlog_.empty()) {
            (void)shell("echo " + backlog_.substr(0, backlog_.find('\n')) + " >" + kBacklog);
        }
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
        const auto again = run(reader(serving, 10), {std::chrono::seconds(20), {}});
        expect_status(again, 0);
        EXPECT_EQ(again.out, kPairLine);
        serving.command->send_signal(SIGTERM);
        expect_status(serving.command->finish(), 0);
    }

    // A cable on which every packet meets the same.
    struct BadCable {
        std::string what;
        std::string lay;     ///< a line of shell for each end, rrf$here
        std::string struck;  ///< what the kernel counts of it, as tc(8) says it
        double least = 0;    ///< seconds that the way over it takes at least
    };
    static BadCable delayed(int milliseconds) {
        // The request, the first message and the read each go and come back.
        return {fmt::format("delay {}ms", milliseconds),
                fmt::format("tc qdisc replace dev rrf$here root netem delay {}ms", milliseconds),
                " pkt", 6 * milliseconds / 1000.0};
    }
    static BadCable by_netem(const std::string& fault, const std::string& struck) {
        return {fault, "tc qdisc replace dev rrf$here root netem " + fault, struck};
    }
    // netem(8) loses by chance; this loses each so many-th packet where it arrives, so that the
    // sender does not know.
    static BadCable losing_one_in(int packets) {
        return {fmt::format("loss of one packet in {} ({} %)", packets, 100 / packets),
                fmt::format("tc qdisc replace dev rrf$here clsact && tc filter add dev rrf$here "
                            "ingress matchall action ok random determ drop {}",
                            packets),
                "dropped"};
    }
    static std::string at_both_ends(const std::string& line) {
        return "set -e; for here in 0 1; do " + line + "; done";
    }
    static void lay(const BadCable& cable) { expect_done(at_both_ends(cable.lay)); }
    // What the kernel counts at both ends together.
    static std::uint64_t struck(const BadCable& cable) {
        const auto said = shell(
            at_both_ends("tc -s qdisc show dev rrf$here; tc -s filter show dev rrf$here ingress"));
        EXPECT_EQ(said.status, 0) << told(said);
        const std::regex number(cable.struck == " pkt" ? "([0-9]+) pkt"
                                                       : cable.struck + " ([0-9]+)");
        std::uint64_t sum = 0;
        for (std::sregex_iterator at(said.out.begin(), said.out.end(), number), end; at != end;
             ++at) {
            sum += std::stoull((*at)[1]);
        }
        return sum;
    }
    static void mend() {
        expect_done(
            at_both_ends("tc qdisc delete dev rrf$here root 2>/dev/null || true; "
                         "tc qdisc delete dev rrf$here clsact 2>/dev/null || true"));
    }

    // The whole way from the request to the goodbye over a bad cable.
    Play bad_cable(const BadCable& cable, const std::string& size, int status, int seconds) {
        return {"network", cable.what, seconds + 12, [=, this] {
                    const PairServer serving = server(size);
                    lay(cable);
                    const auto reading =
                        run(reader(serving, seconds), {std::chrono::seconds(seconds + 5), {}});
                    const auto count = struck(cable);
                    mend();
                    EXPECT_GT(count, 0U) << "the cable was not bad";
                    EXPECT_GE(reading.seconds, cable.least) << told(reading);
                    std::string came = expect_reader(reading, {status, ""});
                    EXPECT_EQ(reading.err.empty(), status == 0) << told(reading);
                    expect_serves_on(serving);
                    return fmt::format("{}, {} {}; serves on without it", came,
                                       cable.struck == " pkt" ? "packets" : cable.struck, count);
                }};
    }

    // A run of two ranks over a bad cable, which passes.
    Play bad_cable_of_a_run(const BadCable& cable, int iterations, int seconds) {
        return {"network", "np 2: " + cable.what, seconds + 20, [=, this] {
                    lay(cable);
                    const auto result = run(
                        launch(2, {"--server-ip", kServer, "--size", "4K", "--iterations",
                                   std::to_string(iterations), "--timeout", std::to_string(seconds),
                                   "--progress", "never", "--json", report_path()}),
                        {std::chrono::seconds(seconds + 25), {}});
                    const auto count = struck(cable);
                    mend();
                    EXPECT_GT(count, 0U) << "the cable was not bad";
                    expect_status(result, 0);
                    const auto reader = result_of(report(), 1);
                    EXPECT_EQ(reader.at("outcome"), "PASS") << told(result);
                    EXPECT_TRUE(reader.at("phase").is_null()) << told(result);
                    const auto& sizes = reader.at("sizes");
                    EXPECT_EQ(sizes.size(), 1U);
                    if (sizes.size() == 1) {
                        EXPECT_GE(sizes.at(0).at("reads"), iterations);
                        EXPECT_EQ(sizes.at(0).at("bytes_verified"), sizes.at(0).at("bytes_read"));
                        EXPECT_GE(sizes.at(0).at("latency_us").at("min"), cable.least / 3 * 1e6);
                    }
                    return fmt::format(
                        "{} -, {} {}, exit {}", reader.at("outcome").get<std::string>(),
                        cable.struck == " pkt" ? "packets" : cable.struck, count, result.status);
                }};
    }

    // A reader that waits for its read, which this fault meets then: on a short cable software RoCE
    // completes a read before the call that posts it returns.
    Play while_waiting(const std::string& fault, const End& end) {
        return {"reader", fault + ", while it waits", 12, [=, this] {
                    const PairServer serving = server("64K");
                    const BadCable cable = delayed(150);
                    lay(cable);
                    const std::string log = new_log();
                    const auto reading = run(reader(serving, 10), with_faults(fault, log, 20));
                    mend();
                    expect_struck(fault, log);
                    std::string came = expect_reader(reading, end);
                    expect_serves_on(serving);
                    return came + "; serves on";
                }};
    }

    // Something happens to the cable while a long read is under way.
    static Play in_the_middle(const std::string& what, const std::string& script,
                              const std::string& repair, const End& end, int seconds) {
        return {
            "network", what, seconds + 10, [=] {
                // Where it must not be done before something happens to the cable, it is longer.
                const PairServer serving = server(end.status == 0 ? "64M" : "128M");
                const std::uint64_t before = packets_sent("rrfx1");
                Command reading(reader(serving, seconds), {std::chrono::seconds(seconds + 15), {}});
                wait_for_packets_since(before, 500, "rrfx1");
                Command changing({"sh", "-c", script}, {std::chrono::seconds(20), {}});
                const auto result = reading.finish();
                expect_status(changing.finish(), 0);
                std::string came = expect_reader(result, end);
                expect_done(repair);
                serving.command->send_signal(SIGTERM);
                expect_status(serving.command->finish(), 0);
                return came;
            }};
    }

  private:
    std::string backlog_;
};

TEST_F(Network, ThatIsBadDelaysOrEndsARead) {
    play({bad_cable(delayed(50), "64K", 0, 10),
          bad_cable(by_netem("duplicate 100%", " pkt"), "64K", 0, 10),
          bad_cable(by_netem("delay 10ms reorder 100% gap 4", "requeues"), "32K", 0, 20),
          bad_cable(losing_one_in(20), "128K", 0, 20), bad_cable(losing_one_in(5), "16K", 0, 30),
          bad_cable(by_netem("loss 100%", "dropped"), "64K", 1, 2)},
         Lanes::one);
}

TEST_F(Network, ThatIsBadLetsARunPass) {
    play({bad_cable_of_a_run(delayed(50), 20, 30),
          bad_cable_of_a_run(by_netem("duplicate 100%", " pkt"), 20, 30),
          bad_cable_of_a_run(by_netem("delay 10ms reorder 100% gap 4", "requeues"), 20, 60),
          bad_cable_of_a_run(losing_one_in(20), 20, 60),
          bad_cable_of_a_run(losing_one_in(5), 4, 60)},
         Lanes::one);
}

TEST_F(Network, ThatIsSlowLetsAReaderMeetAFaultWhileItWaits) {
    const End ended{1, "ended while reads were in flight"};
    // The queue may be armed still from the wait for the descriptor, so that one read need not arm
    // it; where the parts of a read wait one after another, one of them must.
    const std::string no_arming =
        "limit:max_msg_sz:16384,limit:max_qp_wr:2,ibv_req_notify_cq:r1:EIO";
    play({while_waiting("arrive:1:UNKNOWN", ended), while_waiting("arrive:1:UNKNOWN*100", ended),
          while_waiting("arrive:1:TIMEWAIT_EXIT", ended),
          while_waiting("arrive:1:DEVICE_REMOVAL", ended),
          while_waiting("arrive:1:ADDR_CHANGE", {}), while_waiting("arrive:1:ADDR_CHANGE*100", {}),
          while_waiting("ibv_poll_cq:r1:EIO", {1, "ibv_poll_cq"}),
          while_waiting(no_arming, {1, "ibv_req_notify_cq"}),
          while_waiting("arrive:1:ADDR_CHANGE,rdma_get_cm_event:r1:EIO", {1, "rdma_get_cm_event"}),
          while_waiting("arrive:1:ADDR_CHANGE,rdma_ack_cm_event:r1:EINVAL",
                        {1, "rdma_ack_cm_event"})},
         Lanes::one);
}

TEST_F(Network, ThatGoesInTheMiddleOfAReadEndsItInTime) {
    const End late{1, "did not complete before the deadline"};
    play({in_the_middle("loss 100% in the middle", "tc qdisc replace dev rrf0 root netem loss 100%",
                        "tc qdisc delete dev rrf0 root", late, 4),
          in_the_middle("ip link set down in the middle", "ip link set rrf1 down",
                        "ip link set rrf1 up; " + kWay, late, 4),
          in_the_middle("ip link set down in the middle, and up again",
                        "ip link set rrf1 down; sleep 0.2; ip link set rrf1 up; " + kWay, "true",
                        {}, 30),
          in_the_middle("loss 100% in the middle, for half a second",
                        "tc qdisc replace dev rrf0 root netem loss 100%; sleep 0.5; "
                        "tc qdisc delete dev rrf0 root",
                        "true", {}, 30),
          {"reader", "SIGSTOP in the middle of a read, SIGCONT after its deadline", 15,
           [&late] {
               const PairServer serving = server("128M");
               const std::uint64_t before = packets_sent("rrfx1");
               Command reading(reader(serving, 3), {std::chrono::seconds(25), {}});
               wait_for_packets_since(before, 500, "rrfx1");
               // What is in flight may arrive also while it is stopped.
               expect_done("tc qdisc replace dev rrf0 root netem loss 100%");
               reading.send_signal(SIGSTOP);
               std::this_thread::sleep_for(std::chrono::seconds(4));
               reading.send_signal(SIGCONT);
               const auto continued = std::chrono::steady_clock::now();
               std::string came = expect_reader(reading.finish(), late);
               EXPECT_LT(std::chrono::steady_clock::now() - continued, std::chrono::seconds(2));
               expect_done("tc qdisc delete dev rrf0 root");
               serving.command->send_signal(SIGTERM);
               expect_status(serving.command->finish(), 0);
               return came;
           }}},
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
              const PairServer serving = server("128M");
              const std::uint64_t before = packets_sent("rrfx1");
              Command reading(reader(serving, 10), {std::chrono::seconds(25), {}});
              wait_for_packets_since(before, 500, "rrfx1");
              std::string came = deleted(serving);
              return came + ", reader: " + expect_reader(reading.finish(), {1, ""});
          }}},
        Lanes::one);
}

}  // namespace
}  // namespace rdma_read::test
