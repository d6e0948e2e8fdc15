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

    // A shell that sets a limit and becomes the program, without the files that it has from here.
    static std::vector<std::string> limited(const std::string& limit,
                                            const std::vector<std::string>& command) {
        std::vector<std::string> words{"bash", "-c",
                                       "for file in /proc/self/fd/*; do file=${file##*/}; "
                                       "if ((file > 2)); then eval \"exec $file>&-\"; fi; done; "
                                           + limit + "; exec \"$0\" \"$@\""};
        words.insert(words.end(), command.begin(), command.end());
        return words;
    }

    Play reader(const std::string& limit, const End& end,
                const std::vector<std::string>& server_options = {}) {
        return {"reader", limit, 10, [=, this] {
                    std::vector<std::string> options = server_options;
                    options.insert(options.end(), {"--clients", "0"});
                    const PairServer serving =
                        start_pair_server(options, {std::chrono::seconds(40), {}});
                    const auto reading = run(limited(limit, pair_client(ipv4(), serving.port)),
                                             {std::chrono::seconds(30), {}});
                    std::string came = expect_reader(reading, end);
                    if (server_options.empty()) {
                        expect_served(serving.port);
                    }
                    serving.command->send_signal(SIGTERM);
                    expect_status(serving.command->finish(), 0);
                    return came + "; serves on";
                }};
    }

    static std::string port_in(const std::string& said) {
        const std::string word = "--port ";
        const std::string rest = said.substr(said.rfind(word) + word.size());
        return rest.substr(0, rest.find_first_not_of("0123456789"));
    }

    static Play server(const std::string& limit, const std::vector<std::string>& options,
                       const End& end) {
        return {"server", limit, 10, [=] {
                    std::vector<std::string> words{pair_tool(), "-s", "--port", "0"};
                    words.insert(words.end(), options.begin(), options.end());
                    const auto serving = run(limited(limit, words), {std::chrono::seconds(30), {}});
                    expect_status(serving, end.status);
                    EXPECT_THAT(serving.err, HasSubstr(end.says)) << told(serving);
                    return fmt::format("{}, exit {}", end.says, serving.status);
                }};
    }
};

// Which call meets the limit is the libraries' choice; that it is the limit is always said. 3 are
// the standard files.
TEST_F(Resources, OpenFiles) {
    struct Step {
        int files;
        End reader;
        End server;
    };
    const End no_channel{3, "rdma_create_event_channel"};
    const End too_many{1, "too many open files; raise the limit (ulimit -n)"};
    const std::vector<Step> steps{
        {4, no_channel, no_channel}, {5, no_channel, no_channel}, {6, too_many, too_many},
        {7, too_many, too_many},     {8, too_many, too_many},     {9, too_many, too_many},
        {10, {}, too_many},          {11, {}, too_many},          {16, {}, {}}};
    std::vector<Play> plays;
    for (const Step& step : steps) {
        const std::string limit = fmt::format("ulimit -n {}", step.files);
        plays.push_back(
            {"reader", limit, 10, [=, this] {
                 const PairServer serving =
                     start_pair_server({"--clients", "0"}, {std::chrono::seconds(30), {}});
                 auto words = pair_client(ipv4(), serving.port);
                 words.insert(words.end(), {"--timeout", "8"});
                 const auto reading = run(limited(limit, words), {std::chrono::seconds(30), {}});
                 std::string came = expect_reader(reading, step.reader);
                 expect_served(serving.port);
                 serving.command->send_signal(SIGTERM);
                 expect_status(serving.command->finish(), 0);
                 return came + "; serves on";
             }});
        plays.push_back({"server", limit, 10, [=, this] {
                             // Nobody stops it: it ends by itself, also when it has served its one
                             // client.
                             Command serving(limited(limit, {pair_tool(), "-s", "--port", "0"}),
                                             {std::chrono::seconds(30), {}});
                             if (step.server.status == 0) {
                                 EXPECT_TRUE(serving.wait_for_stderr("--port "));
                                 expect_served(port_in(serving.said_on_stderr()));
                             }
                             const auto result = serving.finish();
                             expect_status(result, step.server.status);
                             EXPECT_THAT(result.err, HasSubstr(step.server.says)) << told(result);
                             return fmt::format(
                                 "{}, exit {}",
                                 step.server.status == 0 ? "serves its client" : step.server.says,
                                 result.status);
                         }});
    }
    play(plays);
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
                                                         {std::chrono::seconds(40), {}});
            auto words = user;
            words.insert(words.end(), {"-c", ipv4(), "--port", serving.port});
            const auto reading = run(limited(limit, words), {std::chrono::seconds(30), {}});
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
            const auto serving = run(limited(limit, words), {std::chrono::seconds(30), {}});
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
                 const PairServer serving = start_pair_server({}, {std::chrono::seconds(30), {}});
                 std::vector<std::string> words{"sh", "-c", "exec \"$0\" \"$@\" " + redirection};
                 const auto client = pair_client(ipv4(), serving.port);
                 words.insert(words.end(), client.begin(), client.end());
                 const auto reading = run(words, {std::chrono::seconds(30), {}});
                 (void)serving.command->finish();
                 return expect_reader(reading, {1, "write to stdout"});
             }});
    }
    play(plays);
}

}  // namespace
}  // namespace rdma_read::test
