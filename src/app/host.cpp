// Host name and wall clock.
#include "app/host.hpp"

#include <fmt/chrono.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <ctime>

namespace rdma_read::app {

std::string host_name() {
    std::array<char, HOST_NAME_MAX + 1> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) {
        return "?";
    }
    const std::string whole = name.data();
    return whole.substr(0, whole.find('.'));
}

std::string utc_now() {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::string utc_now_precisely() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(now.tv_sec), now.tv_nsec / 1000);
}

}  // namespace rdma_read::app
