// Descriptors that librdmacm and libibverbs opened are made non-blocking here.
#include "rdma_read/rdma/unique_fd.hpp"

#include "rdma_read/rdma/error.hpp"

#include <fcntl.h>

namespace rdma_read::rdma {

void make_non_blocking(int fd, const char* what) {
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        throw_system_error({Phase::setup, "fcntl", what}, -1);
    }
}

}  // namespace rdma_read::rdma
