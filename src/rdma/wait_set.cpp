// Watches descriptors with epoll, and the time with a timer among them.
#include "rdma_read/rdma/wait_set.hpp"

#include "rdma_read/rdma/error.hpp"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace rdma_read::rdma {

WaitSet::WaitSet()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
    if (!epoll_ || !timer_) {
        throw_system_error({Phase::setup, epoll_ ? "timerfd_create" : "epoll_create1", ""}, -1);
    }
    add(timer_.get());
}

void WaitSet::add(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    check_minus_one(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event),
                    {Phase::setup, "epoll_ctl", "EPOLL_CTL_ADD"});
}

void WaitSet::set_timer(Deadline deadline) {
    if (timer_set_to_ == deadline.at()) {
        return;
    }
    // The steady clock is CLOCK_MONOTONIC; a time of 0 would switch the timer off.
    const auto at = std::max(deadline.at().time_since_epoch(), Deadline::Clock::duration(1));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at);
    itimerspec time{};
    time.it_value.tv_sec = seconds.count();
    time.it_value.tv_nsec = std::chrono::nanoseconds(at - seconds).count();
    check_minus_one(timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &time, nullptr),
                    {Phase::read, "timerfd_settime", ""});
    timer_set_to_ = deadline.at();
}

std::span<const int> WaitSet::wait(Deadline deadline) {
    set_timer(deadline);
    std::array<epoll_event, kMostAtOnce> events{};
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    if (count < 0) {
        if (errno != EINTR) {
            throw_system_error({Phase::read, "epoll_wait", ""}, -1);
        }
        return {};
    }
    std::size_t found = 0;
    for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(count))) {
        if (event.data.fd != timer_.get()) {
            readable_.at(found++) = event.data.fd;
        }
    }
    return std::span(readable_).first(found);
}

}  // namespace rdma_read::rdma
