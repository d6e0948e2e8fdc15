// Serves and reads a text.
#include "app/pair.hpp"

#include "app/result_stream.hpp"
#include "app/say.hpp"
#include "app/stop_signal.hpp"
#include "app/token.hpp"
#include "rdma_read/rdma/buffer.hpp"
#include "rdma_read/rdma/device.hpp"
#include "rdma_read/rdma/error.hpp"
#include "rdma_read/rdma/read_client.hpp"
#include "rdma_read/rdma/read_server.hpp"
#include "rdma_read/rdma/read_stream.hpp"
#include "rdma_read/verify/plain_text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace rdma_read::app {

namespace {

// What a client takes at most: the longest --size of a server.
constexpr std::uint64_t kLongestText = 1ULL << 30U;
constexpr std::chrono::milliseconds kGoodbye{1000};

constexpr std::byte kUntouched{0xff};

// Peers that have connected and said nothing yet: without a secret anyone may come to stay, and
// must leave most of the server's places to those who read. Clients who are turned away for this
// come again by themselves.
constexpr std::uint32_t kMostHalfOpen = 128;

constexpr int kExitFailed = 1;
constexpr int kExitNoDevice = 3;

rdma::Address address_to_bind(const PairServerOptions& options) {
    // The IPv6 wildcard also takes IPv4 connections.
    const std::string text = options.bind.value_or("::");
    if (const auto address = rdma::Address::parse(text, options.port)) {
        return *address;
    }
    throw rdma::Error(rdma::Failure::bad_address, rdma::Phase::device,
                      fmt::format("{} is no IPv4 or IPv6 address", text));
}

// The device port of an address; nothing for a wildcard. Throws for an address that no reader could
// come in by, the loopback's for one.
std::optional<rdma::DevicePort> port_to_bind(const rdma::EventChannel& channel,
                                             const rdma::Address& address) {
    if (address.is_wildcard()) {
        return std::nullopt;
    }
    rdma::PortWish wish;
    wish.address = address.with_port(0);
    return rdma::choose_port(rdma::list_device_ports(channel), wish).port;
}

std::unique_ptr<rdma::ReadServer> listen(const rdma::ReadServerConfig& config,
                                         std::span<std::byte> memory, bool any_address) {
    try {
        return std::make_unique<rdma::ReadServer>(config, memory);
    } catch (const rdma::Error& error) {
        if (!any_address || error.code() != EAFNOSUPPORT) {
            throw;
        }
        // A host without IPv6 has no IPv6 wildcard.
        rdma::ReadServerConfig v4 = config;
        v4.address = rdma::Address().with_port(config.address.port());
        return std::make_unique<rdma::ReadServer>(v4, memory);
    }
}

// Reads everything that the server exposes, once.
class WholeBuffer : public rdma::ReadSink {
  public:
    explicit WholeBuffer(std::span<std::byte> destination) : destination_(destination) {}
    rdma::ReadRequest next(std::uint32_t /*slot*/) override { return {0, destination_}; }
    void finished(std::uint32_t /*slot*/) override {}

  private:
    std::span<std::byte> destination_;
};

// The text up to its first NUL, made fit for a terminal: the server may be a stranger.
std::string text_in(std::span<const std::byte> memory) {
    const auto end = std::ranges::find(memory, std::byte{0});
    return verify::plain({reinterpret_cast<const char*>(memory.data()),
                          static_cast<std::size_t>(end - memory.begin())});
}

// What both ends must have the same: made of their secret, or nothing.
rdma::RunId key_of(const std::optional<std::string>& token_file) {
    return token_file ? token_key(*token_file) : rdma::RunId{};
}

std::unique_ptr<rdma::ReadClient> connect(const PairClientOptions& options, const rdma::RunId& key,
                                          rdma::Deadline deadline) {
    const auto addresses = rdma::Address::resolve(options.server, options.port, deadline);
    for (std::size_t i = 0;; ++i) {
        rdma::ReadClientConfig config;
        config.server = addresses.at(i);
        config.hello.run = key;
        // An address that does not answer must leave time for the next.
        const auto share = rdma::Deadline::after(deadline.remaining()
                                                 / static_cast<std::int64_t>(addresses.size() - i));
        std::uint32_t attempts = 0;
        bool told = false;
        try {
            return rdma::connect_with_retry(
                       config, share, attempts,
                       [&](const rdma::Error& error) {
                           if (!told) {
                               say(kPairProgram,
                                   fmt::format(
                                       "{}; trying again until {} s "
                                       "have passed",
                                       error.what(),
                                       std::chrono::duration<double>(options.timeout).count()));
                               told = true;
                           }
                       })
                .client;
        } catch (const rdma::Error& error) {
            if (error.failure() == rdma::Failure::no_device || i + 1 == addresses.size()) {
                throw;
            }
            say(kPairProgram, with_hint(error.what(), error.hint()));
        }
    }
}

}  // namespace

