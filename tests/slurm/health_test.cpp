// Claims about health_check.sh on a node that is well, and on one that is not.
#include "slurm_test.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace rdma_read::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Health : public SlurmTest {
  protected:
    // What the script says on node 2, run after the words of `before`.
    static CommandResult check(const Words& before = {}) {
        Words words{"env", "RDMA_READ=" + pair_tool()};
        words.insert(words.end(), before.begin(), before.end());
        words.push_back(job_script("health_check.sh"));
        return at(2, words);
    }

    static void expect_ill(const CommandResult& result, const std::string& reason) {
        EXPECT_EQ(result.status, 1) << told(result);
        EXPECT_THAT(result.out, StartsWith("ERROR: ")) << told(result);
        EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1) << told(result);
        EXPECT_THAT(result.out, HasSubstr(reason)) << told(result);
        EXPECT_LT(result.seconds, 60);
    }
};

TEST_F(Health, AHealthyNodeIsFoundHealthyInTime) {
    const auto result = check();
    EXPECT_EQ(result.status, 0) << told(result);
    EXPECT_THAT(result.out, StartsWith("OK: "));
    EXPECT_EQ(result.err, "");
    EXPECT_LT(result.seconds, 15);
}

TEST_F(Health, ALinkThatIsDownIsFound) {
    control("down");
    expect_ill(check(), "DOWN");
}

TEST_F(Health, AMissingDeviceIsFound) {
    control("unplug");
    expect_ill(check(), "no RDMA device");
}

TEST_F(Health, ALowLimitIsFound) {
    expect_ill(check({"bash", "-c", R"(ulimit -l 64; exec "$0" "$@")"}), "64 KiB");
}

TEST_F(Health, SilenceBetweenTheNodesIsNotItsConcern) {
    control("drop");
    EXPECT_EQ(check().status, 0);
}

}  // namespace
}  // namespace rdma_read::test
