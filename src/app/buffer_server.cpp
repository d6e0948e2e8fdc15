// Serves the payload of a run.
#include "app/buffer_server.hpp"

#include "app/say.hpp"
#include "app/self_test.hpp"
#include "rdma_read/rdma/error.hpp"
#include "rdma_read/rdma/event_channel.hpp"
#include "rdma_read/verify/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace rdma_read::app {

namespace {

rdma::ReadServerConfig server_config(const ServerTask& task) {
    rdma::ReadServerConfig config;
    config.address = choose_server_port(task.options).address.with_port(task.options.port);
    config.run = task.run;
    config.ranks = static_cast<std::uint32_t>(task.ranks);
    config.queue_pairs_per_rank =
        task.options.qps + (task.options.self_test ? kThrowAwayQueuePairs : 0);
    config.max_connections = static_cast<std::uint32_t>(task.ranks) * config.queue_pairs_per_rank;
    // No bound to those who have not spoken yet: all readers come at once, each rank has its place,
    // and who does not know the run has none.
    config.max_half_open = 0;
    config.concurrency = task.options.concurrency;
    config.turn_limit = std::chrono::ceil<std::chrono::milliseconds>(task.options.turn());
    // The descriptor is the start signal: what is measured is the load of all of them.
    const auto readers = static_cast<std::uint32_t>(task.ranks) - 1;
    config.start_together =
        config.concurrency == 0 ? readers : std::min(readers, config.concurrency);
    return config;
}

}  // namespace

rdma::DevicePort choose_server_port(const Options& options) {
    rdma::PortWish wish;
    if (options.server_ip) {
        wish.address = rdma::Address::parse(*options.server_ip);
    }
    wish.interface = options.interface.value_or("");
    if (options.device) {
        wish.device = options.device->name;
        if (options.device->port_num) {
            wish.port_num = static_cast<std::uint8_t>(*options.device->port_num);
        }
    }
    const rdma::EventChannel channel;
    rdma::PortChoice choice = rdma::choose_port(rdma::list_device_ports(channel), wish);
    if (!choice.others.empty()) {
        say(kMpiProgram, fmt::format("the server listens on {}; also usable: {}",
                                     rdma::describe({choice.port}), rdma::describe(choice.others)));
    }
    return std::move(choice.port);
}

rdma::Buffer filled_buffer(const ServerTask& task) {
    rdma::Buffer memory(task.options.buffer_bytes(), task.options.pages());
    verify::Pattern(task.run, static_cast<std::uint32_t>(task.rank)).fill(memory.bytes());
    return memory;
}

BufferServer::BufferServer(const ServerTask& task, rdma::Buffer memory)
    : memory_(std::move(memory)), server_(std::in_place, server_config(task), memory_.bytes()) {
    announcement_.usable = true;
    announcement_.run = task.run;
    announcement_.server_rank = task.rank;
    announcement_.buffer_bytes = memory_.bytes().size();
    verify::ServerInfo& info = announcement_.server;
    info.rank = task.rank;
    info.host = task.host;
    info.address = server_->address().to_string();
    info.port = server_->address().port();
    if (const auto& port = server_->port()) {
        info.device = port->device;
        info.port_num = port->port_num;
        info.link_layer = port->link_layer;
        if (port->mtu > 0) {
            info.mtu = port->mtu;
        }
        if (port->rate_gbps > 0) {
            info.rate_gbps = port->rate_gbps;
        }
    }
    server_->on_notice([rank = task.rank](const std::string& text) {
        say(kMpiProgram, fmt::format("server (rank {}): {}", rank, text));
    });
    thread_ = std::thread([this, rank = task.rank] { serve(rank); });
}

void BufferServer::serve(int rank) {
    try {
        summary_ = server_->serve();
    } catch (const std::exception& error) {
        // The readers notice by themselves; this is the cause.
        say(kMpiProgram, fmt::format("server (rank {}) stopped: {}", rank, error.what()));
        summary_ = server_->summary();
        // Its end is theirs: who waits for the descriptor would wait out the whole deadline.
        const std::scoped_lock lock(ending_);
        server_.reset();
    }
}

void BufferServer::end() {
    {
        const std::scoped_lock lock(ending_);
        if (server_) {
            server_->stop();
        }
    }
    thread_.join();
}

BufferServer::~BufferServer() {
    if (thread_.joinable()) {
        end();
    }
}

verify::ServerInfo BufferServer::finish() {
    end();
    verify::ServerInfo info = announcement_.server;
    info.cpu_s_while_serving = summary_.cpu_seconds;
    info.serving_s = summary_.seconds;
    info.connections = summary_.connections;
    return info;
}

}  // namespace rdma_read::app
