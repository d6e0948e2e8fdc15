// Where a thread may run, which processors are near an RDMA device, and how to get there.
#pragma once

#include "app/cpu_set.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

// hwloc's own name for what hwloc_topology_t points to.
struct hwloc_topology;

namespace rdma_read::app {

/// A thread that was bound. The end of it lets the thread run again where it could before; it must
/// come on the same thread. Threads that are started in between inherit the binding, and keep it.
class Binding {
  public:
    Binding() = default;  ///< bound nothing
    Binding(std::shared_ptr<hwloc_topology> topology, CpuSet before, CpuSet now)
        : topology_(std::move(topology)), before_(std::move(before)), now_(std::move(now)) {}
    ~Binding();
    Binding(const Binding&) = delete;
    Binding& operator=(const Binding&) = delete;
    Binding(Binding&& other) noexcept = default;
    Binding& operator=(Binding&&) = delete;

    /// Whether a thread was bound.
    [[nodiscard]] explicit operator bool() const noexcept { return topology_ != nullptr; }
    /// To where; empty if nothing was bound.
    [[nodiscard]] const CpuSet& cpus() const noexcept { return now_; }

  private:
    std::shared_ptr<hwloc_topology> topology_;
    CpuSet before_;
    CpuSet now_;
};

/// The processors of this host. What hwloc or sysfs does not tell (in containers and virtual
/// machines often much) is unknown: nullopt or empty, never an error; nothing throws but
/// std::bad_alloc. Making one takes about a millisecond and binds no thread. One thread at a time.
class Placement {
  public:
    /// Where the knowledge comes from. Tests put others in the place of this machine.
    struct Source {
        std::string sysfs = "/sys";  ///< for the locality of devices
        std::string synthetic;  ///< hwloc's description of a pretended machine; empty: this machine
    };

    /// This machine.
    Placement();
    explicit Placement(const Source& source);

    /// The processors that this process could be allowed to use: all that are online and in its
    /// cgroup. Empty: unknown.
    [[nodiscard]] const CpuSet& allowed() const noexcept { return allowed_; }
    /// Where the calling thread may run now. nullopt: unknown, as on every pretended machine.
    [[nodiscard]] std::optional<CpuSet> thread() const;

    /// The processors near an RDMA device, named as in /sys/class/infiniband. nullopt when unknown:
    /// no such device, one without hardware (software RoCE), or a machine with several NUMA nodes
    /// whose firmware does not say to which the device belongs.
    [[nodiscard]] std::optional<CpuSet> near(const std::string& device) const;

    /// The numbers of the NUMA nodes of these processors. Empty: unknown.
    [[nodiscard]] CpuSet nodes(const CpuSet& cpus) const;
    /// The cores of these processors, each by the first processor it has: two processors of one
    /// core are one. A processor of which hwloc knows no core is a core.
    [[nodiscard]] CpuSet cores(const CpuSet& cpus) const;

    /// Whether somebody has decided already where a thread runs that may run on `thread`: on less
    /// than allowed(). A launcher, numactl(8) or taskset(1) did so. false when allowed() is
    /// unknown.
    [[nodiscard]] bool bound(const CpuSet& thread) const noexcept;

    /// Where a reader of `device` is to run that may run on `thread` now: on all that are near the
    /// device, among which the scheduler spreads several readers. nullopt: where it is, because it
    /// is bound already, or everything or nothing is near.
    [[nodiscard]] std::optional<CpuSet> choose(const CpuSet& thread,
                                               const std::string& device) const;

    /// Binds the calling thread as choose() says. The Binding is false when there is nothing to
    /// choose or the kernel does not let it.
    [[nodiscard]] Binding bind_near(const std::string& device) const;

  private:
    [[nodiscard]] std::uint32_t core_of(std::uint32_t cpu) const;

    std::string sysfs_;
    bool pretended_;
    std::shared_ptr<hwloc_topology> topology_;  // nullptr: hwloc does not know this machine
    CpuSet allowed_;
    std::map<std::uint32_t, std::uint32_t> core_of_;  // by processor: the first one of its core
    std::map<std::uint32_t, CpuSet> nodes_;           // by number of the NUMA node
};

}  // namespace rdma_read::app
