// A reliable connected queue pair on a connection manager id.
#pragma once

#include "rdma_read/rdma/cm_id.hpp"
#include "rdma_read/rdma/completion_queue.hpp"
#include "rdma_read/rdma/memory_region.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rdma_read::rdma {

/// The lowest bit of a message's wr_id says in its completion what it was; the rest is the
/// caller's.
inline constexpr std::uint64_t kReceiveBit = 0;
inline constexpr std::uint64_t kSendBit = 1;

/// Owns the queue pair of an id. Everything it was made from must outlive it. The connection
/// manager moves it through its states (rdma_create_qp(3)). Only one thread may use it at a time.
class QueuePair {
  public:
    /// Throws Error.
    QueuePair(CmId& id, ibv_pd* pd, CompletionQueue& cq, std::uint32_t send_entries,
              std::uint32_t receive_entries);
    QueuePair(const QueuePair&) = delete;
    QueuePair& operator=(const QueuePair&) = delete;
    QueuePair(QueuePair&&) = delete;
    QueuePair& operator=(QueuePair&&) = delete;
    ~QueuePair();

    /// Posts one receive into `memory`, which must lie in `region`. Throws Error.
    void post_receive(const MemoryRegion& region, std::span<std::byte> memory, std::uint64_t wr_id);
    /// Posts one signaled send of `memory`, which must lie in `region`. Throws Error.
    void post_send(const MemoryRegion& region, std::span<const std::byte> memory,
                   std::uint64_t wr_id);
    /// Posts a linked list of work requests with one doorbell. Returns 0 or the errno of
    /// ibv_post_send(3); requests before the one that failed are in flight.
    [[nodiscard]] int post_list(ibv_send_wr* first) noexcept {
        ibv_send_wr* bad = nullptr;
        const int result = ibv_post_send(qp_, first, &bad);
        return result < 0 ? errno : result;  // a few old providers return -1 and set errno
    }

    /// Path MTU in bytes, 0 if the device does not tell.
    [[nodiscard]] std::uint32_t path_mtu() const noexcept;
    [[nodiscard]] std::uint32_t number() const noexcept { return qp_->qp_num; }

  private:
    rdma_cm_id* id_;
    ibv_qp* qp_ = nullptr;
};

}  // namespace rdma_read::rdma
