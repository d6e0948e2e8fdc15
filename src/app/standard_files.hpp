// Standard input, output and error, as a program may rely on them.
#pragma once

namespace rdma_read::app {

/// Puts something in the place of each standard descriptor that the caller has closed, so that no
/// file of ours gets its number: what is said on stderr would go into it. In the place of a closed
/// stdout stands what cannot be written to, since a result that nobody receives is a failure.
/// Call it before anything else is opened.
void fill_closed_standard_files() noexcept;

}  // namespace rdma_read::app
