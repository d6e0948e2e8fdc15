// Reads the memory of an "rdma_read -s" on this host and prints the text in it. Argument: the
// server's port. Exit code: 3 without a device.
#include "rdma_read/rdma/buffer.hpp"
#include "rdma_read/rdma/device.hpp"
#include "rdma_read/rdma/error.hpp"
#include "rdma_read/rdma/read_client.hpp"
#include "rdma_read/rdma/read_stream.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>

using namespace std::chrono_literals;
namespace rdma = rdma_read::rdma;

namespace {

class WholeBuffer : public rdma::ReadSink {
  public:
    explicit WholeBuffer(std::span<std::byte> memory) : memory_(memory) {}
    rdma::ReadRequest next(std::uint32_t /*slot*/) override { return {0, memory_}; }
    void finished(std::uint32_t /*slot*/) override {}

  private:
    std::span<std::byte> memory_;
};

void read_from(std::uint16_t port) {
    const auto deadline = rdma::Deadline::after(20s);
    rdma::ReadClientConfig config;
    {
        const rdma::EventChannel channel;
        const auto chosen = rdma::choose_port(rdma::list_device_ports(channel), {});
        config.server = chosen.port.address.with_port(port);
    }
    // The memory outlives the client, which registers it.
    std::optional<rdma::Buffer> memory;
    rdma::ReadClient client(config, deadline);
    memory.emplace(client.remote().length);
    client.set_destination(memory->bytes());
    WholeBuffer sink(memory->bytes());
    const auto summary = rdma::ReadStream(client).run_one(sink, deadline);
    client.disconnect(deadline);
    if (summary.failure) {
        throw rdma::Error(summary.failure->failure, rdma::Phase::read, summary.failure->message);
    }
    std::printf("%.*s\n", static_cast<int>(memory->bytes().size()),
                reinterpret_cast<const char*>(memory->bytes().data()));
}

}  // namespace

int main(int argc, char** argv) {
    try {
        read_from(static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0));
        return 0;
    } catch (const rdma::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return error.failure() == rdma::Failure::no_device ? 3 : 1;
    }
}
