// Claims about run ids.
#include "rdma_read/verify/run_id.hpp"

#include <gtest/gtest.h>

namespace rdma_read::verify {
namespace {

TEST(RunId, IsDifferentEachTime) {
    EXPECT_NE(random_run_id(), random_run_id());
}

TEST(RunId, IsAbbreviatedToItsFirstEightDigits) {
    const RunId run{0x01, 0xAB, 0x00, 0xF0, 0x55, 0x66};
    EXPECT_EQ(short_name(run), "01ab00f0");
}

}  // namespace
}  // namespace rdma_read::verify
