// Reasons not to trust a number that was measured.
#pragma once

#include "app/cpu_set.hpp"
#include "app/placement.hpp"
#include "rdma_read/verify/clock.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rdma_read::app {

// Each of these says in one line, without a newline, what is wrong, why that matters and what to do
// about it; nullopt when nothing is wrong or when it cannot be known. None throws but
// std::bad_alloc.

/// A thread that may run on `thread` reads through `device`, and is, or may come to be, on another
/// NUMA node. `thread`: after it was bound, if it was.
[[nodiscard]] std::optional<std::string> far_from_device(const Placement& placement,
                                                         const CpuSet& thread,
                                                         const std::string& device);

/// The cores that a rank may run on, Placement::cores() of where its thread may.
struct RankCores {
    int rank = 0;
    CpuSet cores;  ///< empty: unknown
};

/// Some ranks have too few cores to have one each, whatever the scheduler does. `ranks`: those of
/// one host that work at the same time. Names all ranks concerned, not those that share only if the
/// scheduler chooses so.
[[nodiscard]] std::optional<std::string> shared_cores(const std::vector<RankCores>& ranks);

/// Fewer reads can be outstanding than were asked for. 0 negotiated: not known.
[[nodiscard]] std::optional<std::string> depth_clamped(std::uint32_t wanted,
                                                       std::uint32_t negotiated);

/// Reads of `bytes` are so long that fewer of them are in flight than were asked for. No reason for
/// distrust, only for another number than was expected.
[[nodiscard]] std::optional<std::string> depth_cut(std::uint32_t wanted, std::uint32_t used,
                                                   std::uint64_t bytes);

/// Some of these processors change their frequency with the load. `sysfs`: where it is mounted.
[[nodiscard]] std::optional<std::string> frequency_scaling(const CpuSet& cpus,
                                                           const std::string& sysfs = "/sys");

/// In a phase of `phase_s` seconds so much went into checking `bytes` that reading may be faster
/// (verify::kBindingShare).
[[nodiscard]] std::optional<std::string> slow_checking(double checking_s, double phase_s,
                                                       std::uint64_t bytes);

/// The clock is no finer than a tenth of the least latency that was measured with it.
[[nodiscard]] std::optional<std::string> coarse_clock(const verify::ClockCost& clock,
                                                      double least_latency_us);

}  // namespace rdma_read::app
