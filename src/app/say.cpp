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
        print_to_stderr(line);
    } catch (const std::exception&) {
        return;
    }
}

void print_to_stderr(std::string_view text) noexcept {
    // A closed stderr leaves nobody to tell.
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

std::string with_hint(std::string_view error, std::string_view hint) {
    return hint.empty() ? std::string(error) : fmt::format("{}; {}", error, hint);
}

}  // namespace rdma_read::app
