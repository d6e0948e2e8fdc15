// Measures filling and checking the payload against memcpy, memcmp and a plain sum; no device.
#include "rdma_read/verify/pattern.hpp"
#include "rdma_read/verify/run_id.hpp"
#include "reference_loops.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rdma_read::bench {
namespace {

constexpr std::int64_t kSmallest = std::int64_t{4} << 10U;
constexpr std::int64_t kLargest = std::int64_t{256} << 20U;
constexpr std::size_t kPage = 4096;
constexpr verify::RunId kRun{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

struct Free {
    void operator()(std::uint64_t* words) const noexcept {
        operator delete[](words, std::align_val_t{kPage});
    }
};

// Page-aligned memory, all of it touched.
class Memory {
  public:
    explicit Memory(std::size_t bytes)
        : words_(static_cast<std::uint64_t*>(operator new[](bytes, std::align_val_t{kPage}))),
          count_(bytes / sizeof(std::uint64_t)) {
        std::ranges::fill(words(), 0U);
    }
    [[nodiscard]] std::span<std::uint64_t> words() const { return {words_.get(), count_}; }
    [[nodiscard]] std::span<std::byte> bytes() const { return std::as_writable_bytes(words()); }

  private:
    std::unique_ptr<std::uint64_t, Free> words_;
    std::size_t count_;
};

// All of them work on the same pages: which physical ones they are shifts a figure by some percent.
std::span<std::uint64_t> buffer(const benchmark::State& state) {
    static const Memory memory(kLargest);
    return memory.words().first(static_cast<std::size_t>(state.range(0)) / sizeof(std::uint64_t));
}

std::span<std::byte> second_buffer(const benchmark::State& state) {
    static const Memory memory(kLargest);
    return memory.bytes().first(static_cast<std::size_t>(state.range(0)));
}

void count_bytes(benchmark::State& state) {
    state.SetBytesProcessed(state.iterations() * state.range(0));
}

void check(benchmark::State& state) {
    const verify::Pattern pattern(kRun, 0);
    const auto data = std::as_writable_bytes(buffer(state));
    pattern.fill(data);
    bool right = true;
    for ([[maybe_unused]] const auto turn : state) {
        right = right && pattern.matches(data, 0);
        benchmark::ClobberMemory();
    }
    if (!right) {
        state.SkipWithError("right data was taken for wrong");
    }
    count_bytes(state);
}

void sum_words(benchmark::State& state) {
    const auto words = buffer(state);
    for ([[maybe_unused]] const auto turn : state) {
        benchmark::DoNotOptimize(sum(words));
        benchmark::ClobberMemory();
    }
    count_bytes(state);
}

void compare(benchmark::State& state) {
    const auto data = std::as_writable_bytes(buffer(state));
    const auto expected = second_buffer(state);
    std::ranges::copy(data, expected.begin());
    for ([[maybe_unused]] const auto turn : state) {
        benchmark::DoNotOptimize(std::memcmp(data.data(), expected.data(), data.size()));
        benchmark::ClobberMemory();
    }
    count_bytes(state);
}

void fill(benchmark::State& state) {
    const verify::Pattern pattern(kRun, 0);
    const auto data = std::as_writable_bytes(buffer(state));
    for ([[maybe_unused]] const auto turn : state) {
        pattern.fill(data);
        benchmark::ClobberMemory();
    }
    count_bytes(state);
}

void copy(benchmark::State& state) {
    const auto data = std::as_writable_bytes(buffer(state));
    const auto source = second_buffer(state);
    for ([[maybe_unused]] const auto turn : state) {
        std::memcpy(data.data(), source.data(), data.size());
        benchmark::ClobberMemory();
    }
    count_bytes(state);
}

void sizes(benchmark::internal::Benchmark* bench) {
    bench->RangeMultiplier(4)->Range(kSmallest, kLargest);
}

BENCHMARK(check)->Apply(sizes);
BENCHMARK(sum_words)->Name("sum")->Apply(sizes);
BENCHMARK(compare)->Name("memcmp")->Apply(sizes);
BENCHMARK(fill)->Apply(sizes);
BENCHMARK(copy)->Name("memcpy")->Apply(sizes);

// Shows median and spread of each, and keeps the medians for the table at the end.
class Medians : public benchmark::ConsoleReporter {
  public:
    Medians() : ConsoleReporter(OO_None) {}

    void ReportRuns(const std::vector<Run>& runs) override {
        std::vector<Run> shown;
        for (const Run& run : runs) {
            if (run.error_occurred) {
                failed_ = true;
                shown.push_back(run);
            } else {
                const bool is_median = run.aggregate_name == "median";
                // The median comes after the repetitions, if there are several.
                if (is_median || run.run_type == Run::RT_Iteration) {
                    rates_[{std::stoll(run.run_name.args), run.run_name.function_name}] =
                        run.counters.at("bytes_per_second");
                }
                if (is_median || run.aggregate_name == "cv") {
                    shown.push_back(run);
                }
            }
        }
        ConsoleReporter::ReportRuns(shown);
    }

    void print() {
        std::printf(
            "\nmedians, GB/s (10^9 bytes of the buffer a second), and their ratios\n"
            "%10s %8s %8s %8s %8s %8s   %9s %12s %11s\n",
            "KiB", "check", "sum", "memcmp", "fill", "memcpy", "check/sum", "check/memcmp",
            "fill/memcpy");
        for (std::int64_t size = kSmallest; size <= kLargest; size *= 4) {
            const auto checked = median(size, "check");
            const auto summed = median(size, "sum");
            const auto compared = median(size, "memcmp");
            const auto filled = median(size, "fill");
            const auto copied = median(size, "memcpy");
            std::printf("%10lld %8s %8s %8s %8s %8s   %9s %12s %11s\n",
                        static_cast<long long>(size >> 10U), rate(checked).c_str(),
                        rate(summed).c_str(), rate(compared).c_str(), rate(filled).c_str(),
                        rate(copied).c_str(), ratio(checked, summed).c_str(),
                        ratio(checked, compared).c_str(), ratio(filled, copied).c_str());
        }
    }

    [[nodiscard]] bool failed() const noexcept { return failed_; }

  private:
    [[nodiscard]] std::optional<double> median(std::int64_t size, const std::string& name) const {
        const auto found = rates_.find({size, name});
        return found == rates_.end() ? std::nullopt : std::optional(found->second);
    }

    static std::string text(double value, int digits) {
        char out[32] = "";
        std::snprintf(out, sizeof out, "%.*f", digits, value);
        return out;
    }

    static std::string rate(std::optional<double> bytes_per_s) {
        return bytes_per_s ? text(*bytes_per_s / 1e9, 1) : "-";
    }

    static std::string ratio(std::optional<double> of, std::optional<double> to) {
        return of && to ? text(*of / *to, 2) : "-";
    }

    std::map<std::pair<std::int64_t, std::string>, double> rates_;
    bool failed_ = false;
};

int run(int argc, char** argv) {
    // Those of the command line come later and win. Interleaved, so that what else the machine does
    // hits all alike.
    std::string repetitions = "--benchmark_repetitions=11";
    std::string interleaved = "--benchmark_enable_random_interleaving=true";
    std::string short_turns = "--benchmark_min_time=0.05";
    std::vector<char*> words{argv[0], repetitions.data(), interleaved.data(), short_turns.data()};
    words.insert(words.end(), argv + 1, argv + argc);
    int count = static_cast<int>(words.size());
    benchmark::Initialize(&count, words.data());
    if (benchmark::ReportUnrecognizedArguments(count, words.data())) {
        return 2;
    }
    Medians reporter;
    if (benchmark::RunSpecifiedBenchmarks(&reporter) == 0) {
        return 2;
    }
    reporter.print();
    return reporter.failed() ? 1 : 0;
}

}  // namespace
}  // namespace rdma_read::bench

int main(int argc, char** argv) {
    return rdma_read::bench::run(argc, argv);
}
