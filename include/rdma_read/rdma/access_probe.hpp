// A read that the peer's device has to refuse.
#pragma once

#include "rdma_read/rdma/deadline.hpp"
#include "rdma_read/rdma/read_client.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace rdma_read::rdma {

/// A read as it is to be tried, whether or not a server ever allowed it.
struct ForbiddenRead {
    std::uint64_t address = 0;
    std::uint32_t rkey = 0;
    std::span<std::byte> destination;  ///< in the client's destination region
};

/// Tries the read alone on the client's first queue pair. True: the peer's device refused it, which
/// is proved by a remote access error or a remote invalid request only. False: it let it through.
///
/// A refused read breaks its queue pair, so the client is of no more use than to disconnect.
///
/// Throws Error of Phase::read when neither is proved: time was up, the connection ended, or the
/// read failed for another reason, such as a peer that did not answer.
[[nodiscard]] bool device_refuses(ReadClient& client, const ForbiddenRead& read, Deadline deadline);

}  // namespace rdma_read::rdma
