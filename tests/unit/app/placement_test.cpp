// Where readers run, on machines that hwloc pretends and on this one.
#include "app/placement.hpp"

#include "pretended_sysfs.hpp"

#include <gmock/gmock.h>

#include <future>
#include <utility>

namespace rdma_read::app {
namespace {

using ::testing::Optional;

// Two NUMA nodes of four cores with two processors each: node 0 has 0-7, node 1 has 8-15, and 0 and
// 1 are one core.
constexpr const char* kTwoNodes = "node:2 core:4 pu:2";
constexpr const char* kOneNode = "node:1 core:4 pu:1";

CpuSet cpus(const char* list) {
    return CpuSet::parse(list).value();
}

class PretendedMachine : public ::testing::Test {
  protected:
    [[nodiscard]] Placement machine(const std::string& synthetic) const {
        return Placement({.sysfs = sysfs_.root(), .synthetic = synthetic});
    }
    PretendedSysfs sysfs_;
};

using Topology = PretendedMachine;

TEST_F(Topology, KnowsNodesAndCores) {
    const Placement placement = machine(kTwoNodes);
    EXPECT_EQ(placement.allowed(), cpus("0-15"));
    EXPECT_EQ(placement.nodes(cpus("0-3")), CpuSet({0}));
    EXPECT_EQ(placement.nodes(cpus("7-8")), CpuSet({0, 1}));
    EXPECT_EQ(placement.nodes(cpus("99")), CpuSet());
    EXPECT_EQ(placement.cores(cpus("0-1,3,8")), cpus("0,2,8"));
    EXPECT_EQ(placement.cores(cpus("99")), cpus("99"));
}

TEST_F(Topology, KnowsNothingOfAMachineThatHwlocCannotLoad) {
    sysfs_.add_device("mlx5_0", "0-3");
    const Placement placement = machine("no such thing");
    EXPECT_TRUE(placement.allowed().empty());
    EXPECT_FALSE(placement.thread());
    EXPECT_TRUE(placement.nodes(cpus("0")).empty());
    EXPECT_EQ(placement.cores(cpus("0-1")), cpus("0-1"));
    EXPECT_FALSE(placement.bound(cpus("0")));
    EXPECT_FALSE(placement.choose(cpus("0-1"), "mlx5_0"));
    EXPECT_FALSE(placement.bind_near("mlx5_0"));
}

TEST_F(Topology, IsNeverBoundTo) {
    sysfs_.add_device("mlx5_0", "0");
    const Placement placement = machine(kTwoNodes);
    EXPECT_FALSE(placement.thread());
    EXPECT_FALSE(placement.bind_near("mlx5_0"));
}

using Near = PretendedMachine;

TEST_F(Near, IsWhatTheKernelSaysOfTheDevice) {
    sysfs_.add_device("mlx5_0", "8-15");
    EXPECT_THAT(machine(kTwoNodes).near("mlx5_0"), Optional(cpus("8-15")));
}

TEST_F(Near, IsUnknownForDevicesWithoutALocality) {
    sysfs_.add_device("empty", "");
    sysfs_.add_device("nonsense", "ff,ffff");
    sysfs_.write("class/infiniband/rxe0/node_type", "1: CA\n");
    sysfs_.add_device("../class", "0-3");
    const Placement placement = machine(kTwoNodes);
    for (const char* device : {"absent", "empty", "nonsense", "rxe0", "", ".", "..", "../class"}) {
        EXPECT_FALSE(placement.near(device)) << device;
    }
}

TEST_F(Near, IsUnknownWhenAllNodesAreSaidToBeNear) {
    sysfs_.add_device("mlx5_0", "0-15");
    EXPECT_FALSE(machine(kTwoNodes).near("mlx5_0"));
}

TEST_F(Near, IsTheWholeMachineWhenItHasOneNode) {
    sysfs_.add_device("mlx5_0", "0-3");
    EXPECT_THAT(machine(kOneNode).near("mlx5_0"), Optional(cpus("0-3")));
}

using Bound = PretendedMachine;

TEST_F(Bound, IsAThreadThatMayUseLessThanAllowed) {
    const Placement placement = machine(kTwoNodes);
    EXPECT_FALSE(placement.bound(cpus("0-15")));
    EXPECT_FALSE(placement.bound(cpus("0-31"))) << "also on processors that hwloc does not see";
    EXPECT_TRUE(placement.bound(cpus("0-14")));
    EXPECT_TRUE(placement.bound(cpus("3")));
}

class Choice : public PretendedMachine {
  protected:
    void SetUp() override { sysfs_.add_device("mlx5_0", "0-7"); }
    // By whom all processors may be used.
    [[nodiscard]] std::optional<CpuSet> choose(const char* machine_text, const char* device) const {
        const Placement placement = machine(machine_text);
        return placement.choose(placement.allowed(), device);
    }
};

TEST_F(Choice, IsEverythingNear) {
    EXPECT_THAT(choose(kTwoNodes, "mlx5_0"), Optional(cpus("0-7")));
}

TEST_F(Choice, IsNoneForADeviceThatIsNearNothing) {
    EXPECT_FALSE(choose(kTwoNodes, "rxe0"));
}

TEST_F(Choice, IsNoneWhenEverythingIsNear) {
    sysfs_.add_device("mlx5_1", "0-3");
    EXPECT_FALSE(choose(kOneNode, "mlx5_1"));
}

TEST_F(Choice, IsNoneForAThreadThatALauncherBound) {
    const Placement placement = machine(kTwoNodes);
    for (const char* thread : {"8-15", "0-7", "0", "0-14"}) {
        EXPECT_FALSE(placement.choose(cpus(thread), "mlx5_0")) << thread;
    }
}

// This machine, with a device near the last of its processors.
class ThisMachine : public testing::Test {
  protected:
    void SetUp() override {
        before_ = placement_.thread().value();
        last_ = CpuSet({before_.cpus().back()});
        sysfs_.add_device("near_last", last_.to_string());
    }
    [[nodiscard]] bool can_bind() const { return !placement_.bound(before_) && before_.size() > 1; }

