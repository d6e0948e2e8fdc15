// Draws the progress line.
#include "app/progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <string>

namespace rdma_read::app {

namespace {

void draw(const std::string& text) {
    // Progress is a courtesy: nobody is told when it cannot be shown.
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

ProgressLine::ProgressLine(Progress wish)
    : shown_(wish == Progress::always
             || (wish == Progress::automatic && isatty(STDERR_FILENO) == 1)),
      in_place_(isatty(STDERR_FILENO) == 1),
      started_(std::chrono::steady_clock::now()) {}

ProgressLine::~ProgressLine() {
    if (drawn_ && in_place_) {
        draw("\r\033[K");
    }
}

void ProgressLine::show(std::size_t done, std::size_t expected) {
    if (!shown_) {
        return;
    }
    const auto now = std::chrono::steady_clock::now();
    // On a terminal the seconds move; in a file only news are worth a line.
    const bool due =
        done != last_done_ || (in_place_ && now - last_drawn_ >= std::chrono::milliseconds(500));
    if (!due) {
        return;
    }
    last_done_ = done;
    last_drawn_ = now;
    drawn_ = true;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - started_).count();
    const std::string text =
        fmt::format("rdma_read_mpi: {} of {} readers done, {} s", done, expected, seconds);
    draw(in_place_ ? "\r\033[K" + text : text + "\n");
}

}  // namespace rdma_read::app
