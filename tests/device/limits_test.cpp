// Claims about a locked-memory limit that is too low: who is hit is told what it is and how to
// raise it.
#include "device_test.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

namespace rdma_read::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MemlockLimit : public DeviceTest {
  protected:
    void SetUp() override {
        DeviceTest::SetUp();
        if (IsSkipped() || HasFatalFailure()) {
            return;
        }
        if (geteuid() != 0) {
            lacks("only root can take the place of an ordinary user; root itself has no limit");
            return;
        }
        // An ordinary user may not be able to enter the build folder.
        program_ = folder() / "rdma_read_mpi";
        std::filesystem::copy_file(tool(), program_);
    }

    [[nodiscard]] const std::string& program() const { return program_; }

    // As an ordinary user, in a folder of its own.
    CommandResult run_as_user(const std::vector<std::string>& command) {
        std::vector<std::string> words{"setpriv", "--reuid=65534", "--regid=65534",
                                       "--clear-groups", "--bounding-set=-all"};
        words.insert(words.end(), command.begin(), command.end());
        return run(words, {std::chrono::seconds(90), {{"HOME", folder()}, {"TMPDIR", folder()}}});
    }

    static std::vector<std::string> limited(const std::vector<std::string>& command) {
        std::vector<std::string> words{"sh", "-c", "ulimit -l 64; exec \"$0\" \"$@\""};
        words.insert(words.end(), command.begin(), command.end());
        return words;
    }

    static void expect_cure(const std::string& text) {
        EXPECT_THAT(text, AllOf(HasSubstr("64 KiB"), HasSubstr("limits.conf"),
                                HasSubstr("LimitMEMLOCK"), HasSubstr("slurmd")));
    }

  private:
    std::string program_;
};

TEST_F(MemlockLimit, OfAllRanksIsNamedWithItsCureAndNothingIsRead) {
    const auto result = run_as_user(
        limited(launch({{3, {program()}}}, {"--iterations", "10", "--json", report_path()})));
    expect_status(result, 3);
    for (const int rank : {1, 2}) {
        const auto reader = result_of(report(), rank);
        EXPECT_EQ(reader.at("outcome"), "NOT_RUN");
        EXPECT_EQ(reader.at("phase"), "gather");
        expect_cure(reader.at("hint"));
    }
    EXPECT_THAT(result.err, HasSubstr("ibv_reg_mr")) << told(result);
    expect_cure(result.err);
}

TEST_F(MemlockLimit, OfOneReaderIsItsOwnSetupFailure) {
    const auto result = run_as_user(launch({{3, {program()}}, {1, limited({program()})}},
                                           {"--iterations", "10", "--json", report_path()}));
    expect_status(result, 1);
    const auto parsed = report();
    EXPECT_EQ(result_of(parsed, 1).at("outcome"), "PASS") << told(result);
    EXPECT_EQ(result_of(parsed, 2).at("outcome"), "PASS");
    const auto hit = result_of(parsed, 3);
    EXPECT_EQ(hit.at("outcome"), "SETUP_FAILED");
    EXPECT_EQ(hit.at("phase"), "setup");
    EXPECT_THAT(hit.at("error").get<std::string>(), HasSubstr("ibv_reg_mr"));
    expect_cure(hit.at("hint"));
    expect_cure(result.out);
}

}  // namespace
}  // namespace rdma_read::test
