// A star run: every rank but the server's reads from the server; rank 0 collects and reports.
#pragma once

#include "app/options.hpp"
#include "app/result_stream.hpp"
#include "app/roles.hpp"
#include "app/stop_signal.hpp"
#include "rdma_read/cluster/communicator.hpp"
#include "rdma_read/cluster/launch_environment.hpp"
#include "rdma_read/cluster/mpi_session.hpp"

#include <string>
#include <vector>

namespace rdma_read::app {

/// What all parts of a run share.
struct RunContext {
    const Options& options;
    const cluster::LaunchEnvironment& launch;
    cluster::MpiSession& session;
    const StopSignal& stop;
    cluster::Communicator& communicator;
    const ResultStream& out;
    const std::vector<std::string>& hosts;  ///< by rank, at the root; none elsewhere
    Roles roles;
};

/// Plays this rank's part from the first message to the report, and returns its exit code (README,
/// "Exit codes"). Only the root's differs from 0, so that the launcher says it once. Ends the whole
/// job instead of returning when ranks are missing at the end.
[[nodiscard]] int run_star(const RunContext& run);

/// main() of rdma_read_mpi, with other roles for tests.
[[nodiscard]] int rdma_read_mpi_main(int argc, const char* const* argv, const Roles& roles);

}  // namespace rdma_read::app
