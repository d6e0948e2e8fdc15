// Posts reads as linked lists, takes completions in batches, refills.
#include "rdma_read/rdma/read_stream.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rdma_read::rdma {

namespace {

std::string hint_for(ibv_wc_status status) {
    switch (status) {
        case IBV_WC_REM_ACCESS_ERR:
            return "the server's device refused: the rkey, the address or the access rights of the "
                   "exposed buffer are wrong; compare builds on both hosts, and check the NIC's "
                   "firmware";
        case IBV_WC_RETRY_EXC_ERR:
            return "the server did not answer: its process or host died, or the link is down or "
                   "loses packets; check: rdma link, ping, and the port counters (rdma statistic)";
        case IBV_WC_RNR_RETRY_EXC_ERR:
            return "the server posts no receives; it may be stuck";
        case IBV_WC_LOC_PROT_ERR:
            return "the local buffer is not registered for this; that is a bug in this program or "
                   "its driver";
        case IBV_WC_WR_FLUSH_ERR:
            return "the connection ended first; look at the server's output";
        default:
            return "look at dmesg on both hosts";
    }
}

}  // namespace

ReadStream::ReadStream(ReadClient& client)
    : client_(client),
      slots_(client.send_entries()),
      requests_(client.send_entries()),
      elements_(client.send_entries()),
      completions_(client.send_entries()) {
    free_slots_.reserve(slots_.size());
}

std::optional<ReadFailure> ReadStream::check_range(const ReadRequest& request) const {
    const RemoteBuffer& remote = client_.remote();
    if (request.destination.size() > remote.length
        || request.remote_offset > remote.length - request.destination.size()) {
        return ReadFailure{
            Failure::protocol,
            fmt::format("the server exposes {} bytes, too few to read {} at {}", remote.length,
                        request.destination.size(), request.remote_offset),
            "both ends must be of the same build and run"};
    }
    return std::nullopt;
}

ReadFailure ReadStream::completion_failure(const ibv_wc& completion) const {
    return {Failure::read,
            fmt::format("read from {}: work completion {} ({}), vendor error {:#x}",
                        client_.path().remote_address, ibv_wc_status_str(completion.status),
                        static_cast<int>(completion.status), completion.vendor_err),
            hint_for(completion.status)};
}

std::optional<ReadFailure> ReadStream::await_completions(std::span<ibv_wc>& done,
                                                         Deadline deadline) {
    try {
        switch (client_.wait(completions_, done, deadline)) {
            case WaitEnd::completions:
                return std::nullopt;
            case WaitEnd::disconnected:
                return ReadFailure{
                    Failure::disconnected,
                    fmt::format("{} disconnected while reads were in flight",
                                client_.path().remote_address),
                    "the server ended; look at its output, and at dmesg on its host"};
            case WaitEnd::stopped:
                return stopped_failure();
            case WaitEnd::timeout:
                break;
        }
    } catch (const Error& error) {
        return ReadFailure{error.failure(), error.what(), error.hint()};
    }
    return timeout_failure();
}

ReadFailure ReadStream::timeout_failure() const {
    return {Failure::timeout,
            fmt::format("reads from {} did not complete before the deadline",
                        client_.path().remote_address),
            "the server or the link is stuck or slow; check both, or give more time with "
            "--timeout"};
}

ReadFailure ReadStream::stopped_failure() const {
    return {Failure::stopped,
            fmt::format("stopped while reading from {}", client_.path().remote_address), ""};
}

