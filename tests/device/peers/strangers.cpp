// Connects to a server again and again without knowing its run, and expects to be refused each
// time: strangers ADDRESS PORT [--count N] [--silent N] [--wait SECONDS].
#include "rdma_read/rdma/address.hpp"
#include "rdma_read/rdma/cm_id.hpp"
#include "rdma_read/rdma/error.hpp"
#include "rdma_read/rdma/event_channel.hpp"
#include "rdma_read/rdma/wire.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

namespace rdma_read::test {
namespace {

constexpr auto kAnswerTime = std::chrono::seconds(10);
// Between two looks whether somebody listens: seldom, since a look takes the server's time.
constexpr auto kPause = std::chrono::milliseconds(250);
// InfiniBand Architecture Specification, Rejection Reason 8, Invalid Service ID: nobody listens.
constexpr int kNobodyListens = 8;

struct Arguments {
    std::string address;
    std::uint16_t port = 0;
    std::uint32_t count = 500;
    std::uint32_t silent = 0;
    std::uint32_t wait_s = 0;
};

class Stranger {
  public:
    Stranger(const rdma::EventChannel& channel, const rdma::Address& server)
        : server_(server), id_(channel) {}

    // Asks for a connection with these bytes; returns what the server says, which is to be a
    // refusal.
    std::string ask(rdma::EventChannel& channel, std::span<const std::byte> said) {
        const auto deadline = rdma::Deadline::after(kAnswerTime);
        const auto await = [&](rdma_cm_event_type wanted) {
            auto event = channel.next(deadline, rdma::Phase::connect, "the server");
            if (event.type != static_cast<decltype(event.type)>(wanted)) {
                throw std::runtime_error("not refused: " + rdma::describe(event));
            }
            return event;
        };
        id_.resolve_address(server_, nullptr, kAnswerTime);
        (void)await(RDMA_CM_EVENT_ADDR_RESOLVED);
        id_.resolve_route(server_, kAnswerTime);
        (void)await(RDMA_CM_EVENT_ROUTE_RESOLVED);
        rdma::ConnectionParameters parameters;
        parameters.initiator_depth = 1;
        parameters.private_data = said;
        id_.connect(parameters, server_);
        const auto refused = await(RDMA_CM_EVENT_REJECTED);
        if (refused.status == kNobodyListens) {
            throw std::runtime_error("nobody listens there");
        }
        const auto reason = rdma::decode_refusal(refused.private_data());
        return reason ? std::string(rdma::to_string(*reason)) : rdma::describe(refused);
    }

  private:
    rdma::Address server_;
    rdma::CmId id_;
};

// Says that it waits, if there is time to wait for a server, and comes again and again until one is
// there. Returns how many were refused.
std::uint32_t wait_for_server(const Arguments& arguments, rdma::EventChannel& channel,
                              const rdma::Address& server) {
    if (arguments.wait_s == 0) {
        return 0;
    }
    fmt::print(stderr, "waiting\n");
    const auto limit = rdma::Deadline::after(std::chrono::seconds(arguments.wait_s));
    for (;;) {
        try {
            Stranger(channel, server).ask(channel, {});
            return 1;
        } catch (const std::exception&) {
            if (limit.expired()) {
                throw;
            }
        }
        std::this_thread::sleep_for(kPause);
    }
}

int run(const Arguments& arguments) {
    const auto server = rdma::Address::parse(arguments.address, arguments.port);
    if (!server) {
        throw std::runtime_error("no address: " + arguments.address);
    }
    rdma::EventChannel channel;
    std::mt19937 random;
    std::string answer;
    for (auto i = wait_for_server(arguments, channel, *server); i < arguments.count; ++i) {
        // In turn noise, the words of another run, and nothing.
        std::array<std::byte, 56> noise{};
        for (std::byte& byte : noise) {
            byte = static_cast<std::byte>(random());
        }
        rdma::Hello other;
        other.run.fill(static_cast<std::uint8_t>(1 + i % 255));
        const auto hello = rdma::encode(other);
        const std::array<std::span<const std::byte>, 3> said{std::span<const std::byte>(noise),
                                                             std::span<const std::byte>(hello),
                                                             std::span<const std::byte>()};
        answer = Stranger(channel, *server).ask(channel, said.at(i % said.size()));
    }
    std::deque<Stranger> silent;
    for (std::uint32_t i = 0; i < arguments.silent; ++i) {
        answer = silent.emplace_back(channel, *server).ask(channel, {});
    }
    fmt::print(stderr, "{} refused, the last one: {}\n", arguments.count + arguments.silent,
               answer);
    if (arguments.silent > 0) {
        // Still there, until somebody ends this.
        sigset_t none;
        sigemptyset(&none);
        sigsuspend(&none);
    }
    return 0;
}

}  // namespace
}  // namespace rdma_read::test

int main(int argc, char** argv) {
    rdma_read::test::Arguments arguments;
    CLI::App app("Strangers at a server");
    app.add_option("address", arguments.address)->required();
    app.add_option("port", arguments.port)->required();
    app.add_option("--count", arguments.count);
    app.add_option("--silent", arguments.silent);
    app.add_option("--wait", arguments.wait_s);
    CLI11_PARSE(app, argc, argv);
    try {
        return rdma_read::test::run(arguments);
    } catch (const std::exception& error) {
        fmt::print(stderr, "strangers: {}\n", error.what());
        return 1;
    }
}
