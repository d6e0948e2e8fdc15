// Bounds and warnings over all readers of a run.
#include "app/commentary.hpp"

#include "app/caveat.hpp"
#include "app/cpu_set.hpp"
#include "app/quantity.hpp"
#include "rdma_read/verify/bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace rdma_read::app {

namespace {

bool passed(const verify::Result& result) {
    return result.outcome == verify::Outcome::pass;
}

// What stays on one host need not go over the wire, nor as slowly.
bool uses_wire(const verify::Result& result) {
    return result.reader_host != result.server_host;
}

// Those that share the server's port.
struct Sharers {
    std::uint32_t at_a_time = 0;
    std::optional<double> bytes_per_s;  // that they got together, if they read at the same time
};

// `index`: of the size.
Sharers sharers(const verify::Report& report, std::size_t index, const Options& options) {
    Sharers found;
    double together = 0;
    for (const verify::Result& result : report.results) {
        if (passed(result) && uses_wire(result) && index < result.sizes.size()) {
            ++found.at_a_time;
            together += result.sizes[index].bandwidth_bytes_per_s.value_or(0);
        }
    }
    if (options.concurrency == 0 || options.concurrency >= found.at_a_time) {
        found.bytes_per_s = together;
    } else {
        found.at_a_time = options.concurrency;
    }
    return found;
}

// Of the reads in flight those that the devices let onto the wire.
std::uint64_t on_the_wire(const verify::Result& result, const verify::SizeResult& size,
                          const Options& options) {
    const auto agreed = std::uint64_t{result.path.depth_negotiated.value_or(0)} * options.qps;
    return agreed == 0 ? size.depth : std::min<std::uint64_t>(agreed, size.depth);
}

std::string size_text(std::uint64_t bytes) {
    return fmt::format("reads of {}", format_bytes(bytes));
}

}  // namespace

void explain_bounds(verify::Report& report, const Options& options) {
    const std::optional<double> server_rate =
        report.servers.empty() ? std::nullopt : report.servers.front().rate_gbps;
    for (verify::Result& result : report.results) {
        if (!passed(result)) {
            continue;
        }
        for (std::size_t index = 0; index < result.sizes.size(); ++index) {
            verify::SizeResult& size = result.sizes[index];
            verify::BoundInput input;
            input.bandwidth_bytes_per_s = size.bandwidth_bytes_per_s.value_or(0);
            if (uses_wire(result)) {
                const Sharers all = sharers(report, index, options);
                input.reader_rate_gbps = result.path.rate_gbps;
                input.server_rate_gbps = server_rate;
                input.readers_at_server = all.at_a_time;
                input.server_bytes_per_s = all.bytes_per_s;
            }
            input.size = size.size;
            input.reads_in_flight = on_the_wire(result, size, options);
            if (size.latency_us) {
                input.latency_us = size.latency_us->min;
            }
            input.checking_s = size.checking_s;
            input.phase_s = size.seconds;
            size.bound = verify::explain(input);
            if (size.bound->kind != verify::BoundKind::unknown) {
                result.notes.push_back(
                    fmt::format("{}: {}", size_text(size.size), size.bound->text));
            }
        }
    }
}

void warn_of_shared_cores(verify::Report& report, const Options& options) {
    if (options.concurrency == 1) {
        return;  // they never work at the same time
    }
    // The server's rank is not counted: it sleeps while a device answers for it.
    std::map<std::string, std::vector<RankCores>> by_host;
    for (const verify::Result& result : report.results) {
        if (const auto cores = CpuSet::parse(result.cores); cores && !result.cores.empty()) {
            by_host[result.reader_host].push_back({result.reader_rank, *cores});
        }
    }
    for (const auto& [host, ranks] : by_host) {
        const auto warning = shared_cores(ranks);
        if (!warning) {
            continue;
        }
        for (verify::Result& result : report.results) {
            if (result.reader_host == host && !result.cores.empty()) {
                result.warnings.push_back(*warning);
            }
        }
    }
}

std::vector<std::string> collected_warnings(const verify::Report& report) {
    std::vector<std::string> order;
    std::map<std::string, std::vector<std::uint32_t>> ranks;
    for (const verify::Result& result : report.results) {
        for (const std::string& warning : result.warnings) {
            auto& those = ranks[warning];
            if (those.empty()) {
                order.push_back(warning);
            }
            those.push_back(static_cast<std::uint32_t>(std::max(result.reader_rank, 0)));
        }
    }
    std::vector<std::string> lines;
    for (const std::string& warning : order) {
        if (warning.starts_with("rank")) {
            lines.push_back(warning);  // says itself of which
            continue;
        }
        // Lists of processors are written as lists of ranks are.
        const CpuSet those(ranks[warning]);
        lines.push_back(fmt::format("{} {}: {}", those.size() == 1 ? "rank" : "ranks",
                                    those.to_string(), warning));
    }
    return lines;
}

}  // namespace rdma_read::app
