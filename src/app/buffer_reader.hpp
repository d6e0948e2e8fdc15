// The reader of a run: connects to the server, reads every size, and checks what it reads.
#pragma once

#include "app/roles.hpp"
#include "app/self_test.hpp"

namespace rdma_read::app {

/// Reads as the task says, and looks at what it reads with `check`, in the self-test as in the run.
/// Every failure is in the result; throws nothing but std::bad_alloc.
[[nodiscard]] verify::Result read_buffer(const ReaderTask& task, ReadCheck check);

}  // namespace rdma_read::app
