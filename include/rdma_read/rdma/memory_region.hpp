// Registered memory: what a device may touch, stated as an intent instead of a set of flags.
#pragma once

#include "rdma_read/rdma/handles.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace rdma_read::rdma {

/// What a region is for; the access flags of ibv_reg_mr(3) follow from it.
enum class Intent {
    exposed_for_read,        ///< peers may read it and nothing else
    read_destination,        ///< this host's reads write into it
    iwarp_read_destination,  ///< the same where a read's answer arrives as a remote write
    messages                 ///< sends and receives
};

/// Registers memory that it does not own. The memory must outlive the region, and the region every
/// queue pair that uses it. Not thread-safe.
class MemoryRegion {
  public:
    /// Throws Error; when the locked-memory limit may be the cause, the hint names the limit and
    /// where it is raised.
    MemoryRegion(ibv_pd* pd, std::span<std::byte> memory, Intent intent);

    [[nodiscard]] std::span<std::byte> memory() const noexcept { return memory_; }
    /// The address that peers use, in host byte order.
    [[nodiscard]] std::uint64_t address() const noexcept {
        return reinterpret_cast<std::uintptr_t>(memory_.data());
    }
    [[nodiscard]] std::uint32_t lkey() const noexcept { return mr_->lkey; }
    [[nodiscard]] std::uint32_t rkey() const noexcept { return mr_->rkey; }

  private:
    std::span<std::byte> memory_;
    MrHandle mr_;
};

}  // namespace rdma_read::rdma
