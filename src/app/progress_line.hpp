// The line on stderr that tells a person how far a run is.
#pragma once

#include "app/options.hpp"

#include <chrono>
#include <cstddef>

namespace rdma_read::app {

/// Shows "2 of 7 readers done, 3 s" in place; nothing at all where it is not wanted. The destructor
/// clears the line.
class ProgressLine {
  public:
    explicit ProgressLine(Progress wish);
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    ProgressLine(ProgressLine&&) = delete;
    ProgressLine& operator=(ProgressLine&&) = delete;
    ~ProgressLine();

    /// Draws when something changed, at most a few times a second.
    void show(std::size_t done, std::size_t expected);

  private:
    bool shown_;
    bool in_place_;
    bool drawn_ = false;
    std::size_t last_done_ = ~std::size_t{0};
    std::chrono::steady_clock::time_point started_;
    std::chrono::steady_clock::time_point last_drawn_;
};

}  // namespace rdma_read::app
