// Opens many connections to one server from a few processes, reads and checks on each, and says
// what a connection took: time at the reader's end, memory at the server's.
#include "rdma_read/rdma/buffer.hpp"
#include "rdma_read/rdma/device.hpp"
#include "rdma_read/rdma/error.hpp"
#include "rdma_read/rdma/event_channel.hpp"
#include "rdma_read/rdma/read_client.hpp"
#include "rdma_read/rdma/read_server.hpp"
#include "rdma_read/rdma/read_stream.hpp"
#include "rdma_read/rdma/unique_fd.hpp"
#include "rdma_read/verify/checker.hpp"
#include "rdma_read/verify/pattern.hpp"
#include "rdma_read/verify/run_id.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace rdma_read::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
    std::uint32_t connections = 100;
    std::uint32_t processes = 4;
    std::uint32_t together = 50;
    std::uint32_t size = 4096;
    std::uint32_t depth = 1;
    unsigned int timeout = 120;
    std::string server_ip;
};

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

struct Pipe {
    Pipe() {
        std::array<int, 2> ends{-1, -1};
        if (pipe(ends.data()) != 0) {
            fail("pipe");
        }
        out = rdma::UniqueFd(ends[0]);
        in = rdma::UniqueFd(ends[1]);
    }
    rdma::UniqueFd out;
    rdma::UniqueFd in;
};

void write_all(int fd, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t count = write(fd, bytes.data(), bytes.size());
        if (count < 0) {
            fail("write");
        }
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
}

// False when the other end is gone.
bool read_all(int fd, std::span<std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t count = read(fd, bytes.data(), bytes.size());
        if (count <= 0) {
            return false;
        }
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return true;
}

template <typename T>
void tell(const Pipe& pipe, const T& value) {
    write_all(pipe.in.get(), std::as_bytes(std::span(&value, 1)));
}

template <typename T>
T hear(const Pipe& pipe) {
    T value{};
    if (!read_all(pipe.out.get(), std::as_writable_bytes(std::span(&value, 1)))) {
        throw std::runtime_error("one of the processes failed");
    }
    return value;
}

// A process that talks with this one through two pipes; ends with it, and after the time limit.
class Process {
  public:
    Process(unsigned int timeout, const std::function<void(const Pipe& from, const Pipe& to)>& body)
        : pid_(fork()) {
        if (pid_ < 0) {
            fail("fork");
        }
        if (pid_ > 0) {
            // Who waits for the other end must notice that it is gone.
            from_.in.reset();
            to_.out.reset();
            return;
        }
        from_.out.reset();
        to_.in.reset();
        alarm(timeout);
        int status = 0;
        try {
            body(to_, from_);
        } catch (const std::exception& error) {
            fmt::print(stderr, "connect_many: {}\n", error.what());
            status = 1;
        }
        std::fflush(stdout);
        _exit(status);
    }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;
    Process(Process&&) = delete;
    Process& operator=(Process&&) = delete;
    ~Process() {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
    }

    [[nodiscard]] const Pipe& from() const noexcept { return from_; }
    [[nodiscard]] const Pipe& to() const noexcept { return to_; }

    // Resident memory in KiB.
    [[nodiscard]] std::uint64_t resident() const {
        std::ifstream status(fmt::format("/proc/{}/status", pid_));
        std::string line;
        while (std::getline(status, line)) {
            if (line.starts_with("VmRSS:")) {
                return std::stoull(line.substr(6));
            }
        }
        throw std::runtime_error("the server is gone");
    }

  private:
    Pipe from_;
    Pipe to_;
    pid_t pid_;
};

constexpr char kGo = 'g';

struct Where {
    std::array<char, 64> address{};
    std::uint16_t port = 0;
};

// Clients that a process needs at most.
std::uint32_t clients_per_process(const Options& options) {
    const std::uint32_t most = (options.connections + options.processes - 1) / options.processes;
    return (most + options.together - 1) / options.together;
}

std::uint64_t buffer_bytes(const Options& options) {
    return std::uint64_t{4} * options.size + 65536;
}

