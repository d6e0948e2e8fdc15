// Says what is wrong with data that did not match, and where.
#pragma once

#include "rdma_read/verify/mismatch.hpp"
#include "rdma_read/verify/pattern.hpp"
#include "rdma_read/verify/run_id.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rdma_read::verify {

/// What is known about a read besides its data. Refers to memory of the caller.
struct DiagnosisContext {
    const Pattern& expected;                         ///< of the server that was read
    std::uint64_t buffer_bytes;                      ///< length of its exposed buffer
    RunId run;                                       ///< this run
    std::uint32_t server_rank;                       ///< rank of the server that was read
    std::uint32_t ranks;                             ///< ranks in this run, any of which may serve
    std::span<const std::uint64_t> earlier_offsets;  ///< of the slot's earlier reads, newest first
};

/// Finds every stretch of wrong bytes in `data`, read from byte `offset` (a multiple of 8) of the
/// exposed buffer, and says what it looks like. At most `limit` stretches, in order of offset;
/// empty when all bytes are right. `read` and `phase` of the answers are left to the caller.
///
/// The data is looked at word by word. A word with wrong bytes is, by the first rule that holds:
///
///  1. more of the stretch before it, when that stretch's source predicts this word as well (the
///     last word may be wrong in its first bytes only: the wrong data ended inside it);
///  2. stale, untouched or zeros, when every byte from the word's first wrong byte to its last is
///     what that would have left there, and these are at least two bytes or the whole word;
///  3. when more than one byte is wrong, and the whole word is a word of the server's own pattern
///     at a place inside the buffer, in whole words or displaced by some bytes: shifted; of another
///     rank's: other server; when the next word follows it by exactly Pattern::kStep: other run;
///  4. the beginning of the stretch after it, when its wrong bytes reach up to that stretch and
///     are what that stretch's source predicts;
///  5. unknown, when at least three quarters of its bytes are wrong (half of them, when the word
///     before is unknown as well); right ones among them are right by chance;
///  6. otherwise each group of neighbouring wrong bytes is a stretch of its own: a bit flip when it
///     is one byte or when every byte of it has one wrong bit, else unknown.
///
/// Neighbouring stretches of one source are one stretch, from its first wrong byte to its last.
///
/// A last word of less than eight bytes, which is also the only word of a small read, goes by the
/// same rules as far as its bytes are evidence: the place of a word of n bytes is known modulo
/// 2^(8n) only, so rule 3 applies when a word by chance inside the buffer is rarer than one in
/// 65536, and never to fewer than four bytes. A single byte is stale, untouched, zeros or a bit
/// flip.
///
/// Takes time in proportion to the data: the search among the other ranks is bounded for data in
/// which nothing is recognized. Allocates; throws std::bad_alloc only.
[[nodiscard]] std::vector<Mismatch> diagnose(const DiagnosisContext& context,
                                             std::span<const std::byte> data, std::uint64_t offset,
                                             std::size_t limit);

}  // namespace rdma_read::verify
