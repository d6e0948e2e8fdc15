// Says who it is under MPI.
#include "rdma_read/cluster/communicator.hpp"
#include "rdma_read/cluster/mpi_session.hpp"

#include <cstdio>

int main() {
    rdma_read::cluster::MpiSession session;
    const rdma_read::cluster::Communicator world(session);
    std::printf("rank %d of %d\n", world.rank(), world.size());
}
