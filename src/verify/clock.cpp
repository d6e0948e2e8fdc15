// Measures the clock that times the reads.
#include "rdma_read/verify/clock.hpp"

namespace rdma_read::verify {

ClockCost clock_cost() {
    return clock_cost_of([]() -> std::chrono::nanoseconds {
        return std::chrono::steady_clock::now().time_since_epoch();
    });
}

}  // namespace rdma_read::verify
