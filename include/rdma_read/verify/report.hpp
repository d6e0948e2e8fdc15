// All results of a run, the verdict on them, and how both are written down.
#pragma once

#include "rdma_read/verify/result.hpp"
#include "rdma_read/verify/run_id.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace rdma_read::verify {

/// The value of a command line option; std::monostate: not given and without a default.
using OptionValue = std::variant<std::monostate, bool, std::uint64_t, double, std::string,
                                 std::vector<std::uint64_t>>;
using OptionMap = std::map<std::string, OptionValue>;

/// The Slurm job that a run was part of. An empty string is an unknown.
struct Slurm {
    std::string job_id;
    std::string step_id;
    std::string nodelist;
};

/// All that is known when a run ends. Every expected reader has an entry in `results`, whatever
/// became of it.
struct Report {
    std::string tool_version;
    RunId run{};
    std::string started;  ///< ISO 8601, UTC
    double elapsed_s = 0;
    std::uint32_t ranks = 0;
    std::vector<std::string> hosts;  ///< by rank, or each once: as the caller likes to show them
    std::string pattern;             ///< who reads from whom, as in --pattern
    OptionMap options;
    std::string mpi;  ///< the MPI library and its version
    std::optional<Slurm> slurm;
    std::vector<ServerInfo> servers;
    std::vector<Result> results;
    std::vector<std::uint64_t> sizes;    ///< that every reader was to read; empty: not known
    std::optional<std::uint64_t> reads;  ///< of each size, if it was to be so many
    bool verified = true;                ///< every byte was to be checked (--verify full)
    bool self_test = false;  ///< every reader was to prove check and protection first (--self-test)
    std::string interrupted;  ///< the signal that ended the run early, "SIGTERM"; empty: none
};

/// Exit codes of the program that a verdict can ask for.
inline constexpr int kExitPass = 0;
inline constexpr int kExitFail = 1;
inline constexpr int kExitNothingRead = 3;

struct Verdict {
    Outcome outcome = Outcome::not_run;  ///< pass, or the worst of all
    int exit_code = kExitNothingRead;
    std::uint64_t expected = 0;  ///< readers
    std::uint64_t passed = 0;
    std::uint64_t failed = 0;
    std::uint64_t degraded = 0;  ///< readers that are known to be, whatever became of them
    std::uint64_t bytes_verified = 0;
    std::uint64_t mismatches = 0;        ///< reads with wrong data, or data outside its place
    std::vector<std::string> bad_hosts;  ///< sorted, each once: where to look
};

/// What a result of this report amounts to when its evidence is weighed. A PASS stands only on
/// evidence: every size that was to be read and at least one, each with all the reads that were
/// asked for, guards intact, no mismatch, when `verified` as many bytes verified as were read, and
/// when a `self_test` was asked for all of it proved.
/// Without it, it is CORRUPT (something is known to be wrong) or READ_FAILED (something is
/// missing). Any other outcome stands as it is.
[[nodiscard]] Outcome weighed_outcome(const Result& result, const Report& report) noexcept;

/// What all readers together proved: true where every reader that got that far proved it, false
/// where one disproved it, nullopt where nobody got that far.
[[nodiscard]] SelfTest joint_self_test(const Report& report);

/// The verdict: kExitPass only when there is at least one result and all are PASS when weighed;
/// kExitNothingRead when no byte was read and no reader got further than its or the server's
/// setup; else kExitFail.
///
/// A reader that failed makes its host bad. When every reader of a server failed (other than for
/// want of a device or a setup of its own), the server's host is bad, and the readers' hosts are so
/// only if there is just one: then either may be at fault. NOT_RUN speaks against nobody but a
/// server that never listened, and not even against that if the run was interrupted.
[[nodiscard]] Verdict judge(const Report& report);

/// The table for a person: one line for each reader and size, under a reader that is not PASS its
/// phase, cause, hint and first mismatches, under a degraded one its counters, one line with the
/// self-test if there was one, and one line with the verdict at the end that begins with PASS or
/// FAIL. ASCII but for what peers and hosts are called; their control characters are replaced. Does
/// not depend on the locale. `colour`: ANSI colours on the results.
[[nodiscard]] std::string to_text(const Report& report, bool colour);

/// The report for a script: one JSON object of the schema "rdma-read-report/1", a newline at the
/// end. Every key is present, null where nothing is known. Text that is not UTF-8 is replaced, not
/// refused.
[[nodiscard]] std::string to_json(const Report& report);

}  // namespace rdma_read::verify
