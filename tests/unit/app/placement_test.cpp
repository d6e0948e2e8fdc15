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
    EXPECT_FALSE(placement.choose(cpus("0-1"), "mlx5_0", LocalReader{}));
    EXPECT_FALSE(placement.bind_near("mlx5_0", LocalReader{}));
}

TEST_F(Topology, IsNeverBoundTo) {
    sysfs_.add_device("mlx5_0", "0");
    const Placement placement = machine(kTwoNodes);
    EXPECT_FALSE(placement.thread());
    EXPECT_FALSE(placement.bind_near("mlx5_0", LocalReader{}));
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
    [[nodiscard]] std::optional<CpuChoice> choose(const char* machine_text, const char* device,
                                                  std::optional<LocalReader> reader) const {
        const Placement placement = machine(machine_text);
        return placement.choose(placement.allowed(), device, reader);
    }
};

TEST_F(Choice, IsEverythingNearForAReaderThatDoesNotKnowTheOthers) {
    const auto choice = choose(kTwoNodes, "mlx5_0", std::nullopt);
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->cpus, cpus("0-7"));
    EXPECT_TRUE(choice->near);
}

TEST_F(Choice, IsTheLastCoreNearForTheFirstReader) {
    const auto choice = choose(kTwoNodes, "mlx5_0", LocalReader{0, 1});
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->cpus, cpus("6-7")) << "a core with both of its processors";
    EXPECT_TRUE(choice->near);
}

TEST_F(Choice, IsACoreOfItsOwnForEachReaderNearOnesFirst) {
    CpuSet taken;
    for (std::size_t index = 0; index < 8; ++index) {
        const auto choice = choose(kTwoNodes, "mlx5_0", LocalReader{index, 8});
        ASSERT_TRUE(choice) << index;
        EXPECT_TRUE(choice->cpus.common(taken).empty()) << index;
        EXPECT_EQ(choice->near, index < 4) << index;
        auto all = taken.cpus();
        all.insert(all.end(), choice->cpus.cpus().begin(), choice->cpus.cpus().end());
        taken = CpuSet(all);
    }
    EXPECT_EQ(taken, cpus("0-15"));
}

TEST_F(Choice, IsNoneWithMoreReadersThanCores) {
    EXPECT_FALSE(choose(kTwoNodes, "mlx5_0", LocalReader{0, 9}));
    EXPECT_FALSE(choose(kTwoNodes, "mlx5_0", LocalReader{8, 9}));
}

TEST_F(Choice, IsNoneForAReaderThatIsNotOneOfThem) {
    EXPECT_FALSE(choose(kTwoNodes, "mlx5_0", LocalReader{2, 2}));
    EXPECT_FALSE(choose(kTwoNodes, "mlx5_0", LocalReader{0, 0}));
}

TEST_F(Choice, IsACoreAnywhereForADeviceThatIsNearNothing) {
    const auto choice = choose(kTwoNodes, "rxe0", LocalReader{0, 2});
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->cpus, cpus("14-15"));
    EXPECT_FALSE(choice->near);
    EXPECT_FALSE(choose(kTwoNodes, "rxe0", std::nullopt));
}

TEST_F(Choice, IsNoneWhenEverythingIsNearAndTheOthersAreNotKnown) {
    sysfs_.add_device("mlx5_1", "0-3");
    EXPECT_FALSE(choose(kOneNode, "mlx5_1", std::nullopt));
}

TEST_F(Choice, IsNoneForAThreadThatALauncherBound) {
    const Placement placement = machine(kTwoNodes);
    for (const char* thread : {"8-15", "0-7", "0", "0-14"}) {
        EXPECT_FALSE(placement.choose(cpus(thread), "mlx5_0", LocalReader{0, 1})) << thread;
        EXPECT_FALSE(placement.choose(cpus(thread), "mlx5_0", std::nullopt)) << thread;
    }
}

TEST(ThisMachine, SaysWhereItsThreadsMayRun) {
    const Placement placement;
    const auto thread = placement.thread();
    ASSERT_TRUE(thread);
    EXPECT_FALSE(thread->empty());
    EXPECT_FALSE(placement.allowed().empty());
    EXPECT_FALSE(placement.near("no such device"));
}

TEST(ThisMachine, IsAsBeforeWhenABindingEnds) {
    const Placement placement;
    const CpuSet before = placement.thread().value();
    if (placement.bound(before) || placement.cores(before).size() < 2) {
        GTEST_SKIP() << "one core, or bound already: " << before.to_string();
    }
    {
        const Binding binding = placement.bind_near("no such device", LocalReader{0, 1});
        ASSERT_TRUE(binding);
        EXPECT_FALSE(binding.near());
        EXPECT_THAT(placement.thread(), Optional(binding.cpus()));
        EXPECT_EQ(placement.cores(binding.cpus()).size(), 1U);
        EXPECT_TRUE(placement.bound(binding.cpus()));
        EXPECT_FALSE(placement.bind_near("no such device", LocalReader{0, 1}))
            << "bound already, by itself";
        EXPECT_THAT(placement.thread(), Optional(binding.cpus()));
    }
    EXPECT_THAT(placement.thread(), Optional(before));
}

TEST(ThisMachine, StaysBoundUntilTheLastOwnerOfABindingEnds) {
    const Placement placement;
    const CpuSet before = placement.thread().value();
    if (placement.bound(before) || placement.cores(before).size() < 2) {
        GTEST_SKIP() << "one core, or bound already: " << before.to_string();
    }
    {
        Binding first = placement.bind_near("no such device", LocalReader{0, 1});
        const Binding second = std::move(first);
        EXPECT_THAT(placement.thread(), Optional(second.cpus()));
    }
    EXPECT_THAT(placement.thread(), Optional(before));
}

TEST(ThisMachine, LeavesOtherThreadsWhereTheyAre) {
    const Placement placement;
    const CpuSet before = placement.thread().value();
    // Bound and let go on a thread of its own.
    std::async(std::launch::async, [&] {
        const Binding binding = placement.bind_near("no such device", LocalReader{0, 1});
    }).get();
    EXPECT_THAT(placement.thread(), Optional(before));
}

}  // namespace
}  // namespace rdma_read::app
