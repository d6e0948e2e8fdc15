// The options of rdma_read_mpi: parsed, checked against each other, ready to use.
#include "app/options.hpp"

#include "app/atomic_file.hpp"
#include "app/quantity.hpp"
#include "app/say.hpp"

#include <fmt/format.h>
#include <net/if.h>

#include <algorithm>
#include <limits>
#include <string_view>

namespace rdma_read::app {
namespace {

constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 40U;
constexpr std::uint64_t kLargestBuffer = kLargestSize * 2;
constexpr std::size_t kMostSizes = 64;
constexpr std::uint64_t kMostIterations = 1'000'000'000;
constexpr std::uint64_t kDeepest = 1024;
constexpr std::uint64_t kMostQueuePairs = 64;
constexpr std::uint64_t kMostAtATime = 1'000'000;
constexpr std::uint64_t kLastDevicePort = 255;
constexpr std::size_t kLongestDeviceName = 63;  // IB_DEVICE_NAME_MAX, with its NUL

const CommandLineSpec& spec() {
    static const std::string seconds = "seconds above 0, at most 86400, such as 30 or 0.5";
    static const CommandLineSpec spec{
        std::string(kMpiProgram),
        "mpirun -np N rdma_read_mpi",
        "Reads from one rank's memory by RDMA Read from every other rank, and checks every byte.",
        {
            {"--size", "LIST", "different sizes from 1 to 1024G bytes, such as 1,4K,64K,1M",
             "Bytes per read, several sizes separated by commas;\n"
             "K, M, G are powers of 1024. Default 64K."},
            {"--iterations", "N", "reads from 1 to 1000000000",
             "Reads per size and reader in the throughput phase.\nDefault 1000."},
            {"--duration", "SECONDS", seconds,
             "Run each throughput phase for this many seconds\n"
             "instead. Default: not set, --iterations counts."},
            {"--depth", "N", fmt::format("reads from 1 to {}", kDeepest),
             "Reads in flight per queue pair. Each needs memory of\n"
             "its size, together at most 64M or two reads. Default 16."},
            {"--qps", "N", fmt::format("queue pairs from 1 to {}", kMostQueuePairs),
             "Queue pairs per reader. Default 1."},
            {"--buffer", "BYTES", "bytes from 1 to 2048G, at least the largest size plus 65528",
             "Exposed buffer in bytes (K, M, G): at least the largest\n"
             "size, rounded up to 8, plus 65528. Default: that."},
            {"--hugepages", "", "",
             "Put the buffers of server and readers on huge pages.\nDefault: off."},
            {"--pattern", "NAME", "star",
             "Who reads from whom. star: all ranks read from one\n"
             "server. Default star."},
            {"--server", "RANK", "a rank: 0 or more, below the number of ranks",
             "Rank of the server. Default 0."},
            {"--concurrency", "N", fmt::format("0 to {}", kMostAtATime),
             "Readers that read from the server at a time, the others\n"
             "wait for their turn; 0: all. One that keeps others waiting\n"
             "five seconds after its --timeout is dropped. Default 0."},
            {"--server-ip", "ADDR", "a literal IPv4 or IPv6 address without scope",
             "Address on which the server listens. Default: chosen\nautomatically."},
            {"--interface", "NAME",
             fmt::format("the name of a network interface, at most {} characters", IFNAMSIZ - 1),
             "Network interface on which the server listens.\nDefault: chosen automatically."},
            {"--device", "NAME[:PORT]",
             fmt::format("the name of an RDMA device, and after a colon a port from 1 to {}",
                         kLastDevicePort),
             "RDMA device, and its port from 1, on which the server\n"
             "listens. Default: chosen automatically."},
            {"--port", "N", "0 to 65535",
             "Port number in the RDMA TCP port space; 0: any free one.\nDefault 0."},
            {"--timeout", "SECONDS", seconds,
             "A reader's whole budget in seconds: connect, read,\n"
             "check; its wait for a turn does not count. Default 30."},
            {"--verify", "MODE", "full, off",
             "full: check every byte of every read. off: measure\n"
             "only, never reported as verified. Default full."},
            {"--self-test", "", "",
             "Before the run prove that the check and the memory\n"
             "protection work: a planted wrong byte must be found,\n"
             "reads with a wrong key and past the end of the buffer\n"
             "must be refused. Contradicts --verify off. Default: off."},
            {"--json", "FILE", "a file in a folder that exists, or - for stdout",
             "Write the report as JSON to FILE; -: to stdout, and\n"
             "nothing else there. Default: no file."},
            {"--progress", "WHEN", "auto, always, never",
             "Progress line on stderr; auto: on a terminal.\nDefault auto."},
        },
        "Exit codes:\n"
        "  0  every expected read was made, fully checked, and right\n"
        "  1  at least one reader is not PASS, or a report could not be written\n"
        "  2  wrong command line, or ranks with different options\n"
        "  3  nothing could be read: no server, no device, no memory to read into,\n"
        "     fewer than two ranks",
    };
    return spec;
}

/// A value together with what its errors need.
class Value {
  public:
    Value(const CommandLine& line, const std::string& name)
        : name_(name), text_(line.value(name)) {}

