// Reasons not to trust a number, and the cases in which there is none.
#include "app/caveat.hpp"

#include "pretended_sysfs.hpp"

#include <gmock/gmock.h>

#include <limits>

namespace rdma_read::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;
using ::testing::StartsWith;

CpuSet cpus(const char* list) {
    return CpuSet::parse(list).value();
}

class Far : public ::testing::Test {
  protected:
    void SetUp() override { sysfs_.add_device("mlx5_0", "8-15"); }
    [[nodiscard]] std::optional<std::string> far(const char* thread,
                                                 const char* device = "mlx5_0") const {
        const Placement placement({.sysfs = sysfs_.root(), .synthetic = "node:2 core:4 pu:2"});
        return far_from_device(placement, cpus(thread), device);
    }
    PretendedSysfs sysfs_;
};

TEST_F(Far, IsAReaderOnAnotherNode) {
    EXPECT_THAT(far("0-3"), Optional(StartsWith("the reader runs on CPUs 0-3 (NUMA node 0), while "
                                                "mlx5_0 is near CPUs 8-15 (NUMA node 1): ")));
    EXPECT_THAT(far("3"), Optional(HasSubstr("on CPU 3 (NUMA node 0)")));
}

TEST_F(Far, MayBeAReaderThatCanRunOnBothNodes) {
    EXPECT_THAT(far("0-15"),
                Optional(StartsWith("the reader may run on CPUs 0-15 (NUMA nodes 0-1), while")));
}

TEST_F(Far, IsNoReaderOnTheDevicesNode) {
    EXPECT_FALSE(far("8-15"));
    EXPECT_FALSE(far("9"));
    sysfs_.add_device("part", "8-9");
    EXPECT_FALSE(far("12", "part"));
}

TEST_F(Far, IsNobodyWhenThePlaceOfEitherIsUnknown) {
    EXPECT_FALSE(far("0-3", "rxe0"));
    EXPECT_FALSE(far(""));
    sysfs_.add_device("everywhere", "0-15");
    EXPECT_FALSE(far("0-3", "everywhere"));
}

TEST_F(Far, IsAReaderWhoseJobWasGivenNothingNearTheDevice) {
    const Placement placement({.sysfs = sysfs_.root(), .synthetic = "node:1 core:4 pu:2"});
    EXPECT_THAT(far_from_device(placement, cpus("0-7"), "mlx5_0"),
                Optional(HasSubstr("while mlx5_0 is near CPUs 8-15: ")));
}

TEST(SharedCores, AreThoseOfMoreRanksThanCores) {
    EXPECT_THAT(shared_cores({{1, cpus("0-1")}, {2, cpus("0-1")}, {3, cpus("0-1")}}),
                Optional(StartsWith("ranks 1-3 share 2 cores (CPUs 0-1): ")));
    EXPECT_THAT(shared_cores({{4, cpus("7")}, {9, cpus("7")}}),
                Optional(StartsWith("ranks 4,9 share 1 core (CPU 7): ")));
}

TEST(SharedCores, AreNoneWhenEachRankCanHaveOne) {
    EXPECT_FALSE(shared_cores({}));
    EXPECT_FALSE(shared_cores({{0, cpus("0")}}));
    EXPECT_FALSE(shared_cores({{0, cpus("0-3")}, {1, cpus("0-3")}, {2, cpus("0-3")}}));
    // Only if each gives way to the next.
    EXPECT_FALSE(shared_cores({{0, cpus("0-1")}, {1, cpus("0,2")}, {2, cpus("0")}}));
    EXPECT_FALSE(
        shared_cores({{0, cpus("0-1")}, {1, cpus("1-2")}, {2, cpus("2-3")}, {3, cpus("0")}}));
}

TEST(SharedCores, NameOnlyTheRanksThatAreShortOfCores) {
    const auto text = shared_cores(
        {{0, cpus("4-7")}, {1, cpus("0-1")}, {2, cpus("0")}, {3, cpus("1")}, {4, cpus("4-7")}});
    EXPECT_THAT(text, Optional(StartsWith("ranks 1-3 share 2 cores (CPUs 0-1): ")));
}

TEST(SharedCores, AreFoundInSeveralPlacesAtOnce) {
    const auto text = shared_cores(
        {{0, cpus("0")}, {1, cpus("0")}, {2, cpus("2")}, {3, cpus("4")}, {4, cpus("4")}});
    EXPECT_THAT(text, Optional(StartsWith("ranks 0-1,3-4 share 2 cores (CPUs 0,4): ")));
}

TEST(SharedCores, AreNotGuessedForRanksOfWhichNothingIsKnown) {
    EXPECT_FALSE(shared_cores({{0, CpuSet()}, {1, CpuSet()}, {2, cpus("0")}}));
}

