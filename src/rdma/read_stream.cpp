// Posts reads as linked lists, takes completions in batches, refills.
#include "rdma_read/rdma/read_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rdma_read::rdma {

namespace {

// Reads that arrive unsaid wait for the next that says so, and the checker finds what is not more
// than this together still in the processor's cache.
constexpr std::uint64_t kSilentBytes = std::uint64_t{32} * 1024;

// A request's identifier is its slot, with this added unless it is the last of its read. The others
// of a read are not told apart: it is complete with its last.
constexpr std::uint64_t kMoreFollows = 1ULL << 63U;

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

// What a run is at.
struct ReadStream::Run {
    ReadSink& sink;
    const StreamPlan& plan;
    StreamSummary& summary;
    std::uint32_t limit = 1;  // reads in flight
    std::uint64_t begun = 0;
    std::uint64_t completed = 0;
    bool time_left = true;

    [[nodiscard]] bool wants_more() const noexcept {
        // However short the time, there is a first read.
        return (plan.reads == 0 || begun < plan.reads) && (begun == 0 || time_left);
    }
    // How many reads may begin now.
    [[nodiscard]] std::uint64_t room() const noexcept {
        if (!wants_more()) {
            return 0;
        }
        const std::uint64_t places = limit - (begun - completed);
        const std::uint64_t wanted =
            plan.reads == 0 ? places : std::min(places, plan.reads - begun);
        return time_left ? wanted : std::min<std::uint64_t>(wanted, 1);
    }
};

namespace {

// The middle of a timed run, from look to look: reads that completed unseen before its begin do not
// count, and neither does the time before the first look.
class SteadyWindow {
  public:
    SteadyWindow(Deadline::Clock::time_point started, const std::optional<Deadline>& until) {
        if (until && until->at() > started) {
            const auto tenth = (until->at() - started) / 10;
            begin_ = started + tenth;
            end_ = until->at() - tenth;
        }
    }
    void look(Deadline::Clock::time_point now, std::uint64_t completed, StreamSummary& summary) {
        if (now < begin_ || now > end_) {
            return;
        }
        if (!looked_) {
            looked_ = true;
            first_ = now;
            completed_at_first_ = completed;
        }
        summary.steady_reads = completed - completed_at_first_;
        summary.steady_duration = now - first_;
    }

  private:
    Deadline::Clock::time_point begin_ = Deadline::Clock::time_point::max();
    Deadline::Clock::time_point end_ = Deadline::Clock::time_point::min();
    Deadline::Clock::time_point first_;
    bool looked_ = false;
    std::uint64_t completed_at_first_ = 0;
};

}  // namespace

void ReadStream::Lane::signal_last() noexcept {
    if (silent > 0) {
        const std::uint32_t end = used();
        requests[place(end - 1)].send_flags = IBV_SEND_SIGNALED;
        reported_together[place(end - silent)] = silent;
        silent = 0;
        silent_bytes = 0;
    }
}

// What is the same whenever a place is used is written once.
ReadStream::Lane::Lane(ReadClient& client, std::uint32_t queue_pair)
    : qp(client.queue_pair(queue_pair)),
      requests(client.send_entries()),
      elements(client.send_entries()),
      reported_together(client.send_entries()) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
        elements[i].lkey = client.destination().lkey();
        ibv_send_wr& request = requests[i];
        request.next = &requests[(i + 1) % requests.size()];
        request.sg_list = &elements[i];
        request.num_sge = 1;
        request.opcode = IBV_WR_RDMA_READ;
        request.wr.rdma.rkey = client.remote().rkey;
    }
}

ReadStream::ReadStream(ReadClient& client)
    : client_(client),
      capacity_(client.send_entries() * client.queue_pairs()),
      // As many as can be in flight, and as many again that are checked meanwhile.
      lane_of_slot_(2 * std::size_t{capacity_}),
      completions_(capacity_) {
    lanes_.reserve(client.queue_pairs());
    for (std::uint32_t i = 0; i < client.queue_pairs(); ++i) {
        lanes_.emplace_back(client, i);
    }
    free_slots_.reserve(lane_of_slot_.size());
    finished_slots_.reserve(lane_of_slot_.size());
}

