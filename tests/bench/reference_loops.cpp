// A sum as a compiler vectorizes it.
#include "reference_loops.hpp"

namespace rdma_read::bench {

std::uint64_t sum(std::span<const std::uint64_t> words) noexcept {
    std::uint64_t total = 0;
    for (const std::uint64_t word : words) {
        total += word;
    }
    return total;
}

}  // namespace rdma_read::bench
