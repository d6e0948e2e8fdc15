// The rows whose point is the report: outcome, phase and exit code of a run of several ranks.
#include "matrix.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

namespace rdma_read::test {
namespace {

using ::testing::HasSubstr;

struct Reported {
    std::string outcome;
    std::string phase;
    int status = 1;
};

class Reports : public FaultMatrix {
  protected:
    static std::vector<std::string> options(const std::string& report) {
        return {"--size", "4K",         "--iterations", "20",     "--timeout",
                "3",      "--progress", "never",        "--json", report};
    }

    // A server and a reader, one of them with the fault.
    Play two_ranks(const std::string& where, const std::string& fault, const Reported& expected,
                   int deadline = 12) {
        return {where, "np 2: " + fault, deadline, [=, this] {
                    const std::string log = new_log();
                    const Program good{1, {tool()}};
                    const Program faulty{1, words_with_faults(fault, log)};
                    const bool at_reader = where == "reader";
                    const auto result =
                        run(launch({at_reader ? good : faulty, at_reader ? faulty : good},
                                   options(report_path())),
                            {std::chrono::seconds(deadline + 5), {}});
                    expect_status(result, expected.status);
                    expect_struck(fault, log);
                    const auto reader = result_of(report(), 1);
                    EXPECT_EQ(reader.at("outcome"), expected.outcome) << told(result);
                    EXPECT_EQ(reader.at("phase"), expected.phase) << told(result);
                    EXPECT_EQ(report().at("verdict").at("exit_code"), expected.status);
                    const std::string verdict = result.status == 0 ? "\nPASS " : "\nFAIL ";
                    if (result.status != 3) {
                        EXPECT_THAT(result.out, HasSubstr(verdict)) << told(result);
                    }
                    return fmt::format("{} {}, exit {}", reader.at("outcome").get<std::string>(),
                                       reader.at("phase").get<std::string>(), result.status);
                }};
    }
};

TEST_F(Reports, NameTheOutcomeAndThePhaseOfAReader) {
    play(
        {
            two_ranks("reader", "rdma_create_event_channel:1:ENODEV", {"NO_DEVICE", "device"}),
            two_ranks("reader", "rdma_create_qp:1:ENOMEM", {"SETUP_FAILED", "setup"}),
            two_ranks("reader", "rdma_connect:1:ENOMEM", {"CONNECT_FAILED", "connect"}),
            two_ranks("reader", "event:ESTABLISHED:initiator_depth=0",
                      {"CONNECT_FAILED", "connect"}),
            two_ranks("reader", "completion:2:5", {"CONNECT_FAILED", "descriptor"}),
            two_ranks("reader", "completion:9:10", {"READ_FAILED", "read"}),
            two_ranks("reader", "read:5:empty", {"CORRUPT", "check"}),
            two_ranks("reader", "event:ESTABLISHED:initiator_depth=1", {"PASS", "", 0}),
        },
        Lanes::one);
}

TEST_F(Reports, NameWhatTheServerDidToItsReader) {
    play(
        {
            two_ranks("server", "ibv_alloc_pd:1:ENOMEM", {"NOT_RUN", "", 3}),
            two_ranks("server", "rdma_accept:1:EINVAL", {"CONNECT_FAILED", "connect"}),
            two_ranks("server", "ibv_post_send:1:ENOMEM", {"CONNECT_FAILED", "descriptor"}),
        },
        Lanes::one);
}

TEST_F(Reports, CountNoStrangerAsAReader) {
    const Play out_of_range{
        "reader", "np 3: hello:27:9, rank out of range", 12, [&] {
            const std::string log = new_log();
            const auto result =
                run(launch({{2, {tool()}}, {1, words_with_faults("hello:27:9", log)}},
                           options(report_path())),
                    {std::chrono::seconds(17), {}});
            expect_status(result, 1);
            expect_struck("hello:27:9", log);
            EXPECT_EQ(result_of(report(), 1).at("outcome"), "PASS") << told(result);
            const auto stranger = result_of(report(), 2);
            EXPECT_EQ(stranger.at("outcome"), "CONNECT_FAILED") << told(result);
            EXPECT_EQ(stranger.at("phase"), "connect");
            EXPECT_THAT(stranger.at("error").get<std::string>(), HasSubstr("out of range"));
            return std::string("CONNECT_FAILED connect; the other reader PASS, exit 1");
        }};
    const Play taken{"reader", "np 3: hello:27:1, rank taken twice", 14, [&] {
                         const std::string log = new_log();
                         const auto result =
                             run(launch({{2, {tool()}}, {1, words_with_faults("hello:27:1", log)}},
                                        options(report_path())),
                                 {std::chrono::seconds(19), {}});
                         expect_status(result, 1);
                         expect_struck("hello:27:1", log);
                         // Who of the two has the rank depends on who came first.
                         return fmt::format(
                             "{} and {}, exit 1",
                             result_of(report(), 1).at("outcome").get<std::string>(),
                             result_of(report(), 2).at("outcome").get<std::string>());
                     }};
    play({out_of_range, taken}, Lanes::one);
}

TEST_F(Reports, ThatCannotBeWrittenAreAFailure) {
    if (geteuid() != 0) {
        lacks("only root can mount small file systems");
        return;
    }
    const auto full = [this](const std::string& what, const std::string& prepare,
                             const std::string& repair, const std::string& file, int status) {
        return Play{
            "both", "np 2: " + what, 12, [=, this] {
                const auto prepared = run({"sh", "-c", prepare});
                EXPECT_EQ(prepared.status, 0) << told(prepared);
                const auto result = run(launch(2, options(file)), {std::chrono::seconds(17), {}});
                (void)run({"sh", "-c", repair});
                EXPECT_FALSE(result.timed_out) << told(result);
                expect_status(result, status);
                return fmt::format("exit {}", result.status);
            }};
    };
    const std::string small = folder() / "small";
    play({full("report on a full disk",
               "mkdir " + small + " && mount -t tmpfs -o size=4k small " + small
                   + " && head -c 4096 /dev/zero >" + small + "/filling",
               "umount " + small, small + "/report.json", 1),
          full("report to a folder that is not there", "true", "true",
               folder() / "nowhere" / "report.json", 1),
          full("/dev/shm full", "mount -t tmpfs -o size=4k shm /dev/shm", "umount /dev/shm",
               report_path(), 0),
          full("/dev/shm read-only", "mount -t tmpfs -o ro shm /dev/shm", "umount /dev/shm",
               report_path(), 0)},
         Lanes::one);
}

}  // namespace
}  // namespace rdma_read::test
