// How somebody else, a signal handler for one, asks a wait to end before its deadline.
#pragma once

#include <atomic>

namespace rdma_read::rdma {

/// A request to stop that may be made at any time, from any thread or from a signal handler. A
/// value that owns neither flag nor descriptor; both must outlive whoever holds it. As constructed:
/// a request that nobody makes.
struct StopRequest {
    const std::atomic<bool>* flag = nullptr;  ///< becomes true; set before `fd` becomes readable
    int fd = -1;  ///< becomes readable and stays so, to wake who sleeps; -1: none

    [[nodiscard]] bool made() const noexcept {
        return flag != nullptr && flag->load(std::memory_order_relaxed);
    }
};

}  // namespace rdma_read::rdma
