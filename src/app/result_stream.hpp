// The program's stdout, kept for the result alone.
#pragma once

#include "rdma_read/rdma/unique_fd.hpp"

#include <string_view>

namespace rdma_read::app {

/// Takes stdout away from everything else in this process: what a library (UCX, for one, logs to
/// stdout) prints from now on goes to stderr, so that a script finds nothing but the result there.
/// Build it first.
class ResultStream {
  public:
    /// Never fails: with a closed stdout, write() does.
    ResultStream();

    /// Writes all of it. \throws std::system_error
    void write(std::string_view text) const;

    [[nodiscard]] bool is_terminal() const noexcept;

  private:
    rdma::UniqueFd out_;
};

}  // namespace rdma_read::app