    explicit operator bool() const { return text_ != nullptr; }
    [[nodiscard]] const std::string& text() const { return *text_; }

    [[noreturn]] void fail(std::string_view problem) const {
        const auto& options = spec().options;
        const auto option = std::find_if(options.begin(), options.end(),
                                         [&](const auto& o) { return o.name == name_; });
        fail(problem, option->allowed);
    }
    [[noreturn]] void fail(std::string_view problem, std::string_view allowed) const {
        throw UsageError(name_, *text_, problem, allowed);
    }

    [[nodiscard]] std::uint64_t whole(std::uint64_t least, std::uint64_t most) const {
        const auto number = parse_whole(text());
        if (!number) {
            fail("not a whole number");
        }
        if (*number < least || *number > most) {
            fail("out of range");
        }
        return *number;
    }

    [[nodiscard]] std::uint64_t bytes(std::string_view item, std::uint64_t most) const {
        const auto number = parse_bytes(item);
        if (!number) {
            fail(item.empty() ? "an item is empty"
                              : fmt::format("{} is not a number of bytes", printable(item)));
        }
        if (*number == 0 || *number > most) {
            fail(fmt::format("{} is out of range", item));
        }
        return *number;
    }

    [[nodiscard]] std::chrono::nanoseconds seconds() const {
        const auto duration = parse_seconds(text());
        if (!duration) {
            fail("not a duration in range");
        }
        if (duration->count() == 0) {
            fail("no time at all");
        }
        return *duration;
    }

