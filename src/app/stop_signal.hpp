// Turns "please stop" signals into a flag and a readable file descriptor.
#pragma once

#include "rdma_read/rdma/stop_request.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <vector>

namespace rdma_read::app {

/// While it lives, SIGINT, SIGTERM and SIGHUP request an orderly stop, and SIGPIPE is ignored (a
/// closed stdout then shows as a failed write). A signal that was ignored before stays ignored, as
/// under nohup. The destructor restores the former handlers.
///
/// The same signal again, later than kSameRequest after the first, has its default effect and ends
/// the process: a program that is stuck can be killed from the keyboard. Within that time it counts
/// as the same request, because some senders signal both a process and its group.
///
/// At most one at a time, made and ended by one thread. A signal may arrive on any thread, and the
/// flag may be read from any.
class StopSignal {
  public:
    static constexpr std::chrono::milliseconds kSameRequest{500};

    /// \throws std::logic_error if there is one already, std::system_error if a system call fails
    StopSignal();
    ~StopSignal();
    StopSignal(const StopSignal&) = delete;
    StopSignal& operator=(const StopSignal&) = delete;
    StopSignal(StopSignal&&) = delete;
    StopSignal& operator=(StopSignal&&) = delete;

    /// True from the first stop signal on. Valid until the process ends.
    [[nodiscard]] const std::atomic<bool>& flag() const noexcept;
    [[nodiscard]] bool requested() const noexcept { return flag().load(); }
    /// The signal that came first, 0 if none did.
    [[nodiscard]] int signal_number() const noexcept;
    /// Becomes readable with the first stop signal and stays so: poll it, do not read it.
    /// Owned by this object.
    [[nodiscard]] int fd() const noexcept { return fd_; }
    /// Both, for the waits of the rdma leaf.
    [[nodiscard]] rdma::StopRequest request() const noexcept { return {&flag(), fd_}; }

  private:
    struct Saved {
        int signal_number;
        struct sigaction action;
    };

    void restore() noexcept;

    int fd_ = -1;
    std::vector<Saved> saved_;
};

}  // namespace rdma_read::app
