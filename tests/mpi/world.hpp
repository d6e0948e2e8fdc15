// What the tests on several ranks share.
#pragma once

#include "rdma_read/cluster/communicator.hpp"
#include "rdma_read/cluster/mpi_session.hpp"

#include <chrono>

namespace rdma_read::cluster {

/// The session and the communicator of the test program; valid while the tests run.
MpiSession& session();
Communicator& world();

/// A wait that only ends early when something is broken.
inline Wait long_enough() {
    return Wait::lasting(std::chrono::seconds(30));
}

}  // namespace rdma_read::cluster
