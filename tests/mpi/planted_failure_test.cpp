// Fails on the last rank, and only there.
#include "world.hpp"

#include <gmock/gmock.h>

namespace rdma_read::cluster {
namespace {

TEST(PlantedFailure, OnOneRankFailsTheWholeTest) {
    EXPECT_NE(world().rank(), world().size() - 1) << "planted on the last rank";
}

}  // namespace
}  // namespace rdma_read::cluster
