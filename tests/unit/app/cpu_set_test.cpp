// The kernel's lists of processors.
#include "app/cpu_set.hpp"

#include <gmock/gmock.h>

namespace rdma_read::app {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CpuSet, IsReadFromAndWrittenAsTheKernelsList) {
    for (const char* list : {"", "0", "0-3", "0-3,8", "1,3,5-6,65535"}) {
        const auto cpus = CpuSet::parse(list);
        ASSERT_TRUE(cpus) << list;
        EXPECT_EQ(cpus->to_string(), list);
    }
    EXPECT_THAT(CpuSet::parse("0-2,7\n").value().cpus(), ElementsAre(0, 1, 2, 7));
    EXPECT_THAT(CpuSet::parse("\n").value().cpus(), IsEmpty());
}

TEST(CpuSet, IsNotReadFromAnythingElse) {
    for (const char* list : {"x", "1-", "-1", "3-1", "1,,2", "1,", ",1", "0x3", "1 2", "0-65536",
                             "99999999999999999999", "1,1", "2,0-1", "0-1:1/2", "0\n1", "0\n\n"}) {
        EXPECT_FALSE(CpuSet::parse(list)) << list;
    }
}

TEST(CpuSet, HoldsEachNumberOnceInOrder) {
    EXPECT_THAT(CpuSet({3, 1, 3, 2}).cpus(), ElementsAre(1, 2, 3));
    EXPECT_EQ(CpuSet({3, 1, 3, 2}), CpuSet({1, 2, 3}));
    EXPECT_EQ(CpuSet({3, 1, 3}).size(), 2U);
    EXPECT_TRUE(CpuSet().empty());
}

TEST(CpuSet, KnowsWhatItHasInCommonWithAnother) {
    const CpuSet cpus({0, 1, 2, 5});
    EXPECT_TRUE(cpus.includes(CpuSet({0, 5})));
    EXPECT_TRUE(cpus.includes(cpus));
    EXPECT_TRUE(cpus.includes(CpuSet()));
    EXPECT_FALSE(cpus.includes(CpuSet({0, 3})));
    EXPECT_EQ(cpus.common(CpuSet({1, 5, 9})), CpuSet({1, 5}));
    EXPECT_TRUE(cpus.common(CpuSet({3, 4})).empty());
}

}  // namespace
}  // namespace rdma_read::app
