// Looks for what makes a measured number doubtful.
#include "app/caveat.hpp"

#include "app/quantity.hpp"
#include "rdma_read/verify/bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace rdma_read::app {

namespace {

constexpr double kFineClock = 0.1;

// "CPUs 0-3", "NUMA node 1", "ranks 1,4"
std::string listed(std::string_view noun, const CpuSet& numbers) {
    return fmt::format("{}{} {}", noun, numbers.size() == 1 ? "" : "s", numbers.to_string());
}

std::string with_nodes(const Placement& placement, const CpuSet& cpus) {
    const CpuSet nodes = placement.nodes(cpus);
    return listed("CPU", cpus)
           + (nodes.empty() ? "" : fmt::format(" ({})", listed("NUMA node", nodes)));
}

// Gives each rank a core of its own as long as there are any, by augmenting paths.
class Matching {
  public:
    explicit Matching(const std::vector<RankCores>& ranks) : ranks_(ranks) {}

    // Whether the rank of this index got a core; others may have changed theirs for it.
    bool place(std::size_t index) {
        tried_.clear();
        return find_core(index);
    }
    // After place() failed: ranks that together have fewer cores than they are.
    [[nodiscard]] const std::set<std::size_t>& tried() const noexcept { return tried_; }

  private:
    bool find_core(std::size_t index) {
        tried_.insert(index);
        const auto& cores = ranks_[index].cores.cpus();
        return std::ranges::any_of(cores, [&](std::uint32_t core) {
            const auto holder = holder_.find(core);
            if (holder != holder_.end()
                && (tried_.contains(holder->second) || !find_core(holder->second))) {
                return false;
            }
            holder_[core] = index;
            return true;
        });
    }

    const std::vector<RankCores>& ranks_;
    std::map<std::uint32_t, std::size_t> holder_;  // by core: the index of its rank
    std::set<std::size_t> tried_;
};

}  // namespace

std::optional<std::string> far_from_device(const Placement& placement, const CpuSet& thread,
                                           const std::string& device) {
    const auto near = placement.near(device);
    if (!near || thread.empty() || near->includes(thread)) {
        return std::nullopt;
    }
    // Processors that are not near one by one, yet on the same node.
    const CpuSet near_nodes = placement.nodes(*near);
    const CpuSet nodes = placement.nodes(thread);
    if (!nodes.empty() && near_nodes.includes(nodes)) {
        return std::nullopt;
    }
    const bool partly = !near->common(thread).empty();
    return fmt::format(
        "the reader {} on {}, while {} is near {}: reads that cross between NUMA nodes are slower; "
        "bind it there, for example with numactl --cpunodebind or srun --cpu-bind",
        partly ? "may run" : "runs", with_nodes(placement, thread), device,
        with_nodes(placement, *near));
}

std::optional<std::string> shared_cores(const std::vector<RankCores>& ranks) {
    Matching matching(ranks);
    std::set<std::size_t> crowded;
    for (std::size_t index = 0; index < ranks.size(); ++index) {
        if (!ranks[index].cores.empty() && !matching.place(index)) {
            crowded.insert(matching.tried().begin(), matching.tried().end());
        }
    }
    if (crowded.empty()) {
        return std::nullopt;
    }
    std::vector<std::uint32_t> cores;
    std::vector<std::uint32_t> numbers;
    for (const std::size_t index : crowded) {
        const auto& its_cores = ranks[index].cores.cpus();
        cores.insert(cores.end(), its_cores.begin(), its_cores.end());
        numbers.push_back(static_cast<std::uint32_t>(ranks[index].rank));
    }
    const CpuSet shared(std::move(cores));
    const CpuSet sharers(std::move(numbers));
    return fmt::format(
        "{} share {} {} ({}): they wait for each other's turns, which shows in latency and "
        "bandwidth; start fewer ranks on this host, or give the job more cores",
        listed("rank", sharers), shared.size(), shared.size() == 1 ? "core" : "cores",
        listed("CPU", shared));
}

std::optional<std::string> depth_clamped(std::uint32_t wanted, std::uint32_t negotiated) {
    if (negotiated == 0 || negotiated >= wanted) {
        return std::nullopt;
    }
    return fmt::format(
        "{} reads in flight were asked for, but the devices agreed on {} per queue pair: more of "
        "them wait in the queue, which the latency of the wire does not explain; see "
        "max_qp_rd_atom "
        "and max_qp_init_rd_atom in ibv_devinfo -v on both hosts",
        wanted, negotiated);
}

std::optional<std::string> depth_cut(std::uint32_t wanted, std::uint32_t used,
                                     std::uint64_t bytes) {
    if (used >= wanted) {
        return std::nullopt;
    }
    return fmt::format(
        "reads of {}: {} in flight instead of {}, because more take memory and bring no bandwidth",
        format_bytes(bytes), used, wanted);
}

std::optional<std::string> frequency_scaling(const CpuSet& cpus, const std::string& sysfs) {
    std::map<std::string, std::vector<std::uint32_t>> scaled;  // by governor
    for (const std::uint32_t cpu : cpus.cpus()) {
        std::ifstream file(
            fmt::format("{}/devices/system/cpu/cpu{}/cpufreq/scaling_governor", sysfs, cpu));
        std::string governor;
        if (file >> governor && governor != "performance") {
            scaled[governor].push_back(cpu);
        }
    }
    if (scaled.empty()) {
        return std::nullopt;
    }
    std::string which;
    for (auto& [governor, its_cpus] : scaled) {
        which += fmt::format("{}governor {} on {}", which.empty() ? "" : ", ", governor,
                             listed("CPU", CpuSet(std::move(its_cpus))));
    }
    return fmt::format(
        "CPU frequency scaling is on ({}): what is measured changes with the frequency; for stable "
        "numbers run cpupower frequency-set -g performance",
        which);
}

std::optional<std::string> slow_checking(double checking_s, double phase_s, std::uint64_t bytes) {
    // Written so that what is no number is no reason either.
    if (!(std::isfinite(checking_s) && std::isfinite(phase_s) && checking_s > 0 && phase_s > 0
          && checking_s >= verify::kBindingShare * phase_s)) {
        return std::nullopt;
    }
    return fmt::format(
        "checking is slower than reading: it took {:.0f} % of the time, at {:.4g} MB/s; the path "
        "may "
        "be faster than the bandwidth says: measure it with --verify off",
        std::min(checking_s / phase_s, 1.0) * 100, static_cast<double>(bytes) / checking_s / 1e6);
}

std::optional<std::string> coarse_clock(const verify::ClockCost& clock, double least_latency_us) {
    const double latency_ns = least_latency_us * 1000;
    if (!clock.coarse() || !(latency_ns >= 0) || clock.step_ns < kFineClock * latency_ns) {
        return std::nullopt;
    }
    return fmt::format(
        "the clock moves in steps of {:.4g} ns, which is much for reads of {:.4g} us: latencies "
        "are "
        "multiples of it; see /sys/devices/system/clocksource/clocksource0/current_clocksource",
        clock.step_ns, least_latency_us);
}

}  // namespace rdma_read::app
