// Claims about the server's address: a right one is chosen, a wrong one is refused by name.
#include "device_test.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

namespace rdma_read::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ServerAddress : public DeviceTest {
  protected:
    void expect_refused(const std::string& address) {
        const auto result =
            run(launch(3, {"--server-ip", address}), {std::chrono::seconds(60), {}});
        expect_status(result, 3);
        EXPECT_THAT(lines_of(result.err),
                    Contains(AllOf(StartsWith("rdma_read_mpi:"), HasSubstr(address),
                                   HasSubstr("usable here: " + device() + ":1 " + ipv4()))))
            << told(result);
        EXPECT_THAT(lines_of(result.out), Contains(StartsWith("FAIL  0 of 2 readers")));
    }

    // Runs in a mount namespace in which this host's own name leads to `address`.
    void expect_right_choice_with_host_name_at(const std::string& address) {
        if (geteuid() != 0) {
            lacks("only root can give the host's name another address");
            return;
        }
        const auto hosts = folder() / "hosts";
        std::ofstream(hosts) << address << " localhost\n"
                             << address << " " << run({"uname", "-n"}).out;
        std::vector<std::string> words{
            "unshare", "-m", "sh", "-c", "mount --bind \"$0\" /etc/hosts && exec \"$@\"", hosts};
        const auto command = launch(3, {"--iterations", "10", "--json", report_path()});
        words.insert(words.end(), command.begin(), command.end());
        const auto result = run(words);
        expect_status(result, 0);
        EXPECT_EQ(report().at("servers").at(0).at("address"), ipv4());
    }
};

// A net interface for the time of a test; with a software-RoCE device on it if it has a name.
class ExtraInterface {
  public:
    ExtraInterface(const std::string& name, const std::string& address, const std::string& device)
        : name_(name), device_(device) {
        std::string script = "set -e; ip link add " + name + " type dummy; ";
        if (!address.empty()) {
            script += "ip addr add " + address + "/24 dev " + name + "; ";
        }
        script += "ip link set " + name + " mtu 9000 up; ";
        if (!device.empty()) {
            script += "rdma link add " + device + " type rxe netdev " + name;
        }
        ready_ = run({"sh", "-c", script});
    }
    ExtraInterface(const ExtraInterface&) = delete;
    ExtraInterface& operator=(const ExtraInterface&) = delete;
    ExtraInterface(ExtraInterface&&) = delete;
    ExtraInterface& operator=(ExtraInterface&&) = delete;
    ~ExtraInterface() {
        if (!device_.empty()) {
            run({"rdma", "link", "delete", device_});
        }
        run({"ip", "link", "delete", name_});
    }
    [[nodiscard]] bool is_ready() const { return ready_.status == 0; }
    [[nodiscard]] std::string why_not() const { return told(ready_); }

  private:
    std::string name_;
    std::string device_;
    CommandResult ready_;
};

TEST_F(ServerAddress, OfNoRdmaDeviceIsRefusedWithTheUsableOnes) {
    const ExtraInterface plain("rrplain0", "198.51.100.7", "");
    if (!plain.is_ready()) {
        lacks("no net interface can be added: " + plain.why_not());
        return;
    }
    expect_refused("198.51.100.7");
}

TEST_F(ServerAddress, OfAnotherHostIsRefusedWithTheUsableOnes) {
    expect_refused("203.0.113.9");
}

TEST_F(ServerAddress, OfTheLoopbackIsRefusedWithTheUsableOnes) {
    expect_refused("127.0.0.1");
}

TEST_F(ServerAddress, IsRightWhenTheHostNameLeadsTo127001) {
    expect_right_choice_with_host_name_at("127.0.0.1");
}

TEST_F(ServerAddress, IsRightWhenTheHostNameLeadsTo127011) {
    expect_right_choice_with_host_name_at("127.0.1.1");
}

TEST_F(ServerAddress, OfAnInterfaceThatDoesNotExistIsRefusedByName) {
    const auto result = run(launch(2, {"--interface", "nosuch0"}));
    expect_status(result, 3);
    EXPECT_THAT(result.err, AllOf(HasSubstr("nosuch0"), HasSubstr("usable here")));
}

TEST_F(ServerAddress, OfTheSecondDeviceIsTakenWhenTheFirstHasNone) {
    const ExtraInterface without_address("rrnone0", "", "arxe0");
    if (!without_address.is_ready()) {
        lacks("no second device can be made: " + without_address.why_not());
        return;
    }
    const auto result = run(launch(2, {"--iterations", "10", "--json", report_path()}));
    expect_status(result, 0);
    EXPECT_EQ(report().at("servers").at(0).at("device"), device());
}

TEST_F(ServerAddress, OfTheSecondDeviceIsTakenWhenTheFirstIsDown) {
    const ExtraInterface second("rrsecond0", "198.51.100.8", "rrxe1");
    if (!second.is_ready()) {
        lacks("no second device can be made: " + second.why_not());
        return;
    }
    const std::string first =
        lines_of(run({"sh", "-c", "ip -o addr show to " + ipv4() + " | awk '{print $2}'"}).out)
            .at(0);
    // Kept addresses make the change complete to undo.
    run({"sh", "-c",
         "echo 1 > /proc/sys/net/ipv6/conf/" + first + "/keep_addr_on_down; ip link set " + first
             + " down"});
    const auto result = run(launch(2, {"--iterations", "10", "--json", report_path()}));
    run({"ip", "link", "set", first, "up"});
    expect_status(result, 0);
    const auto server = report().at("servers").at(0);
    EXPECT_EQ(server.at("device"), "rrxe1");
    EXPECT_EQ(server.at("address"), "198.51.100.8");
    EXPECT_EQ(result_of(report(), 1).at("outcome"), "PASS");
}

TEST_F(ServerAddress, IsSaidWhenThereAreSeveralToChooseFrom) {
    const ExtraInterface second("rrsecond0", "198.51.100.8", "rrxe1");
    if (!second.is_ready()) {
        lacks("no second device can be made: " + second.why_not());
        return;
    }
    const auto result = run(launch(2, {"--iterations", "10"}));
    expect_status(result, 0);
    EXPECT_THAT(result.err, AllOf(HasSubstr("listens on " + device() + ":1 " + ipv4()),
                                  HasSubstr("also usable"), HasSubstr("198.51.100.8")));
    const auto chosen =
        run(launch(2, {"--iterations", "10", "--device", "rrxe1:1", "--json", report_path()}));
    expect_status(chosen, 0);
    EXPECT_EQ(report().at("servers").at(0).at("address"), "198.51.100.8");
}

}  // namespace
}  // namespace rdma_read::test