void serve(const Options& options, const verify::RunId& run, const Pipe& commands,
           const Pipe& answers) {
    const rdma::EventChannel channel;
    rdma::PortWish wish;
    if (!options.server_ip.empty()) {
        wish.address = rdma::Address::parse(options.server_ip);
    }
    const auto choice = rdma::choose_port(rdma::list_device_ports(channel), wish);
    const rdma::Buffer memory(buffer_bytes(options));
    verify::Pattern(run, 0).fill(memory.bytes());
    rdma::ReadServerConfig config;
    config.address = choice.port.address;
    config.run = run;
    config.ranks = options.processes * clients_per_process(options);
    config.queue_pairs_per_rank = options.together;
    config.max_connections = options.connections;
    config.stop_fd = commands.out.get();
    rdma::ReadServer server(config, memory.bytes());
    server.on_notice([](const std::string& text) { fmt::print(stderr, "server: {}\n", text); });
    Where where;
    fmt::format_to_n(where.address.data(), where.address.size() - 1, "{}",
                     server.address().to_string());
    where.port = server.address().port();
    tell(answers, where);
    (void)server.serve();
}

class Reads : public rdma::ReadSink {
  public:
    explicit Reads(verify::Checker& checker) : checker_(checker) {}
    rdma::ReadRequest next(std::uint32_t slot) override {
        const auto target = checker_.next(slot);
        return {target.remote_offset, target.destination};
    }
    void finished(std::uint32_t slot) override { checker_.finished(slot); }

  private:
    verify::Checker& checker_;
};

// A reader with several connections, and what it needs to read on each of them.
struct Client {
    Client(const Options& options, std::uint32_t queue_pairs)
        : count(queue_pairs), memory(verify::Checker::bytes_needed(options.size, queue_pairs)) {}

    std::uint32_t count;
    rdma::Buffer memory;
    std::unique_ptr<rdma::ReadClient> connected;
};

// Reads once on each connection; says on how many all bytes were right.
std::uint32_t read_and_check(Client& client, verify::Checker::Config config,
                             rdma::Deadline deadline) {
    config.slots = client.count;
    verify::Checker checker(config, client.memory.bytes());
    Reads reads(checker);
    rdma::ReadStream stream(*client.connected);
    // As many reads as connections, which are spread evenly.
    rdma::StreamPlan plan;
    plan.slots = client.count;
    plan.reads = client.count;
    const auto summary = stream.run(reads, plan, deadline);
    if (summary.failure) {
        fmt::print(stderr, "connect_many: {}\n", summary.failure->message);
    }
    return checker.guards_intact()
               ? static_cast<std::uint32_t>(checker.bytes_verified() / config.read_bytes)
               : 0;
}

void read_many(const Options& options, const verify::RunId& run, std::uint32_t rank,
               std::uint32_t count, const Pipe& commands, const Pipe& answers) {
    const auto where = hear<Where>(commands);
    const auto address = rdma::Address::parse(where.address.data(), where.port);
    if (!address) {
        throw std::runtime_error("the server has no address");
    }
    verify::Checker::Config checks;
    checks.run = run;
    checks.buffer_bytes = buffer_bytes(options);
    checks.read_bytes = options.size;
    const auto deadline = rdma::Deadline::after(std::chrono::seconds(options.timeout));
    // A process pays for its first event channel once, however many connections it opens.
    const rdma::EventChannel warm_up;
    std::vector<Client> clients;
    for (std::uint32_t left = count; left > 0; left -= clients.back().count) {
        clients.emplace_back(options, std::min(left, options.together));
    }
    tell(answers, kGo);

    hear<char>(commands);
    std::vector<double> took;
    for (Client& client : clients) {
        rdma::ReadClientConfig config;
        config.server = *address;
        config.hello = {run, rank++};
        config.queue_pairs = client.count;
        config.depth = options.depth;
        config.destination = client.memory.bytes();
        std::uint32_t attempts = 0;
        auto connected = rdma::connect_with_retry(config, deadline, attempts);
        client.connected = std::move(connected.client);
        took.push_back(std::chrono::duration<double, std::milli>(connected.took).count());
    }
    tell(answers, kGo);
    tell(answers, took.size());
    for (const double one : took) {
        tell(answers, one);
    }

    hear<char>(commands);
    std::uint32_t right = 0;
    for (Client& client : clients) {
        right += read_and_check(client, checks, deadline);
    }
    tell(answers, right);
    hear<char>(commands);
    for (const Client& client : clients) {
        client.connected->disconnect(rdma::Deadline::after(std::chrono::milliseconds(100)));
    }
}

