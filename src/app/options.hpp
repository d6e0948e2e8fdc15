// The options of rdma_read_mpi: parsed, checked against each other, ready to use.
#pragma once

#include "app/command_line.hpp"
#include "rdma_read/rdma/buffer.hpp"
#include "rdma_read/verify/report.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace rdma_read::app {

/// Who reads from whom. `star`: all ranks read from one server.
enum class ReadPattern { star };

/// When the progress line is shown. `automatic`: when stderr is a terminal.
enum class Progress { automatic, always, never };

/// The device that a server is to listen on.
struct DeviceName {
    std::string name;                       ///< As in /sys/class/infiniband.
    std::optional<std::uint32_t> port_num;  ///< From 1.
};

/// The bytes that the exposed buffer must have beyond the largest read, so that the reads can move
/// through it: a window of 8192 words.
inline constexpr std::uint64_t kWindowBytes = std::uint64_t{8191} * 8;

/// The least buffer for reads of `largest` bytes: kWindowBytes + `largest` rounded up to whole
/// words.
[[nodiscard]] constexpr std::uint64_t buffer_needed(std::uint64_t largest) {
    return kWindowBytes + ((largest + 7) / 8) * 8;
}

/// What the user asked for. All values are within their bounds and do not contradict each other.
struct Options {
    std::vector<std::uint64_t> sizes{65536};  ///< Bytes per read; not empty, no duplicates.
    std::uint64_t iterations = 1000;  ///< Reads per size and reader; unused with `duration`.
    std::optional<std::chrono::nanoseconds> duration;  ///< Of each throughput phase.
    std::uint32_t depth = 16;                          ///< Reads in flight per queue pair.
    std::uint32_t qps = 1;                             ///< Queue pairs per reader.
    std::optional<std::uint64_t> buffer;               ///< Bytes exposed, if the user chose.
    bool hugepages = false;                            ///< Buffers of both ends on huge pages.
    ReadPattern pattern = ReadPattern::star;
    int server = 0;                        ///< Rank of the server.
    std::uint32_t concurrency = 0;         ///< Readers that read at a time; 0: all.
    std::optional<std::string> server_ip;  ///< Literal IPv4 or IPv6 address, no scope.
    std::optional<std::string> interface;  ///< Network interface.
    std::optional<DeviceName> device;
    std::uint16_t port = 0;                                       ///< 0: any free port.
    std::chrono::nanoseconds timeout = std::chrono::seconds{30};  ///< A reader's whole budget.
    bool verify = true;                                           ///< Check every byte.
    bool self_test = false;           ///< Prove first that check and protection work.
    std::optional<std::string> json;  ///< A file, or "-" for stdout.
    Progress progress = Progress::automatic;

    [[nodiscard]] std::uint64_t largest_size() const;
    /// The kind of pages for buffers.
    [[nodiscard]] rdma::Pages pages() const {
        return hugepages ? rdma::Pages::huge : rdma::Pages::normal;
    }
    /// How long after it got the descriptor a reader may still be there while others wait for it:
    /// its own budget, which begins then, and time for a last check and its goodbye.
    [[nodiscard]] std::chrono::nanoseconds turn() const {
        return timeout + std::chrono::seconds{5};
    }
    /// How long a reader may have to wait for its turn, when `readers` come at once: 0 where all
    /// read at a time.
    [[nodiscard]] std::chrono::nanoseconds longest_wait(std::uint32_t readers) const;
    /// Bytes to expose: what the user chose, else the least that is needed.
    [[nodiscard]] std::uint64_t buffer_bytes() const;
};

using ParsedOptions = std::variant<Options, EarlyExit>;

/// Parses the command line of rdma_read_mpi. Prints nothing, reads no environment variable and
/// touches no file: every rank comes to the same result, wherever it runs.
[[nodiscard]] ParsedOptions parse_options(int argc, const char* const* argv);

/// What is wrong with the options for a job of `size` ranks, known only after MPI_Init: one line
/// with its newline, to end in exit code 2 on every rank.
[[nodiscard]] std::optional<std::string> contradiction_with_ranks(const Options& options, int size);

/// Why a report cannot be written where the options say: one line with its newline, to end in exit
/// code 2. Only for the process that writes it: other nodes need not have that folder. Creates
/// nothing.
[[nodiscard]] std::optional<std::string> contradiction_with_files(const Options& options);

/// The options as the report shows them: named as on the command line with _ for -, durations in
/// seconds, `buffer` as it is used, empty where nothing was chosen.
[[nodiscard]] verify::OptionMap options_for_report(const Options& options);

}  // namespace rdma_read::app
