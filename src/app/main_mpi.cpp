// rdma_read_mpi: verifies RDMA Read between the ranks of an MPI job.
#include "app/say.hpp"
#include "app/standard_files.hpp"
#include "app/star.hpp"

#include <exception>

int main(int argc, char** argv) {
    rdma_read::app::fill_closed_standard_files();
    try {
        return rdma_read::app::rdma_read_mpi_main(argc, argv, rdma_read::app::real_roles());
    } catch (const std::exception& error) {
        rdma_read::app::say("rdma_read_mpi", error.what());
        return 1;
    }
}
