// Plays the rows of the fault matrix.
#include "matrix.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

namespace rdma_read::test {

using ::testing::Contains;
using ::testing::HasSubstr;

namespace {

constexpr int kGrace = 5;

std::vector<std::string> split_faults(const std::string& faults) {
    std::vector<std::string> all;
    std::istringstream stream(faults);
    for (std::string one; std::getline(stream, one, ',');) {
        all.push_back(one);
    }
    return all;
}

// The counts of RDMA objects of this host, all devices; without the devices' numbers, which a
// device that was taken away and made again has a new one of.
std::string held() {
    return run({"sh", "-c", "rdma resource show | sed 's/^[0-9]*: //'"}).out;
}

void expect_held(const std::string& before) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(kGrace);
    std::string now = held();
    while (now != before && std::chrono::steady_clock::now() < limit) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        now = held();
    }
    EXPECT_EQ(now, before) << "RDMA objects stay behind";
}

// What fails in a row is kept apart from what fails in another at the same time.
void play_one(const Play& one, std::mutex& printing) {
    ::testing::TestPartResultArray parts;
    std::string came;
    const auto started = std::chrono::steady_clock::now();
    double seconds = 0;
    {
        const ::testing::ScopedFakeTestPartResultReporter keeper(
            ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &parts);
        came = one.work();
        seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
        EXPECT_LT(seconds, one.deadline + kGrace) << "the row took too long";
    }
    const std::scoped_lock lock(printing);
    fmt::print("{:<4} {:5.1f} s  {:<7} {:<62} -> {}\n", parts.size() == 0 ? "ok" : "FAIL", seconds,
               one.where, one.what, came);
    std::fflush(stdout);
    for (int i = 0; i < parts.size(); ++i) {
        const ::testing::TestPartResult& part = parts.GetTestPartResult(i);
        ADD_FAILURE_AT(part.file_name(), part.line_number())
            << one.where << ", " << one.what << "\n"
            << part.message();
    }
}

}  // namespace

CommandSettings with_faults(const std::string& faults, const std::string& log, int deadline) {
    CommandSettings settings{std::chrono::seconds(deadline + kGrace), {}};
    if (!faults.empty()) {
        // LD_PRELOAD ends a name at a space, which a folder's may contain: ld.so(8).
        const std::filesystem::path shim = RDMA_READ_FAULT_SHIM;
        const char* const inherited = std::getenv("LD_LIBRARY_PATH");
        settings.environment = {
            {"LD_PRELOAD", shim.filename()},
            {"LD_LIBRARY_PATH", shim.parent_path().string() + (inherited != nullptr ? ":" : "")
                                    + (inherited != nullptr ? inherited : "")},
            {"RDMA_READ_FAULT", faults},
            {"RDMA_READ_FAULT_LOG", log}};
    }
    return settings;
}

std::vector<std::string> words_with_faults(const std::string& faults, const std::string& log) {
    std::vector<std::string> words{"env"};
    for (const auto& [name, value] : with_faults(faults, log, 0).environment) {
        words.push_back(name + "=" + value);
    }
    words.push_back(tool());
    return words;
}

void FaultMatrix::SetUp() {
    DeviceTest::SetUp();
    if (!IsSkipped() && run({"rdma", "resource", "show"}).status != 0) {
        lacks("rdma(8) does not show resources");
    }
}

std::string FaultMatrix::new_log() {
    return folder() / fmt::format("struck{}", ++logs_);
}

void FaultMatrix::play(const std::vector<Play>& plays, Lanes lanes) {
    const std::string before = held();
    std::atomic<std::size_t> next = 0;
    std::mutex printing;
    const auto play_rest = [&] {
        for (std::size_t i = next++; i < plays.size(); i = next++) {
            play_one(plays[i], printing);
        }
    };
    {
        std::vector<std::jthread> threads(static_cast<std::size_t>(lanes));
        for (std::jthread& thread : threads) {
            thread = std::jthread(play_rest);
        }
    }
    expect_held(before);
}

void FaultMatrix::expect_struck(const std::string& faults, const std::string& log) {
    std::vector<std::string> struck;
    std::ifstream file(log);
    for (std::string line; std::getline(file, line);) {
        struck.push_back(line);
    }
    for (const std::string& fault : split_faults(faults)) {
        EXPECT_THAT(struck, Contains(fault)) << "this fault was never reached";
    }
}

