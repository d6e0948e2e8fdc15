// What is to be said about the numbers of a finished run: what bounds them, and why not to trust
// them.
#pragma once

#include "app/options.hpp"
#include "rdma_read/verify/report.hpp"

#include <string>
#include <vector>

namespace rdma_read::app {

/// Says for every reader that passed, and each of its sizes, which bound binds. One that does
/// becomes a note under the reader in the table; the others are in the JSON report only.
void explain_bounds(verify::Report& report, const Options& options);

/// Adds to the readers' own warnings those that can be seen only where all are known: readers of
/// one host that have too few cores.
void warn_of_shared_cores(verify::Report& report, const Options& options);

/// All warnings of a report, each text once, with the ranks that it is of in front: "ranks 1-3: …".
[[nodiscard]] std::vector<std::string> collected_warnings(const verify::Report& report);

}  // namespace rdma_read::app
