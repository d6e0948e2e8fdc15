// Claims about how many readers read at a time, over how many queue pairs, and on which pages.
#include "device_test.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <utility>

namespace rdma_read::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Load : public DeviceTest {
  protected:
    nlohmann::json passing_run(int ranks, std::vector<std::string> options) {
        options.insert(options.end(), {"--json", report_path()});
        const auto result = run(launch(ranks, options), {std::chrono::seconds(150), {}});
        expect_status(result, 0);
        auto parsed = report();
        EXPECT_EQ(parsed.at("results").size(), static_cast<std::size_t>(ranks - 1));
        return parsed;
    }

    // The most readers that were between their first and their last read at one moment. All ranks
    // are on this host, so that their time stamps are of one clock.
    static std::size_t most_at_a_time(const nlohmann::json& parsed) {
        std::vector<std::pair<std::string, int>> changes;
        for (const auto& reader : parsed.at("results")) {
            changes.emplace_back(reader.at("read_started"), 1);
            changes.emplace_back(reader.at("read_ended"), -1);
        }
        std::ranges::sort(changes);
        std::size_t now = 0;
        std::size_t most = 0;
        for (const auto& [when, change] : changes) {
            now += static_cast<std::size_t>(change);
            most = std::max(most, now);
        }
        return most;
    }

    static void expect_verified(const nlohmann::json& parsed, std::uint64_t size,
                                std::uint64_t reads) {
        for (const auto& reader : parsed.at("results")) {
            EXPECT_EQ(reader.at("outcome"), "PASS") << reader.dump(2);
            EXPECT_EQ(reader.at("sizes").at(0).at("bytes_verified"), size * reads);
        }
    }
};

TEST_F(Load, RanksOnOneCoreWaitForTheirReadsAndNotForTheSchedulersTick) {
    const std::vector<std::string> options{"--size", "8", "--depth", "1", "--iterations", "500"};
    const auto single_us = [&](std::vector<std::string> command) {
        auto all = options;
        all.insert(all.end(), {"--json", report_path()});
        const auto program = launch(2, all);
        command.insert(command.end(), program.begin(), program.end());
        expect_status(run(command, {std::chrono::seconds(150), {}}), 0);
        return 1e6 / report().at("results").at(0).at("sizes").at(0).at("reads_per_s").get<double>();
    };
    const double anywhere = single_us({});
    // A busy host may hold one of them up.
    const std::vector<std::string> pinned{"taskset", "--cpu-list", "0"};
    const double on_one = std::min({single_us(pinned), single_us(pinned), single_us(pinned)});
    // A tick is tens of such reads long.
    EXPECT_LT(on_one, 8 * anywhere);
}

TEST_F(Load, WithoutABoundReadersReadAtTheSameTime) {
    EXPECT_GT(most_at_a_time(passing_run(8, {"--iterations", "300", "--timeout", "60"})), 2U);
}

TEST_F(Load, ConcurrencyOneIsOneReaderAtATime) {
    const auto parsed = passing_run(8, {"--concurrency", "1", "--iterations", "300"});
    EXPECT_EQ(most_at_a_time(parsed), 1U);
    expect_verified(parsed, 65536, 300);
}

TEST_F(Load, ConcurrencyTwoIsTwoReadersAtATime) {
    const auto parsed = passing_run(8, {"--concurrency", "2", "--iterations", "300"});
    EXPECT_EQ(most_at_a_time(parsed), 2U);
    expect_verified(parsed, 65536, 300);
}

TEST_F(Load, SeveralQueuePairsReadAndVerifyEveryByte) {
    for (const char* const qps : {"2", "4"}) {
        const auto parsed = passing_run(3, {"--qps", qps, "--size", "4097", "--iterations", "500"});
        expect_verified(parsed, 4097, 500);
        // A reader is one, however many queue pairs it has.
        EXPECT_EQ(parsed.at("servers").at(0).at("connections"), 2);
        EXPECT_EQ(parsed.at("options").at("qps"), std::stoi(qps));
    }
}

TEST_F(Load, ReadersAreInDifferentTurnsAlsoWithSeveralQueuePairs) {
    const auto parsed = passing_run(4, {"--qps", "2", "--concurrency", "1", "--iterations", "200"});
    EXPECT_EQ(most_at_a_time(parsed), 1U);
    expect_verified(parsed, 65536, 200);
}

class HugePages : public Load {
  protected:
    void SetUp() override {
        Load::SetUp();
        std::ifstream(kReserved) >> before_;
    }
    void TearDown() override {
        reserve(before_);
        Load::TearDown();
    }
    // How many the kernel has after it was asked for so many.
    static int reserve(int pages) {
        std::ofstream(kReserved) << pages << std::flush;
        int reserved = -1;
        std::ifstream(kReserved) >> reserved;
        return reserved;
    }

  private:
    static constexpr const char* kReserved = "/proc/sys/vm/nr_hugepages";
    int before_ = 0;
};

TEST_F(HugePages, HoldTheBuffersOfBothEnds) {
    if (reserve(64) < 64) {
        lacks("64 huge pages cannot be reserved here");
        return;
    }
    expect_verified(passing_run(2, {"--hugepages", "--iterations", "100"}), 65536, 100);
}

TEST_F(HugePages, ThatAreMissingAreNamedWithTheCommandThatProvidesThem) {
    if (reserve(0) != 0) {
        lacks("huge pages of somebody else cannot be taken away");
        return;
    }
    const auto result = run(launch(2, {"--hugepages"}));
    expect_status(result, 3);
    EXPECT_THAT(result.err, AllOf(HasSubstr("huge pages"), HasSubstr("vm.nr_hugepages")));
}

TEST_F(Load, AReadersBudgetBeginsWithItsTurn) {
    // Three turns of four seconds in budgets of ten.
    const auto parsed = passing_run(
        4, {"--concurrency", "1", "--duration", "4", "--size", "4K", "--timeout", "10"});
    for (const auto& reader : parsed.at("results")) {
        EXPECT_EQ(reader.at("outcome"), "PASS") << reader.dump(2);
    }
}

TEST_F(Load, AReaderMayUseItsWholeTurnUp) {
    const auto result = run(launch(3, {"--concurrency", "1", "--iterations", "100000000", "--size",
                                       "4K", "--timeout", "3", "--json", report_path()}));
    expect_status(result, 1);
    EXPECT_THAT(result.err, testing::Not(HasSubstr("dropped")));
    const auto results = report().at("results");
    EXPECT_EQ(results.size(), 2U);
    for (const auto& reader : results) {
        EXPECT_EQ(reader.at("outcome"), "TIMEOUT") << reader.dump(2);
        EXPECT_EQ(reader.at("phase"), "read");
    }
}

}  // namespace
}  // namespace rdma_read::test
