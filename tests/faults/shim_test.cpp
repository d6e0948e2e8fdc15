// Claims about the notation of faults: one that cannot be injected ends the program at once.
#include "command.hpp"
#include "matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rdma_read::test {
namespace {

using ::testing::HasSubstr;

CommandResult run_with(const std::string& faults) {
    return run({"true"}, with_faults(faults, "/dev/null", 10));
}

TEST(Shim, AKnownFaultLetsTheProgramRun) {
    EXPECT_EQ(run_with("rdma_connect:1:EINVAL,event:ESTABLISHED:is=REJECTED/8").status, 0);
    EXPECT_EQ(run_with("ibv_poll_cq:r5:EIO,event:ESTABLISHED:before=UNKNOWN*100").status, 0);
    EXPECT_EQ(run_with("arrive:3:UNKNOWN*2,message:0:255,message:length:20").status, 0);
}

TEST(Shim, ABadFaultEndsTheProgramWithOneLineThatNamesIt) {
    for (const std::string bad :
         {"rdma_conect:1:EINVAL", "rdma_connect:0:EINVAL", "rdma_connect:1:EWHAT", "rdma_connect:1",
          "event:ESTABLISHED:is=NOTHING", "event:NEVER:is=REJECTED/8", "event:ESTABLISHED:data=256",
          "limit:max_wishes:3", "ibv_poll_cq:r0:EIO", "ibv_poll_cq:r:EIO", "arrive:0:UNKNOWN",
          "arrive:1:NOTHING", "event:ESTABLISHED:before=UNKNOWN*0",
          "event:ESTABLISHED:is=UNKNOWN*2", "message:x:1", "message:length:x", "completion:x:5",
          "read:1:full", "rdma_connect:1:EINVAL,,"}) {
        const auto result = run_with(bad);
        EXPECT_EQ(result.status, 125) << bad;
        EXPECT_EQ(result.out, "");
        EXPECT_THAT(result.err, HasSubstr("RDMA_READ_FAULT: fault \"")) << bad;
        EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
    }
}

TEST(Shim, ALogThatCannotBeWrittenEndsTheProgram) {
    const auto result = run({"true"}, with_faults("rdma_connect:1:EINVAL", "/dev/null/log", 10));
    EXPECT_EQ(result.status, 125);
    EXPECT_THAT(result.err, HasSubstr("cannot write /dev/null/log"));
}

}  // namespace
}  // namespace rdma_read::test
