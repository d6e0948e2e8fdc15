// The first thing that ranks do together: say where they are and that they want the same.
#pragma once

#include "app/options.hpp"
#include "rdma_read/cluster/communicator.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace rdma_read::app {

/// What the root knows after the check-in, and what all ranks do.
struct CheckIn {
    /// Host names by rank; filled at the root only. Empty for a rank that had not come when the
    /// root was told to stop or its patience was at an end.
    std::vector<std::string> hosts;
    /// Nothing: go on. Else the exit code with which the run ends here.
    std::optional<int> exit_code;
};

/// Collective. Every rank tells the root its host and its options; the root decides whether the run
/// makes sense and tells all. Without options (a command line that was answered at once, by its
/// rank, with `early_code` as exit code) or with options that differ between ranks (two programs in
/// one job) there is no run: readers that read something else than the server serves would report
/// on nothing. What only the root can find out, such as a report that cannot be written, is found
/// here too, and said by the root on stderr.
///
/// Once `stop` is set or `patience` is over the root waits for nobody any more and returns what it
/// has heard; the job must be aborted then, after the report. The other ranks go on and leave that
/// to it, and wait a little longer than the root does: a reader that is told to stop alone shall
/// not keep the others from reading.
///
/// \throws std::runtime_error if the ranks do not come together in time and this one has no report
/// to make of it; the job must be aborted then
[[nodiscard]] CheckIn check_in(cluster::Communicator& communicator, const Options* options,
                               int early_code, const std::atomic<bool>& stop,
                               std::chrono::seconds patience);

}  // namespace rdma_read::app
