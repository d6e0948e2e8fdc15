// The server of a run: chooses its address, fills its buffer, and serves it on a thread of its own.
#pragma once

#include "app/roles.hpp"
#include "rdma_read/rdma/buffer.hpp"
#include "rdma_read/rdma/device.hpp"
#include "rdma_read/rdma/read_server.hpp"

#include <mutex>
#include <optional>
#include <thread>

namespace rdma_read::app {

/// The device port and address that the options ask for, or the automatic choice. With several
/// candidates the one taken is said on stderr. \throws rdma::Error
[[nodiscard]] rdma::DevicePort choose_server_port(const Options& options);

/// Serves the run's payload until finish() or destruction. A server that fails says why on stderr
/// and lets go of device and connections at once, so that its readers see the end.
class BufferServer : public Server {
  public:
    /// Listens when it returns. `memory` is exposed as it is: see filled_buffer().
    /// \throws rdma::Error
    BufferServer(const ServerTask& task, rdma::Buffer memory);
    ~BufferServer() override;
    BufferServer(const BufferServer&) = delete;
    BufferServer& operator=(const BufferServer&) = delete;
    BufferServer(BufferServer&&) = delete;
    BufferServer& operator=(BufferServer&&) = delete;

    [[nodiscard]] verify::Announcement announcement() const override { return announcement_; }
    [[nodiscard]] verify::ServerInfo finish() override;

  private:
    void serve(int rank);
    void end();

    rdma::Buffer memory_;
    std::mutex ending_;                       // guards that there is a server
    std::optional<rdma::ReadServer> server_;  // until it fails
    verify::Announcement announcement_;
    rdma::ServeSummary summary_;
    std::thread thread_;
};

/// A buffer as long as the options say, filled with the payload of this run and server.
/// \throws rdma::Error
[[nodiscard]] rdma::Buffer filled_buffer(const ServerTask& task);

}  // namespace rdma_read::app
