// What reading the clock costs, so that a latency can be judged.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <iterator>

namespace rdma_read::verify {

/// What one reading of a clock costs, and how fine its readings are; both in nanoseconds.
struct ClockCost {
    /// The median over some hundred series of consecutive readings. A duration between two
    /// readings contains one such cost; it is not taken off any latency.
    double read_ns = 0;
    /// The least step that two consecutive readings were apart, 0 if the clock never moved. About
    /// read_ns for a clock that is finer than its cost; clearly more for a coarse one, whose
    /// latencies are multiples of it.
    double step_ns = 0;

    /// Whether durations are known no better than to a step that is longer than a reading takes.
    [[nodiscard]] bool coarse() const noexcept { return step_ns > 2 * read_ns; }
};

/// Measures any clock: `now` returns std::chrono::nanoseconds since some moment. Ends after a
/// bounded number of readings, also when the clock stands still. Not thread safe unless `now` is.
template <typename Now>
[[nodiscard]] ClockCost clock_cost_of(Now now) {
    constexpr std::size_t kSeries = 101;
    constexpr std::size_t kShortest = 32;
    constexpr std::size_t kLongest = 8192;
    constexpr int kStepsPerSeries = 20;
    using std::chrono::nanoseconds;

    nanoseconds step = nanoseconds::max();
    const auto run = [&](std::size_t readings) {
        const nanoseconds first = now();
        nanoseconds last = first;
        for (std::size_t i = 0; i < readings; ++i) {
            const nanoseconds next = now();
            if (next > last) {
                step = std::min(step, next - last);
            }
            last = next;
        }
        return last - first;
    };
    // A series spans many steps of the clock, so that where in a step it begins does not matter.
    // The first one also brings the clock's code and data into the caches.
    std::size_t readings = kShortest;
    while (readings < kLongest) {
        const nanoseconds took = run(readings);
        if (step != nanoseconds::max() && took / kStepsPerSeries >= step) {
            break;
        }
        readings *= 2;
    }
    std::array<nanoseconds, kSeries> series{};
    std::ranges::generate(series, [&] { return run(readings); });
    // The middle one: a series in which the thread was off its processor says nothing.
    constexpr std::size_t kMiddle = kSeries / 2;
    std::ranges::nth_element(series, std::next(series.begin(), kMiddle));
    ClockCost cost;
    cost.read_ns = static_cast<double>(series[kMiddle].count()) / static_cast<double>(readings);
    cost.step_ns = step == nanoseconds::max() ? 0 : static_cast<double>(step.count());
    return cost;
}

/// Measures std::chrono::steady_clock, with which latencies are taken, on the calling thread. Takes
/// well under a millisecond where a reading takes some ten nanoseconds. Call it where the reads
/// will be timed: processors of one machine may differ.
[[nodiscard]] ClockCost clock_cost();

}  // namespace rdma_read::verify
