// Sets of processors and the kernel's way to write them.
#include "app/cpu_set.hpp"

#include "app/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace rdma_read::app {

namespace {

// Far beyond what the kernel can be built for, and little enough to hold every one.
constexpr std::uint64_t kMostCpus = 1U << 16U;

std::optional<std::uint32_t> parse_number(std::string_view text) {
    const auto number = parse_whole(text);
    if (!number || *number >= kMostCpus) {
        return std::nullopt;
    }
    return static_cast<std::uint32_t>(*number);
}

}  // namespace

CpuSet::CpuSet(std::vector<std::uint32_t> cpus) : cpus_(std::move(cpus)) {
    std::ranges::sort(cpus_);
    cpus_.erase(std::unique(cpus_.begin(), cpus_.end()), cpus_.end());
}

std::optional<CpuSet> CpuSet::parse(std::string_view list) {
    if (!list.empty() && list.back() == '\n') {
        list.remove_suffix(1);
    }
    std::vector<std::uint32_t> cpus;
    while (!list.empty()) {
        const std::size_t comma = std::min(list.find(','), list.size());
        const std::string_view range = list.substr(0, comma);
        const std::size_t dash = range.find('-');
        const auto first = parse_number(range.substr(0, dash));
        const auto last =
            dash == std::string_view::npos ? first : parse_number(range.substr(dash + 1));
        if (!first || !last || *last < *first || comma + 1 == list.size()) {
            return std::nullopt;
        }
        // Ranges in order cannot make more than there are; others are not the kernel's.
        if (!cpus.empty() && *first <= cpus.back()) {
            return std::nullopt;
        }
        for (std::uint32_t cpu = *first; cpu <= *last; ++cpu) {
            cpus.push_back(cpu);
        }
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
    return CpuSet(std::move(cpus));
}

std::string CpuSet::to_string() const {
    std::string text;
    for (auto first = cpus_.begin(); first != cpus_.end();) {
        auto last = first;
        while (std::next(last) != cpus_.end() && *std::next(last) == *last + 1) {
            ++last;
        }
        text += text.empty() ? "" : ",";
        text += first == last ? fmt::format("{}", *first) : fmt::format("{}-{}", *first, *last);
        first = std::next(last);
    }
    return text;
}

bool CpuSet::includes(const CpuSet& other) const noexcept {
    return std::ranges::includes(cpus_, other.cpus_);
}

CpuSet CpuSet::common(const CpuSet& other) const {
    CpuSet both;
    std::ranges::set_intersection(cpus_, other.cpus_, std::back_inserter(both.cpus_));
    return both;
}

}  // namespace rdma_read::app