    PretendedSysfs sysfs_;
    Placement placement_{{.sysfs = sysfs_.root(), .synthetic = {}}};
    CpuSet before_;
    CpuSet last_;
};

TEST_F(ThisMachine, SaysWhereItsThreadsMayRun) {
    EXPECT_FALSE(before_.empty());
    EXPECT_FALSE(placement_.allowed().empty());
    EXPECT_FALSE(placement_.near("no such device"));
    EXPECT_FALSE(placement_.bind_near("no such device"));
}

TEST_F(ThisMachine, IsAsBeforeWhenABindingEnds) {
    if (!can_bind()) {
        GTEST_SKIP() << "one processor, or bound already: " << before_.to_string();
    }
    {
        const Binding binding = placement_.bind_near("near_last");
        ASSERT_TRUE(binding);
        EXPECT_EQ(binding.cpus(), last_);
        EXPECT_THAT(placement_.thread(), Optional(last_));
        EXPECT_TRUE(placement_.bound(last_));
        EXPECT_FALSE(placement_.bind_near("near_last")) << "bound already, by itself";
        EXPECT_THAT(placement_.thread(), Optional(last_));
    }
    EXPECT_THAT(placement_.thread(), Optional(before_));
}

TEST_F(ThisMachine, StaysBoundUntilTheLastOwnerOfABindingEnds) {
    if (!can_bind()) {
        GTEST_SKIP() << "one processor, or bound already: " << before_.to_string();
    }
    {
        Binding first = placement_.bind_near("near_last");
        const Binding second = std::move(first);
        EXPECT_THAT(placement_.thread(), Optional(last_));
    }
    EXPECT_THAT(placement_.thread(), Optional(before_));
}

TEST_F(ThisMachine, LeavesOtherThreadsWhereTheyAre) {
    // Bound and let go on a thread of its own.
    std::async(std::launch::async, [&] {
        const Binding binding = placement_.bind_near("near_last");
    }).get();
    EXPECT_THAT(placement_.thread(), Optional(before_));
}

}  // namespace
}  // namespace rdma_read::app
