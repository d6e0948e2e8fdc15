// One stretch of wrong bytes in the data of one read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rdma_read::verify {

/// What wrong bytes look like; diagnosis.hpp says how it is decided.
enum class MismatchKind : std::uint8_t {
    untouched,     ///< no read ever wrote here
    stale,         ///< the data of an earlier read into the same slot
    shifted,       ///< the right server's data, from another offset
    other_server,  ///< the data of another server of this run
    other_run,     ///< a pattern of the right form but of a run that is not this one
    bit_flip,      ///< bytes that differ while their neighbours are right
    zeros,         ///< zero bytes
    unknown,       ///< none of these
};

/// "untouched", "stale", "shifted", "other server", "other run", "bit flip", "zeros", "unknown".
[[nodiscard]] std::string_view to_string(MismatchKind kind) noexcept;

/// One stretch of wrong bytes in the data of one read.
struct Mismatch {
    std::uint64_t read = 0;    ///< number of the read in its phase, from 0, in the order of issue
    std::uint64_t offset = 0;  ///< byte offset in the exposed buffer of the first wrong byte
    std::uint64_t length = 0;  ///< bytes from the first wrong byte to the last one
    MismatchKind kind = MismatchKind::unknown;
    std::string detail;  ///< half a sentence for a person: whose data it is, which bits differ
    std::string phase;   ///< "latency" or "throughput"
};

}  // namespace rdma_read::verify
