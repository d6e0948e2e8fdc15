// Says where each read goes, checks what it brought, and keeps the count.
#pragma once

#include "rdma_read/verify/destination.hpp"
#include "rdma_read/verify/mismatch.hpp"
#include "rdma_read/verify/pattern.hpp"
#include "rdma_read/verify/run_id.hpp"
#include "rdma_read/verify/window.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace rdma_read::verify {

/// The two ways of reading that are measured (and checked) for each size.
enum class Phase : std::uint8_t {
    latency,     ///< one read at a time
    throughput,  ///< many reads in flight
};

/// "latency", "throughput".
[[nodiscard]] std::string_view to_string(Phase phase) noexcept;

/// The checks of one reader's reads of one size from one server.
///
/// For each read, in this order: next(slot), the read itself, finished(slot). A slot has one read
/// in flight at a time; different slots may be in flight together and finish in any order.
///
/// The memory of the slots belongs to the caller and outlives the checker. Not thread safe: one
/// thread calls it. Nothing allocates between construction and destruction while data is right.
class Checker {
  public:
    struct Config {
        RunId run{};
        std::uint32_t server_rank = 0;
        std::uint32_t ranks = 1;           ///< ranks in the run, to recognize another server's data
        std::uint64_t buffer_bytes = 0;    ///< length of the server's exposed buffer
        std::uint64_t read_bytes = 0;      ///< bytes of each read
        std::uint32_t slots = 1;           ///< reads in flight or being checked, at most
        bool verify = true;                ///< false: reads are counted and not looked at
        std::size_t keep_mismatches = 16;  ///< described at most; all are counted
    };

    /// Where a read comes from and where it lands.
    struct Target {
        std::uint64_t remote_offset = 0;  ///< bytes from the start of the exposed buffer
        std::span<std::byte> destination;
    };

    struct Counts {
        std::uint64_t reads = 0;             ///< finished, right or wrong
        std::uint64_t bytes_verified = 0;    ///< of reads whose every byte was right
        std::uint64_t mismatched_reads = 0;  ///< with at least one wrong byte
    };

    /// How much memory the slots of a configuration need, guard bytes included.
    /// Throws std::invalid_argument as Destination::bytes_needed().
    [[nodiscard]] static std::size_t bytes_needed(std::uint64_t read_bytes, std::uint32_t slots) {
        return Destination::bytes_needed(read_bytes, slots);
    }

    /// Prepares `memory` (see Destination) and starts in Phase::latency.
    /// Throws std::invalid_argument when the buffer is too short for a Window or `memory` too
    /// small.
    Checker(const Config& config, std::span<std::byte> memory);

    /// Begins a phase: its counts, and the numbers of its reads, start at 0.
    /// Precondition: no read is in flight.
    void begin_phase(Phase phase) noexcept;

    /// Where the next read of `slot` goes. Precondition: `slot` is less than Config::slots.
    [[nodiscard]] Target next(std::uint32_t slot) noexcept;

    /// Where the newest read of `slot` came from and landed. Precondition: next(slot) was called.
    [[nodiscard]] Target landed(std::uint32_t slot) noexcept {
        return {window_.recent(slot).front(), destination_.slot(slot)};
    }

    /// Takes a read as finished and checks its data; true when every byte is right (or when
    /// Config::verify is false). A failure to allocate loses descriptions of mismatches only, never
    /// counts. Precondition: next(slot) was called for this read.
    bool finished(std::uint32_t slot) noexcept;

    /// Counts of the current phase.
    [[nodiscard]] std::uint64_t reads() const noexcept { return counts().reads; }
    [[nodiscard]] std::uint64_t bytes_verified() const noexcept { return counts().bytes_verified; }
    [[nodiscard]] std::uint64_t mismatched_reads() const noexcept {
        return counts().mismatched_reads;
    }
    [[nodiscard]] const Counts& counts() const noexcept { return current_; }

    /// Counts of all phases so far, the current one included.
    [[nodiscard]] Counts total() const noexcept;

    /// The first Config::keep_mismatches stretches of wrong bytes, of all phases.
    [[nodiscard]] const std::vector<Mismatch>& mismatches() const noexcept { return mismatches_; }

    /// Whether nothing was written outside the slots.
    [[nodiscard]] bool guards_intact() const noexcept { return destination_.guards_intact(); }

  private:
    void describe(std::uint32_t slot, std::span<const std::byte> data, std::uint64_t offset);

    Config config_;
    Pattern pattern_;
    Window window_;
    Destination destination_;
    std::vector<std::uint64_t> read_numbers_;  // of the read in flight, by slot
    Phase phase_ = Phase::latency;
    std::uint64_t issued_ = 0;  // in the current phase
    Counts current_;
    Counts before_;  // of the phases before the current one
    std::vector<Mismatch> mismatches_;
};

}  // namespace rdma_read::verify
