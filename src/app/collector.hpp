// Gathers one result for every expected reader, also for those that are never heard of.
#pragma once

#include "rdma_read/cluster/communicator.hpp"
#include "rdma_read/verify/result.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace rdma_read::app {

/// The rank that collects the results and reports them.
inline constexpr int kRootRank = 0;

/// Message tags between ranks.
enum class Tag : int { presence = 1, result = 2, stop_serving = 3, server_info = 4 };

/// The root's side of the gather. One thread, that of the MPI session.
class Collector {
  public:
    /// `hosts`: the host names by rank. All references outlive the collector.
    Collector(cluster::Communicator& communicator, const verify::Announcement& announcement,
              const std::vector<std::string>& hosts);

    /// Takes a result that needs no message: the root's own.
    void add(verify::Result result);

    /// Waits until every reader has reported, the deadline passes, or a stop is requested. Calls
    /// `progress` with the numbers of reported and expected readers from time to time.
    void collect(cluster::Wait wait, const std::function<void(std::size_t, std::size_t)>& progress);

    [[nodiscard]] bool complete() const noexcept { return results_.size() == expected_; }

    /// One result for every reader, in the order of ranks; `reason` stands for those that did not
    /// report.
    [[nodiscard]] std::vector<verify::Result> results(verify::Outcome outcome,
                                                      const std::string& reason,
                                                      const std::string& hint) const;

  private:
    void take_messages();

    cluster::Communicator& communicator_;
    const verify::Announcement& announcement_;
    const std::vector<std::string>& hosts_;
    std::size_t expected_;
    std::map<int, verify::Result> results_;
};

}  // namespace rdma_read::app