TEST(SharedCores, AreFoundAmongManyRanksInTime) {
    std::vector<RankCores> ranks;
    ranks.reserve(257);
    for (int rank = 0; rank < 257; ++rank) {
        ranks.push_back({rank, cpus("0-255")});
    }
    EXPECT_THAT(shared_cores(ranks), Optional(StartsWith("ranks 0-256 share 256 cores ")));
    ranks.pop_back();
    EXPECT_FALSE(shared_cores(ranks));
}

TEST(Depth, IsClampedWhenLessWasAgreedOn) {
    EXPECT_THAT(depth_clamped(128, 16),
                Optional(AllOf(HasSubstr("128 reads"), HasSubstr("16 per queue pair"),
                               HasSubstr("ibv_devinfo"))));
    EXPECT_FALSE(depth_clamped(16, 16));
    EXPECT_FALSE(depth_clamped(16, 17));
    EXPECT_FALSE(depth_clamped(16, 0)) << "not known";
}

TEST(Depth, IsCutForLongReads) {
    EXPECT_THAT(depth_cut(16, 2, 16U << 20U),
                Optional(StartsWith("reads of 16M: 2 in flight instead of 16")));
    EXPECT_FALSE(depth_cut(16, 16, 1U << 20U));
}

TEST(Frequency, ScalesUnderEveryGovernorButPerformance) {
    const PretendedSysfs sysfs;
    sysfs.set_governor(0, "powersave");
    sysfs.set_governor(1, "powersave");
    sysfs.set_governor(2, "performance");
    sysfs.set_governor(3, "schedutil");
    EXPECT_THAT(frequency_scaling(cpus("0-3"), sysfs.root()),
                Optional(StartsWith("CPU frequency scaling is on (governor powersave on CPUs 0-1, "
                                    "governor schedutil on CPU 3): ")));
}

TEST(Frequency, OfOtherProcessorsDoesNotMatter) {
    const PretendedSysfs sysfs;
    sysfs.set_governor(0, "powersave");
    sysfs.set_governor(2, "performance");
    EXPECT_FALSE(frequency_scaling(cpus("1-2"), sysfs.root()));
    EXPECT_FALSE(frequency_scaling(CpuSet(), sysfs.root()));
}

TEST(Frequency, DoesNotScaleWhereTheKernelKnowsNoGovernor) {
    const PretendedSysfs sysfs;
    EXPECT_FALSE(frequency_scaling(cpus("0-3"), sysfs.root()));
    sysfs.set_governor(0, "");
    EXPECT_FALSE(frequency_scaling(cpus("0"), sysfs.root()));
    EXPECT_FALSE(frequency_scaling(cpus("0"), sysfs.root() + "/absent"));
}

TEST(Checking, IsSlowWhenItTakesNearlyAllTheTime) {
    EXPECT_THAT(
        slow_checking(0.9, 1, 2'700'000'000),
        Optional(AllOf(HasSubstr("90 % of the time, at 3000 MB/s"), HasSubstr("--verify off"))));
    EXPECT_THAT(slow_checking(1.2, 1, 1), Optional(HasSubstr("100 % of the time")));
    EXPECT_TRUE(slow_checking(0.851, 1, 1));
    EXPECT_FALSE(slow_checking(0.849, 1, 1));
}

TEST(Checking, IsNotSlowWhenItsTimeIsNotKnown) {
    constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (const double nothing : {0.0, -1.0, kNoNumber, kInfinity}) {
        EXPECT_FALSE(slow_checking(nothing, 1, 1)) << nothing;
        EXPECT_FALSE(slow_checking(1, nothing, 1)) << nothing;
    }
}

TEST(Clock, IsCoarseWhenItsStepsShowInTheLatencies) {
    const verify::ClockCost coarse{.read_ns = 30, .step_ns = 1000};
    EXPECT_THAT(coarse_clock(coarse, 5), Optional(AllOf(HasSubstr("1000 ns"), HasSubstr("5 us"))));
    EXPECT_TRUE(coarse_clock(coarse, 0));
    EXPECT_FALSE(coarse_clock(coarse, 50));
    EXPECT_FALSE(coarse_clock(coarse, std::numeric_limits<double>::quiet_NaN()));
    EXPECT_FALSE(coarse_clock({.read_ns = 600, .step_ns = 1000}, 5))
        << "a step is about what a reading takes";
}

TEST(Caveats, AreOneLine) {
    for (const auto& text :
         {depth_clamped(2, 1), depth_cut(2, 1, 1), shared_cores({{0, cpus("0")}, {1, cpus("0")}}),
          slow_checking(1, 1, 1), coarse_clock({.read_ns = 1, .step_ns = 1000}, 1)}) {
        EXPECT_THAT(text, Optional(Not(HasSubstr("\n"))));
    }
}

}  // namespace
}  // namespace rdma_read::app
