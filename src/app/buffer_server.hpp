// The server of a run: chooses its address, fills its buffer, and serves it on a thread of its own.
#pragma once

#include "app/roles.hpp"
#include "rdma_read/rdma/buffer.hpp"
#include "rdma_read/rdma/device.hpp"
#include "rdma_read/rdma/read_server.hpp"

#include <exception>
#include <thread>

namespace rdma_read::app {

/// The device port and address that the options ask for, or the automatic choice. With several
/// candidates the one taken is said on stderr. \throws rdma::Error
[[nodiscard]] rdma::DevicePort choose_server_port(const Options& options);

/// Serves the run's payload until finish() or destruction.
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
    rdma::Buffer memory_;
    rdma::ReadServer server_;
    verify::Announcement announcement_;
    rdma::ServeSummary summary_;
    std::thread thread_;
};

/// A buffer as long as the options say, filled with the payload of this run and server.
/// \throws rdma::Error
[[nodiscard]] rdma::Buffer filled_buffer(const ServerTask& task);

}  // namespace rdma_read::app