bool FaultMatrix::is_empty_file(const std::string& log) {
    std::error_code error;
    const auto size = std::filesystem::file_size(log, error);
    return !error && size == 0;
}

void FaultMatrix::expect_served(const std::string& port) const {
    const auto result = run(pair_client(ipv4(), port), {std::chrono::seconds(20), {}});
    expect_status(result, 0);
    EXPECT_EQ(result.out, kPairLine);
}

std::string FaultMatrix::expect_reader(const CommandResult& result, const End& end) {
    expect_status(result, end.status);
    EXPECT_THAT(result.err, HasSubstr(end.says)) << told(result);
    if (end.status == 0) {
        EXPECT_EQ(result.out, kPairLine) << told(result);
    } else {
        EXPECT_EQ(result.out, "") << told(result);
    }
    const bool retried = result.err.find("trying again") != std::string::npos;
    const std::string said = end.says.empty() ? "failed" : end.says;
    return fmt::format("{}{}, exit {}", result.status == 0 ? "PASS" : said,
                       retried ? " retried" : "", result.status);
}

std::string FaultMatrix::run_reader(const Row& row, const std::string& port) {
    auto words = pair_client(ipv4(), port);
    words.insert(words.end(), {"--timeout", row.reader_timeout});
    std::string log;
    CommandResult result;
    // A reader that has all it came for does not wait for long until it is told goodbye: what is to
    // happen there may come too late for it.
    for (int tries = 0; tries < 3; ++tries) {
        log = new_log();
        result = run(words, with_faults(row.reader_fault, log, row.deadline));
        if (result.status != 0 || !is_empty_file(log)) {
            break;
        }
    }
    expect_struck(row.reader_fault, log);
    return expect_reader(result, row.reader);
}

std::string FaultMatrix::run_row(const Row& row) {
    const std::string log = new_log();
    std::vector<std::string> options = row.server_options;
    options.insert(options.end(), {"--clients", "0"});
    const PairServer serving =
        start_pair_server(options, with_faults(row.server_fault, log, row.deadline));
    std::string came;
    if (!serving.port.empty()) {
        came = run_reader(row, serving.port);
        if (!row.server) {
            if (row.serves_others) {
                expect_served(serving.port);
            }
            serving.command->send_signal(SIGTERM);
        }
    }
    const auto result = serving.command->finish();
    const End end = row.server.value_or(End{});
    expect_status(result, end.status);
    EXPECT_THAT(result.err, HasSubstr(end.says)) << told(result);
    expect_struck(row.server_fault, log);
    if (row.server) {
        came +=
            fmt::format("{}server: {}, exit {}", came.empty() ? "" : "; ", end.says, result.status);
    } else {
        EXPECT_NE(serving.port, "") << told(result);
        came += "; serves on";
    }
    return came;
}

void FaultMatrix::play_rows(const std::vector<Row>& rows) {
    std::vector<Play> plays;
    plays.reserve(rows.size());
    for (const Row& row : rows) {
        plays.push_back({row.where, row.what, row.deadline, [&] { return run_row(row); }});
    }
    play(plays);
}

void FaultMatrix::play_at_one_server(const std::vector<Row>& rows) {
    const std::string before = held();
    const PairServer serving =
        start_pair_server({"--clients", "0"}, {std::chrono::seconds(120), {}});
    ASSERT_NE(serving.port, "") << serving.command->said_on_stderr();
    std::vector<Play> plays;
    plays.reserve(rows.size());
    for (const Row& row : rows) {
        plays.push_back(
            {row.where, row.what, row.deadline, [&] { return run_reader(row, serving.port); }});
    }
    play(plays);
    std::mutex printing;
    play_one({"server", "all of these at one server, then a reader without fault", 10,
              [&] {
                  expect_served(serving.port);
                  serving.command->send_signal(SIGTERM);
                  expect_status(serving.command->finish(), 0);
                  return std::string("PASS, exit 0; server: exit 0");
              }},
             printing);
    expect_held(before);
}

}  // namespace rdma_read::test
