// The two-process form: one server, one client, a text, and no MPI.
#pragma once

#include "app/pair_options.hpp"

namespace rdma_read::app {

/// Serves the text until the wished number of clients has come and gone, or a signal stops it.
/// Returns the exit code. \throws rdma::Error
[[nodiscard]] int serve_text(const PairServerOptions& options);

/// Reads the text and prints it. Returns the exit code. \throws rdma::Error
[[nodiscard]] int read_text(const PairClientOptions& options);

/// main() of rdma_read.
[[nodiscard]] int rdma_read_main(int argc, const char* const* argv);

}  // namespace rdma_read::app
