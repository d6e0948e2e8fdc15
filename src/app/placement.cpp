// Asks hwloc for the machine and sysfs for the devices.
#include "app/placement.hpp"

#include <hwloc.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

namespace rdma_read::app {

namespace {

using Topology = std::shared_ptr<hwloc_topology>;

struct BitmapDeleter {
    void operator()(hwloc_bitmap_t bitmap) const noexcept { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

CpuSet cpu_set(hwloc_const_bitmap_t bitmap) {
    std::vector<std::uint32_t> cpus;
    // A set without an end holds every processor: it says nothing.
    if (bitmap == nullptr || hwloc_bitmap_weight(bitmap) < 0) {
        return {};
    }
    for (int cpu = hwloc_bitmap_first(bitmap); cpu >= 0; cpu = hwloc_bitmap_next(bitmap, cpu)) {
        cpus.push_back(static_cast<std::uint32_t>(cpu));
    }
    return CpuSet(std::move(cpus));
}

std::vector<const hwloc_obj*> objects(hwloc_topology_t topology, hwloc_obj_type_t type) {
    std::vector<const hwloc_obj*> found;
    hwloc_obj_t object = nullptr;
    while ((object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr) {
        found.push_back(object);
    }
    return found;
}

bool bind_thread(hwloc_topology_t topology, const CpuSet& cpus) {
    const Bitmap bitmap(hwloc_bitmap_alloc());
    if (!bitmap) {
        return false;
    }
    for (const std::uint32_t cpu : cpus.cpus()) {
        if (hwloc_bitmap_set(bitmap.get(), cpu) != 0) {
            return false;
        }
    }
    return hwloc_set_cpubind(topology, bitmap.get(), HWLOC_CPUBIND_THREAD) == 0;
}

// Only what is asked for here: a rank has no time for caches, distances and PCI buses. Nothing may
// move the thread about to ask each processor for what it is, which takes a scheduler's tick for
// each on a busy machine.
void narrow(hwloc_topology_t topology) {
    hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    unsigned long flags = 0;
#if HWLOC_API_VERSION >= 0x00020500
    flags |= HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
#endif
#if HWLOC_API_VERSION >= 0x00020800
    flags |= HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS
             | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS;
#endif
    hwloc_topology_set_flags(topology, flags);
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
}

Topology load(const std::string& synthetic) {
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) {
        return nullptr;
    }
    Topology topology(raw, hwloc_topology_destroy);
    if (synthetic.empty()) {
        narrow(raw);
    } else if (hwloc_topology_set_synthetic(raw, synthetic.c_str()) != 0) {
        return nullptr;
    }
    return hwloc_topology_load(raw) == 0 ? topology : nullptr;
}

// Whether a name is one folder of sysfs, not a way out of it.
bool is_device_name(const std::string& name) {
    return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

}  // namespace

Binding::~Binding() {
    if (topology_) {
        // Nothing can be done about a failure, and nothing depends on it.
        static_cast<void>(bind_thread(topology_.get(), before_));
    }
}

Placement::Placement() : Placement(Source{}) {}

Placement::Placement(const Source& source)
    : sysfs_(source.sysfs),
      pretended_(!source.synthetic.empty()),
      topology_(load(source.synthetic)) {
    if (!topology_) {
        return;
    }
    allowed_ = cpu_set(hwloc_topology_get_allowed_cpuset(topology_.get()));
    for (const hwloc_obj* core : objects(topology_.get(), HWLOC_OBJ_CORE)) {
        const CpuSet siblings = cpu_set(core->cpuset);
        for (const std::uint32_t cpu : siblings.cpus()) {
            core_of_[cpu] = siblings.cpus().front();
        }
    }
    for (const hwloc_obj* node : objects(topology_.get(), HWLOC_OBJ_NUMANODE)) {
        nodes_[node->os_index] = cpu_set(node->cpuset);
    }
}

std::optional<CpuSet> Placement::thread() const {
    const Bitmap bitmap(hwloc_bitmap_alloc());
    if (pretended_ || !topology_ || !bitmap
        || hwloc_get_cpubind(topology_.get(), bitmap.get(), HWLOC_CPUBIND_THREAD) != 0) {
        return std::nullopt;
    }
    CpuSet cpus = cpu_set(bitmap.get());
    if (cpus.empty()) {
        return std::nullopt;
    }
    return cpus;
}

std::optional<CpuSet> Placement::near(const std::string& device) const {
    if (!is_device_name(device)) {
        return std::nullopt;
    }
    std::ifstream file(sysfs_ + "/class/infiniband/" + device + "/device/local_cpulist");
    std::string list;
    if (!std::getline(file, list)) {
        return std::nullopt;
    }
    auto cpus = CpuSet::parse(list);
    if (!cpus || cpus->empty()) {
        return std::nullopt;
    }
    // Near all nodes alike is what the kernel says when it does not know.
    if (cpus->includes(allowed_) && nodes(allowed_).size() > 1) {
        return std::nullopt;
    }
    return cpus;
}

CpuSet Placement::nodes(const CpuSet& cpus) const {
    std::vector<std::uint32_t> found;
    for (const auto& [node, its_cpus] : nodes_) {
        if (!its_cpus.common(cpus).empty()) {
            found.push_back(node);
        }
    }
    return CpuSet(std::move(found));
}

std::uint32_t Placement::core_of(std::uint32_t cpu) const {
    const auto found = core_of_.find(cpu);
    return found == core_of_.end() ? cpu : found->second;
}

CpuSet Placement::cores(const CpuSet& cpus) const {
    std::vector<std::uint32_t> found;
    found.reserve(cpus.size());
    for (const std::uint32_t cpu : cpus.cpus()) {
        found.push_back(core_of(cpu));
    }
    return CpuSet(std::move(found));
}

bool Placement::bound(const CpuSet& thread) const noexcept {
    return !allowed_.empty() && !thread.includes(allowed_);
}

std::optional<CpuSet> Placement::choose(const CpuSet& thread, const std::string& device) const {
    const CpuSet usable = thread.common(allowed_);
    const auto near_device = near(device);
    if (usable.empty() || bound(thread) || !near_device) {
        return std::nullopt;
    }
    CpuSet near_cpus = usable.common(*near_device);
    if (near_cpus.empty() || near_cpus == usable) {
        return std::nullopt;
    }
    return near_cpus;
}

Binding Placement::bind_near(const std::string& device) const {
    auto before = thread();
    if (!before) {
        return {};
    }
    auto choice = choose(*before, device);
    if (!choice || !bind_thread(topology_.get(), *choice)) {
        return {};
    }
    return {topology_, std::move(*before), std::move(*choice)};
}

}  // namespace rdma_read::app
