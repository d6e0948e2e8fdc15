// Claims about the shared secret of the two-process form.
#include "device_test.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

namespace rdma_read::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Token : public DeviceTest {
  protected:
    [[nodiscard]] std::string token(const std::string& secret, mode_t mode = 0600) const {
        const std::string file = folder() / secret;
        std::ofstream(file) << secret << '\n';
        EXPECT_EQ(::chmod(file.c_str(), mode), 0);
        return file;
    }
    [[nodiscard]] CommandResult read_with(const PairServer& server,
                                          const std::vector<std::string>& options) const {
        auto words = pair_client(ipv4(), server.port);
        words.insert(words.end(), options.begin(), options.end());
        return run(words);
    }
    static void expect_refused(const CommandResult& result) {
        expect_status(result, 1);
        EXPECT_EQ(result.out, "");
        EXPECT_THAT(lines_of(result.err), SizeIs(1)) << told(result);
        EXPECT_THAT(result.err, AllOf(HasSubstr("has another token"), HasSubstr("--token-file")));
    }

    static inline const std::string kSecret = "correct horse battery";
    static inline const std::string kOther = "correct horse batterz";
};

TEST_F(Token, OnlyWhoHasTheServersSecretIsServedAndCounted) {
    const auto server = start_pair_server({"--token-file", token(kSecret)});
    expect_refused(read_with(server, {"--token-file", token(kOther)}));
    expect_refused(read_with(server, {}));
    const auto reading = read_with(server, {"--token-file", token(kSecret)});
    expect_status(reading, 0);
    EXPECT_EQ(reading.out, kPairLine);
    // One client was wanted, and the refused ones were none.
    expect_status(server.command->finish(), 0);
}

TEST_F(Token, AServerWithoutASecretHasNotTheSameAsAClientWithOne) {
    const auto server = start_pair_server();
    expect_refused(read_with(server, {"--token-file", token(kSecret)}));
    expect_status(read_with(server, {}), 0);
    expect_status(server.command->finish(), 0);
}

TEST_F(Token, AFileThatOthersMayReadIsRefusedOnBothSidesInOneLine) {
    const std::string file = token(kSecret, 0644);
    for (const auto& words :
         {std::vector<std::string>{pair_tool(), "-s", "--token-file", file},
          std::vector<std::string>{pair_tool(), "-c", ipv4(), "--token-file", file}}) {
        const auto result = run(words);
        expect_status(result, 2);
        EXPECT_THAT(lines_of(result.err), SizeIs(1)) << told(result);
        EXPECT_THAT(result.err, HasSubstr("chmod 600"));
    }
}

}  // namespace
}  // namespace rdma_read::test
