// Combines pattern, window and destination into the check of one reader's reads.
#include "rdma_read/verify/checker.hpp"

#include "rdma_read/verify/diagnosis.hpp"

#include <algorithm>
#include <exception>
#include <iterator>

namespace rdma_read::verify {

std::string_view to_string(Phase phase) noexcept {
    return phase == Phase::latency ? "latency" : "throughput";
}

Checker::Checker(const Config& config, std::span<std::byte> memory)
    : config_(config),
      pattern_(config.run, config.server_rank),
      window_(config.buffer_bytes, config.read_bytes, config.slots),
      destination_(memory, config.read_bytes, config.slots),
      read_numbers_(config.slots) {}

void Checker::begin_phase(Phase phase) noexcept {
    before_ = total();
    current_ = {};
    issued_ = 0;
    phase_ = phase;
}

Checker::Target Checker::next(std::uint32_t slot) noexcept {
    const bool first = window_.recent(slot).empty();
    const Target target{window_.next(slot), destination_.slot(slot)};
    // A few bytes of a slot that was never written can be right by chance. Then their complement is
    // not, so that a first read which writes nothing is always noticed.
    if (first && pattern_.matches(target.destination, target.remote_offset)) {
        std::ranges::transform(target.destination, target.destination.begin(),
                               [](std::byte value) { return ~value; });
    }
    read_numbers_[slot] = issued_++;
    return target;
}

bool Checker::finished(std::uint32_t slot) noexcept {
    ++current_.reads;
    if (!config_.verify) {
        return true;
    }
    const std::span<const std::byte> data = destination_.slot(slot);
    const std::uint64_t offset = window_.recent(slot).front();
    if (pattern_.matches(data, offset)) {
        current_.bytes_verified += data.size();
        return true;
    }
    ++current_.mismatched_reads;
    try {
        describe(slot, data, offset);
    } catch (const std::exception&) {
        // Out of memory: the read is counted as wrong, only its description is lost.
        return false;
    }
    return false;
}

Checker::Counts Checker::total() const noexcept {
    return {before_.reads + current_.reads, before_.bytes_verified + current_.bytes_verified,
            before_.mismatched_reads + current_.mismatched_reads};
}

void Checker::describe(std::uint32_t slot, std::span<const std::byte> data, std::uint64_t offset) {
    const std::size_t room =
        config_.keep_mismatches - std::min(config_.keep_mismatches, mismatches_.size());
    if (room == 0) {
        return;
    }
    const DiagnosisContext context{pattern_,      config_.buffer_bytes,
                                   config_.run,   config_.server_rank,
                                   config_.ranks, window_.recent(slot).subspan(1)};
    auto found = diagnose(context, data, offset, room);
    for (Mismatch& mismatch : found) {
        mismatch.read = read_numbers_[slot];
        mismatch.phase = to_string(phase_);
    }
    mismatches_.insert(mismatches_.end(), std::make_move_iterator(found.begin()),
                       std::make_move_iterator(found.end()));
}

}  // namespace rdma_read::verify
