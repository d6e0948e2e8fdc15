// The rows in which the process or the host runs out of something.
#include "matrix.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace rdma_read::test {
namespace {

using ::testing::HasSubstr;

class Resources : public FaultMatrix {
  protected:
    void SetUp() override {
        FaultMatrix::SetUp();
        if (!IsSkipped() && geteuid() != 0) {
            lacks("only root can set every limit and mount small file systems");
        }
    }

    // A shell that sets a limit and becomes the program.
    static std::vector<std::string> limited(const std::string& limit,
                                            const std::vector<std::string>& command) {
        std::vector<std::string> words{"sh", "-c", limit + "; exec \"$0\" \"$@\""};
        words.insert(words.end(), command.begin(), command.end());
        return words;
    }

    Play reader(const std::string& limit, const End& end,
                const std::vector<std::string>& server_options = {}) {
        return {"reader", limit, 10, [=, this] {
                    std::vector<std::string> options = server_options;
                    options.insert(options.end(), {"--clients", "0"});
                    const PairServer serving =
                        start_pair_server(options, {std::chrono::seconds(20), {}});
                    const auto reading = run(limited(limit, pair_client(ipv4(), serving.port)),
                                             {std::chrono::seconds(15), {}});
                    std::string came = expect_reader(reading, end);
                    if (server_options.empty()) {
                        expect_served(serving.port);
                    }
                    serving.command->send_signal(SIGTERM);
                    expect_status(serving.command->finish(), 0);
                    return came + "; serves on";
                }};
    }

    static Play server(const std::string& limit, const std::vector<std::string>& options,
                       const End& end) {
        return {"server", limit, 10, [=] {
                    std::vector<std::string> words{pair_tool(), "-s", "--port", "0"};
                    words.insert(words.end(), options.begin(), options.end());
                    const auto serving = run(limited(limit, words), {std::chrono::seconds(10), {}});
                    expect_status(serving, end.status);
                    EXPECT_THAT(serving.err, HasSubstr(end.says)) << told(serving);
                    return fmt::format("{}, exit {}", end.says, serving.status);
                }};
    }
};

// Which call meets the limit, and whether the libraries tell it or say that there is no device, is
// theirs; but nothing passes, hangs or ends without a word.
void expect_failure_or_pass(const CommandResult& result, bool passed) {
    expect_status(result, passed ? 0 : result.status == 3 ? 3 : 1);
    EXPECT_TRUE(passed || !result.err.empty()) << told(result);
}

TEST_F(Resources, OpenFiles) {
    std::vector<Play> plays;
    // 3 are the standard ones.
    for (const int files : {5, 6, 7, 8, 10}) {
        const std::string limit = fmt::format("ulimit -n {}", files);
        plays.push_back(
            {"reader", limit, 10, [limit, this] {
                 const PairServer serving =
                     start_pair_server({"--clients", "0"}, {std::chrono::seconds(30), {}});
                 auto words = pair_client(ipv4(), serving.port);
                 words.insert(words.end(), {"--timeout", "2"});
                 const auto reading = run(limited(limit, words), {std::chrono::seconds(15), {}});
                 expect_failure_or_pass(reading, reading.out == kPairLine);
                 expect_served(serving.port);
                 serving.command->send_signal(SIGTERM);
                 expect_status(serving.command->finish(), 0);
                 return fmt::format("exit {}; serves on", reading.status);
             }});
        plays.push_back({"server", limit, 10, [limit] {
                             Command serving(limited(limit, {pair_tool(), "-s", "--port", "0"}),
                                             {std::chrono::seconds(15), {}});
                             // If it comes that far: else it ends by itself.
                             if (serving.wait_for_stderr("serving")) {
                                 serving.send_signal(SIGTERM);
                             }
                             const auto result = serving.finish();
                             expect_status(result, result.status == 3 ? 3 : 1);
                             return fmt::format("exit {}", result.status);
                         }});
    }
    // One at a time: what a program inherits from its launcher counts too.
    play(plays, Lanes::one);
}

TEST_F(Resources, Memory) {
    play({reader("ulimit -v 400000", {1, "not enough memory"}, {"--size", "512M"}),
          server("ulimit -v 400000", {"--size", "512M"}, {1, "not enough memory"})});
}

TEST_F(Resources, LockedMemory) {
    const std::string program = folder() / "rdma_read";
    std::filesystem::copy_file(pair_tool(), program);
    const std::vector<std::string> user{"setpriv",        "--reuid=65534",       "--regid=65534",
                                        "--clear-groups", "--bounding-set=-all", program};
    const std::string limit = "ulimit -l 64";
    const Play reading_user{
        "reader", limit + ", as an ordinary user", 10, [&] {
            const PairServer serving = start_pair_server({"--size", "1M", "--clients", "0"},
                                                         {std::chrono::seconds(20), {}});
            auto words = user;
            words.insert(words.end(), {"-c", ipv4(), "--port", serving.port});
            const auto reading = run(limited(limit, words), {std::chrono::seconds(15), {}});
            std::string came = expect_reader(reading, {1, "memlock"});
            expect_served(serving.port);
            serving.command->send_signal(SIGTERM);
            expect_status(serving.command->finish(), 0);
            return came + "; serves on";
        }};
    const Play serving_user{
        "server", limit + ", as an ordinary user", 10, [&] {
            auto words = user;
            words.insert(words.end(), {"-s", "--port", "0", "--size", "1M"});
            const auto serving = run(limited(limit, words), {std::chrono::seconds(10), {}});
            expect_status(serving, 1);
            EXPECT_THAT(serving.err, HasSubstr("memlock")) << told(serving);
            return fmt::format("memlock, exit {}", serving.status);
        }};
    play({reading_user, serving_user});
}

TEST_F(Resources, OutputOfAReader) {
    std::vector<Play> plays;
    for (const std::string redirection : {">/dev/full", ">&-"}) {
        plays.push_back(
            {"reader", "stdout " + redirection, 10, [redirection, this] {
                 const PairServer serving = start_pair_server({}, {std::chrono::seconds(15), {}});
                 std::vector<std::string> words{"sh", "-c", "exec \"$0\" \"$@\" " + redirection};
                 const auto client = pair_client(ipv4(), serving.port);
                 words.insert(words.end(), client.begin(), client.end());
                 const auto reading = run(words, {std::chrono::seconds(10), {}});
                 (void)serving.command->finish();
                 EXPECT_NE(reading.err, "") << "a reader that cannot tell says why";
                 return expect_reader(reading, {1, ""});
             }});
    }
    play(plays);
}

}  // namespace
}  // namespace rdma_read::test
