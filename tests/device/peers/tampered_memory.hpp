// Faults in what a server exposes: a right buffer with something wrong in it.
#pragma once

#include "rdma_read/verify/run_id.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace rdma_read::test {

/// Whose payload is tampered with.
struct Payload {
    verify::RunId run{};
    std::uint32_t rank = 0;
};

/// Puts a fault into memory that is filled with the payload; false if the name is not one of these:
///   wrong-byte:OFFSET                one byte, all bits inverted
///   flip-bit:OFFSET:BIT              one bit of one byte
///   zeros:OFFSET:LENGTH              zeros
///   shift:OFFSET:LENGTH:FROM         what belongs to offset FROM
///   other-rank:OFFSET:LENGTH:RANK    what another server of the run would expose there
///   other-run:OFFSET:LENGTH          what a server of another run would expose there
///   stale:SIZE                       where the second read of SIZE bytes of a one-slot reader
///                                    goes, the data of its first read
/// \throws std::invalid_argument for a fault whose numbers do not fit
bool tamper(const std::string& text, const Payload& payload, std::span<std::byte> memory);

}  // namespace rdma_read::test
