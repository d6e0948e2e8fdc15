// The rows in which a peer is a stranger, speaks wrongly, stops or dies.
#include "matrix.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

namespace rdma_read::test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class Peers : public FaultMatrix {
  protected:
    // A reader at a server that breaks the protocol or the promise of its descriptor, and whether
    // it posts a read then.
    enum class Posts { no_read, reads };
    Play descriptor(const std::string& fault, const End& end, Posts posts = Posts::no_read,
                    const std::string& timeout = "8") {
        return {"server", fault, 10, [=, this] {
                    // Strikes the first read that is posted.
                    const std::string any_read = "read:1:empty";
                    const PairServer serving = start_faulty_server(fault, ipv4());
                    auto words = pair_client(ipv4(), serving.port);
                    words.insert(words.end(), {"--timeout", timeout});
                    const std::string log = new_log();
                    CommandSettings settings{std::chrono::seconds(30), {}};
                    if (posts == Posts::no_read) {
                        settings = with_faults(any_read, log, 25);
                    }
                    std::string came = expect_reader(run(words, settings), end);
                    if (posts == Posts::no_read) {
                        EXPECT_TRUE(is_empty_file(log)) << "a read was posted";
                        came += ", no read";
                    }
                    return came;
                }};
    }

    // A stranger at a server that then serves its one client.
    Play stranger(const std::string& what, const std::string& faults, const std::string& says) {
        return {
            "reader", "stranger: " + what, 10, [=, this] {
                const PairServer serving = start_pair_server({}, {std::chrono::seconds(40), {}});
                const std::string log = new_log();
                const auto stranger =
                    run(pair_client(ipv4(), serving.port), with_faults(faults, log, 20));
                expect_struck(faults, log);
                std::string came = expect_reader(stranger, {1, says});
                expect_served(serving.port);
                expect_status(serving.command->finish(), 0);
                return came + "; not counted";
            }};
    }

    // The server stops or dies at this place; once it is continued it serves on.
    Play server_stops(const std::string& fault, const End& end) {
        return {
            "server", fault, 10, [=, this] {
                const std::string log = new_log();
                const PairServer serving =
                    start_pair_server({"--clients", "0"}, with_faults(fault, log, 60));
                auto words = pair_client(ipv4(), serving.port);
                words.insert(words.end(), {"--timeout", end.status == 0 ? "8" : "3"});
                std::string came = expect_reader(run(words, {std::chrono::seconds(30), {}}), end);
                wait_until_stopped(fault, log, *serving.command);
                serving.command->send_signal(SIGCONT);
                expect_served(serving.port);
                serving.command->send_signal(SIGTERM);
                expect_status(serving.command->finish(), 0);
                return came + "; serves on once continued";
            }};
    }

