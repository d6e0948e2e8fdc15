// Creates, posts to and destroys one queue pair.
#include "rdma_read/rdma/queue_pair.hpp"

#include "rdma_read/rdma/error.hpp"

#include <fmt/format.h>

namespace rdma_read::rdma {

namespace {

ibv_sge element(const MemoryRegion& region, std::span<const std::byte> memory) {
    ibv_sge sge{};
    sge.addr = reinterpret_cast<std::uintptr_t>(memory.data());
    sge.length = static_cast<std::uint32_t>(memory.size());
    sge.lkey = region.lkey();
    return sge;
}

// A receive or a send of one piece of memory.
template <class Request>
Request request_of(ibv_sge& sge, std::uint64_t wr_id) {
    Request request{};
    request.wr_id = wr_id;
    request.sg_list = &sge;
    request.num_sge = 1;
    return request;
}

}  // namespace

QueuePair::QueuePair(CmId& id, ibv_pd* pd, CompletionQueue& cq, std::uint32_t send_entries,
                     std::uint32_t receive_entries)
    : id_(id.get()) {
    ibv_qp_init_attr attributes{};
    attributes.qp_type = IBV_QPT_RC;
    attributes.send_cq = cq.get();
    attributes.recv_cq = cq.get();
    attributes.cap.max_send_wr = send_entries;
    attributes.cap.max_recv_wr = receive_entries;
    attributes.cap.max_send_sge = 1;
    attributes.cap.max_recv_sge = 1;
    check_minus_one(rdma_create_qp(id_, pd, &attributes),
                    {Phase::setup, "rdma_create_qp",
                     fmt::format("{} send and {} receive entries on {}", send_entries,
                                 receive_entries, device_name(id_->verbs))});
    qp_ = id_->qp;
}

QueuePair::~QueuePair() {
    rdma_destroy_qp(id_);
}

void QueuePair::post_receive(const MemoryRegion& region, std::span<std::byte> memory,
                             std::uint64_t wr_id) {
    ibv_sge sge = element(region, memory);
    auto request = request_of<ibv_recv_wr>(sge, wr_id);
    ibv_recv_wr* bad = nullptr;
    check_errno_value(ibv_post_recv(qp_, &request, &bad), {Phase::setup, "ibv_post_recv", ""});
}

void QueuePair::post_send(const MemoryRegion& region, std::span<const std::byte> memory,
                          std::uint64_t wr_id) {
    ibv_sge sge = element(region, memory);
    auto request = request_of<ibv_send_wr>(sge, wr_id);
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    check_errno_value(post_list(&request), {Phase::descriptor, "ibv_post_send", ""});
}

std::uint32_t QueuePair::path_mtu() const noexcept {
    ibv_qp_attr attributes{};
    ibv_qp_init_attr initial{};
    if (ibv_query_qp(qp_, &attributes, IBV_QP_PATH_MTU, &initial) != 0
        || attributes.path_mtu < IBV_MTU_256 || attributes.path_mtu > IBV_MTU_4096) {
        return 0;
    }
    return 128U << static_cast<unsigned int>(attributes.path_mtu);
}

}  // namespace rdma_read::rdma
