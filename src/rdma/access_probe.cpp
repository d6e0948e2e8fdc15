// Posts one read and tells a refusal from every other end.
#include "rdma_read/rdma/access_probe.hpp"

#include "rdma_read/rdma/error.hpp"

#include <fmt/format.h>

#include <array>

namespace rdma_read::rdma {

namespace {

Error undecided(Failure failure, const std::string& what, int code = 0) {
    return {failure, Phase::read, fmt::format("a read that was to be refused: {}", what),
            "whether the device refuses such reads is not known; look at the server's output and "
            "at the link",
            code};
}

}  // namespace

bool device_refuses(ReadClient& client, const ForbiddenRead& read, Deadline deadline) {
    ibv_sge element{};
    element.addr = reinterpret_cast<std::uintptr_t>(read.destination.data());
    element.length = static_cast<std::uint32_t>(read.destination.size());
    element.lkey = client.destination().lkey();
    ibv_send_wr request{};
    request.sg_list = &element;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_READ;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma.remote_addr = read.address;
    request.wr.rdma.rkey = read.rkey;
    if (const int result = client.queue_pair(0).post_list(&request); result != 0) {
        throw undecided(Failure::read, fmt::format("ibv_post_send: {}", errno_text(result)),
                        result);
    }
    std::array<ibv_wc, 1> completions{};
    std::span<ibv_wc> done;
    switch (client.wait(completions, done, deadline)) {
        case WaitEnd::completions:
            break;
        case WaitEnd::disconnected:
            throw undecided(Failure::disconnected, "the connection ended without an answer");
        case WaitEnd::timeout:
            throw undecided(Failure::timeout, "there was no answer before the deadline");
        case WaitEnd::stopped:
            throw undecided(Failure::stopped, "stopped before there was an answer");
    }
    switch (const ibv_wc_status status = done.front().status) {
        case IBV_WC_REM_ACCESS_ERR:
        case IBV_WC_REM_INV_REQ_ERR:
            return true;
        case IBV_WC_SUCCESS:
            return false;
        default:
            throw undecided(Failure::read,
                            fmt::format("work completion {} ({})", ibv_wc_status_str(status),
                                        static_cast<int>(status)),
                            static_cast<int>(status));
    }
}

}  // namespace rdma_read::rdma
