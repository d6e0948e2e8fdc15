// Which addresses lead to devices, and which of them is chosen.
#include "rdma_read/rdma/device.hpp"

#include "rdma_read/rdma/error.hpp"
#include "support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

namespace rdma_read::rdma {
namespace {

using fakes::address_of;
using fakes::error_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

DevicePort port_of(const std::string& device, std::uint8_t number, const std::string& address,
                   const std::string& interface, bool active = true) {
    DevicePort port;
    port.device = device;
    port.port_num = number;
    port.address = address_of(address);
    port.interface = interface;
    port.active = active;
    port.state = active ? "ACTIVE" : "DOWN";
    return port;
}

class DeviceTest : public fakes::WorldTest {
  protected:
    const std::vector<DevicePort> ports_{
        port_of("dev0", 1, "10.0.0.1", "eth0", false), port_of("dev1", 1, "10.0.1.1", "eth1"),
        port_of("dev1", 2, "10.0.2.1", "eth2"), port_of("dev2", 1, "fd00::1", "eth3")};

    [[nodiscard]] std::string chosen(const PortWish& wish) const {
        return choose_port(ports_, wish).port.address.to_string();
    }
};

TEST_F(DeviceTest, TheFirstActivePortIsChosenAndTheOthersAreTold) {
    const PortChoice choice = choose_port(ports_, {});
    EXPECT_EQ(choice.port.address.to_string(), "10.0.1.1");
    ASSERT_EQ(choice.others.size(), 2U);
    EXPECT_EQ(choice.others[0].address.to_string(), "10.0.2.1");
    EXPECT_EQ(choice.others[1].address.to_string(), "fd00::1");
}

TEST_F(DeviceTest, Ipv4IsChosenBeforeIpv6WhateverTheOrder) {
    const std::vector<DevicePort> ports{port_of("dev0", 1, "fd00::1", "eth0"),
                                        port_of("dev0", 1, "10.0.0.1", "eth0")};
    EXPECT_EQ(choose_port(ports, {}).port.address.to_string(), "10.0.0.1");
}

TEST_F(DeviceTest, Ipv6IsChosenWhereThereIsNothingElse) {
    EXPECT_EQ(choose_port({port_of("dev0", 1, "fd00::1", "eth0")}, {}).port.address.to_string(),
              "fd00::1");
}

TEST_F(DeviceTest, EachWishIsKept) {
    PortWish by_address;
    by_address.address = address_of("10.0.2.1", 7471);
    EXPECT_EQ(chosen(by_address), "10.0.2.1");
    PortWish by_interface;
    by_interface.interface = "eth3";
    EXPECT_EQ(chosen(by_interface), "fd00::1");
    PortWish by_device;
    by_device.device = "dev2";
    EXPECT_EQ(chosen(by_device), "fd00::1");
    PortWish by_port;
    by_port.device = "dev1";
    by_port.port_num = 2;
    EXPECT_EQ(chosen(by_port), "10.0.2.1");
    EXPECT_TRUE(choose_port(ports_, by_port).others.empty());
}

TEST_F(DeviceTest, AWishThatNothingFitsIsNamedWithWhatIsUsable) {
    const auto text = [&](const PortWish& wish) {
        const auto error = error_of([&] { (void)choose_port(ports_, wish); });
        EXPECT_EQ(error->failure(), Failure::bad_address);
        EXPECT_EQ(error->phase(), Phase::device);
        EXPECT_FALSE(error->hint().empty());
        EXPECT_THAT(error->what(),
                    AllOf(HasSubstr("dev1:1 10.0.1.1 (eth1, ACTIVE)"), HasSubstr("fd00::1"),
                          Not(HasSubstr("dev0")), Not(HasSubstr("\n"))));
        return std::string(error->what());
    };
    world.add_interface("lan0", "192.168.7.7");
    PortWish loopback;
    loopback.address = address_of("127.0.0.1");
    EXPECT_THAT(text(loopback), HasSubstr("address 127.0.0.1 is loopback"));
    PortWish wildcard;
    wildcard.address = address_of("0.0.0.0");
    EXPECT_THAT(text(wildcard), HasSubstr("address 0.0.0.0 is the wildcard"));
    PortWish link_local;
    link_local.address = address_of("fe80::9");
    EXPECT_THAT(text(link_local), HasSubstr("address fe80::9 is link-local"));
    PortWish elsewhere;
    elsewhere.address = address_of("192.168.7.8");
    EXPECT_THAT(text(elsewhere), HasSubstr("address 192.168.7.8 is no address of this host"));
    PortWish no_device;
    no_device.address = address_of("192.168.7.7");
    EXPECT_THAT(text(no_device), HasSubstr("belongs to this host, but to no RDMA device"));
    PortWish contradiction;
    contradiction.address = address_of("10.0.1.1");
    contradiction.interface = "eth2";
    EXPECT_THAT(text(contradiction),
                AllOf(HasSubstr("address 10.0.1.1 does not fit"), HasSubstr("interface eth2")));
    PortWish by_device;
    by_device.device = "nope";
    EXPECT_THAT(text(by_device), HasSubstr("(device nope)"));
    by_device.device = "dev1";
    by_device.port_num = 3;
    EXPECT_THAT(text(by_device), HasSubstr("(device dev1:3)"));
    PortWish number;
    number.port_num = 9;
    EXPECT_THAT(text(number), HasSubstr("(port 9)"));
}

TEST_F(DeviceTest, AWishedPortThatIsDownIsNotTaken) {
    PortWish wish;
    wish.address = address_of("10.0.0.1");
    EXPECT_THAT(error_of([&] { (void)choose_port(ports_, wish); })->what(),
                HasSubstr("its port is not ACTIVE"));
}

TEST_F(DeviceTest, WhereAllPortsAreDownTheyAreListed) {
    const auto error =
        error_of([&] { (void)choose_port({port_of("dev0", 1, "10.0.0.1", "eth0", false)}, {}); });
    EXPECT_EQ(error->failure(), Failure::no_device);
    EXPECT_THAT(error->what(), HasSubstr("no RDMA port is ACTIVE; present: dev0:1 10.0.0.1 (eth0, "
                                         "DOWN)"));
}

TEST_F(DeviceTest, WhereNoAddressLeadsToADeviceTheDevicesAreListed) {
    const auto error = error_of([] { (void)choose_port({}, {}); });
    EXPECT_EQ(error->failure(), Failure::no_device);
    EXPECT_THAT(error->what(), HasSubstr("(devices: fake0)"));
    EXPECT_THAT(error->hint(), HasSubstr("rdma link"));
}

TEST_F(DeviceTest, WhereTheKernelHasNoRdmaThereAreNoNames) {
    world.fail("ibv_get_device_list", ENOSYS);
    EXPECT_THAT(device_names(), IsEmpty());
    EXPECT_THAT(device_names(), ElementsAre("fake0"));
}

TEST_F(DeviceTest, NoPortsAreDescribedAsNone) {
    EXPECT_EQ(describe(std::vector<DevicePort>{}), "none");
}

TEST_F(DeviceTest, ListsEveryRoutableAddressThatADeviceHasIpv4First) {
    world.add_device("fake1", {"fd00::5", "10.0.5.5", "127.0.0.1", "fe80::5"});
    world.add_interface("lo", "127.0.0.1");
    world.add_interface("eth0", "not an address");
    world.add_interface("eth0", "fd00::5");
    world.add_interface("eth0", "fe80::5");
    world.add_interface("eth1", "192.168.0.1");
    world.add_interface("eth0", "10.0.5.5");
    world.add_interface("eth2", "10.0.0.1");
    const EventChannel channel;
    const auto ports = list_device_ports(channel);
    EXPECT_EQ(describe(ports),
              "fake1:1 10.0.5.5 (eth0, ACTIVE), fake0:1 10.0.0.1 (eth2, ACTIVE), fake1:1 fd00::5 "
              "(eth0, ACTIVE)");
    EXPECT_EQ(ports.front().address.port(), 0);
}

TEST_F(DeviceTest, ALaterAddressIsListedAlsoWhenAnEarlierOneFails) {
    world.add_interface("eth0", "10.0.0.1");
    world.add_interface("eth1", "10.0.0.1");
    world.fail("ibv_query_port", EIO);
    const EventChannel channel;
    EXPECT_EQ(describe(list_device_ports(channel)), "fake0:1 10.0.0.1 (eth1, ACTIVE)");
}

TEST_F(DeviceTest, AHostWhoseAddressesCannotBeListedIsAnError) {
    world.fail("getifaddrs", EMFILE);
    const EventChannel channel;
    EXPECT_THAT(error_of([&] { (void)list_device_ports(channel); })->what(),
                HasSubstr("getifaddrs"));
}

TEST_F(DeviceTest, APortTellsItsStateLinkMtuAndRate) {
    const DevicePort port = query_port(&device.context, 1);
    EXPECT_EQ(port.device, "fake0");
    EXPECT_EQ(port.port_num, 1);
    EXPECT_TRUE(port.active);
    EXPECT_EQ(port.state, "ACTIVE");
    EXPECT_EQ(port.link_layer, "Ethernet");
    EXPECT_EQ(port.mtu, 4096U);
    EXPECT_DOUBLE_EQ(port.rate_gbps, 100);
}

TEST_F(DeviceTest, EveryWidthAndSpeedOfTheSpecificationIsARate) {
    const auto rate = [&](std::uint8_t width, std::uint8_t speed) {
        device.port.active_width = width;
        device.port.active_speed = speed;
        return query_port(&device.context, 1).rate_gbps;
    };
    EXPECT_DOUBLE_EQ(rate(1, 1), 2.5);
    EXPECT_DOUBLE_EQ(rate(2, 2), 20);
    EXPECT_DOUBLE_EQ(rate(2, 4), 40);
    EXPECT_DOUBLE_EQ(rate(2, 8), 40);
    EXPECT_DOUBLE_EQ(rate(2, 16), 56);
    EXPECT_DOUBLE_EQ(rate(2, 64), 200);
    EXPECT_DOUBLE_EQ(rate(2, 128), 400);
    EXPECT_DOUBLE_EQ(rate(4, 32), 200);
    EXPECT_DOUBLE_EQ(rate(8, 32), 300);
    EXPECT_DOUBLE_EQ(rate(16, 64), 100);
    EXPECT_DOUBLE_EQ(rate(0, 32), 0);
    EXPECT_DOUBLE_EQ(rate(2, 0), 0);
}

TEST_F(DeviceTest, TheRateOfOldInfiniBandIsThatOfTheDataWithoutItsCoding) {
    const auto rate = [&](std::uint8_t speed) {
        device.port.link_layer = IBV_LINK_LAYER_INFINIBAND;
        device.port.active_width = 2;
        device.port.active_speed = speed;
        return query_port(&device.context, 1).rate_gbps;
    };
    EXPECT_DOUBLE_EQ(rate(1), 8);
    EXPECT_DOUBLE_EQ(rate(2), 16);
    EXPECT_DOUBLE_EQ(rate(4), 32);
    EXPECT_DOUBLE_EQ(rate(8), 40);
    EXPECT_DOUBLE_EQ(rate(16), 56);
    EXPECT_DOUBLE_EQ(rate(32), 100);
}

TEST_F(DeviceTest, EveryPortStateHasAName) {
    const std::vector<std::pair<ibv_port_state, std::string>> names{
        {IBV_PORT_DOWN, "DOWN"},
        {IBV_PORT_INIT, "INIT"},
        {IBV_PORT_ARMED, "ARMED"},
        {IBV_PORT_ACTIVE, "ACTIVE"},
        {IBV_PORT_ACTIVE_DEFER, "ACTIVE_DEFER"},
        {IBV_PORT_NOP, "?"}};
    for (const auto& [state, name] : names) {
        device.port.state = state;
        EXPECT_EQ(query_port(&device.context, 1).state, name);
        EXPECT_EQ(query_port(&device.context, 1).active, state == IBV_PORT_ACTIVE);
    }
}

TEST_F(DeviceTest, WhatADeviceDoesNotTellIsUnknownNotInvented) {
    device.port.active_mtu = static_cast<ibv_mtu>(0);
    device.port.link_layer = IBV_LINK_LAYER_UNSPECIFIED;
    EXPECT_EQ(query_port(&device.context, 1).mtu, 0U);
    EXPECT_EQ(query_port(&device.context, 1).link_layer, "?");
    device.port.active_mtu = static_cast<ibv_mtu>(7);
    device.port.link_layer = IBV_LINK_LAYER_INFINIBAND;
    EXPECT_EQ(query_port(&device.context, 1).mtu, 0U);
    EXPECT_EQ(query_port(&device.context, 1).link_layer, "InfiniBand");
}

}  // namespace
}  // namespace rdma_read::rdma
