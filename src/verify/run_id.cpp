// Draws and abbreviates run ids.
#include "rdma_read/verify/run_id.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <system_error>

namespace rdma_read::verify {

RunId random_run_id() {
    RunId run{};
    std::size_t drawn = 0;
    while (drawn < run.size()) {
        const auto got = ::getrandom(run.data() + drawn, run.size() - drawn, 0);
        if (got >= 0) {
            drawn += static_cast<std::size_t>(got);
        } else if (errno != EINTR) {
            throw std::system_error(errno, std::generic_category(), "getrandom for the run id");
        }
    }
    return run;
}

std::string short_name(const RunId& run) {
    return fmt::format("{:02x}{:02x}{:02x}{:02x}", run[0], run[1], run[2], run[3]);
}

}  // namespace rdma_read::verify
