// Counts allocations, to show that there are none.
#pragma once

#include <cstddef>

namespace rdma_read {

/// How many times this thread has called operator new, other than under Uncounted.
[[nodiscard]] std::size_t allocation_count() noexcept;

/// While it lives, this thread's allocations do not count: those of what a test puts in the place
/// of a library.
class Uncounted {
  public:
    Uncounted() noexcept;
    ~Uncounted();
    Uncounted(const Uncounted&) = delete;
    Uncounted& operator=(const Uncounted&) = delete;
    Uncounted(Uncounted&&) = delete;
    Uncounted& operator=(Uncounted&&) = delete;
};

}  // namespace rdma_read
