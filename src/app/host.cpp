// Host name and wall clock.
#include "app/host.hpp"

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
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    std::array<char, 32> text{};
    const std::size_t length =
        std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return {text.data(), length};
}

}  // namespace rdma_read::app
