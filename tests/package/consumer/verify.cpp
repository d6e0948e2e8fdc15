// Fills memory with the payload and finds the one byte that was changed since.
#include "rdma_read/verify/pattern.hpp"

#include <cstddef>
#include <vector>

int main() {
    const rdma_read::verify::Pattern pattern(rdma_read::verify::RunId{}, 0);
    std::vector<std::byte> memory(4096);
    pattern.fill(memory);
    const bool right = pattern.matches(memory, 0);
    memory.back() ^= std::byte{1};
    return right && !pattern.matches(memory, 0) ? 0 : 1;
}
