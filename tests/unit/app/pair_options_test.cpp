// The command line of rdma_read.
#include "app/pair_options.hpp"

#include "words.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace rdma_read::app {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Line = std::vector<std::string>;

ParsedPairOptions parse(const Line& line) {
    const Words words("rdma_read", line);
    return parse_pair_options(words.argc(), words.argv());
}

template <typename Kind>
Kind parsed(const Line& line) {
    auto result = parse(line);
    if (const auto* const options = std::get_if<Kind>(&result)) {
        return *options;
    }
    const auto* const exit = std::get_if<EarlyExit>(&result);
    ADD_FAILURE() << joined(line) << (exit != nullptr ? exit->text : "is the other kind");
    return {};
}

struct Wrong {
    Line line;
    Line pieces;
};

void PrintTo(const Wrong& wrong, std::ostream* out) {
    *out << joined(wrong.line);
}

class WrongPairCommandLine : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongPairCommandLine, EndsInTheErrorAndTheUsageOnStderrWithExitCodeTwo) {
    const auto& [line, pieces] = GetParam();
    const auto result = parse(line);
    const auto* const exit = std::get_if<EarlyExit>(&result);
    ASSERT_NE(exit, nullptr) << joined(line) << "was taken";
    EXPECT_EQ(exit->code, 2);
    EXPECT_TRUE(exit->to_stderr);
    EXPECT_THAT(exit->text, StartsWith("rdma_read: "));
    EXPECT_THAT(exit->text, HasSubstr("\nusage: rdma_read -s "));
    EXPECT_EQ(std::count(exit->text.begin(), exit->text.end(), '\n'), 2) << exit->text;
    for (const auto& piece : pieces) {
        EXPECT_THAT(exit->text, HasSubstr(piece)) << joined(line);
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongPairCommandLine,
    ::testing::Values(
        Wrong{{}, {"neither -s nor -c"}}, Wrong{{"--port", "7471"}, {"neither -s nor -c"}},
        Wrong{{"-s", "-c", "node1"}, {"-c node1: contradicts -s"}},
        Wrong{{"-c"}, {"-c: a value is missing"}},
        Wrong{{"-c", "-s"}, {"-c: a value is missing before -s"}},
        Wrong{{"-c", "--port", "1"}, {"-c: a value is missing before --port"}},
        Wrong{{"-c", ""}, {"-c '': not an address or a name"}},
        Wrong{{"-c", "two words"}, {"-c 'two words':"}},
        Wrong{{"-c", std::string(254, 'a')}, {"not an address or a name"}},
        Wrong{{"-c", "a", "-c", "b"}, {"-c b: given twice"}},
        Wrong{{"-c", "a", "b"}, {"b: a word that belongs to no option"}},
        Wrong{{"-s", "-s"}, {"-s: given twice"}},
        Wrong{{"-s", "10.0.0.1"}, {"10.0.0.1: a word that belongs to no option"}},
        Wrong{{"-c", "a", "--bind", "10.0.0.1"}, {"--bind 10.0.0.1:", "with -c", "only with -s"}},
        Wrong{{"-c", "a", "--message", "x"}, {"--message x:", "with -c", "only with -s"}},
        Wrong{{"-c", "a", "--size", "1"}, {"--size 1:", "with -c", "only with -s"}},
        Wrong{{"-c", "a", "--clients", "1"}, {"--clients 1:", "with -c", "only with -s"}},
        Wrong{{"-s", "--timeout", "1"}, {"--timeout 1:", "with -s", "only with -c"}},
        Wrong{{"-s", "--token-file", ""}, {"--token-file '':", "empty"}},
        Wrong{{"-c", "a", "--token-file="}, {"--token-file '':", "empty"}},
        Wrong{{"-s", "--token-file"}, {"--token-file: a value is missing"}},
        Wrong{{"-c", "a", "--port", "0"}, {"--port 0: out of range", "1 to 65535"}},
        Wrong{{"-s", "--port", "65536"}, {"--port 65536: out of range"}},
        Wrong{{"-s", "--port", "rdma"}, {"--port rdma: not a number"}},
        Wrong{{"-s", "--bind", "localhost"}, {"--bind localhost: not an IP address"}},
        Wrong{{"-s", "--size", "0"}, {"--size 0: out of range", "1 to 1G"}},
        Wrong{{"-s", "--size", "2G"}, {"--size 2G: out of range"}},
        Wrong{{"-s", "--size", "1073741825"}, {"--size 1073741825: out of range"}},
        Wrong{{"-s", "--size", "4X"}, {"--size 4X: not a number"}},
        Wrong{{"-s", "--size", "29"}, {"--size 29: too small for the message of 30 bytes"}},
        Wrong{{"-s", "--size", "4", "--message", "hello"}, {"--size 4: too small", "5 bytes"}},
        Wrong{{"-s", "--message", std::string(4097, 'x')}, {"4097 bytes long", "at most 4096"}},
        Wrong{{"-s", "--clients", "-1"}, {"--clients -1: not a number"}},
        Wrong{{"-s", "--clients", "1000001"}, {"--clients 1000001: out of range"}},
        Wrong{{"-c", "a", "--timeout", "0"}, {"--timeout 0: not a duration"}},
        Wrong{{"-c", "a", "--timeout", "soon"}, {"--timeout soon: not a duration"}},
        Wrong{{"-x"}, {"-x: unknown option"}},
        Wrong{{"-s", "--json", "x"}, {"--json: unknown option"}}));

TEST(PairOptions, ServerHasTheDocumentedDefaults) {
    const auto options = parsed<PairServerOptions>({"-s"});
    EXPECT_EQ(options.bind, std::nullopt);
    EXPECT_EQ(options.port, 7471);
    EXPECT_EQ(options.message, "Hello from RDMA server memory!");
    EXPECT_EQ(options.size, 4096U);
    EXPECT_EQ(options.clients, 1U);
}

TEST(PairOptions, AClientMayStayForItsUsualBudgetAndAsLongAsALongTextTakes) {
    const auto usual = parsed<PairClientOptions>({"-c", "node1"}).timeout;
    EXPECT_GT(parsed<PairServerOptions>({"-s"}).turn(), usual);
    EXPECT_LE(parsed<PairServerOptions>({"-s"}).turn(), usual + 10s);
    EXPECT_GT(parsed<PairServerOptions>({"-s", "--size", "1G"}).turn(), usual + 100s);
}

TEST(PairOptions, ServerTakesWhatTheUserSays) {
    const auto options =
        parsed<PairServerOptions>({"-s", "--bind", "::1", "--port", "0", "--message", "a\xff\n b",
                                   "--size", "1K", "--clients", "0"});
    EXPECT_EQ(options.bind, "::1");
    EXPECT_EQ(options.port, 0);
    EXPECT_EQ(options.message, "a\xff\n b");
    EXPECT_EQ(options.size, 1024U);
    EXPECT_EQ(options.clients, 0U);
}

TEST(PairOptions, AMessageMayFillTheBuffer) {
    EXPECT_EQ(parsed<PairServerOptions>({"-s", "--size", "30"}).size, 30U);
    EXPECT_EQ(parsed<PairServerOptions>({"-s", "--size", "1G"}).size, 1U << 30U);
    EXPECT_EQ(parsed<PairServerOptions>({"-s", "--message", std::string(4096, 'x')}).size, 4096U);
}

TEST(PairOptions, AMessageMayLookLikeAnOptionOrAList) {
    EXPECT_EQ(parsed<PairServerOptions>({"-s", "--message=--size"}).message, "--size");
    EXPECT_EQ(parsed<PairServerOptions>({"-s", "--message", "[a,b]"}).message, "[a,b]");
    EXPECT_EQ(parsed<PairServerOptions>({"-s", "--message", "\"q\""}).message, "\"q\"");
    EXPECT_EQ(parsed<PairServerOptions>({"-s", "--message", "a=b"}).message, "a=b");
}

TEST(PairOptions, ClientHasTheDocumentedDefaults) {
    const auto options = parsed<PairClientOptions>({"-c", "node1"});
    EXPECT_EQ(options.server, "node1");
    EXPECT_EQ(options.port, 7471);
    EXPECT_EQ(options.timeout, 30s);
}

TEST(PairOptions, ClientTakesWhatTheUserSays) {
    const auto options =
        parsed<PairClientOptions>({"--timeout", "2.5", "--port", "65535", "-c", "fd00::1"});
    EXPECT_EQ(options.server, "fd00::1");
    EXPECT_EQ(options.port, 65535);
    EXPECT_EQ(options.timeout, 2500ms);
}

TEST(PairOptions, HelpNamesEveryOptionAndTheExitCodes) {
    const auto result = parse({"--help"});
    ASSERT_TRUE(std::holds_alternative<EarlyExit>(result));
    const auto& exit = std::get<EarlyExit>(result);
    EXPECT_EQ(exit.code, 0);
    EXPECT_FALSE(exit.to_stderr);
    for (const auto* const piece :
         {"-s ", "-c SERVER", "--bind ADDR", "--port N", "Default 7471", "--message TEXT",
          "--size BYTES", "Default 4096", "--clients N", "Default 1", "--timeout SECONDS",
          "Default 30", "--version", "--help", "\n  0  ", "\n  1  ", "\n  2  ", "\n  3  "}) {
        EXPECT_THAT(exit.text, HasSubstr(piece));
    }
}

TEST(PairOptions, VersionIsOneLineOnStdout) {
    const auto result = parse({"--version"});
    ASSERT_TRUE(std::holds_alternative<EarlyExit>(result));
    EXPECT_THAT(std::get<EarlyExit>(result).text,
                ::testing::MatchesRegex("rdma_read [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(PairOptions, TakeATokenFileOnEitherSideAndDoNotOpenIt) {
    EXPECT_EQ(parsed<PairServerOptions>({"-s"}).token_file, std::nullopt);
    EXPECT_EQ(parsed<PairServerOptions>({"-s", "--token-file", "/none"}).token_file, "/none");
    EXPECT_EQ(parsed<PairClientOptions>({"-c", "a"}).token_file, std::nullopt);
    EXPECT_EQ(parsed<PairClientOptions>({"-c", "a", "--token-file", "t"}).token_file, "t");
}

}  // namespace
}  // namespace rdma_read::app
