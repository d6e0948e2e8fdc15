// The two parts a rank can play in a run: serving and reading.
#pragma once

#include "app/options.hpp"
#include "rdma_read/rdma/stop_request.hpp"
#include "rdma_read/verify/result.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace rdma_read::app {

/// What a server is told before it starts.
struct ServerTask {
    const Options& options;
    verify::RunId run;
    int rank;
    int ranks;
    std::string host;
};

/// A server that runs beside the rank's main thread.
class Server {
  public:
    Server() = default;
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    Server(Server&&) = delete;
    Server& operator=(Server&&) = delete;
    virtual ~Server() = default;

    /// What all ranks are told: where it listens.
    [[nodiscard]] virtual verify::Announcement announcement() const = 0;
    /// Stops serving and says how it went. Called once.
    [[nodiscard]] virtual verify::ServerInfo finish() = 0;
};

/// What a reader is told before it starts.
struct ReaderTask {
    const Options& options;
    const verify::Announcement& announcement;
    int rank;
    int ranks;
    std::string host;
    rdma::StopRequest stop;
};

/// Who plays the parts, and how patiently. Tests put faulty peers in the place of one and leave the
/// rest real.
struct Roles {
    /// Starts serving before it returns. \throws rdma::Error
    std::function<std::unique_ptr<Server>(const ServerTask&)> serve;
    /// Connects, reads and checks within the options' timeout or until it is asked to stop; every
    /// failure is in the result.
    std::function<verify::Result(const ReaderTask&)> read;
    /// How long the root waits for the other ranks to come together. MPI_Init has done so before,
    /// so what is left is a moment's work on a busy host.
    std::chrono::seconds patience{60};
};

/// The real parts.
[[nodiscard]] Roles real_roles();

}  // namespace rdma_read::app
