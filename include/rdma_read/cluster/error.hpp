// The one exception of the cluster leaf: an MPI call that failed.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace rdma_read::cluster {

/// A failed MPI call, or a message that breaks this library's own bounds. what() names the call and
/// says the cause in MPI's words.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;

    /// The error of `call` (its C name, for example "MPI_Isend") which returned `code`.
    /// Needs an initialised MPI for MPI's text; falls back to the bare number.
    static Error from_code(std::string_view call, int code);
};

}  // namespace rdma_read::cluster