bool ReadStream::is_exposed(const ReadRequest& request) const noexcept {
    const RemoteBuffer& remote = client_.remote();
    return request.destination.size() <= remote.length
           && request.remote_offset <= remote.length - request.destination.size();
}

ReadFailure ReadStream::range_failure(const ReadRequest& request) const {
    return {Failure::protocol,
            fmt::format("the server exposes {} bytes, too few to read {} at {}",
                        client_.remote().length, request.destination.size(), request.remote_offset),
            "both ends must be of the same build and run"};
}

ReadFailure ReadStream::completion_failure(const ibv_wc& completion) const {
    return {Failure::read,
            fmt::format("read from {}: work completion {} ({}), vendor error {:#x}",
                        client_.path().remote_address, ibv_wc_status_str(completion.status),
                        static_cast<int>(completion.status), completion.vendor_err),
            hint_for(completion.status)};
}

ReadFailure ReadStream::order_failure() const {
    return {Failure::read,
            fmt::format("reads from {}: a work completion came for another read than the next in "
                        "order",
                        client_.path().remote_address),
            "a queue pair completes its reads in order: that is a bug in this program or its "
            "driver"};
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
                    fmt::format("the connection to {} ended while reads were in flight ({})",
                                client_.path().remote_address, client_.ended_by()),
                    "the server ended, or a device went away; look at the server's output, and at "
                    "dmesg on both hosts"};
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

