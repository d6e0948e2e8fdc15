// Lines on stderr.
#include "app/say.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace rdma_read::app {

void say(std::string_view program, std::string_view text) noexcept {
    try {
        std::string line = fmt::format("{}: {}", program, text);
        std::ranges::replace_if(
            line, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
        line += '\n';
        // A closed stderr leaves nobody to tell.
        [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
    } catch (const std::exception&) {
        return;
    }
}

std::string with_hint(std::string_view error, std::string_view hint) {
    return hint.empty() ? std::string(error) : fmt::format("{}; {}", error, hint);
}

}  // namespace rdma_read::app
