// Claims about trouble on the way that does not make data wrong: attempts that failed, packets that
// were lost.
#include "device_test.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

namespace rdma_read::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Retry : public DeviceTest {};

TEST_F(Retry, AttemptsThatFailedAreToldWithTheirCause) {
    const auto result = run(launch({{1, {faulty_root(), "busy-twice"}}, {1, {tool()}}},
                                   {"--iterations", "10", "--json", report_path()}));
    expect_status(result, 0);
    EXPECT_THAT(result.out, HasSubstr("note: 2 attempts to connect failed before the last one; "))
        << told(result);
    const auto reader = result_of(report(), 1);
    EXPECT_EQ(reader.at("attempts"), 3);
    ASSERT_EQ(reader.at("attempt_errors").size(), 1U) << reader.dump(2);
    EXPECT_THAT(reader.at("attempt_errors").at(0).get<std::string>(), HasSubstr("busy"));
}

TEST_F(Retry, AnAttemptThatSucceedsAtOnceHasNothingToTell) {
    const auto result = run(launch(2, {"--iterations", "10", "--json", report_path()}));
    expect_status(result, 0);
    EXPECT_THAT(result_of(report(), 1).at("attempt_errors"), ElementsAre());
    // Counters are known here; software RoCE on a busy machine may repeat a request by itself.
    EXPECT_TRUE(result_of(report(), 1).at("degraded").is_boolean());
}

// What goes to the host's own address is handed over inside the device, past every queue that could
// lose it.
class Loss : public DeviceTest {
  protected:
    void SetUp() override {
        DeviceTest::SetUp();
        if (IsSkipped() || HasFatalFailure()) {
            return;
        }
        const auto link =
            run({"sh", "-c", "rdma link show | sed -n 's/.* netdev //p' | head -n 1"});
        interface_ = link.out.substr(0, link.out.find_first_of(" \n"));
        if (interface_.empty() || geteuid() != 0) {
            lacks("only root can make a software device lose packets");
        }
    }
    void TearDown() override {
        run({"tc", "qdisc", "del", "dev", interface_, "root"});
        DeviceTest::TearDown();
    }
    // Of the packets that leave this host.
    void lose(const std::string& share) {
        const auto made =
            run({"tc", "qdisc", "add", "dev", interface_, "root", "netem", "loss", share});
        ASSERT_EQ(made.status, 0) << told(made);
    }

  private:
    std::string interface_;
};

TEST_F(Loss, RightDataAfterLostPacketsIsAPassAndDegraded) {
    lose("1%");
    // A last packet that is lost costs a timer of seconds.
    const auto result = run(launch(
        2, {"--size", "16K", "--iterations", "100", "--timeout", "120", "--json", report_path()}));
    expect_status(result, 0);
    EXPECT_THAT(result.out, HasSubstr("PASS (degraded)")) << told(result);
    EXPECT_THAT(result.out, HasSubstr("note: degraded: counters of ")) << told(result);
    const auto parsed = report();
    const auto reader = result_of(parsed, 1);
    EXPECT_EQ(reader.at("outcome"), "PASS");
    EXPECT_EQ(reader.at("degraded"), true);
    EXPECT_FALSE(reader.at("counters").empty());
    for (const auto& [name, delta] : reader.at("counters").items()) {
        EXPECT_GT(delta.get<std::int64_t>(), 0) << name;
    }
    EXPECT_EQ(parsed.at("verdict").at("degraded"), 1);
    EXPECT_EQ(parsed.at("verdict").at("outcome"), "PASS");
}

}  // namespace
}  // namespace rdma_read::test
