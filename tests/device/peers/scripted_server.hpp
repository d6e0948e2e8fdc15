// A server that follows a script instead of the protocol, made of the library's own parts.
#pragma once

#include "rdma_read/rdma/address.hpp"
#include "rdma_read/rdma/wire.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace rdma_read::test {

/// What the server does differently.
struct Script {
    /// Whether connection requests are answered at all.
    bool accepts = true;
    /// Why a connection request is turned away; nothing: it is not.
    std::function<std::optional<rdma::Refusal>(const rdma::Hello&)> objection;
    /// What a reader is sent in the place of the right descriptor; nothing: it waits in vain.
    std::function<std::optional<std::vector<std::byte>>(const rdma::Hello&,
                                                        const rdma::RemoteBuffer&)>
        answer;
    /// Called when the answer to a reader has left.
    std::function<void()> after_answer;
};

class ScriptedServer {
  public:
    /// Listens when it returns. `memory` outlives it. \throws rdma::Error
    ScriptedServer(const rdma::Address& address, std::span<std::byte> memory, Script script);
    ~ScriptedServer();
    ScriptedServer(const ScriptedServer&) = delete;
    ScriptedServer& operator=(const ScriptedServer&) = delete;
    ScriptedServer(ScriptedServer&&) = delete;
    ScriptedServer& operator=(ScriptedServer&&) = delete;

    [[nodiscard]] rdma::Address address() const;

    /// Follows the script until `stop_fd` becomes readable. \throws rdma::Error
    void serve(int stop_fd);

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace rdma_read::test
