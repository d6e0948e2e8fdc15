// The checker of the MPI convention: a call returns MPI_SUCCESS or an error code.
#pragma once

#include "rdma_read/cluster/error.hpp"

#include <mpi.h>

#include <string>
#include <string_view>

namespace rdma_read::cluster {

/// MPI's text for an error code, in one line.
std::string error_text(int code);

inline void check(std::string_view call, int code) {
    if (code != MPI_SUCCESS) {
        throw Error::from_code(call, code);
    }
}

}  // namespace rdma_read::cluster
