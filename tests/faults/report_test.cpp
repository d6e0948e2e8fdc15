// The rows whose point is the report: outcome, phase and exit code of a run of several ranks.
#include "matrix.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

namespace rdma_read::test {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

struct Reported {
    std::string fault;
    std::string outcome;
    std::string phase;
};

class Reports : public FaultMatrix {
  protected:
    static inline const std::vector<std::string> kOptions{"--size", "4K",         "--iterations",
                                                          "20",     "--progress", "never"};

    // A run of these programs, which must end with this status and the verdict that belongs to it.
    static CommandResult run_ranks(const std::vector<Program>& programs, const std::string& report,
                                   int status) {
        std::vector<std::string> options = kOptions;
        options.insert(options.end(), {"--timeout", "20", "--json", report});
        const auto result = run(launch(programs, options), {std::chrono::seconds(95), {}});
        expect_status(result, status);
        if (status != 3) {
            EXPECT_THAT(result.out, HasSubstr(status == 0 ? "\nPASS " : "\nFAIL ")) << told(result);
        }
        return result;
    }
    static std::string file_folder(const std::string& file) {
        return file.substr(0, file.rfind('/'));
    }
    [[nodiscard]] std::string reported(int rank) const {
        const auto result = result_of(report(), rank);
        const auto& phase = result.at("phase");
        return fmt::format("{} {}", result.at("outcome").get<std::string>(),
                           phase.is_string() ? phase.get<std::string>() : "-");
    }
};

// A launcher takes seconds, so all of them share one run.
TEST_F(Reports, NameTheOutcomeAndThePhaseOfEachReader) {
    const std::vector<Reported> readers{
        {"rdma_create_event_channel:1:ENODEV", "NO_DEVICE", "device"},
        {"rdma_create_qp:1:ENOMEM", "SETUP_FAILED", "setup"},
        {"rdma_connect:1:ENOMEM", "CONNECT_FAILED", "connect"},
        {"event:ESTABLISHED:initiator_depth=0", "CONNECT_FAILED", "connect"},
        {"hello:27:99", "CONNECT_FAILED", "connect"},
        {"completion:2:5", "CONNECT_FAILED", "descriptor"},
        {"completion:9:10", "READ_FAILED", "read"},
        {"read:5:empty", "CORRUPT", "check"},
        {"event:ESTABLISHED:initiator_depth=1", "PASS", "-"},
    };
    std::vector<Program> programs{{1, {tool()}}};
    std::vector<std::string> logs;
    for (const Reported& reader : readers) {
        logs.push_back(new_log());
        programs.push_back({1, words_with_faults(reader.fault, logs.back())});
    }
    play({{"reader", fmt::format("np {}: each of the following", programs.size()), 90, [&] {
               (void)run_ranks(programs, report_path(), 1);
               return std::string("exit 1");
           }}});
    std::vector<Play> plays;
    for (std::size_t i = 0; i < readers.size(); ++i) {
        plays.push_back({"reader", readers[i].fault, 1, [&, i] {
                             expect_struck(readers[i].fault, logs[i]);
                             const std::string came = reported(static_cast<int>(i) + 1);
                             EXPECT_EQ(came, readers[i].outcome + " " + readers[i].phase);
                             return came;
                         }});
    }
    play(plays, Lanes::one);
}

TEST_F(Reports, NameWhatTheServerDidToItsReaders) {
    const auto at_server = [this](const std::string& fault, int readers, int status,
                                  const std::vector<std::string>& expected) {
        return Play{"server", fmt::format("np {}: {}", readers + 1, fault), 30, [=, this] {
                        const std::string log = new_log();
                        const auto result =
                            run_ranks({{1, words_with_faults(fault, log)}, {readers, {tool()}}},
                                      report_path(), status);
                        expect_struck(fault, log);
                        std::vector<std::string> came;
                        for (int rank = 1; rank <= readers; ++rank) {
                            came.push_back(reported(rank));
                        }
                        EXPECT_THAT(came, UnorderedElementsAreArray(expected)) << told(result);
                        return fmt::format("{}, exit {}", fmt::join(came, "; "), result.status);
                    }};
    };
    play({at_server("ibv_alloc_pd:1:ENOMEM", 1, 3, {"NOT_RUN gather"}),
          // Where no address leads to a device, the list of devices is only told.
          at_server("rdma_bind_addr:1:ENODEV,rdma_bind_addr:2:ENODEV,ibv_get_device_list:1:ENODEV",
                    1, 3, {"NOT_RUN gather"}),
          at_server("rdma_accept:1:EINVAL", 2, 1, {"CONNECT_FAILED connect", "PASS -"}),
          at_server("ibv_post_send:1:ENOMEM", 2, 1, {"CONNECT_FAILED descriptor", "PASS -"})},
         Lanes::one);
}

TEST_F(Reports, NameAServerThatFailsWhichItsReadersSeeAtOnce) {
    const std::string fault = "ibv_poll_cq:1:EIO";
    play({{"server", "np 2: " + fault + ", while its reader waits for the descriptor", 45, [&] {
               const std::string log = new_log();
               // Far less than the reader's own deadline.
               const auto result = run(launch({{1, words_with_faults(fault, log)}, {1, {tool()}}},
                                              {"--timeout", "60", "--json", report_path()}),
                                       {std::chrono::seconds(95), {}});
               expect_status(result, 1);
               expect_struck(fault, log);
               EXPECT_THAT(result.err, HasSubstr("server (rank 0) stopped: ibv_poll_cq"));
               EXPECT_EQ(reported(1), "CONNECT_FAILED descriptor") << told(result);
               EXPECT_GT(report().at("servers").at(0).at("cpu_s_while_serving"), 0.0);
               return fmt::format("{}, exit {}", reported(1), result.status);
           }}});
}

TEST_F(Reports, NameABufferThatIsTooSmallForWhatIsAskedWithoutARead) {
    play({{"server", "np 2: small-buffer", 30, [&] {
               const std::string log = new_log();
               // Strikes the first read that is posted.
               const auto result = run_ranks({{1, {faulty_root(), "small-buffer"}},
                                              {1, words_with_faults("read:1:empty", log)}},
                                             report_path(), 1);
               EXPECT_EQ(reported(1), "CONNECT_FAILED descriptor") << told(result);
               EXPECT_TRUE(is_empty_file(log)) << "a read was posted";
               return fmt::format("{}, no read, exit {}", reported(1), result.status);
           }}});
}

TEST_F(Reports, CountNoRankTwice) {
    play({{"reader", "np 3: hello:27:1, a rank that is taken", 30, [&] {
               const std::string log = new_log();
               const auto result = run_ranks(
                   {{2, {tool()}}, {1, words_with_faults("hello:27:1", log)}}, report_path(), 1);
               expect_struck("hello:27:1", log);
               // One of the two has the rank: who comes while the other one holds the descriptor is
               // refused, and before that takes its place, as after an attempt that was given up.
               const std::vector<std::string> came{reported(1), reported(2)};
               EXPECT_THAT(came, UnorderedElementsAre("PASS -", AnyOf("CONNECT_FAILED connect",
                                                                      "CONNECT_FAILED descriptor")))
                   << told(result);
               const int other = came[0] == "PASS -" ? 2 : 1;
               EXPECT_THAT(result_of(report(), other).at("error").get<std::string>(),
                           HasSubstr(came[static_cast<std::size_t>(other) - 1].ends_with("connect")
                                         ? "already connected"
                                         : "ended the connection before it sent the descriptor"));
               EXPECT_EQ(result_of(report(), other).at("sizes"), nlohmann::json::array());
               const nlohmann::json verdict = report().at("verdict");
               EXPECT_EQ(verdict.at("expected"), 2);
               EXPECT_EQ(verdict.at("passed"), 1);
               EXPECT_EQ(verdict.at("failed"), 1);
               for (const int rank : {1, 2}) {
                   EXPECT_THAT(result.out, ContainsRegex(fmt::format(
                                               "\n +{} +[^\n]* {}\n", rank,
                                               rank == other ? "CONNECT_FAILED" : "PASS")))
                       << told(result);
               }
               EXPECT_THAT(result.out, HasSubstr("\nFAIL  1 of 2 readers")) << told(result);
               return fmt::format("{}; {}; exit 1", came[0], came[1]);
           }}});
}

// The first place that meets the limit behind what MPI opens is the device, which librdmacm then
// cannot open.
TEST_F(Reports, NameTheReaderThatHasTooFewFiles) {
    play({{"reader", "np 3: ulimit -n 22", 40, [&] {
               const auto result = run_ranks(
                   {{2, {tool()}}, {1, {"sh", "-c", "ulimit -n 22; exec \"$0\" \"$@\"", tool()}}},
                   report_path(), 1);
               EXPECT_EQ(reported(1), "PASS -") << told(result);
               EXPECT_EQ(reported(2), "CONNECT_FAILED resolve") << told(result);
               return fmt::format("{}; {}; exit 1", reported(1), reported(2));
           }}});
}

// A rank that is stopped can neither report nor leave, so the root does without it.
TEST_F(Reports, AreCompleteAlthoughARankIsStopped) {
    const auto stopped = [this](const std::string& what, const std::string& fault, bool server,
                                int status, const std::vector<std::string>& expected) {
        return Play{
            server ? "server" : "reader", "np 3: " + what, 50, [=, this] {
                const std::string log = new_log();
                const std::vector<std::string> faulty = words_with_faults(fault, log);
                // Rank 0 reports; rank 1 serves where the server is stopped.
                std::vector<std::string> options = kOptions;
                options.insert(options.end(), {"--timeout", "8", "--json", report_path()});
                if (server) {
                    options.insert(options.end(), {"--server", "1"});
                }
                const std::vector<Program> programs{{1, {tool()}}, {1, faulty}, {1, {tool()}}};
                const auto result = run(launch(programs, options), {std::chrono::seconds(70), {}});
                expect_status(result, status);
                EXPECT_THAT(result.out, HasSubstr(status == 0 ? "\nPASS " : "\nFAIL "))
                    << told(result);
                expect_struck(fault, log);
                const int first = server ? 0 : 1;
                const std::vector<std::string> came{reported(first), reported(2)};
                EXPECT_THAT(came, ElementsAreArray(expected)) << told(result);
                if (server) {
                    EXPECT_THAT(result.err, HasSubstr("rank 1 on ")) << told(result);
                    EXPECT_THAT(result.err, HasSubstr("which served, does not answer"))
                        << told(result);
                }
                return fmt::format("{}; {}; exit {}", came[0], came[1], result.status);
            }};
    };
    play({stopped("ibv_post_send:5:STOP, in the middle of reads", "ibv_post_send:5:STOP", false, 1,
                  {"TIMEOUT gather", "PASS -"}),
          stopped("rdma_connect:1:STOP", "rdma_connect:1:STOP", false, 1,
                  {"TIMEOUT gather", "PASS -"}),
          stopped("rdma_accept:1:STOP", "rdma_accept:1:STOP", true, 1,
                  {"TIMEOUT connect", "TIMEOUT connect"}),
          // Reads need nothing of its process.
          stopped("ibv_post_send:2:STOP_AFTER, when both have the descriptor",
                  "ibv_post_send:2:STOP_AFTER", true, 0, {"PASS -", "PASS -"})},
         Lanes::one);
}

TEST_F(Reports, OnAHostThatLacksSomethingEndWell) {
    if (geteuid() != 0) {
        lacks("only root can mount small file systems");
        return;
    }
    const auto full = [this](const std::string& what, const std::string& prepare,
                             const std::string& repair, const std::string& file, int status,
                             const std::string& says) {
        return Play{"both", "np 2: " + what, 30, [=, this] {
                        const auto prepared = run({"sh", "-c", prepare});
                        EXPECT_EQ(prepared.status, 0) << told(prepared);
                        const auto result = run(launch(2, {"--size", "4K", "--iterations", "20",
                                                           "--timeout", "10", "--json", file}),
                                                {std::chrono::seconds(60), {}});
                        const auto left = run({"sh", "-c", "ls -A \"$0\"", file_folder(file)});
                        (void)run({"sh", "-c", repair});
                        expect_status(result, status);
                        EXPECT_THAT(result.out, HasSubstr("\nPASS ")) << told(result);
                        EXPECT_THAT(result.err, HasSubstr(says)) << told(result);
                        if (status == 0) {
                            EXPECT_EQ(reported(1), "PASS -") << told(result);
                        } else {
                            EXPECT_EQ(left.out, "filling\n") << "a file is left behind";
                        }
                        return fmt::format("PASS -{}{}, exit {}", says.empty() ? "" : "; ", says,
                                           result.status);
                    }};
    };
    const std::string small = folder() / "small";
    play({full("report on a full disk",
               fmt::format("mkdir {0} && mount -t tmpfs -o size=4k small {0} && "
                           "head -c 4096 /dev/zero >{0}/filling",
                           small),
               "umount " + small, small + "/report.json", 1, "No space left on device"),
          full("/dev/shm full",
               "mount -t tmpfs -o size=4k shm /dev/shm && head -c 4096 /dev/zero >/dev/shm/filling",
               "umount /dev/shm", report_path(), 0, ""),
          full("/dev/shm read-only", "mount -t tmpfs -o ro shm /dev/shm", "umount /dev/shm",
               report_path(), 0, ""),
          // A folder of the file system that /dev is of cannot be taken away while something is
          // mounted on it.
          full("/dev/shm missing",
               "while mountpoint -q /dev/shm; do umount /dev/shm || exit; done; rmdir /dev/shm",
               "mkdir /dev/shm && mount -t tmpfs shm /dev/shm", report_path(), 0, "")},
         Lanes::one);
}

}  // namespace
}  // namespace rdma_read::test
