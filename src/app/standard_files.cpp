// Fills the gaps among descriptors 0 to 2.
#include "app/standard_files.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace rdma_read::app {

void fill_closed_standard_files() noexcept {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
        if (fcntl(fd, F_GETFD) >= 0) {
            continue;
        }
        // The lowest free number is this one, since those below are taken by now.
        const int flags = fd == STDERR_FILENO ? O_WRONLY : O_RDONLY;
        if (open("/dev/null", flags) != fd) {
            return;
        }
    }
}

}  // namespace rdma_read::app
