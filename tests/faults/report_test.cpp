// The rows whose point is the report: outcome, phase and exit code of a run of several ranks.
#include "matrix.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

namespace rdma_read::test {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

struct Reported {
    std::string fault;
    std::string outcome;
    std::string phase;
};

class Reports : public FaultMatrix {
  protected:
    // A run of these programs, which must end with this status and the verdict that belongs to it.
    static CommandResult run_ranks(const std::vector<Program>& programs, const std::string& report,
                                   int status) {
        const auto result = run(launch(programs, {"--size", "4K", "--iterations", "20", "--timeout",
                                                  "10", "--progress", "never", "--json", report}),
                                {std::chrono::seconds(95), {}});
        expect_status(result, status);
        if (status != 3) {
            EXPECT_THAT(result.out, HasSubstr(status == 0 ? "\nPASS " : "\nFAIL ")) << told(result);
        }
        return result;
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
                        return fmt::format("{}, exit {}", came.front(), result.status);
                    }};
    };
    play({at_server("ibv_alloc_pd:1:ENOMEM", 1, 3, {"NOT_RUN gather"}),
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

TEST_F(Reports, CountNoRankTwice) {
    play({{"reader", "np 3: hello:27:1, a rank that is taken", 30, [&] {
               const std::string log = new_log();
               (void)run_ranks({{2, {tool()}}, {1, words_with_faults("hello:27:1", log)}},
                               report_path(), 1);
               expect_struck("hello:27:1", log);
               // Who of the two has the rank depends on who came first.
               return fmt::format("{}; {}; exit 1", reported(1), reported(2));
           }}});
}

TEST_F(Reports, OnAHostThatIsFullEndWell) {
    if (geteuid() != 0) {
        lacks("only root can mount small file systems");
        return;
    }
    const auto full = [](const std::string& what, const std::string& prepare,
                         const std::string& repair, const std::string& file, int status) {
        return Play{"both", "np 2: " + what, 30, [=] {
                        const auto prepared = run({"sh", "-c", prepare});
                        EXPECT_EQ(prepared.status, 0) << told(prepared);
                        const auto result = run(launch(2, {"--size", "4K", "--iterations", "20",
                                                           "--timeout", "10", "--json", file}),
                                                {std::chrono::seconds(60), {}});
                        (void)run({"sh", "-c", repair});
                        expect_status(result, status);
                        return fmt::format("exit {}", result.status);
                    }};
    };
    const std::string small = folder() / "small";
    play({full("report on a full disk",
               fmt::format("mkdir {0} && mount -t tmpfs -o size=4k small {0} && "
                           "head -c 4096 /dev/zero >{0}/filling",
                           small),
               "umount " + small, small + "/report.json", 1),
          full("/dev/shm full",
               "mount -t tmpfs -o size=4k shm /dev/shm && head -c 4096 /dev/zero >/dev/shm/filling",
               "umount /dev/shm", report_path(), 0),
          full("/dev/shm read-only", "mount -t tmpfs -o ro shm /dev/shm", "umount /dev/shm",
               report_path(), 0)},
         Lanes::one);
}

}  // namespace
}  // namespace rdma_read::test
