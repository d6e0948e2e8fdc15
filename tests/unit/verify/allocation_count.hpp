// Counts allocations, to show that there are none.
#pragma once

#include <cstddef>

namespace rdma_read::verify {

/// How many times this thread has called operator new.
[[nodiscard]] std::size_t allocation_count() noexcept;

}  // namespace rdma_read::verify
