// The counters of a port that go up when packets were lost, repeated or damaged on their way.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace rdma_read::app {

/// Values by name, as in /sys/class/infiniband/DEVICE/ports/PORT.
using PortCounters = std::map<std::string, std::uint64_t>;

/// Those counters of a port that mean trouble, out of hw_counters (names differ from driver to
/// driver) and counters. Left out are those of congestion, which is no error, and those of errors
/// that end a connection, which no reader overlooks. They count for the whole port, whoever uses
/// it. nullopt: no such port, or it keeps none that is known here. `sysfs`: where it is mounted.
[[nodiscard]] std::optional<PortCounters> trouble_counters(const std::string& device,
                                                           std::uint32_t port_num,
                                                           const std::string& sysfs = "/sys");

/// By how much counters went up; those that did not are left out. One that went down, by a reset or
/// for want of bits, or is there on one side only, is unknown. nullopt: nothing went up as far as
/// is known, but not all is known.
[[nodiscard]] std::optional<std::map<std::string, std::int64_t>> increase(
    const std::optional<PortCounters>& before, const std::optional<PortCounters>& after);

}  // namespace rdma_read::app
