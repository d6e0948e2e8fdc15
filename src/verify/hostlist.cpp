// Folds the numbers at the end of host names into ranges.
#include "rdma_read/verify/hostlist.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

namespace rdma_read::verify {

namespace {

// Longer ones do not fit in 64 bits; they are taken as part of the prefix.
constexpr std::size_t kMostDigits = 18;

bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

/// The number at the end of a name, as it is written.
struct HostNumber {
    std::uint64_t value = 0;
    std::size_t digits = 0;
    bool padded = false;  // begins with a zero that a number does not need

    [[nodiscard]] std::string text() const { return fmt::format("{:0{}}", value, digits); }
    bool operator<(const HostNumber& other) const noexcept {
        return value != other.value ? value < other.value : digits < other.digits;
    }
};

/// Numbers that a list expands to from its ends.
struct Run {
    HostNumber first;
    HostNumber last;

    [[nodiscard]] std::size_t width() const noexcept { return first.padded ? first.digits : 0; }
    // How the number after the last is written when the list is expanded.
    [[nodiscard]] std::string next() const {
        return fmt::format("{:0{}}", last.value + 1, std::max<std::size_t>(width(), 1));
    }
    [[nodiscard]] std::string text() const {
        return first.value == last.value ? first.text()
                                         : fmt::format("{}-{}", first.text(), last.text());
    }
};

std::size_t digits_at_the_end(std::string_view name) noexcept {
    const auto first =
        std::find_if_not(name.rbegin(), name.rend(), [](char c) { return is_digit(c); });
    return static_cast<std::size_t>(first - name.rbegin());
}

HostNumber number_from(std::string_view digits) noexcept {
    HostNumber number;
    for (const char c : digits) {
        number.value = number.value * 10 + static_cast<std::uint64_t>(c - '0');
    }
    number.digits = digits.size();
    number.padded = digits.size() > 1 && digits.front() == '0';
    return number;
}

std::vector<Run> runs_of(const std::set<HostNumber>& numbers) {
    std::vector<Run> runs;
    std::unordered_map<std::string, std::size_t> run_before;  // by the text that would continue it
    for (const HostNumber& number : numbers) {
        const auto found = run_before.find(number.text());
        std::size_t at = runs.size();
        if (found == run_before.end()) {
            runs.push_back({number, number});
        } else {
            at = found->second;
            run_before.erase(found);
            runs[at].last = number;
        }
        run_before.emplace(runs[at].next(), at);
    }
    return runs;
}

// The runs of one prefix, in as few brackets as there are widths.
void add_brackets(const std::string& prefix, const std::set<HostNumber>& numbers,
                  std::vector<std::string>& parts) {
    const std::vector<Run> runs = runs_of(numbers);
    std::set<std::size_t> padded_widths;
    for (const Run& run : runs) {
        padded_widths.insert(run.width());
    }
    struct Bracket {
        std::string list;
        bool several = false;
    };
    std::vector<Bracket> brackets;
    std::unordered_map<std::size_t, std::size_t> by_width;
    for (const Run& run : runs) {
        // Numbers that fill the width of padded ones look as if they were padded themselves.
        const bool fills =
            run.first.digits == run.last.digits && padded_widths.contains(run.first.digits);
        const std::size_t width = fills ? run.first.digits : run.width();
        const auto [place, is_new] = by_width.emplace(width, brackets.size());
        if (is_new) {
            brackets.push_back({run.text(), run.first.value != run.last.value});
        } else {
            Bracket& bracket = brackets[place->second];
            bracket.list += ',' + run.text();
            bracket.several = true;
        }
    }
    for (const Bracket& bracket : brackets) {
        parts.push_back(bracket.several ? fmt::format("{}[{}]", prefix, bracket.list)
                                        : prefix + bracket.list);
    }
}

}  // namespace

bool is_host_name(std::string_view name) noexcept {
    const auto allowed = [](char c) {
        return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.'
               || c == '_' || c == '-';
    };
    return !name.empty() && name.front() != '-' && std::ranges::all_of(name, allowed);
}

std::string hostlist(std::span<const std::string> hosts) {
    // An empty set of numbers: the prefix is the whole name.
    std::map<std::string, std::set<HostNumber>> numbers;
    std::set<std::string> whole;
    for (const std::string& host : hosts) {
        if (!is_host_name(host)) {
            continue;
        }
        const std::size_t digits = digits_at_the_end(host);
        if (digits == 0 || digits > kMostDigits) {
            whole.insert(host);
        } else {
            const std::size_t begin = host.size() - digits;
            numbers[host.substr(0, begin)].insert(number_from(host.substr(begin)));
        }
    }
    for (const std::string& host : whole) {
        numbers.try_emplace(host);
    }
    std::vector<std::string> parts;
    for (const auto& [prefix, at] : numbers) {
        if (whole.contains(prefix)) {
            parts.push_back(prefix);
        }
        if (!at.empty()) {
            add_brackets(prefix, at, parts);
        }
    }
    return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace rdma_read::verify
