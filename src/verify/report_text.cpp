// Writes a report as a table for a person.
#include "rdma_read/verify/hostlist.hpp"
#include "rdma_read/verify/plain_text.hpp"
#include "rdma_read/verify/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <string_view>

namespace rdma_read::verify {

namespace {

constexpr std::size_t kColumns = 10;
constexpr std::array<std::string_view, kColumns> kTitles{
    "rank", "host", "device", "size", "reads", "verified", "p50 us", "p99 us", "MB/s", "result"};
constexpr std::array<bool, kColumns> kToTheRight{true, false, false, true, true,
                                                 true, true,  true,  true, false};
constexpr std::string_view kUnknown = "-";
constexpr std::size_t kMismatchesShown = 4;

using Row = std::array<std::string, kColumns>;

/// One line of the table and what stands indented under it.
struct Line {
    Row row;
    Outcome outcome = Outcome::pass;  // gives the colour
    std::vector<std::string> below;
};

std::string or_unknown(const std::string& text) {
    return text.empty() ? std::string(kUnknown) : text;
}

std::string size_text(std::uint64_t bytes) {
    constexpr std::array<std::pair<unsigned, char>, 3> kUnits{{{30, 'G'}, {20, 'M'}, {10, 'K'}}};
    for (const auto& [shift, letter] : kUnits) {
        if (bytes != 0 && bytes % (std::uint64_t{1} << shift) == 0) {
            return fmt::format("{}{}", bytes >> shift, letter);
        }
    }
    return fmt::format("{}", bytes);
}

std::string amount_text(std::uint64_t bytes) {
    constexpr std::array<std::string_view, 6> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        return fmt::format("{} B", bytes);
    }
    double amount = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    // What would be rounded to 1024.0 is 1.0 of the next unit.
    while (amount >= 1023.95 && unit + 1 < kUnits.size()) {
        amount /= 1024;
        ++unit;
    }
    return fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

std::string number_text(double value, int digits) {
    return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : std::string(kUnknown);
}

std::string rank_text(std::int32_t rank) {
    return rank < 0 ? std::string(kUnknown) : fmt::format("{}", rank);
}

std::string rate_text(std::optional<double> bytes_per_s) {
    if (!bytes_per_s) {
        return std::string(kUnknown);
    }
    const double megabytes = *bytes_per_s / 1e6;
    return number_text(megabytes, megabytes < 100 ? 1 : 0);
}

bool wrong(const SizeResult& size) noexcept {
    return size.mismatched_reads != 0 || !size.mismatches.empty() || !size.guard_intact;
}

std::string counted(std::uint64_t count, std::string_view noun, std::string_view plural) {
    return fmt::format("{} {}", count, count == 1 ? noun : plural);
}

Row row_of(const Result& result, const SizeResult* size, bool verified, std::string_view outcome) {
    Row row;
    row.fill(std::string(kUnknown));
    row[0] = rank_text(result.reader_rank);
    row[1] = or_unknown(plain(result.reader_host));
    row[2] = or_unknown(plain(result.path.local_device));
    if (size != nullptr) {
        row[3] = size_text(size->size);
        row[4] = fmt::format("{}", size->reads);
        row[5] = verified ? amount_text(size->bytes_verified) : "off";
        if (size->latency_us) {
            row[6] = number_text(size->latency_us->p50, 2);
            row[7] = number_text(size->latency_us->p99, 2);
        }
        row[8] = rate_text(size->bandwidth_bytes_per_s);
    }
    row[9] = outcome;
    return row;
}

void add_mismatches(const Result& result, std::vector<std::string>& below) {
    std::size_t shown = 0;
    std::uint64_t wrong_reads = 0;
    for (const SizeResult& size : result.sizes) {
        wrong_reads += size.mismatched_reads;
        if (!size.guard_intact && size.reads > 0) {
            below.push_back(fmt::format("wrong: size {}: data was written outside its place",
                                        size_text(size.size)));
        }
        for (const Mismatch& mismatch : size.mismatches) {
            if (shown == kMismatchesShown) {
                break;
            }
            ++shown;
            below.push_back(fmt::format("wrong: size {}, {} read {}, offset {}, {}: {}: {}",
                                        size_text(size.size), plain(mismatch.phase), mismatch.read,
                                        mismatch.offset, counted(mismatch.length, "byte", "bytes"),
                                        to_string(mismatch.kind), plain(mismatch.detail)));
        }
    }
    if (wrong_reads > 0) {
        below.push_back(
            fmt::format("in all: {} with wrong data", counted(wrong_reads, "read", "reads")));
    }
}

// "completer_retry_err +3, rcvd_seq_err +1"
std::string counters_text(const std::map<std::string, std::int64_t>& counters) {
    std::string text;
    for (const auto& [name, delta] : counters) {
        text += fmt::format("{}{} +{}", text.empty() ? "" : ", ", plain(name), delta);
    }
    return text;
}

void add_troubles(const Result& result, std::vector<std::string>& below) {
    if (!result.attempt_errors.empty()) {
        std::string causes;
        for (const std::string& error : result.attempt_errors) {
            causes += fmt::format("; {}", plain(error));
        }
        below.push_back(fmt::format("note: {} to connect failed before the last one{}",
                                    counted(result.attempts - 1, "attempt", "attempts"), causes));
    }
    if (result.degraded() == true) {
        below.push_back(fmt::format("note: degraded: counters of {}:{} went up: {}",
                                    or_unknown(plain(result.path.local_device)),
                                    result.path.local_port_num.value_or(0),
                                    counters_text(*result.counters)));
    }
}

std::vector<std::string> explanation(const Result& result, Outcome outcome) {
    std::vector<std::string> below;
    const auto add = [&](std::string_view title, const std::string& text) {
        if (!text.empty()) {
            below.push_back(fmt::format("{}: {}", title, plain(text)));
        }
    };
    if (outcome != Outcome::pass) {
        add("phase", result.phase);
        add("cause", result.error);
        if (result.outcome == Outcome::pass) {
            below.emplace_back(
                "cause: the reader said PASS, but what it counted does not prove it");
        }
        add("hint", result.hint);
        if (result.confirmed) {
            below.emplace_back(*result.confirmed ? "retest: failed again" : "retest: passed");
        }
        add_mismatches(result, below);
    }
    add_troubles(result, below);
    for (const std::string& note : result.notes) {
        add("note", note);
    }
    return below;
}

// A reader's outcome stands on the lines of the sizes that are wrong, or else on its last line; the
// other sizes of a failed reader were "ok", which nobody takes for a PASS.
void add_lines(const Result& result, const Report& report, std::vector<Line>& lines) {
    const bool verified = report.verified;
    const Outcome outcome = weighed_outcome(result, report);
    const std::string shown =
        fmt::format("{}{}", to_string(outcome),
                    outcome == Outcome::pass && result.degraded() == true ? " (degraded)" : "");
    const bool some_wrong = std::ranges::any_of(result.sizes, wrong);
    if (result.sizes.empty()) {
        lines.push_back({row_of(result, nullptr, verified, shown), outcome, {}});
    }
    for (const SizeResult& size : result.sizes) {
        const bool last = &size == &result.sizes.back();
        const bool mine = outcome == Outcome::pass
                          || (outcome == Outcome::corrupt && some_wrong ? wrong(size) : last);
        lines.push_back({row_of(result, &size, verified, mine ? shown : "ok"),
                         mine ? outcome : Outcome::pass,
                         {}});
    }
    lines.back().below = explanation(result, outcome);
}

std::string coloured(std::string_view text, bool good, bool colour) {
    if (!colour) {
        return std::string(text);
    }
    return fmt::format("\x1b[{}m{}\x1b[0m", good ? 32 : 31, text);
}

// As a hostlist; behind it what a host calls itself that no host can be called.
std::string look_at(const std::vector<std::string>& bad_hosts) {
    std::string text = hostlist(bad_hosts);
    for (const std::string& host : bad_hosts) {
        if (!is_host_name(host)) {
            text += fmt::format("{}{}", text.empty() ? "" : ", ", plain(host));
        }
    }
    return text;
}

// "" if none was asked for.
std::string self_test_line(const Report& report) {
    if (!report.self_test) {
        return "";
    }
    const auto readers = counted(report.results.size(), "reader", "readers");
    const auto count = [&](const auto what) {
        return std::ranges::count_if(report.results, [&](const Result& result) {
            return result.self_test && std::invoke(what, *result.self_test);
        });
    };
    if (count(&SelfTest::disproved) == 0) {
        return fmt::format(
            "self-test: a planted wrong byte was found, wrong key and out-of-bounds "
            "reads were refused, by {} of {}\n",
            count(&SelfTest::proved), readers);
    }
    return fmt::format(
        "self-test: failed: a planted wrong byte was found by {} of {}, wrong keys "
        "were refused to {}, out-of-bounds reads to {}\n",
        count([](const SelfTest& test) { return test.planted_error_found == true; }), readers,
        count([](const SelfTest& test) { return test.wrong_key_refused == true; }),
        count([](const SelfTest& test) { return test.out_of_bounds_refused == true; }));
}

std::string verdict_line(const Report& report, bool colour) {
    const Verdict verdict = judge(report);
    const bool pass = verdict.exit_code == kExitPass;
    std::string line = coloured(pass ? "PASS" : "FAIL", pass, colour);
    line += fmt::format("  {} of {}, {}, {}", verdict.passed,
                        counted(verdict.expected, "reader", "readers"),
                        report.verified ? amount_text(verdict.bytes_verified) + " verified"
                                        : "nothing verified (--verify off)",
                        counted(verdict.mismatches, "mismatch", "mismatches"));
    if (verdict.degraded > 0) {
        line += fmt::format("; {} degraded", verdict.degraded);
    }
    if (!report.interrupted.empty()) {
        line += "; stopped by " + report.interrupted;
    }
    const std::string hosts = look_at(verdict.bad_hosts);
    return line + (hosts.empty() ? "" : "; look at " + hosts) + '\n';
}

}  // namespace

std::string to_text(const Report& report, bool colour) {
    std::vector<Line> lines;
    for (const Result& result : report.results) {
        add_lines(result, report, lines);
    }
    std::array<std::size_t, kColumns> widths{};
    for (std::size_t column = 0; column < kColumns; ++column) {
        widths[column] = kTitles[column].size();
        for (const Line& line : lines) {
            widths[column] = std::max(widths[column], width(line.row[column]));
        }
    }
    std::string text;
    const auto add_cell = [&](std::size_t column, std::string_view cell, std::string_view shown) {
        const std::string space(widths[column] - width(cell), ' ');
        text += column == 0 ? "" : "  ";
        text += kToTheRight[column] ? space : "";
        text += shown;
        // No spaces at the end of a line.
        text += kToTheRight[column] || column + 1 == kColumns ? "" : space;
    };
    for (std::size_t column = 0; column < kColumns; ++column) {
        add_cell(column, kTitles[column], kTitles[column]);
    }
    text += '\n';
    for (const Line& line : lines) {
        for (std::size_t column = 0; column < kColumns; ++column) {
            const std::string& cell = line.row[column];
            const bool result = column + 1 == kColumns;
            add_cell(column, cell,
                     result ? coloured(cell, line.outcome == Outcome::pass, colour) : cell);
        }
        text += '\n';
        for (const std::string& below : line.below) {
            text += fmt::format("      {}\n", below);
        }
    }
    return text + self_test_line(report) + verdict_line(report, colour);
}

}  // namespace rdma_read::verify