    // Waits until the fault, which is told before it strikes, has stopped the program.
    static void wait_until_stopped(const std::string& fault, const std::string& log,
                                   const Command& command) {
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (!is_stopped(command.process_id())) {
            ASSERT_LT(std::chrono::steady_clock::now(), limit) << fault;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        expect_struck(fault, log);
    }
    static bool is_stopped(int process) {
        std::ifstream status(fmt::format("/proc/{}/status", process));
        for (std::string word; status >> word;) {
            if (word == "State:" && status >> word) {
                return word == "T";
            }
        }
        return false;
    }

    // The reader stops at this place; the server serves others meanwhile.
    Play reader_stops(const std::string& fault) {
        return {"reader", fault, 10, [=, this] {
                    const std::string log = new_log();
                    const PairServer serving =
                        start_pair_server({"--clients", "0"}, {std::chrono::seconds(60), {}});
                    Command reading(pair_client(ipv4(), serving.port), with_faults(fault, log, 60));
                    wait_until_stopped(fault, log, reading);
                    expect_served(serving.port);
                    reading.send_signal(SIGKILL);
                    EXPECT_EQ(reading.finish().status, 128 + SIGKILL);
                    serving.command->send_signal(SIGTERM);
                    expect_status(serving.command->finish(), 0);
                    return std::string("another reader passes; serves on");
                }};
    }
};

TEST_F(Peers, ThatBreakTheProtocolAreNotBelieved) {
    const End invalid{1, "no valid buffer descriptor"};
    play({
        descriptor("short-descriptor", invalid),
        descriptor("long-descriptor", invalid),
        descriptor("foreign-descriptor", invalid),
        descriptor("other-version-descriptor", invalid),
        descriptor("empty-buffer", invalid),
        descriptor("wrapping-buffer", invalid),
        descriptor("wrong-rkey:0", {1, "remote access error"}, Posts::reads),
        descriptor("wrong-address:0", {1, "remote access error"}, Posts::reads),
        descriptor("no-descriptor", {1, "sent no descriptor before the deadline"}, Posts::no_read,
                   "3"),
        descriptor("no-accept", {1, "no answer before the deadline"}, Posts::no_read, "3"),
    });
}

// What the reader says first, once it is connected.
TEST_F(Peers, ThatSayAFirstMessageOfAnotherKindAreHungUpOn) {
    const auto first_message = [this](const std::string& fault, const std::string& notice) {
        return Play{
            "reader", fault, 10, [this, fault, notice] {
                const PairServer serving = start_pair_server({}, {std::chrono::seconds(40), {}});
                const std::string log = new_log();
                auto words = pair_client(ipv4(), serving.port);
                words.insert(words.end(), {"--timeout", "8"});
                const auto reading = run(words, with_faults(fault, log, 25));
                expect_struck(fault, log);
                std::string came = expect_reader(reading, {1, ""});
                expect_served(serving.port);
                const auto served = serving.command->finish();
                expect_status(served, 0);
                EXPECT_THAT(served.err, HasSubstr(notice)) << told(served);
                return came + "; server: " + notice + "; not counted";
            }};
    };
    const std::string foreign = "its first message is not of this protocol";
    play({
        first_message("message:0:255", foreign),
        first_message("message:length:4", foreign),
        first_message("message:length:20", foreign),
        // Longer than what it is received into; which error says so is the device's.
        first_message("message:length:100", "reader of rank 0: work completion"),
    });
}

TEST_F(Peers, ThatAreStrangersAreRefusedAndNotCounted) {
    play({
        stranger("wrong magic", "hello:0:0", "is not from this program"),
        stranger("other version", "hello:5:99", "of different protocol versions"),
        stranger("other kind of message", "hello:7:3", "is not from this program"),
        stranger("another run", "hello:8:1", "belongs to another run"),
        stranger("queue pair out of range", "hello:31:1", "queue pair"),
    });
}

TEST_F(Peers, ThatAreOtherProgramsAreRefusedAndNotCounted) {
    if (run({"sh", "-c", "command -v rping"}).status != 0) {
        lacks("rping (package rdmacm-utils) is not installed");
        return;
    }
    std::vector<Play> plays;
    plays.push_back(
        {"reader", "stranger: TCP to the port, where it listens for RDMA only", 10, [&] {
             const PairServer serving = start_pair_server({}, {std::chrono::seconds(40), {}});
             const auto stranger =
                 run({"bash", "-c", "head -c 4096 /dev/urandom >\"/dev/tcp/$0/$1\"", ipv4(),
                      serving.port});
             EXPECT_NE(stranger.status, 0);
             EXPECT_THAT(stranger.err, HasSubstr("refused"));
             expect_served(serving.port);
             expect_status(serving.command->finish(), 0);
             return std::string("connection refused; not counted");
         }});
    plays.push_back(
        {"reader", "stranger: 20 times garbage over RDMA CM to the port", 10, [&] {
             const PairServer serving = start_pair_server({}, {std::chrono::seconds(40), {}});
             const auto stranger = run({strangers(), ipv4(), serving.port, "--count", "20"},
                                       {std::chrono::seconds(30), {}});
             expect_status(stranger, 0);
             EXPECT_THAT(stranger.err, HasSubstr("20 refused")) << told(stranger);
             expect_served(serving.port);
             const auto served = serving.command->finish();
             expect_status(served, 0);
             EXPECT_THAT(served.err, HasSubstr("refused 20 connections in all")) << told(served);
             return std::string("20 refused; not counted");
         }});
    plays.push_back(
        {"reader", "stranger: rping -c", 10, [&] {
             const PairServer serving = start_pair_server({}, {std::chrono::seconds(40), {}});
             const auto stranger = run({"rping", "-c", "-a", ipv4(), "-p", serving.port, "-C", "1"},
                                       {std::chrono::seconds(30), {}});
             EXPECT_FALSE(stranger.timed_out) << told(stranger);
             EXPECT_NE(stranger.status, 0) << told(stranger);
             expect_served(serving.port);
             const auto served = serving.command->finish();
             expect_status(served, 0);
             EXPECT_THAT(served.err, HasSubstr("refused a connection")) << told(served);
             return std::string("refused; not counted");
         }});
    plays.push_back({"server", "stranger: rping -s", 10, [&] {
                         // Its port is free: a server of ours has just left it.
                         std::string port;
                         {
                             const PairServer earlier = start_pair_server();
                             port = earlier.port;
                             expect_served(port);
                             (void)earlier.command->finish();
                         }
                         Command serving({"rping", "-s", "-a", ipv4(), "-p", port, "-C", "1"},
                                         {std::chrono::seconds(40), {}});
                         auto words = pair_client(ipv4(), port);
                         words.insert(words.end(), {"--timeout", "3"});
                         return expect_reader(run(words, {std::chrono::seconds(30), {}}), {1, ""});
                     }});
    play(plays);
}

TEST_F(Peers, ThatStopAreWaitedForUntilTheDeadline) {
    play({
        server_stops("rdma_accept:1:STOP", {1, "no answer before the deadline"}),
        server_stops("rdma_accept:1:STOP_AFTER", {1, "sent no descriptor"}),
        server_stops("ibv_post_send:1:STOP", {1, "sent no descriptor"}),
        // Reads need nothing of the server's process.
        server_stops("ibv_post_send:1:STOP_AFTER", {}),
        server_stops("rdma_disconnect:1:STOP", {}),
        reader_stops("rdma_connect:1:STOP_AFTER"),
        reader_stops("ibv_post_send:1:STOP"),
        reader_stops("ibv_post_send:2:STOP"),
        reader_stops("rdma_disconnect:1:STOP"),
    });
}

TEST_F(Peers, ThatStopForGoodDoNotKeepAServerThatHasNobodyElse) {
    const std::string fault = "ibv_post_send:2:STOP";
    play({{"reader", fault + ", the only client of its server", 45, [&, this] {
               const std::string log = new_log();
               const PairServer serving = start_pair_server({}, {std::chrono::seconds(60), {}});
               Command reading(pair_client(ipv4(), serving.port), with_faults(fault, log, 60));
               const auto served = serving.command->finish();
               expect_status(served, 0);
               expect_struck(fault, log);
               EXPECT_GT(served.seconds, 30);
               EXPECT_THAT(lines_of(served.err), SizeIs(2)) << told(served);
               EXPECT_THAT(served.err, HasSubstr("dropped, it is still there after 35 s"));
               EXPECT_THAT(served.err, HasSubstr("look at " + ipv4()));
               reading.send_signal(SIGKILL);
               EXPECT_EQ(reading.finish().status, 128 + SIGKILL);
               return std::string("dropped and counted; server: exit 0");
           }}});
}

// What a process holds: files, and memory that it has touched.
struct Held {
    std::ptrdiff_t files = 0;
    long kib = 0;
};

Held held_by(int process) {
    const std::filesystem::path folder = fmt::format("/proc/{}", process);
    Held held;
    held.files = std::distance(std::filesystem::directory_iterator(folder / "fd"), {});
    std::ifstream status(folder / "status");
    for (std::string word; status >> word;) {
        if (word == "VmRSS:") {
            status >> held.kib;
        }
    }
    EXPECT_GT(held.files, 0);
    EXPECT_GT(held.kib, 0);
    return held;
}

TEST_F(Peers, ThatAreManyStrangersInARowCostTheServerNothingThatLasts) {
    play({{"reader", "500 strangers in a row, then one that stays and says nothing", 60,
           [&] {
               const PairServer serving = start_pair_server({}, {std::chrono::seconds(90), {}});
               const int process = serving.command->process_id();
               const auto come = [&](const std::string& count) {
                   const auto result = run({strangers(), ipv4(), serving.port, "--count", count},
                                           {std::chrono::seconds(60), {}});
                   expect_status(result, 0);
                   EXPECT_THAT(result.err, HasSubstr(count + " refused")) << told(result);
               };
               // The first ones show what the libraries keep from then on.
               come("50");
               const Held before = held_by(process);
               come("500");
               Command silent({strangers(), ipv4(), serving.port, "--count", "0", "--silent", "1"},
                              {std::chrono::seconds(60), {}});
               EXPECT_TRUE(silent.wait_for_stderr("1 refused"));
               const Held after = held_by(process);
               EXPECT_EQ(after.files, before.files);
               EXPECT_LE(after.kib, before.kib + 64);
               expect_served(serving.port);
               expect_status(serving.command->finish(), 0);
               silent.send_signal(SIGTERM);
               (void)silent.finish();
               return fmt::format("{} files before and after, {} and {} KiB; not counted",
                                  after.files, before.kib, after.kib);
           }}},
         Lanes::one);
}

Row server_dies(const std::string& fault, const End& reader) {
    Row row;
    row.where = "server";
    row.what = fault;
    row.server_fault = fault;
    row.reader = reader;
    row.server = End{128 + SIGKILL, ""};
    if (reader.status != 0 && reader.says.empty()) {
        row.reader_timeout = "3";
    }
    return row;
}

Row reader_ends(const std::string& fault, int signal_number) {
    Row row;
    row.where = "reader";
    row.what = fault;
    row.reader_fault = fault;
    row.reader = End{128 + signal_number, ""};
    return row;
}

TEST_F(Peers, ThatDieEndTheOtherSideInTime) {
    play_rows({
        server_dies("rdma_accept:1:KILL", {1, ""}),
        server_dies("rdma_accept:1:KILL_AFTER", {1, ""}),
        server_dies("ibv_post_send:1:KILL", {1, "ended the connection"}),
        server_dies("rdma_disconnect:1:KILL", {}),
    });
    play_at_one_server({
        reader_ends("rdma_connect:1:KILL", SIGKILL),
        reader_ends("rdma_connect:1:KILL_AFTER", SIGKILL),
        reader_ends("ibv_post_send:1:KILL", SIGKILL),
        reader_ends("ibv_post_send:1:KILL_AFTER", SIGKILL),
        reader_ends("ibv_post_send:2:KILL", SIGKILL),
        reader_ends("ibv_post_send:2:KILL_AFTER", SIGKILL),
        reader_ends("rdma_disconnect:1:KILL", SIGKILL),
    });
}

// The server is gone before the reader, which has the descriptor, posts its read.
TEST_F(Peers, ThatDieRightAfterTheDescriptorEndTheReaderInTime) {
    const std::string fault = "ibv_post_send:1:KILL_AFTER";
    const std::string stop = "ibv_post_send:2:STOP";
    play({{"server", fault + ", " + stop + " at the reader", 10, [&] {
               const std::string log = new_log();
               const std::string reader_log = new_log();
               const PairServer serving =
                   start_pair_server({"--clients", "0"}, with_faults(fault, log, 60));
               auto words = pair_client(ipv4(), serving.port);
               words.insert(words.end(), {"--timeout", "8"});
               Command reading(words, with_faults(stop, reader_log, 60));
               expect_status(serving.command->finish(), 128 + SIGKILL);
               expect_struck(fault, log);
               wait_until_stopped(stop, reader_log, reading);
               reading.send_signal(SIGCONT);
               return expect_reader(reading.finish(), {1, ""}) + "; server: exit "
                      + std::to_string(128 + SIGKILL);
           }}});
}

TEST_F(Peers, ThatDieInTheMiddleOfALongReadEndTheOtherSideInTime) {
    const auto under_way = [this](const std::function<std::string(PairServer&, Command&)>& work) {
        return [this, work] {
            PairServer serving = start_pair_server({"--size", "64M", "--clients", "0"},
                                                   {std::chrono::seconds(60), {}});
            auto words = pair_client(ipv4(), serving.port);
            words.insert(words.end(), {"--timeout", "20"});
            const std::uint64_t before = packets_sent();
            Command reading(words, {std::chrono::seconds(40), {}});
            wait_for_packets_since(before, 500);
            return work(serving, reading);
        };
    };
    play({{"server", "SIGKILL in the middle of a read of 64 MiB", 15,
           under_way([](PairServer& serving, Command& reading) {
               serving.command->send_signal(SIGKILL);
               expect_status(serving.command->finish(), 128 + SIGKILL);
               return expect_reader(reading.finish(), {1, ""});
           })},
          {"server", "SIGSTOP in the middle of a read of 64 MiB", 20,
           under_way([](PairServer& serving, Command& reading) {
               // Reads need nothing of its process.
               serving.command->send_signal(SIGSTOP);
               std::string came = expect_reader(reading.finish(), {});
               serving.command->send_signal(SIGCONT);
               serving.command->send_signal(SIGTERM);
               expect_status(serving.command->finish(), 0);
               return came;
           })},
          {"reader", "SIGSTOP in the middle of a read of 64 MiB, SIGCONT 1 s later", 20,
           under_way([](PairServer& serving, Command& reading) {
               reading.send_signal(SIGSTOP);
               std::this_thread::sleep_for(std::chrono::seconds(1));
               reading.send_signal(SIGCONT);
               std::string came = expect_reader(reading.finish(), {});
               serving.command->send_signal(SIGTERM);
               expect_status(serving.command->finish(), 0);
               return came;
           })},
          {"reader", "SIGKILL in the middle of a read of 64 MiB", 15,
           under_way([this](PairServer& serving, Command& reading) {
               reading.send_signal(SIGKILL);
               expect_status(reading.finish(), 128 + SIGKILL);
               auto words = pair_client(ipv4(), serving.port);
               expect_status(run(words, {std::chrono::seconds(30), {}}), 0);
               serving.command->send_signal(SIGTERM);
               expect_status(serving.command->finish(), 0);
               return std::string("the server serves on");
           })}},
         Lanes::one);
}

TEST_F(Peers, ThatAreToldToStopEndAtOnce) {
    play_at_one_server({
        reader_ends("ibv_post_send:2:TERM", SIGTERM),
        reader_ends("ibv_post_send:2:INT", SIGINT),
    });
    const auto server_told = [this](const std::string& fault) {
        return Play{"server", fault + ", before its one client came", 10, [this, fault] {
                        const std::string log = new_log();
                        const PairServer serving =
                            start_pair_server({}, with_faults(fault, log, 40));
                        auto words = pair_client(ipv4(), serving.port);
                        words.insert(words.end(), {"--timeout", "3"});
                        const auto reading = run(words, {std::chrono::seconds(30), {}});
                        const auto served = serving.command->finish();
                        expect_struck(fault, log);
                        expect_status(served, 1);
                        EXPECT_THAT(served.err, HasSubstr("stopped after 0 of 1 clients"));
                        EXPECT_THAT(reading.err, HasSubstr("rdma_read: ")) << told(reading);
                        return expect_reader(reading, {1, ""})
                               + fmt::format("; server: exit {}", served.status);
                    }};
    };
    // A client that is accepted may still be granted its reads, and passes then.
    play({server_told("rdma_create_qp:1:TERM,rdma_accept:1:EINVAL"),
          server_told("rdma_create_qp:1:INT,rdma_accept:1:EINVAL")});
}

}  // namespace
}  // namespace rdma_read::test
