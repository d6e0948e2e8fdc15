// Moves stdout aside.
#include "app/result_stream.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace rdma_read::app {

ResultStream::ResultStream() : out_(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) {
    if (out_) {
        std::fflush(stdout);
        dup2(STDERR_FILENO, STDOUT_FILENO);
    }
}

void ResultStream::write(std::string_view text) const {
    while (!text.empty()) {
        const ssize_t written = ::write(out_.get(), text.data(), text.size());
        if (written < 0) {
            if (errno == EINTR) {
                continue;
            }
            throw std::system_error(errno, std::system_category(), "write to stdout");
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

bool ResultStream::is_terminal() const noexcept {
    return isatty(out_.get()) == 1;
}

}  // namespace rdma_read::app
