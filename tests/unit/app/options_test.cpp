// The command line of rdma_read_mpi: what is taken, and that every slip ends in one clear line.
#include "app/options.hpp"

#include "words.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace rdma_read::app {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;
using ::testing::StartsWith;

using Line = std::vector<std::string>;

ParsedOptions parse(const Line& line) {
    const Words words("rdma_read_mpi", line);
    return parse_options(words.argc(), words.argv());
}

Options parsed(const Line& line) {
    auto result = parse(line);
    if (const auto* const exit = std::get_if<EarlyExit>(&result)) {
        ADD_FAILURE() << joined(line) << exit->text;
        return {};
    }
    return std::get<Options>(result);
}

struct Wrong {
    Line line;
    Line pieces;  ///< What the error line must contain.
};

void PrintTo(const Wrong& wrong, std::ostream* out) {
    *out << joined(wrong.line);
}

class WrongCommandLine : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongCommandLine, EndsInOneLineOnStderrWithExitCodeTwo) {
    const auto& [line, pieces] = GetParam();
    const auto result = parse(line);
    const auto* const exit = std::get_if<EarlyExit>(&result);
    ASSERT_NE(exit, nullptr) << joined(line) << "was taken";
    EXPECT_EQ(exit->code, 2);
    EXPECT_TRUE(exit->to_stderr);
    EXPECT_THAT(exit->text, StartsWith("rdma_read_mpi: "));
    EXPECT_THAT(exit->text, EndsWith("\n"));
    EXPECT_EQ(std::count(exit->text.begin(), exit->text.end(), '\n'), 1) << exit->text;
    EXPECT_THAT(exit->text, HasSubstr("allowed: "));
    for (const auto& piece : pieces) {
        EXPECT_THAT(exit->text, HasSubstr(piece)) << joined(line);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, WrongCommandLine,
    ::testing::Values(
        Wrong{{"--size", "0"}, {"--size 0:", "out of range", "1 to 1024G"}},
        Wrong{{"--size", "-1"}, {"--size -1:", "not a number of bytes"}},
        Wrong{{"--size", "+1"}, {"--size +1:", "not a number of bytes"}},
        Wrong{{"--size", "4X"}, {"--size 4X:", "4X is not a number of bytes", "K"}},
        Wrong{{"--size", "4KB"}, {"--size 4KB:", "not a number of bytes"}},
        Wrong{{"--size", "K"}, {"--size K:", "not a number of bytes"}},
        Wrong{{"--size", "1.5K"}, {"--size 1.5K:", "not a number of bytes"}},
        Wrong{{"--size", "0x10"}, {"--size 0x10:", "not a number of bytes"}},
        Wrong{{"--size", "1e3"}, {"--size 1e3:", "not a number of bytes"}},
        Wrong{{"--size", " 1"}, {"--size ' 1':", "not a number of bytes"}},
        Wrong{{"--size", ""}, {"--size '':", "empty"}}, Wrong{{"--size="}, {"--size '':", "empty"}},
        Wrong{{"--size=", "4K"}, {"--size '':", "empty"}},
        Wrong{{"--size", ","}, {"--size ,:", "empty"}},
        Wrong{{"--size", "4K,"}, {"--size 4K,:", "an item is empty"}},
        Wrong{{"--size", ",4K"}, {"--size ,4K:", "an item is empty"}},
        Wrong{{"--size", "4K,,8K"}, {"--size 4K,,8K:", "an item is empty"}},
        Wrong{{"--size", "4K, 8K"}, {"--size '4K, 8K':", "' 8K' is not"}},
        Wrong{{"--size", "4K,4096"}, {"--size 4K,4096:", "4096 is there twice"}},
        Wrong{{"--size", "1025G"}, {"--size 1025G:", "out of range", "1024G"}},
        Wrong{{"--size", "1099511627777"}, {"--size 1099511627777:", "out of range"}},
        Wrong{{"--size", "18446744073709551616"}, {"--size 18446744073709551616:", "not a number"}},
        Wrong{{"--size", "17179869185G"}, {"--size 17179869185G:", "not a number"}},
        Wrong{{"--size", "4K\n5K"}, {"--size '4K\\x0a5K':"}},
        Wrong{{"--size", "4K", "8K"}, {"8K: a word that belongs to no option"}},
        Wrong{{"--size"}, {"--size: a value is missing"}},
        Wrong{{"--size", "--depth", "4"}, {"--size: a value is missing before --depth"}},
        Wrong{{"--size", "4K", "--size", "8K"}, {"--size 8K: given twice, 4K before"}}));

INSTANTIATE_TEST_SUITE_P(
    Numbers, WrongCommandLine,
    ::testing::Values(
        Wrong{{"--iterations", "0"}, {"--iterations 0:", "out of range", "1 to 1000000000"}},
        Wrong{{"--iterations", "-5"}, {"--iterations -5:", "not a whole number"}},
        Wrong{{"--iterations", "1000000001"}, {"--iterations 1000000001:", "out of range"}},
        Wrong{{"--iterations", "4294967297"}, {"--iterations 4294967297:", "out of range"}},
        Wrong{{"--iterations", "1K"}, {"--iterations 1K:", "not a whole number"}},
        Wrong{{"--iterations", "99999999999999999999"}, {"not a whole number"}},
        Wrong{{"--depth", "0"}, {"--depth 0:", "1 to 1024"}},
        Wrong{{"--depth", "1025"}, {"--depth 1025:", "1 to 1024"}},
        Wrong{{"--depth", "deep"}, {"--depth deep:", "1 to 1024"}},
        Wrong{{"--qps", "0"}, {"--qps 0:", "1 to 64"}},
        Wrong{{"--qps", "65"}, {"--qps 65:", "1 to 64"}},
        Wrong{{"--concurrency", "-1"}, {"--concurrency -1:", "0 to 1000000"}},
        Wrong{{"--hugepages=yes"}, {"--hugepages yes: takes no value"}},
        Wrong{{"--hugepages", "--hugepages"}, {"--hugepages: given twice"}},
        Wrong{{"--port", "65536"}, {"--port 65536:", "0 to 65535"}},
        Wrong{{"--port", "-1"}, {"--port -1:", "0 to 65535"}},
        Wrong{{"--port", "http"}, {"--port http:", "0 to 65535"}},
        Wrong{{"--server", "-1"}, {"--server -1:", "0 or more"}},
        Wrong{{"--server", "2147483648"}, {"--server 2147483648:", "out of range"}},
        Wrong{{"--server", "node1"}, {"--server node1:", "a rank"}}));

INSTANTIATE_TEST_SUITE_P(
    Durations, WrongCommandLine,
    ::testing::Values(Wrong{{"--timeout", "0"}, {"--timeout 0:", "above 0"}},
                      Wrong{{"--timeout", "0.0000000001"}, {"--timeout 0.0000000001:", "above 0"}},
                      Wrong{{"--timeout", "-1"}, {"--timeout -1:", "above 0"}},
                      Wrong{{"--timeout", "inf"}, {"--timeout inf:", "86400"}},
                      Wrong{{"--timeout", "nan"}, {"--timeout nan:", "86400"}},
                      Wrong{{"--timeout", "86400.1"}, {"--timeout 86400.1:", "at most 86400"}},
                      Wrong{{"--timeout", "30s"}, {"--timeout 30s:", "seconds"}},
                      Wrong{{"--timeout", "1,5"}, {"--timeout 1,5:", "0.5"}},
                      Wrong{{"--timeout", "1e2"}, {"--timeout 1e2:", "seconds"}},
                      Wrong{{"--timeout", "1.2.3"}, {"--timeout 1.2.3:", "seconds"}},
                      Wrong{{"--duration", "0"}, {"--duration 0:", "above 0"}},
                      Wrong{{"--duration", "."}, {"--duration .:", "seconds"}},
                      Wrong{{"--duration", "86401"}, {"--duration 86401:", "at most 86400"}}));

INSTANTIATE_TEST_SUITE_P(
    Choices, WrongCommandLine,
    ::testing::Values(Wrong{{"--pattern", "mesh"}, {"--pattern mesh:", "allowed: star"}},
                      Wrong{{"--pattern", "STAR"}, {"--pattern STAR:", "allowed: star"}},
                      Wrong{{"--verify", "on"}, {"--verify on:", "allowed: full, off"}},
                      Wrong{{"--self-test", "--verify", "off"},
                            {"--verify off: contradicts --self-test", "allowed: full"}},
                      Wrong{{"--self-test=yes"}, {"--self-test yes: takes no value"}},
                      Wrong{{"--progress", "yes"},
                            {"--progress yes:", "allowed: auto, always, never"}}));

INSTANTIATE_TEST_SUITE_P(
    Places, WrongCommandLine,
    ::testing::Values(
        Wrong{{"--server-ip", "node1"}, {"--server-ip node1:", "literal IPv4 or IPv6"}},
        Wrong{{"--server-ip", "10.0.0"}, {"--server-ip 10.0.0:", "literal"}},
        Wrong{{"--server-ip", "10.0.0.256"}, {"--server-ip 10.0.0.256:", "literal"}},
        Wrong{{"--server-ip", "[::1]"}, {"--server-ip [::1]:", "literal"}},
        Wrong{{"--server-ip", "fe80::1%eth0"}, {"--server-ip fe80::1%eth0:", "without scope"}},
        Wrong{{"--server-ip", "10.0.0.1:7471"}, {"--server-ip 10.0.0.1:7471:", "literal"}},
        Wrong{{"--interface", "eth/0"}, {"--interface eth/0:", "network interface"}},
        Wrong{{"--interface", ".."}, {"--interface ..:", "network interface"}},
        Wrong{{"--interface", "averylonginterface"}, {"at most 15 characters"}},
        Wrong{{"--device", ":1"}, {"--device :1:", "RDMA device"}},
        Wrong{{"--device", "mlx5_0:"}, {"--device mlx5_0::", "1 to 255"}},
        Wrong{{"--device", "mlx5_0:0"}, {"--device mlx5_0:0:", "1 to 255"}},
        Wrong{{"--device", "mlx5_0:256"}, {"--device mlx5_0:256:", "1 to 255"}},
        Wrong{{"--device", "mlx5_0:1:1"}, {"--device mlx5_0:1:1:", "1 to 255"}},
        Wrong{{"--device", "../mlx5_0"}, {"--device ../mlx5_0:", "RDMA device"}},
        Wrong{{"--json", ""}, {"--json '':", "- for stdout"}},
        Wrong{{"--json"}, {"--json: a value is missing", "- for stdout"}}));

INSTANTIATE_TEST_SUITE_P(
    Contradictions, WrongCommandLine,
    ::testing::Values(
        Wrong{{"--iterations", "5", "--duration", "1"},
              {"--iterations 5:", "contradicts --duration 1"}},
        Wrong{{"--duration", "30"}, {"--duration 30:", "--timeout 30", "less than 30 seconds"}},
        Wrong{{"--duration", "10", "--size", "1,2,3"},
              {"--duration 10:", "3 phases", "less than 10 seconds"}},
        Wrong{{"--duration", "5", "--timeout", "2.5"}, {"--duration 5:", "--timeout 2.5"}},
        Wrong{{"--buffer", "64K"}, {"--buffer 64K:", "reads of 64K", "at least 131064 bytes"}},
        Wrong{{"--buffer", "131063"}, {"--buffer 131063:", "at least 131064 bytes"}},
        Wrong{{"--size", "1", "--buffer", "65535"}, {"--buffer 65535:", "at least 65536 bytes"}},
        Wrong{{"--size", "1,1M", "--buffer", "1M"}, {"--buffer 1M:", "reads of 1M"}},
        Wrong{{"--buffer", "0"}, {"--buffer 0:", "out of range"}},
        Wrong{{"--buffer", "2049G"}, {"--buffer 2049G:", "out of range"}}));

INSTANTIATE_TEST_SUITE_P(
    Unknown, WrongCommandLine,
    ::testing::Values(Wrong{{"--qp", "2"}, {"--qp: unknown option", "--size", "--help"}},
                      Wrong{{"--huge-pages"}, {"--huge-pages: unknown option"}},
                      Wrong{{"--retest"}, {"--retest: unknown option"}},
                      Wrong{{"--csv", "x"}, {"--csv: unknown option"}},
                      Wrong{{"--list-devices"}, {"--list-devices: unknown option"}},
                      Wrong{{"--sizes=4K"}, {"--sizes=4K: unknown option"}},
                      Wrong{{"--siz", "4K"}, {"--siz: unknown option"}},
                      Wrong{{"--SIZE", "4K"}, {"--SIZE: unknown option"}},
                      Wrong{{"-h"}, {"-h: unknown option"}},
                      Wrong{{"-s", "4K"}, {"-s: unknown option"}},
                      Wrong{{"--bad\nname"}, {"'--bad\\x0aname': unknown option"}},
                      Wrong{{"4K"}, {"4K: a word that belongs to no option"}},
                      Wrong{{""}, {"'': a word that belongs to no option"}},
                      Wrong{{"--", "4K"}, {"--: unknown option"}},
                      Wrong{{"--version=1"}, {"--version 1: takes no value"}},
                      Wrong{{"--help="}, {"--help '': takes no value"}},
                      Wrong{{"--version", "--bogus"}, {"--bogus: unknown option"}}));

TEST(Options, HaveTheDocumentedDefaults) {
    const Options options = parsed({});
    EXPECT_THAT(options.sizes, ElementsAre(65536));
    EXPECT_EQ(options.iterations, 1000U);
    EXPECT_EQ(options.duration, std::nullopt);
    EXPECT_EQ(options.depth, 16U);
    EXPECT_EQ(options.qps, 1U);
    EXPECT_FALSE(options.hugepages);
    EXPECT_EQ(options.concurrency, 0U);
    EXPECT_EQ(options.buffer, std::nullopt);
    EXPECT_EQ(options.buffer_bytes(), 8191U * 8U + 65536U);
    EXPECT_EQ(options.pattern, ReadPattern::star);
    EXPECT_EQ(options.server, 0);
    EXPECT_EQ(options.server_ip, std::nullopt);
    EXPECT_EQ(options.interface, std::nullopt);
    EXPECT_FALSE(options.device.has_value());
    EXPECT_EQ(options.port, 0);
    EXPECT_EQ(options.timeout, 30s);
    EXPECT_TRUE(options.verify);
    EXPECT_EQ(options.json, std::nullopt);
    EXPECT_EQ(options.progress, Progress::automatic);
}

TEST(Options, TakeWhatTheUserSays) {
    const Options options = parsed({"--size",
                                    "1,4K,64k,1M,2G",
                                    "--duration=0.5",
                                    "--depth",
                                    "128",
                                    "--qps",
                                    "4",
                                    "--hugepages",
                                    "--concurrency",
                                    "2",
                                    "--buffer",
                                    "4G",
                                    "--pattern",
                                    "star",
                                    "--server",
                                    "3",
                                    "--server-ip",
                                    "fd00::1",
                                    "--interface",
                                    "ib0",
                                    "--device",
                                    "mlx5_0:2",
                                    "--port",
                                    "7471",
                                    "--timeout",
                                    "60",
                                    "--verify",
                                    "off",
                                    "--json",
                                    "-",
                                    "--progress",
                                    "never"});
    EXPECT_THAT(options.sizes, ElementsAre(1, 4096, 65536, 1048576, 2147483648));
    EXPECT_THAT(options.duration, Optional(500ms));
    EXPECT_EQ(options.depth, 128U);
    EXPECT_EQ(options.qps, 4U);
    EXPECT_TRUE(options.hugepages);
    EXPECT_EQ(options.concurrency, 2U);
    EXPECT_EQ(options.buffer_bytes(), 4294967296U);
    EXPECT_EQ(options.server, 3);
    EXPECT_EQ(options.server_ip, "fd00::1");
    EXPECT_EQ(options.interface, "ib0");
    ASSERT_TRUE(options.device.has_value());
    EXPECT_EQ(options.device->name, "mlx5_0");
    EXPECT_EQ(options.device->port_num, 2U);
    EXPECT_EQ(options.port, 7471);
    EXPECT_EQ(options.timeout, 60s);
    EXPECT_FALSE(options.verify);
    EXPECT_EQ(options.json, "-");
    EXPECT_EQ(options.progress, Progress::never);
}

TEST(Options, TheSelfTestIsMadeWhenItIsAskedFor) {
    EXPECT_FALSE(parsed({}).self_test);
    EXPECT_TRUE(parsed({"--self-test"}).self_test);
    EXPECT_TRUE(parsed({"--verify", "full", "--self-test"}).self_test);
}

TEST(Options, TakeTheLimitsThemselves) {
    EXPECT_EQ(parsed({"--size", "1024G"}).largest_size(), std::uint64_t{1} << 40U);
    EXPECT_EQ(parsed({"--iterations", "1000000000"}).iterations, 1'000'000'000U);
    EXPECT_EQ(parsed({"--depth", "1024"}).depth, 1024U);
    EXPECT_EQ(parsed({"--qps", "64"}).qps, 64U);
    EXPECT_EQ(parsed({"--concurrency", "1000000"}).concurrency, 1000000U);
    EXPECT_EQ(parsed({"--port", "65535"}).port, 65535);
    EXPECT_EQ(parsed({"--timeout", "86400"}).timeout, 24h);
    EXPECT_EQ(parsed({"--buffer", "131064"}).buffer_bytes(), 131064U);
    EXPECT_EQ(parsed({"--size", "1", "--buffer", "65536"}).buffer_bytes(), 65536U);
    EXPECT_EQ(parsed({"--duration", "9.999", "--size", "1,2,3"}).sizes.size(), 3U);
    EXPECT_EQ(parsed({"--device", "mlx5_0"}).device->port_num, std::nullopt);
    EXPECT_EQ(parsed({"--device", "mlx5_0:255"}).device->port_num, 255U);
}

TEST(Options, ABufferForTheLargestReadHoldsTheWindowBehindIt) {
    EXPECT_EQ(buffer_needed(1), 65536U);
    EXPECT_EQ(buffer_needed(8), 65536U);
    EXPECT_EQ(buffer_needed(9), 65544U);
}

TEST(Options, AReaderWaitsForAsManyTurnsAsOthersMayHaveBeforeIt) {
    constexpr std::chrono::nanoseconds kNone{0};
    EXPECT_EQ(parsed({}).longest_wait(1000), kNone);
    const Options two = parsed({"--concurrency", "2"});
    EXPECT_EQ(two.longest_wait(0), kNone);
    EXPECT_EQ(two.longest_wait(2), kNone);
    EXPECT_EQ(two.longest_wait(3), two.turn());
    EXPECT_EQ(parsed({"--concurrency", "1"}).longest_wait(7), 6 * two.turn());
}

TEST(Options, ATurnLastsLongerThanAReadersOwnBudget) {
    EXPECT_GE(parsed({"--timeout", "7"}).turn(), std::chrono::seconds(9));
}

TEST(Options, HelpNamesEveryOptionWithItsDefaultAndTheExitCodes) {
    const auto result = parse({"--help"});
    const auto* const exit = std::get_if<EarlyExit>(&result);
    ASSERT_NE(exit, nullptr);
    EXPECT_EQ(exit->code, 0);
    EXPECT_FALSE(exit->to_stderr);
    for (const auto* const piece : {"--size LIST",
                                    "Default 64K",
                                    "--iterations N",
                                    "Default 1000",
                                    "--duration SECONDS",
                                    "--depth N",
                                    "Default 16",
                                    "--qps N",
                                    "--buffer BYTES",
                                    "--hugepages",
                                    "--concurrency N",
                                    "--pattern NAME",
                                    "Default star",
                                    "--server RANK",
                                    "--server-ip ADDR",
                                    "--interface NAME",
                                    "--device NAME[:PORT]",
                                    "--port N",
                                    "--timeout SECONDS",
                                    "Default 30",
                                    "--verify MODE",
                                    "Default full",
                                    "--self-test",
                                    "--json FILE",
                                    "--progress WHEN",
                                    "Default auto",
                                    "--version",
                                    "--help",
                                    "mpirun -np N",
                                    "\n  0  ",
                                    "\n  1  ",
                                    "\n  2  ",
                                    "\n  3  "}) {
        EXPECT_THAT(exit->text, HasSubstr(piece));
    }
    EXPECT_THAT(exit->text, EndsWith("\n"));
    std::size_t start = 0;
    for (std::size_t end = 0; (end = exit->text.find('\n', start)) != std::string::npos;
         start = end + 1) {
        EXPECT_LE(end - start, 100U) << exit->text.substr(start, end - start);
    }
}

TEST(Options, HelpIsGivenWhateverElseIsThere) {
    const auto result = parse({"--bogus", "--size", "4X", "--help"});
    ASSERT_TRUE(std::holds_alternative<EarlyExit>(result));
    EXPECT_EQ(std::get<EarlyExit>(result).code, 0);
}

TEST(Options, VersionIsOneLineOnStdout) {
    const auto result = parse({"--version"});
    ASSERT_TRUE(std::holds_alternative<EarlyExit>(result));
    const auto& exit = std::get<EarlyExit>(result);
    EXPECT_EQ(exit.code, 0);
    EXPECT_FALSE(exit.to_stderr);
    EXPECT_THAT(exit.text, ::testing::MatchesRegex("rdma_read_mpi [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(Options, ACommandLineWithoutEvenAProgramNameIsTaken) {
    const char* const argv[] = {nullptr};
    EXPECT_TRUE(std::holds_alternative<Options>(parse_options(0, argv)));
}

TEST(Options, AServerMustBeARankOfTheJob) {
    const Options options = parsed({"--server", "4"});
    EXPECT_EQ(contradiction_with_ranks(options, 5), std::nullopt);
    EXPECT_THAT(contradiction_with_ranks(options, 4),
                Optional(std::string("rdma_read_mpi: --server 4: this job has 4 ranks; "
                                     "allowed: 0 to 3\n")));
    EXPECT_THAT(contradiction_with_ranks(options, 1), Optional(HasSubstr("1 rank; allowed: 0\n")));
}

class JsonFile : public ::testing::Test {
  protected:
    JsonFile() {
        std::string name = (std::filesystem::temp_directory_path() / "json.XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("mkdtemp");
        }
        folder_ = name;
    }
    ~JsonFile() override { std::filesystem::remove_all(folder_); }
    JsonFile(const JsonFile&) = delete;
    JsonFile& operator=(const JsonFile&) = delete;
    JsonFile(JsonFile&&) = delete;
    JsonFile& operator=(JsonFile&&) = delete;

    [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
    static std::optional<std::string> problem(const std::string& file) {
        return contradiction_with_files(parsed({"--json", file}));
    }

  private:
    std::filesystem::path folder_;
};

TEST_F(JsonFile, MayBeNewOrOldOrStdoutOrADevice) {
    std::ofstream(folder() / "old.json") << "{}";
    EXPECT_EQ(problem((folder() / "new.json").string()), std::nullopt);
    EXPECT_EQ(problem((folder() / "old.json").string()), std::nullopt);
    EXPECT_EQ(problem("-"), std::nullopt);
    EXPECT_EQ(problem("/dev/null"), std::nullopt);
    EXPECT_EQ(problem("/dev/stdout"), std::nullopt);
    EXPECT_EQ(contradiction_with_files(Options{}), std::nullopt);
    EXPECT_FALSE(std::filesystem::exists(folder() / "new.json"));
}

TEST_F(JsonFile, MustBeInAFolderThatExists) {
    std::ofstream(folder() / "file") << "x";
    const auto missing = problem((folder() / "none" / "x.json").string());
    EXPECT_THAT(missing, Optional(StartsWith("rdma_read_mpi: --json /")));
    EXPECT_THAT(missing, Optional(HasSubstr("No such file or directory; allowed: ")));
    EXPECT_THAT(problem((folder() / "file" / "x.json").string()),
                Optional(HasSubstr("Not a directory; allowed: ")));
    EXPECT_THAT(problem((folder() / "none").string() + "/"),
                Optional(HasSubstr("does not name a file")));
    EXPECT_THAT(problem("/proc/x.json"), Not(Optional(HasSubstr("\n\n"))));
}

TEST_F(JsonFile, IsNotAFolder) {
    EXPECT_THAT(problem(folder().string()), Optional(HasSubstr("it is a folder; allowed: ")));
    EXPECT_THAT(problem(folder().string() + "/"), Optional(HasSubstr("it is a folder")));
}

TEST_F(JsonFile, BehindALinkIsJudgedWhereTheLinkLeads) {
    std::filesystem::create_symlink("none/x.json", folder() / "dangling");
    std::filesystem::create_symlink("loop", folder() / "loop");
    EXPECT_THAT(problem((folder() / "dangling").string()), Optional(HasSubstr("its folder")));
    EXPECT_THAT(problem((folder() / "loop").string()), Optional(HasSubstr("symbolic links")));
}

TEST(OptionsForReport, NameEveryOptionAndLeaveOutWhatWasNotChosen) {
    const auto map = options_for_report(parsed({"--size", "1,4K", "--server-ip", "10.0.0.1"}));
    EXPECT_EQ(map.size(), 19U);
    EXPECT_EQ(map.at("qps"), verify::OptionValue(std::uint64_t{1}));
    EXPECT_EQ(map.at("hugepages"), verify::OptionValue(false));
    EXPECT_EQ(map.at("concurrency"), verify::OptionValue(std::uint64_t{0}));
    EXPECT_EQ(map.at("size"), verify::OptionValue(std::vector<std::uint64_t>{1, 4096}));
    EXPECT_EQ(map.at("iterations"), verify::OptionValue(std::uint64_t{1000}));
    EXPECT_EQ(map.at("duration"), verify::OptionValue());
    EXPECT_EQ(map.at("buffer"), verify::OptionValue(std::uint64_t{8191 * 8 + 4096}));
    EXPECT_EQ(map.at("server_ip"), verify::OptionValue(std::string("10.0.0.1")));
    EXPECT_EQ(map.at("device"), verify::OptionValue());
    EXPECT_EQ(map.at("timeout"), verify::OptionValue(30.0));
    EXPECT_EQ(map.at("verify"), verify::OptionValue(std::string("full")));
    EXPECT_EQ(map.at("self_test"), verify::OptionValue(false));
    EXPECT_EQ(map.at("progress"), verify::OptionValue(std::string("auto")));
}

TEST(OptionsForReport, ADurationTakesThePlaceOfTheIterations) {
    const auto map = options_for_report(parsed({"--duration", "0.25", "--device", "rxe0:1"}));
    EXPECT_EQ(map.at("iterations"), verify::OptionValue());
    EXPECT_EQ(map.at("duration"), verify::OptionValue(0.25));
    EXPECT_EQ(map.at("device"), verify::OptionValue(std::string("rxe0:1")));
}

}  // namespace
}  // namespace rdma_read::app