int serve_text(const PairServerOptions& options) {
    const rdma::RunId key = key_of(options.token_file);
    const StopSignal stop;
    const rdma::Buffer memory(options.size);
    std::ranges::copy(std::as_bytes(std::span(options.message)), memory.bytes().begin());

    rdma::ReadServerConfig config;
    config.address = address_to_bind(options);
    config.run = key;
    config.stop_fd = stop.fd();
    config.max_half_open = kMostHalfOpen;
    // One that is frozen, or whose host died without a word, would otherwise never be done with.
    config.turn_limit = options.turn();
    config.turns_end_always = true;
    const rdma::EventChannel channel;
    const auto bound = port_to_bind(channel, config.address);
    const auto server = listen(config, memory.bytes(), !options.bind);
    server->on_notice([](const std::string& text) { say(kPairProgram, text); });
    const auto ports = bound ? std::vector{*bound} : rdma::list_device_ports(channel);
    say(kPairProgram,
        fmt::format("serving {} bytes on port {} of {}; read them with: rdma_read -c {} "
                    "--port {}",
                    options.size, server->address().port(), rdma::describe(ports),
                    ports.empty() ? "<address>" : ports.front().address.to_string(),
                    server->address().port()));
    const rdma::ServeSummary summary = server->serve(options.clients);
    if (options.clients > 0 && summary.finished < options.clients) {
        say(kPairProgram,
            fmt::format("stopped after {} of {} clients", summary.finished, options.clients));
        return kExitFailed;
    }
    return 0;
}

int read_text(const PairClientOptions& options) {
    const ResultStream out;
    const rdma::RunId key = key_of(options.token_file);
    const auto deadline = rdma::Deadline::after(options.timeout);
    // The registration covers the memory, so the client goes first.
    std::optional<rdma::Buffer> memory;
    const auto client = connect(options, key, deadline);
    if (client->remote().length > kLongestText) {
        throw rdma::Error(rdma::Failure::protocol, rdma::Phase::descriptor,
                          fmt::format("the server exposes {} bytes, more than the {} that a text "
                                      "may have",
                                      client->remote().length, kLongestText));
    }
    memory.emplace(client->remote().length);
    // What no server's text begins with: a read that brings nothing must not pass for an empty
    // text.
    std::ranges::fill(memory->bytes(), kUntouched);
    client->set_destination(memory->bytes());
    WholeBuffer whole(memory->bytes());
    const auto summary = rdma::ReadStream(*client).run_one(whole, deadline);
    if (summary.failure) {
        say(kPairProgram, with_hint(summary.failure->message, summary.failure->hint));
        return kExitFailed;
    }
    if (std::ranges::all_of(memory->bytes(), [](auto byte) { return byte == kUntouched; })) {
        say(kPairProgram,
            "the read completed, but brought nothing; check the device and its driver");
        return kExitFailed;
    }
    client->disconnect(rdma::Deadline::after(kGoodbye));
    out.write(fmt::format("RDMA Read completed. Data received: {}\n", text_in(memory->bytes())));
    return 0;
}

int rdma_read_main(int argc, const char* const* argv) {
    const ParsedPairOptions parsed = parse_pair_options(argc, argv);
    try {
        if (const auto* const server = std::get_if<PairServerOptions>(&parsed)) {
            return serve_text(*server);
        }
        if (const auto* const client = std::get_if<PairClientOptions>(&parsed)) {
            return read_text(*client);
        }
    } catch (const UsageError& error) {
        say(kPairProgram, error.what());
        return kExitUsage;
    } catch (const rdma::Error& error) {
        say(kPairProgram, with_hint(error.what(), error.hint()));
        return error.failure() == rdma::Failure::no_device ? kExitNoDevice : kExitFailed;
    }
    const auto& exit = std::get<EarlyExit>(parsed);
    const int fd = exit.to_stderr ? STDERR_FILENO : STDOUT_FILENO;
    [[maybe_unused]] const auto written = ::write(fd, exit.text.data(), exit.text.size());
    return exit.code;
}

}  // namespace rdma_read::app
