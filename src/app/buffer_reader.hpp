// The reader of a run: connects to the server, reads every size, and checks what it reads.
#pragma once

#include "app/roles.hpp"

namespace rdma_read::app {

/// Reads as the task says. Every failure is in the result; throws nothing but std::bad_alloc.
[[nodiscard]] verify::Result read_buffer(const ReaderTask& task);

}  // namespace rdma_read::app