std::optional<ReadFailure> ReadStream::cut_short(Deadline::Clock::time_point now,
                                                 Deadline deadline) const {
    if (now >= deadline.at()) {
        return timeout_failure();
    }
    return client_.stop_requested() ? std::optional(stopped_failure()) : std::nullopt;
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

ReadStream::Lane* ReadStream::emptiest_lane() noexcept {
    const auto found = std::ranges::min_element(lanes_, {}, &Lane::used);
    return found->has_room() ? &*found : nullptr;
}

void ReadStream::list_requests(Lane& lane, std::uint32_t slot, ReadRequest request) noexcept {
    for (;;) {
        const std::uint64_t length =
            std::min<std::uint64_t>(request.destination.size(), client_.max_message());
        const bool is_last = length == request.destination.size();
        const std::size_t place = lane.place(lane.used());
        ibv_sge& element = lane.elements[place];
        element.addr = reinterpret_cast<std::uintptr_t>(request.destination.data());
        element.length = static_cast<std::uint32_t>(length);
        ibv_send_wr& work = lane.requests[place];
        work.wr_id = is_last ? slot : slot | kMoreFollows;
        work.send_flags = 0;
        work.wr.rdma.remote_addr = client_.remote().address + request.remote_offset;
        ++lane.listed;
        ++lane.silent;
        lane.silent_bytes += length;
        if (lane.silent >= signal_every_ || lane.silent_bytes >= kSilentBytes) {
            lane.signal_last();
        }
        if (is_last) {
            return;
        }
        request = {request.remote_offset + length, request.destination.subspan(length)};
        if (!lane.has_room()) {
            lane.unfinished = Rest{slot, request};
            return;
        }
    }
}

std::optional<ReadFailure> ReadStream::list_reads(Run& run) {
    for (Lane& lane : lanes_) {
        if (lane.unfinished && lane.has_room()) {
            const Rest rest = *lane.unfinished;
            lane.unfinished.reset();
            list_requests(lane, rest.slot, rest.request);
        }
    }
    for (auto left = std::min<std::uint64_t>(run.room(), free_slots_.size()); left > 0; --left) {
        // A lane with room has nothing unfinished: that would have filled it.
        Lane* const lane = emptiest_lane();
        if (lane == nullptr) {
            break;
        }
        const std::uint32_t slot = free_slots_.back();
        free_slots_.pop_back();
        const ReadRequest request = run.sink.next(slot);
        if (!is_exposed(request)) {
            return range_failure(request);
        }
        ++run.begun;
        lane_of_slot_[slot] = static_cast<std::uint32_t>(lane - lanes_.data());
        list_requests(*lane, slot, request);
    }
    return std::nullopt;
}

std::optional<ReadFailure> ReadStream::post_lists() {
    for (Lane& lane : lanes_) {
        if (lane.listed == 0) {
            continue;
        }
        lane.signal_last();
        ibv_send_wr& first = lane.requests[lane.place(lane.in_flight)];
        ibv_send_wr& last = lane.requests[lane.place(lane.used() - 1)];
        // Counted also when the post fails: those before the one that failed are in flight.
        lane.in_flight += lane.listed;
        in_flight_ += lane.listed;
        lane.listed = 0;
        ibv_send_wr* const next = std::exchange(last.next, nullptr);
        const int result = lane.qp.post_list(&first);
        last.next = next;
        if (result != 0) {
            return ReadFailure{
                Failure::read, fmt::format("ibv_post_send: {}", errno_text(result)),
                "the connection may have ended; look at the server's output and dmesg"};
        }
    }
    return std::nullopt;
}

std::optional<ReadFailure> ReadStream::refill(Run& run) {
    if (auto failure = list_reads(run)) {
        return failure;
    }
    return post_lists();
}

std::optional<ReadFailure> ReadStream::take(Run& run, std::span<const ibv_wc> completions) {
    const std::uint32_t in_flight = in_flight_;
    for (const ibv_wc& completion : completions) {
        if (auto failure = take(run, completion)) {
            return failure;
        }
    }
    // A read that has arrived unsaid holds up the next one, so where reads arrive one by one each
    // is reported. Where many are found at a time the processor is what they wait for, and two
    // reports for so many are enough.
    const auto found = static_cast<std::size_t>(in_flight - in_flight_);
    signal_every_ =
        static_cast<std::uint32_t>(std::max<std::size_t>(found / (2 * lanes_.size()), 1));
    return std::nullopt;
}

std::optional<ReadFailure> ReadStream::take(Run& run, const ibv_wc& completion) {
    const std::uint64_t slot = completion.wr_id & ~kMoreFollows;
    Lane* const lane = slot < lane_of_slot_.size() ? &lanes_[lane_of_slot_[slot]] : nullptr;
    if (completion.status != IBV_WC_SUCCESS) {
        if (lane != nullptr) {
            take_before(run, *lane, completion.wr_id);
        }
        return completion_failure(completion);
    }
    // A success is the last of those that it speaks for.
    const std::uint32_t together = lane == nullptr ? 0 : lane->together();
    if (together == 0 || lane->requests[lane->place(together - 1)].wr_id != completion.wr_id) {
        return order_failure();
    }
    take_oldest(run, *lane, together);
    return std::nullopt;
}

void ReadStream::take_before(Run& run, Lane& lane, std::uint64_t failed) {
    // Any request may report a failure, and those before it have arrived all the same.
    for (std::uint32_t nth = 0; nth < lane.together(); ++nth) {
        if (lane.requests[lane.place(nth)].wr_id == failed) {
            take_oldest(run, lane, nth);
            return;
        }
    }
}

void ReadStream::take_oldest(Run& run, Lane& lane, std::uint32_t count) {
    for (std::uint32_t nth = 0; nth < count; ++nth) {
        const std::uint64_t id = lane.requests[lane.place(nth)].wr_id;
        if ((id & kMoreFollows) == 0) {
            ++run.completed;
            finished_slots_.push_back(static_cast<std::uint32_t>(id));
        }
    }
    lane.oldest = lane.place(count);
    lane.in_flight -= count;
    in_flight_ -= count;
}

void ReadStream::hand_over(Run& run) {
    for (const std::uint32_t slot : finished_slots_) {
        run.sink.finished(slot);
    }
    run.summary.reads += finished_slots_.size();
    free_slots_.insert(free_slots_.end(), finished_slots_.begin(), finished_slots_.end());
    finished_slots_.clear();
}

std::optional<ReadFailure> ReadStream::begin(std::uint32_t slot_count) {
    if (in_flight_ > 0) {
        // Their late completions would pass for those of this run's reads.
        return ReadFailure{Failure::read, "reads of an earlier, failed run are still in flight",
                           "connect again"};
    }
    signal_every_ = 1;
    free_slots_.clear();
    finished_slots_.clear();
    for (std::uint32_t slot = slot_count; slot > 0; --slot) {
        free_slots_.push_back(slot - 1);
    }
    for (Lane& lane : lanes_) {
        lane.listed = 0;
        lane.silent = 0;
        lane.silent_bytes = 0;
        lane.unfinished.reset();
    }
    return std::nullopt;
}

StreamSummary ReadStream::run(ReadSink& sink, const StreamPlan& plan, Deadline deadline) {
    StreamSummary summary;
    const std::uint32_t wanted = std::max<std::uint32_t>(plan.slots, 1);
    const std::uint32_t limit =
        std::min({plan.in_flight == 0 ? wanted : plan.in_flight, wanted, capacity_});
    const std::uint32_t slot_count = plan.in_flight == 0 ? limit : std::min(wanted, 2 * limit);
    summary.failure = begin(slot_count);
    if (summary.failure) {
        return summary;
    }

    Run run{sink, plan, summary, limit};
    const auto started = Deadline::Clock::now();
    SteadyWindow window(started, plan.until);
    auto last_completion = started;
    for (;;) {
        // Checking takes time too.
        run.time_left = !plan.until || !plan.until->expired();
        if (in_flight_ > 0 || run.wants_more()) {
            summary.failure = cut_short(last_completion, deadline);
        }
        if (!summary.failure) {
            summary.failure = refill(run);
        }
        if (summary.failure || in_flight_ == 0) {
            break;
        }
        std::span<ibv_wc> done;
        summary.failure = await_completions(done, deadline);
        last_completion = Deadline::Clock::now();
        if (!summary.failure) {
            summary.failure = take(run, done);
        }
        window.look(last_completion, run.completed, summary);
        if (slot_count > limit && !summary.failure) {
            // The next reads fly while those that arrived are checked.
            run.time_left = !plan.until || last_completion < plan.until->at();
            summary.failure = refill(run);
        }
        hand_over(run);
        if (summary.failure) {
            break;
        }
    }
    summary.duration = last_completion - started;
    return summary;
}

StreamSummary ReadStream::run_one(ReadSink& sink, Deadline deadline) {
    StreamPlan plan;
    plan.reads = 1;
    StreamSummary summary;
    Run run{sink, plan, summary};
    const auto fail = [&](std::optional<ReadFailure> failure) {
        summary.failure = std::move(failure);
        return summary;
    };
    if (auto failure = begin(1)) {
        return fail(std::move(failure));
    }
    if (auto failure = cut_short(Deadline::Clock::now(), deadline)) {
        return fail(std::move(failure));
    }
    if (auto failure = list_reads(run)) {
        return fail(std::move(failure));
    }
    try {
        client_.prepare_to_wait();
    } catch (const Error& error) {
        return fail(ReadFailure{error.failure(), error.what(), error.hint()});
    }
    // Nothing between the two looks at the clock but the read itself.
    const auto started = Deadline::Clock::now();
    auto completed = started;
    for (;;) {
        if (auto failure = post_lists()) {
            return fail(std::move(failure));
        }
        std::span<ibv_wc> done;
        if (auto failure = await_completions(done, deadline)) {
            return fail(std::move(failure));
        }
        completed = Deadline::Clock::now();
        if (auto failure = take(run, done)) {
            return fail(std::move(failure));
        }
        if (run.completed > 0) {
            break;
        }
        if (auto failure = cut_short(completed, deadline)) {
            return fail(std::move(failure));
        }
        // The rest of a read that does not fit one list.
        if (auto failure = list_reads(run)) {
            return fail(std::move(failure));
        }
    }
    hand_over(run);
    summary.duration = completed - started;
    return summary;
}

}  // namespace rdma_read::rdma
