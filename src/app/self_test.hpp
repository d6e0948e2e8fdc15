// What a reader proves before it reads: that its check finds what is wrong, and that the server's
// device keeps to what it exposes.
#pragma once

#include "rdma_read/rdma/deadline.hpp"
#include "rdma_read/rdma/read_client.hpp"
#include "rdma_read/rdma/read_stream.hpp"
#include "rdma_read/verify/checker.hpp"
#include "rdma_read/verify/result.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace rdma_read::app {

/// Looks at the data of a finished read; true when every byte is right. Every read of a reader goes
/// through the same one: check_read(), or what a test puts in its place.
using ReadCheck = bool (*)(verify::Checker& checker, std::uint32_t slot);

/// Checker::finished().
bool check_read(verify::Checker& checker, std::uint32_t slot) noexcept;

/// Queue pairs that a reader needs beside its own for reads that are refused: each of these breaks
/// the connection that it was tried on. They are numbered behind those of the reader.
inline constexpr std::uint32_t kThrowAwayQueuePairs = 2;

/// In which bits a wrong key differs from the right one: where a key is an index and a few bits
/// that change whenever the index is given out anew, the index is right.
inline constexpr std::uint32_t kWrongKeyBits = 1;

/// Something that a self-test disproved, as it goes into the reader's result.
struct Disproof {
    verify::Outcome outcome;
    std::string error;
    std::string hint;
};

/// Makes one read through slot 0 of the sink; throws rdma::Error if that fails.
using OneRead = std::function<void(rdma::ReadSink& sink)>;

/// Reads twice. The data of the first read must be found right. In the data of the second one byte
/// is changed, whose place depends on `rank`, and that must be found: one mismatch, of one byte, at
/// that offset. Fills in `proved`. Throws what `read` throws.
[[nodiscard]] std::optional<Disproof> test_check(verify::Checker& checker, std::uint32_t rank,
                                                 ReadCheck check, const OneRead& read,
                                                 verify::SelfTest& proved);

/// Tries a read with a wrong key, and one that passes the end of the exposed buffer, each on a
/// connection of its own beside those of `reader`. Fills in `proved`. Throws rdma::Error if one
/// of them cannot be tried, or ends in a way that proves nothing.
[[nodiscard]] std::optional<Disproof> test_protection(const rdma::ReadClientConfig& reader,
                                                      rdma::Deadline deadline,
                                                      verify::SelfTest& proved);

}  // namespace rdma_read::app