  private:
    std::string name_;
    const std::string* text_;
};

std::vector<std::uint64_t> parse_sizes(const Value& value) {
    std::vector<std::uint64_t> sizes;
    std::string_view rest = value.text();
    while (true) {
        const auto comma = rest.find(',');
        const std::string_view item = rest.substr(0, comma);
        const std::uint64_t size = value.bytes(item, kLargestSize);
        if (std::find(sizes.begin(), sizes.end(), size) != sizes.end()) {
            value.fail(fmt::format("{} is there twice", item));
        }
        if (sizes.size() == kMostSizes) {
            value.fail("too many sizes", fmt::format("at most {}", kMostSizes));
        }
        sizes.push_back(size);
        if (comma == std::string_view::npos) {
            return sizes;
        }
        rest.remove_prefix(comma + 1);
    }
}

/// Whether the text can be the name of a device or an interface in sysfs.
bool is_name(std::string_view text, std::size_t longest) {
    return !text.empty() && text.size() <= longest && text != "." && text != ".."
           && std::all_of(text.begin(), text.end(),
                          [](char c) { return c > ' ' && c <= '~' && c != '/' && c != ':'; });
}

DeviceName parse_device(const Value& value) {
    const std::string_view text = value.text();
    const auto colon = text.find(':');
    DeviceName device{std::string(text.substr(0, colon)), std::nullopt};
    if (!is_name(device.name, kLongestDeviceName)) {
        value.fail("not the name of a device");
    }
    if (colon != std::string_view::npos) {
        const auto port = parse_whole(text.substr(colon + 1));
        if (!port || *port == 0 || *port > kLastDevicePort) {
            value.fail("not a port of a device");
        }
        device.port_num = static_cast<std::uint32_t>(*port);
    }
    return device;
}

void reject_contradictions(const CommandLine& line, const Options& options) {
    const Value duration(line, "--duration");
    const Value iterations(line, "--iterations");
    if (duration && iterations) {
        iterations.fail(fmt::format("contradicts --duration {}", printable(duration.text())),
                        "one of the two");
    }
    if (options.self_test && !options.verify) {
        Value(line, "--verify").fail("contradicts --self-test, which proves the check", "full");
    }
    const auto sizes = static_cast<std::int64_t>(options.sizes.size());
    if (duration && *options.duration * sizes >= options.timeout) {
        duration.fail(fmt::format("{} of this duration {} not end before --timeout {}",
                                  sizes == 1 ? "a phase" : fmt::format("{} phases", sizes),
                                  sizes == 1 ? "does" : "do", format_seconds(options.timeout)),
                      fmt::format("less than {} seconds, or a longer --timeout",
                                  format_seconds(options.timeout / sizes)));
    }
    if (const Value buffer(line, "--buffer");
        buffer && *options.buffer < buffer_needed(options.largest_size())) {
        buffer.fail(fmt::format("too small for reads of {}", format_bytes(options.largest_size())),
                    fmt::format("at least {} bytes", buffer_needed(options.largest_size())));
    }
}

Options interpret(const CommandLine& line) {
    Options options;
    if (const Value value(line, "--size"); value) {
        options.sizes = parse_sizes(value);
    }
    if (const Value value(line, "--iterations"); value) {
        options.iterations = value.whole(1, kMostIterations);
    }
    if (const Value value(line, "--duration"); value) {
        options.duration = value.seconds();
    }
    if (const Value value(line, "--depth"); value) {
        options.depth = static_cast<std::uint32_t>(value.whole(1, kDeepest));
    }
    if (const Value value(line, "--qps"); value) {
        options.qps = static_cast<std::uint32_t>(value.whole(1, kMostQueuePairs));
    }
    options.hugepages = line.has("--hugepages");
    if (const Value value(line, "--concurrency"); value) {
        options.concurrency = static_cast<std::uint32_t>(value.whole(0, kMostAtATime));
    }
    if (const Value value(line, "--buffer"); value) {
        options.buffer = value.bytes(value.text(), kLargestBuffer);
    }
    if (const Value value(line, "--pattern"); value && value.text() != "star") {
        value.fail("not a pattern that this version knows");
    }
    if (const Value value(line, "--server"); value) {
        options.server = static_cast<int>(value.whole(0, std::numeric_limits<int>::max()));
    }
    if (const Value value(line, "--server-ip"); value) {
        if (!is_ip_address(value.text())) {
            value.fail("not an IP address");
        }
        options.server_ip = value.text();
    }
    if (const Value value(line, "--interface"); value) {
        if (!is_name(value.text(), IFNAMSIZ - 1)) {
            value.fail("not the name of an interface");
        }
        options.interface = value.text();
    }
    if (const Value value(line, "--device"); value) {
        options.device = parse_device(value);
    }
    if (const Value value(line, "--port"); value) {
        options.port =
            static_cast<std::uint16_t>(value.whole(0, std::numeric_limits<std::uint16_t>::max()));
    }
    if (const Value value(line, "--timeout"); value) {
        options.timeout = value.seconds();
    }
    if (const Value value(line, "--verify"); value) {
        if (value.text() != "full" && value.text() != "off") {
            value.fail("not a mode");
        }
        options.verify = value.text() == "full";
    }
    options.self_test = line.has("--self-test");
    if (const Value value(line, "--json"); value) {
        if (value.text().empty()) {
            value.fail("the value is empty");
        }
        // stdout is kept for the result from the start, and its other name leads elsewhere by then.
        options.json = value.text() == "/dev/stdout" ? "-" : value.text();
    }
    if (const Value value(line, "--progress"); value) {
        if (value.text() == "auto") {
            options.progress = Progress::automatic;
        } else if (value.text() == "always") {
            options.progress = Progress::always;
        } else if (value.text() == "never") {
            options.progress = Progress::never;
        } else {
            value.fail("not a choice");
        }
    }
    reject_contradictions(line, options);
    return options;
}

std::string one_line(std::string_view problem) {
    return fmt::format("{}: {}\n", kMpiProgram, problem);
}

}  // namespace

std::uint64_t Options::largest_size() const {
    return *std::max_element(sizes.begin(), sizes.end());
}

std::chrono::nanoseconds Options::longest_wait(std::uint32_t readers) const {
    const std::uint32_t turns = concurrency == 0 || readers == 0 ? 0 : (readers - 1) / concurrency;
    return turn() * turns;
}

std::uint64_t Options::buffer_bytes() const {
    return buffer.value_or(buffer_needed(largest_size()));
}

ParsedOptions parse_options(int argc, const char* const* argv) {
    try {
        const CommandLine line(spec(), argc, argv);
        if (line.early_exit()) {
            return *line.early_exit();
        }
        return interpret(line);
    } catch (const UsageError& error) {
        return EarlyExit{.code = kExitUsage, .text = one_line(error.what()), .to_stderr = true};
    }
}

std::optional<std::string> contradiction_with_ranks(const Options& options, int size) {
    if (options.server < size) {
        return std::nullopt;
    }
    const std::string problem =
        UsageError("--server", fmt::format("{}", options.server),
                   fmt::format("this job has {} {}", size, size == 1 ? "rank" : "ranks"),
                   size == 1 ? std::string("0") : fmt::format("0 to {}", size - 1))
            .what();
    return one_line(problem);
}

std::optional<std::string> contradiction_with_files(const Options& options) {
    if (!options.json || *options.json == "-") {
        return std::nullopt;
    }
    const auto problem = why_not_writable(*options.json);
    if (!problem) {
        return std::nullopt;
    }
    return one_line(UsageError("--json", *options.json, *problem,
                               "a file in a folder that exists and is writable, or - for stdout")
                        .what());
}

verify::OptionMap options_for_report(const Options& options) {
    using verify::OptionValue;
    const auto seconds = [](std::chrono::nanoseconds duration) {
        return std::chrono::duration<double>(duration).count();
    };
    const auto text = [](const std::optional<std::string>& value) {
        return value ? OptionValue(*value) : OptionValue();
    };
    const auto progress = [&] {
        switch (options.progress) {
            case Progress::always:
                return "always";
            case Progress::never:
                return "never";
            case Progress::automatic:
                break;
        }
        return "auto";
    };
    verify::OptionMap map{
        {"size", options.sizes},
        {"iterations", options.iterations},
        {"duration", OptionValue()},
        {"depth", std::uint64_t{options.depth}},
        {"qps", std::uint64_t{options.qps}},
        {"buffer", options.buffer_bytes()},
        {"hugepages", options.hugepages},
        {"pattern", std::string("star")},
        {"server", static_cast<std::uint64_t>(options.server)},
        {"concurrency", std::uint64_t{options.concurrency}},
        {"server_ip", text(options.server_ip)},
        {"interface", text(options.interface)},
        {"device", OptionValue()},
        {"port", std::uint64_t{options.port}},
        {"timeout", seconds(options.timeout)},
        {"verify", std::string(options.verify ? "full" : "off")},
        {"self_test", options.self_test},
        {"json", text(options.json)},
        {"progress", std::string(progress())},
    };
    if (options.duration) {
        map["duration"] = seconds(*options.duration);
        map["iterations"] = OptionValue();
    }
    if (options.device) {
        const auto& device = *options.device;
        map["device"] =
            device.port_num ? fmt::format("{}:{}", device.name, *device.port_num) : device.name;
    }
    return map;
}

}  // namespace rdma_read::app