int measure(const Options& options) {
    // Each connection takes a few descriptors.
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    (void)std::signal(SIGPIPE, SIG_IGN);

    const auto run = verify::random_run_id();
    const Process server(options.timeout, [&](const Pipe& commands, const Pipe& answers) {
        serve(options, run, commands, answers);
    });
    const auto where = hear<Where>(server.from());
    std::vector<std::unique_ptr<Process>> readers;
    for (std::uint32_t i = 0; i < options.processes; ++i) {
        const std::uint32_t count = options.connections / options.processes
                                    + (i < options.connections % options.processes ? 1 : 0);
        readers.push_back(std::make_unique<Process>(
            options.timeout, [&, i](const Pipe& commands, const Pipe& answers) {
                read_many(options, run, i * clients_per_process(options), count, commands, answers);
            }));
        tell(readers.back()->to(), where);
    }
    for (const auto& reader : readers) {
        hear<char>(reader->from());
    }
    const std::uint64_t before = server.resident();

    const auto started = Clock::now();
    for (const auto& reader : readers) {
        tell(reader->to(), kGo);
    }
    for (const auto& reader : readers) {
        hear<char>(reader->from());
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - started).count();
    std::vector<double> took;
    for (const auto& reader : readers) {
        for (auto clients = hear<std::size_t>(reader->from()); clients > 0; --clients) {
            took.push_back(hear<double>(reader->from()));
        }
    }
    std::ranges::sort(took);
    const std::uint64_t after = server.resident();

    std::uint32_t right = 0;
    for (const auto& reader : readers) {
        tell(reader->to(), kGo);
        right += hear<std::uint32_t>(reader->from());
    }
    for (const auto& reader : readers) {
        tell(reader->to(), kGo);
    }
    const auto count = static_cast<double>(options.connections);
    fmt::print(
        "connections={} processes={} together={} verified={} seconds={:.4f} "
        "ms_per_connection={:.3f} "
        "connect_ms_p50={:.3f} connect_ms_max={:.3f} server_kib_before={} "
        "server_kib_with_all={} server_kib_per_connection={:.2f}\n",
        options.connections, options.processes, options.together, right, seconds,
        seconds * 1000 / count, took[(took.size() - 1) / 2], took.back(), before, after,
        (static_cast<double>(after) - static_cast<double>(before)) / count);
    return right == options.connections ? 0 : 1;
}

}  // namespace
}  // namespace rdma_read::bench

int main(int argc, char** argv) {
    rdma_read::bench::Options options;
    CLI::App app{"Opens many connections to one server from a few processes and reads on each."};
    app.add_option("--connections", options.connections, "connections in all")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
    app.add_option("--processes", options.processes, "processes that open them")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    app.add_option("--together", options.together,
                   "connections of a process that are opened together, on one completion queue")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    app.add_option("--size", options.size, "bytes of the one read on each connection")
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
    app.add_option("--depth", options.depth, "reads in flight that are asked for")
        ->check(CLI::Range(1, 255))
        ->capture_default_str();
    app.add_option("--timeout", options.timeout, "seconds for everything")
        ->check(CLI::Range(1, 3600))
        ->capture_default_str();
    app.add_option("--server-ip", options.server_ip, "the server's address (default: automatic)");
    try {
        app.parse(argc, argv);
        options.processes = std::min(options.processes, options.connections);
        return rdma_read::bench::measure(options);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    } catch (const std::exception& error) {
        fmt::print(stderr, "connect_many: {}\n", error.what());
        return 1;
    }
}
