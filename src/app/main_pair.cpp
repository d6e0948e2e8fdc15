// rdma_read: an RDMA Read between two processes, without MPI.
#include "app/pair.hpp"
#include "app/say.hpp"
#include "app/standard_files.hpp"

#include <exception>

int main(int argc, char** argv) {
    rdma_read::app::fill_closed_standard_files();
    try {
        return rdma_read::app::rdma_read_main(argc, argv);
    } catch (const std::exception& error) {
        rdma_read::app::say("rdma_read", error.what());
        return 1;
    }
}
