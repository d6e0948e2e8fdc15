// Weighs the evidence of each result and sums up.
#include "rdma_read/verify/report.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace rdma_read::verify {

namespace {

bool known_wrong(const SizeResult& size) noexcept {
    return size.mismatched_reads != 0 || !size.mismatches.empty() || !size.guard_intact;
}

bool complete(const SizeResult& size, const Report& report) noexcept {
    std::uint64_t bytes = 0;
    return size.reads > 0 && (!report.reads || size.reads == *report.reads) && size.size > 0
           && !__builtin_mul_overflow(size.size, size.reads, &bytes) && size.bytes_read == bytes
           && (!report.verified || size.bytes_verified == bytes);
}

// From what is least to what is most alarming.
std::size_t severity(Outcome outcome) noexcept {
    static constexpr std::array kOrder{
        Outcome::pass,      Outcome::not_run,      Outcome::slow,
        Outcome::no_device, Outcome::setup_failed, Outcome::connect_failed,
        Outcome::timeout,   Outcome::read_failed,  Outcome::corrupt,
    };
    return static_cast<std::size_t>(std::ranges::find(kOrder, outcome) - kOrder.begin());
}

bool before_any_connection(Outcome outcome) noexcept {
    return outcome == Outcome::no_device || outcome == Outcome::setup_failed
           || outcome == Outcome::not_run;
}

std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) noexcept {
    std::uint64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::uint64_t>::max() : sum;
}

std::vector<std::string> bad_hosts(const Report& report) {
    struct Readers {
        std::string server_host;
        std::uint64_t all = 0;     // that tried
        std::uint64_t failed = 0;  // other than for reasons of their own
    };
    std::map<std::int32_t, Readers> by_server;
    const auto never_listened = [&](std::int32_t rank) {
        return report.interrupted.empty()
               && std::ranges::any_of(report.servers, [rank](const ServerInfo& server) {
                      return server.rank == rank && server.address.empty();
                  });
    };
    const auto own_fault = [](Outcome outcome) {
        return outcome == Outcome::no_device || outcome == Outcome::setup_failed;
    };
    for (const Result& result : report.results) {
        const Outcome outcome = weighed_outcome(result, report);
        Readers& readers = by_server[result.server_rank];
        readers.server_host = result.server_host;
        readers.all += outcome != Outcome::not_run ? 1 : 0;
        readers.failed +=
            outcome != Outcome::pass && outcome != Outcome::not_run && !own_fault(outcome) ? 1 : 0;
    }
    std::set<std::string> hosts;
    for (const Result& result : report.results) {
        const Outcome outcome = weighed_outcome(result, report);
        if (outcome == Outcome::pass) {
            continue;
        }
        const Readers& readers = by_server[result.server_rank];
        if (outcome == Outcome::not_run) {
            if (never_listened(result.server_rank)) {
                hosts.insert(readers.server_host);
            }
            continue;
        }
        const bool all_failed = readers.failed == readers.all;
        if (all_failed) {
            hosts.insert(readers.server_host);
        }
        if (!all_failed || readers.all == 1) {
            hosts.insert(result.reader_host);
        }
    }
    hosts.erase(std::string());
    return {hosts.begin(), hosts.end()};
}

}  // namespace

Outcome weighed_outcome(const Result& result, const Report& report) noexcept {
    if (result.outcome != Outcome::pass) {
        return result.outcome;
    }
    if (std::ranges::any_of(result.sizes, known_wrong)) {
        return Outcome::corrupt;
    }
    const bool as_asked = report.sizes.empty()
                          || std::ranges::equal(result.sizes, report.sizes, {}, &SizeResult::size);
    const bool all = as_asked && !result.sizes.empty()
                     && std::ranges::all_of(result.sizes, [&report](const SizeResult& size) {
                            return complete(size, report);
                        });
    const bool proved = !report.self_test || (result.self_test && result.self_test->proved());
    return all && proved ? Outcome::pass : Outcome::read_failed;
}

SelfTest joint_self_test(const Report& report) {
    SelfTest joint;
    const auto add = [](std::optional<bool>& sum, std::optional<bool> one) {
        if (one) {
            sum = sum.value_or(true) && *one;
        }
    };
    for (const Result& result : report.results) {
        if (result.self_test) {
            add(joint.planted_error_found, result.self_test->planted_error_found);
            add(joint.wrong_key_refused, result.self_test->wrong_key_refused);
            add(joint.out_of_bounds_refused, result.self_test->out_of_bounds_refused);
        }
    }
    return joint;
}

Verdict judge(const Report& report) {
    Verdict verdict;
    verdict.expected = report.results.size();
    bool nothing_read = true;
    for (const Result& result : report.results) {
        const Outcome outcome = weighed_outcome(result, report);
        ++(outcome == Outcome::pass ? verdict.passed : verdict.failed);
        if (&result == &report.results.front() || severity(outcome) > severity(verdict.outcome)) {
            verdict.outcome = outcome;
        }
        verdict.degraded += result.degraded() == true ? 1 : 0;
        nothing_read = nothing_read && before_any_connection(outcome);
        for (const SizeResult& size : result.sizes) {
            nothing_read = nothing_read && size.bytes_read == 0;
            verdict.bytes_verified = saturating_sum(verdict.bytes_verified, size.bytes_verified);
            verdict.mismatches = saturating_sum(verdict.mismatches, size.mismatched_reads);
        }
    }
    if (verdict.expected > 0 && verdict.failed == 0) {
        verdict.exit_code = kExitPass;
    } else {
        verdict.exit_code = nothing_read ? kExitNothingRead : kExitFail;
    }
    verdict.bad_hosts = bad_hosts(report);
    return verdict;
}

}  // namespace rdma_read::verify
