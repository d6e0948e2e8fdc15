// The options of rdma_read: one server or one client, without MPI.
#include "app/pair_options.hpp"

#include "app/quantity.hpp"
#include "app/say.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

namespace rdma_read::app {
namespace {

constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 30U;
constexpr std::uint64_t kMostClients = 1'000'000;
constexpr std::uint64_t kLastPort = std::numeric_limits<std::uint16_t>::max();
constexpr std::size_t kLongestHostName = 253;  // RFC 1035, section 2.3.4, without the last dot

constexpr std::string_view kUsage =
    "usage: rdma_read -s [--bind ADDR] [--port N] [--message TEXT] [--size BYTES] [--clients N] "
    "[--token-file FILE]  or  rdma_read -c SERVER [--port N] [--timeout SECONDS] "
    "[--token-file FILE]\n";

const CommandLineSpec& spec() {
    static const CommandLineSpec spec{
        std::string(kPairProgram),
        "rdma_read -s | -c SERVER",
        "Reads a text from another node's memory by RDMA Read: a server (-s) on one node, a "
        "client\n"
        "(-c) on another.",
        {
            {"-s", "", "", "Serve: expose a buffer that holds the message."},
            {"-c", "SERVER", "the address or the name of the server",
             "Read from the server with this address or name."},
            {"--bind", "ADDR", "a literal IPv4 or IPv6 address without scope",
             "With -s: address on which to listen. Default: all."},
            {"--port", "N", "1 to 65535, with -s also 0 for any free one",
             "Port number in the RDMA TCP port space; with -s, 0:\n"
             "any free one. Default 7471."},
            {"--message", "TEXT", "a text that fits in --size",
             "With -s: the text to expose. Default:\n"
             "Hello from RDMA server memory!"},
            {"--size", "BYTES", "1 to 1G bytes, and at least the length of the message",
             "With -s: exposed buffer in bytes; K, M, G are powers of\n"
             "1024. Default 4096."},
            {"--clients", "N", fmt::format("0 to {}", kMostClients),
             "With -s: exit when this many clients have been served;\n"
             "0: serve until stopped. One that is still there 35 s\n"
             "after it was told where to read, and 1 s for each 8M of\n"
             "--size, is dropped and counts as served. Default 1."},
            {"--timeout", "SECONDS", "seconds above 0, at most 86400, such as 30 or 0.5",
             "With -c: whole budget in seconds: connect, read.\nDefault 30."},
            {"--token-file", "FILE", "a file with a secret, for its owner alone",
             "Secret that both ends share: 16 to 4096 bytes, in a file\n"
             "that only its owner may read. Keeps out who connects by\n"
             "accident or does not know it; not who can listen on the\n"
             "network, where what is made of it can be seen and used\n"
             "again. Encrypts nothing. Default: none, the server\n"
             "serves whoever connects."},
        },
        "Exit codes:\n"
        "  0  the read was made; the server has served its clients\n"
        "  1  the read failed, or the server ended before it had served its clients\n"
        "  2  wrong command line\n"
        "  3  no device",
    };
    return spec;
}

[[noreturn]] void fail(const CommandLine& line, const std::string& name, std::string_view problem) {
    const auto& options = spec().options;
    const auto option =
        std::find_if(options.begin(), options.end(), [&](const auto& o) { return o.name == name; });
    throw UsageError(name, *line.value(name), problem, option->allowed);
}

std::uint64_t number_within(const CommandLine& line, const std::string& name,
                            std::optional<std::uint64_t> number, std::uint64_t least,
                            std::uint64_t most) {
    if (!number) {
        fail(line, name, "not a number");
    }
    if (*number < least || *number > most) {
        fail(line, name, "out of range");
    }
    return *number;
}

std::uint16_t port(const CommandLine& line, std::uint64_t least) {
    const std::string* const text = line.value("--port");
    if (text == nullptr) {
        return kPairPort;
    }
    return static_cast<std::uint16_t>(
        number_within(line, "--port", parse_whole(*text), least, kLastPort));
}

void reject_foreign(const CommandLine& line, std::initializer_list<const char*> names,
                    const std::string& own, const std::string& other) {
    for (const char* const name : names) {
        if (line.has(name)) {
            throw UsageError(name, *line.value(name), "has no meaning with " + own,
                             "only with " + other);
        }
    }
}

std::optional<std::string> token_file(const CommandLine& line) {
    const std::string* const file = line.value("--token-file");
    if (file == nullptr) {
        return std::nullopt;
    }
    if (file->empty()) {
        fail(line, "--token-file", "the value is empty");
    }
    return *file;
}

PairServerOptions interpret_server(const CommandLine& line) {
    reject_foreign(line, {"--timeout"}, "-s", "-c");
    PairServerOptions options;
    options.port = port(line, 0);
    options.token_file = token_file(line);
    if (const auto* const text = line.value("--bind")) {
        if (!is_ip_address(*text)) {
            fail(line, "--bind", "not an IP address");
        }
        options.bind = *text;
    }
    if (const auto* const text = line.value("--size")) {
        options.size = number_within(line, "--size", parse_bytes(*text), 1, kLargestSize);
    }
    if (const auto* const text = line.value("--clients")) {
        options.clients = static_cast<std::uint32_t>(
            number_within(line, "--clients", parse_whole(*text), 0, kMostClients));
    }
    const auto* const text = line.value("--message");
    if (text != nullptr) {
        options.message = *text;
    }
    if (options.message.size() > options.size) {
        const std::string length = fmt::format("{}", options.message.size());
        if (text == nullptr || line.has("--size")) {
            throw UsageError("--size", *line.value("--size"),
                             fmt::format("too small for the message of {} bytes", length),
                             fmt::format("{} to 1G, or a shorter --message", length));
        }
        throw UsageError("--message", *text, fmt::format("{} bytes long", length),
                         fmt::format("at most {} bytes, or a larger --size", options.size));
    }
    return options;
}

PairClientOptions interpret_client(const CommandLine& line) {
    reject_foreign(line, {"--bind", "--message", "--size", "--clients"}, "-c", "-s");
    PairClientOptions options;
    options.server = *line.value("-c");
    const bool printable_word =
        std::all_of(options.server.begin(), options.server.end(),
                    [](char c) { return static_cast<unsigned char>(c) > ' ' && c != '\x7f'; });
    if (options.server.empty() || options.server.size() > kLongestHostName || !printable_word) {
        fail(line, "-c", "not an address or a name");
    }
    options.port = port(line, 1);
    options.token_file = token_file(line);
    if (const auto* const text = line.value("--timeout")) {
        const auto duration = parse_seconds(*text);
        if (!duration || duration->count() == 0) {
            fail(line, "--timeout", "not a duration in range");
        }
        options.timeout = *duration;
    }
    return options;
}

ParsedPairOptions interpret(const CommandLine& line) {
    if (line.has("-s") && line.has("-c")) {
        throw UsageError("-c", *line.value("-c"), "contradicts -s", "one of the two");
    }
    if (line.has("-s")) {
        return interpret_server(line);
    }
    if (line.has("-c")) {
        return interpret_client(line);
    }
    throw UsageError("neither -s nor -c; allowed: one of the two");
}

}  // namespace

ParsedPairOptions parse_pair_options(int argc, const char* const* argv) {
    try {
        const CommandLine line(spec(), argc, argv);
        if (line.early_exit()) {
            return *line.early_exit();
        }
        return interpret(line);
    } catch (const UsageError& error) {
        return EarlyExit{.code = kExitUsage,
                         .text = fmt::format("{}: {}\n{}", kPairProgram, error.what(), kUsage),
                         .to_stderr = true};
    }
}

}  // namespace rdma_read::app
