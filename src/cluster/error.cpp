// The one exception of the cluster leaf: an MPI call that failed.
#include "rdma_read/cluster/error.hpp"

#include "mpi_call.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <array>

namespace rdma_read::cluster {

std::string error_text(int code) {
    int initialized = 0;
    int finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    if (initialized == 0 || finalized != 0
        || MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) {
        return fmt::format("MPI error {}", code);
    }
    std::string line(text.data(), static_cast<std::size_t>(length));
    for (char& c : line) {
        c = c == '\n' ? ' ' : c;  // the caller's message is one line
    }
    return line;
}

Error Error::from_code(std::string_view call, int code) {
    Error error(fmt::format("{}: {}", call, error_text(code)));
    return error;
}

}  // namespace rdma_read::cluster
