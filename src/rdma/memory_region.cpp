// Registers memory with the access flags that its intent needs and no others.
#include "rdma_read/rdma/memory_region.hpp"

#include "rdma_read/rdma/error.hpp"

#include <fmt/format.h>

namespace rdma_read::rdma {

namespace {

int access_flags(Intent intent) {
    switch (intent) {
        case Intent::exposed_for_read:
            return IBV_ACCESS_REMOTE_READ;
        case Intent::iwarp_read_destination:
            return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
        case Intent::read_destination:
        case Intent::messages:
            break;
    }
    return IBV_ACCESS_LOCAL_WRITE;
}

std::string describe(std::span<std::byte> memory, Intent intent) {
    const char* purpose = "messages";
    switch (intent) {
        case Intent::exposed_for_read:
            purpose = "the exposed buffer";
            break;
        case Intent::read_destination:
        case Intent::iwarp_read_destination:
            purpose = "the read destination";
            break;
        case Intent::messages:
            break;
    }
    return fmt::format("{} bytes for {}", memory.size(), purpose);
}

}  // namespace

MemoryRegion::MemoryRegion(ibv_pd* pd, std::span<std::byte> memory, Intent intent)
    : memory_(memory),
      mr_(check_pointer(ibv_reg_mr(pd, memory.data(), memory.size(),
                                   static_cast<unsigned int>(access_flags(intent))),
                        {Phase::setup, "ibv_reg_mr", describe(memory, intent)})) {}

}  // namespace rdma_read::rdma
