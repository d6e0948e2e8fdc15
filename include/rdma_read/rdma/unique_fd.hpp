// A file descriptor that is closed exactly once.
#pragma once

#include <unistd.h>

#include <utility>

namespace rdma_read::rdma {

/// Owns a file descriptor. Movable, not copyable; not thread-safe.
class UniqueFd {
  public:
    UniqueFd() noexcept = default;
    explicit UniqueFd(int fd) noexcept : fd_(fd) {}
    UniqueFd(const UniqueFd&) = delete;
    UniqueFd& operator=(const UniqueFd&) = delete;
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        if (this != &other) {
            reset(std::exchange(other.fd_, -1));
        }
        return *this;
    }
    ~UniqueFd() { reset(); }

    [[nodiscard]] int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }

    void reset(int fd = -1) noexcept {
        // close(2) is not retried on EINTR: on Linux the descriptor is gone either way.
        if (fd_ >= 0) {
            ::close(fd_);
        }
        fd_ = fd;
    }

  private:
    int fd_ = -1;
};

/// Makes a descriptor that this library did not open non-blocking; throws Error.
void make_non_blocking(int fd, const char* what);

}  // namespace rdma_read::rdma
