// Turns "please stop" signals into a flag and a readable file descriptor.
#include "app/stop_signal.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <stdexcept>
#include <system_error>

namespace rdma_read::app {
namespace {

constexpr std::array kStopSignals{SIGINT, SIGTERM, SIGHUP};

// What the handler touches: lock-free atomics, the only shared state that a handler may use.
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free
              && std::atomic<std::int64_t>::is_always_lock_free);
std::atomic<bool> in_use{false};
std::atomic<bool> stop_requested{false};
std::atomic<int> first_signal{0};
std::atomic<int> wake_fd{-1};
std::array<std::atomic<std::int64_t>, kStopSignals.size()> first_at_ns{};  // 0: not yet

std::int64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);  // async-signal-safe, signal-safety(7)
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Lets the default effect of a signal happen once the handler has returned.
void give_in(int signal_number) {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    sigaction(signal_number, &action, nullptr);
    raise(signal_number);
}

extern "C" void on_stop_signal(int signal_number) {
    const int saved_errno = errno;
    constexpr std::int64_t kSameRequestNs =
        std::chrono::nanoseconds(StopSignal::kSameRequest).count();
    for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
        if (kStopSignals[i] != signal_number) {
            continue;
        }
        const std::int64_t now = now_ns();
        std::int64_t first = 0;
        if (!first_at_ns[i].compare_exchange_strong(first, now) && now - first > kSameRequestNs) {
            give_in(signal_number);
        }
    }
    int none = 0;
    first_signal.compare_exchange_strong(none, signal_number);
    stop_requested.store(true);
    const std::uint64_t one = 1;
    // It can only fail when the counter is full, and then it is readable already.
    [[maybe_unused]] const auto written = write(wake_fd.load(), &one, sizeof one);
    errno = saved_errno;
}

std::system_error failed(const char* call) {
    return {errno, std::generic_category(), call};
}

}  // namespace

StopSignal::StopSignal() {
    if (in_use.exchange(true)) {
        throw std::logic_error("StopSignal: there is one already");
    }
    fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd_ < 0) {
        in_use.store(false);
        throw failed("eventfd");
    }
    stop_requested.store(false);
    first_signal.store(0);
    for (auto& at : first_at_ns) {
        at.store(0);
    }
    wake_fd.store(fd_);
    try {
        saved_.reserve(kStopSignals.size() + 1);
        const auto install = [this](int signal_number, void (*handler)(int)) {
            struct sigaction action {};
            action.sa_handler = handler;
            sigfillset(&action.sa_mask);
            action.sa_flags = SA_RESTART;
            Saved saved{signal_number, {}};
            if (sigaction(signal_number, &action, &saved.action) != 0) {
                throw failed("sigaction");
            }
            if (saved.action.sa_handler == SIG_IGN) {
                // Whoever started this process, nohup for one, wants it to live through the signal.
                sigaction(signal_number, &saved.action, nullptr);
                return;
            }
            saved_.push_back(saved);
        };
        for (const int signal_number : kStopSignals) {
            install(signal_number, on_stop_signal);
        }
        install(SIGPIPE, SIG_IGN);
    } catch (...) {
        restore();
        throw;
    }
}

StopSignal::~StopSignal() {
    restore();
}

void StopSignal::restore() noexcept {
    for (const auto& saved : saved_) {
        sigaction(saved.signal_number, &saved.action, nullptr);
    }
    wake_fd.store(-1);
    close(fd_);
    in_use.store(false);
}

// Members although the state is static: without an object no handler is installed.
// NOLINTBEGIN(readability-convert-member-functions-to-static)
const std::atomic<bool>& StopSignal::flag() const noexcept {
    return stop_requested;
}

int StopSignal::signal_number() const noexcept {
    return first_signal.load();
}
// NOLINTEND(readability-convert-member-functions-to-static)

}  // namespace rdma_read::app