StreamSummary ReadStream::run(ReadSink& sink, const StreamPlan& plan, Deadline deadline) {
    StreamSummary summary;
    if (in_flight_ > 0) {
        // Their late completions would pass for those of this run's reads.
        summary.failure = ReadFailure{
            Failure::read, "reads of an earlier, failed run are still in flight", "connect again"};
        return summary;
    }
    const auto capacity = static_cast<std::uint32_t>(requests_.size());
    const std::uint32_t slot_count = std::clamp<std::uint32_t>(plan.slots, 1, capacity);
    free_slots_.clear();
    for (std::uint32_t slot = slot_count; slot > 0; --slot) {
        free_slots_.push_back(slot - 1);
    }
    std::uint64_t begun = 0;
    constexpr std::uint32_t kNone = ~0U;
    std::uint32_t being_posted = kNone;

    const auto wants_more = [&] {
        // However short the time, there is a first read.
        return (plan.reads == 0 || begun < plan.reads)
               && (begun == 0 || !plan.until || !plan.until->expired());
    };

    const auto started = Deadline::Clock::now();
    auto last_completion = started;
    for (;;) {
        // Reads that complete all the time never let a wait see its deadline or a request to stop.
        const bool late = last_completion >= deadline.at();
        if ((late || client_.stop_requested())
            && (in_flight_ > 0 || being_posted != kNone || wants_more())) {
            summary.failure = late ? timeout_failure() : stopped_failure();
            return summary;
        }
        // One list of all that fits: one doorbell for many reads.
        std::uint32_t listed = 0;
        while (in_flight_ + listed < capacity) {
            if (being_posted == kNone) {
                if (free_slots_.empty() || !wants_more()) {
                    break;
                }
                being_posted = free_slots_.back();
                free_slots_.pop_back();
                Slot& slot = slots_[being_posted];
                slot = Slot{sink.next(being_posted), 0, 0};
                summary.failure = check_range(slot.request);
                if (summary.failure) {
                    return summary;
                }
                ++begun;
            }
            Slot& slot = slots_[being_posted];
            const std::uint64_t length = std::min<std::uint64_t>(
                slot.request.destination.size() - slot.posted_bytes, client_.max_message());
            ibv_sge& element = elements_[listed];
            element.addr = reinterpret_cast<std::uintptr_t>(slot.request.destination.data())
                           + slot.posted_bytes;
            element.length = static_cast<std::uint32_t>(length);
            element.lkey = client_.destination().lkey();
            ibv_send_wr& request = requests_[listed];
            request = {};
            request.wr_id = being_posted;
            request.sg_list = &element;
            request.num_sge = 1;
            request.opcode = IBV_WR_RDMA_READ;
            request.send_flags = IBV_SEND_SIGNALED;
            request.wr.rdma.remote_addr =
                client_.remote().address + slot.request.remote_offset + slot.posted_bytes;
            request.wr.rdma.rkey = client_.remote().rkey;
            if (listed > 0) {
                requests_[listed - 1].next = &request;
            }
            slot.posted_bytes += length;
            ++slot.requests_in_flight;
            ++listed;
            if (slot.posted_bytes == slot.request.destination.size()) {
                being_posted = kNone;
            }
        }
        if (listed > 0) {
            // Counted also when the post fails: those before the one that failed are in flight.
            in_flight_ += listed;
            if (const int result = client_.queue_pair().post_list(requests_.data()); result != 0) {
                summary.failure = ReadFailure{
                    Failure::read, fmt::format("ibv_post_send: {}", errno_text(result)),
                    "the connection may have ended; look at the server's output and dmesg"};
                return summary;
            }
        }
        if (in_flight_ == 0) {
            break;
        }

        std::span<ibv_wc> done;
        summary.failure = await_completions(done, deadline);
        if (summary.failure) {
            return summary;
        }
        last_completion = Deadline::Clock::now();
        for (const ibv_wc& completion : done) {
            if (completion.status != IBV_WC_SUCCESS) {
                summary.failure = completion_failure(completion);
                return summary;
            }
            const auto index = static_cast<std::uint32_t>(completion.wr_id);
            Slot& slot = slots_[index];
            --in_flight_;
            --slot.requests_in_flight;
            if (slot.requests_in_flight == 0
                && slot.posted_bytes == slot.request.destination.size()) {
                sink.finished(index);
                free_slots_.push_back(index);
                ++summary.reads;
            }
        }
    }
    summary.duration = last_completion - started;
    return summary;
}

StreamSummary ReadStream::run_one(ReadSink& sink, Deadline deadline) {
    StreamPlan plan;
    plan.reads = 1;
    return run(sink, plan, deadline);
}

}  // namespace rdma_read::rdma
