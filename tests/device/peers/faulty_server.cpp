// A server with one fault, as a process of its own and without MPI: tells on stdout where it
// listens, serves until its stdin closes.
#include "app/self_test.hpp"
#include "fault_name.hpp"
#include "rdma_read/rdma/buffer.hpp"
#include "rdma_read/rdma/error.hpp"
#include "rdma_read/rdma/read_server.hpp"
#include "rdma_read/rdma/wire.hpp"
#include "rdma_read/verify/pattern.hpp"
#include "scripted_server.hpp"
#include "tampered_memory.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string_view>

namespace rdma_read::test {
namespace {

// What a server that exposes more than it says exposes beyond.
constexpr std::uint64_t kExposedBeyond = 4096;

struct Arguments {
    std::string fault;
    std::string address;
    std::string run = std::string(32, '0');
    std::uint32_t rank = 0;
    std::uint32_t ranks = 0;
    std::uint64_t bytes = 4096;
};

verify::RunId run_id(const std::string& hex) {
    verify::RunId run{};
    for (std::size_t i = 0; i < run.size(); ++i) {
        run.at(i) = static_cast<std::uint8_t>(std::stoul(hex.substr(2 * i, 2), nullptr, 16));
    }
    return run;
}

std::vector<std::byte> bytes_of(const rdma::RemoteBuffer& buffer) {
    const auto encoded = rdma::encode(buffer);
    return {encoded.begin(), encoded.end()};
}

// Faults of the connection and of the descriptor:
//   wrong-rkey:RANK        that reader is given a key that opens nothing
//   wrong-address:RANK     that reader is given an address outside the buffer
//   any-key                who connects to be refused a wrong key is given one with which the wrong
//                          key is right
//   exposes-more           the descriptor names fewer bytes than the device lets peers read
//   no-second              further queue pairs of a reader are accepted, and then nothing is said
//   no-descriptor          connections are accepted, and then nothing is said
//   busy-twice             the first two connection requests are turned away
//   no-accept              connection requests stay unanswered
//   die-after-descriptor   the process is killed once the first descriptor has left
//   short-descriptor, long-descriptor, foreign-descriptor, other-version-descriptor,
//   empty-buffer, wrapping-buffer, small-buffer
Script script_for(const std::string& text) {
    const FaultName fault(text);
    constexpr std::array<std::string_view, 16> kKnown{"busy-twice",
                                                      "any-key",
                                                      "exposes-more",
                                                      "no-second",
                                                      "wrong-rkey",
                                                      "wrong-address",
                                                      "no-descriptor",
                                                      "no-accept",
                                                      "die-after-descriptor",
                                                      "short-descriptor",
                                                      "long-descriptor",
                                                      "foreign-descriptor",
                                                      "other-version-descriptor",
                                                      "empty-buffer",
                                                      "wrapping-buffer",
                                                      "small-buffer"};
    if (std::ranges::find(kKnown, fault.name) == kKnown.end()) {
        throw std::invalid_argument("unknown fault " + text);
    }
    Script script;
    script.answer = [fault](const rdma::Hello& hello,
                            rdma::RemoteBuffer buffer) -> std::optional<std::vector<std::byte>> {
        const bool meant = !fault.numbers.empty() && hello.rank == fault.number(0);
        if (fault.name == "wrong-rkey" && meant) {
            buffer.rkey ^= 0xa5a5a5a5U;
        } else if (fault.name == "wrong-address" && meant) {
            buffer.address += 1ULL << 40U;
        } else if (fault.name == "any-key" && hello.queue_pair > 0) {
            buffer.rkey ^= app::kWrongKeyBits;
        } else if (fault.name == "exposes-more") {
            buffer.length -= kExposedBeyond;
        } else if (fault.name == "no-descriptor"
                   || (fault.name == "no-second" && hello.queue_pair > 0)) {
            return std::nullopt;
        } else if (fault.name == "empty-buffer") {
            buffer.length = 0;
        } else if (fault.name == "wrapping-buffer") {
            buffer.length = std::numeric_limits<std::uint64_t>::max() - 1;
        } else if (fault.name == "small-buffer") {
            buffer.length = 8;
        }
        std::vector<std::byte> bytes = bytes_of(buffer);
        if (fault.name == "short-descriptor") {
            bytes.pop_back();
        } else if (fault.name == "long-descriptor") {
            bytes.resize(bytes.size() + 64);
        } else if (fault.name == "foreign-descriptor") {
            bytes.at(0) ^= std::byte{1};
        } else if (fault.name == "other-version-descriptor") {
            bytes.at(5) ^= std::byte{0x7f};
        }
        return bytes;
    };
    if (fault.name == "busy-twice") {
        script.objection = [requests = 0](const rdma::Hello&) mutable {
            return ++requests <= 2 ? std::optional(rdma::Refusal::server_busy) : std::nullopt;
        };
    }
    script.accepts = fault.name != "no-accept";
    if (fault.name == "die-after-descriptor") {
        script.after_answer = [] { kill(getpid(), SIGKILL); };
    }
    return script;
}

void tell(const rdma::Address& address) {
    const std::string line = fmt::format("{} {}\n", address.to_string(), address.port());
    std::fputs(line.c_str(), stdout);
    std::fflush(stdout);
}

void serve(const Arguments& arguments) {
    const auto address = rdma::Address::parse(arguments.address);
    if (!address) {
        throw std::invalid_argument("--address");
    }
    const Payload payload{run_id(arguments.run), arguments.rank};
    const rdma::Buffer memory(arguments.bytes
                              + (arguments.fault == "exposes-more" ? kExposedBeyond : 0));
    verify::Pattern(payload.run, payload.rank).fill(memory.bytes());
    // The end of stdin is readable, as a stop should be.
    if (tamper(arguments.fault, payload, memory.bytes())) {
        rdma::ReadServerConfig config;
        config.address = *address;
        config.run = payload.run;
        config.ranks = arguments.ranks;
        config.stop_fd = STDIN_FILENO;
        rdma::ReadServer server(config, memory.bytes());
        tell(server.address());
        (void)server.serve();
    } else {
        ScriptedServer server(*address, memory.bytes(), script_for(arguments.fault));
        tell(server.address());
        server.serve(STDIN_FILENO);
    }
}

}  // namespace
}  // namespace rdma_read::test

int main(int argc, char** argv) {
    rdma_read::test::Arguments arguments;
    CLI::App app("A server with one fault");
    app.add_option("--fault", arguments.fault)->required();
    app.add_option("--address", arguments.address)->required();
    app.add_option("--run", arguments.run);
    app.add_option("--rank", arguments.rank);
    app.add_option("--ranks", arguments.ranks);
    app.add_option("--bytes", arguments.bytes);
    CLI11_PARSE(app, argc, argv);
    try {
        rdma_read::test::serve(arguments);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "faulty_server: %s\n", error.what());
        return 1;
    }
}
