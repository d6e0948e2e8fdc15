// One reader's work from connecting to its result.
#include "app/buffer_reader.hpp"

#include "app/buffer_server.hpp"
#include "app/caveat.hpp"
#include "app/checked_reads.hpp"
#include "app/host.hpp"
#include "app/placement.hpp"
#include "app/port_counters.hpp"
#include "app/self_test.hpp"
#include "rdma_read/rdma/buffer.hpp"
#include "rdma_read/rdma/error.hpp"
#include "rdma_read/rdma/read_client.hpp"
#include "rdma_read/rdma/read_stream.hpp"
#include "rdma_read/verify/checker.hpp"
#include "rdma_read/verify/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace rdma_read::app {

namespace {

// Latency percentiles gain nothing from more samples than this.
constexpr std::uint64_t kLatencySamples = 1000;
// The latency phase may take this share of what is left of the reader's time.
constexpr int kLatencyShare = 4;
// More in flight buys no throughput: large reads fill the wire with few.
constexpr std::uint64_t kBytesInFlight = 32ULL << 20U;
constexpr std::chrono::milliseconds kGoodbye{500};
// Causes of failed attempts to connect that go into the result.
constexpr std::size_t kCausesKept = 16;

verify::Outcome outcome_of(rdma::Failure failure, rdma::Phase phase) {
    if (failure == rdma::Failure::timeout) {
        return verify::Outcome::timeout;
    }
    if (failure == rdma::Failure::no_device) {
        return verify::Outcome::no_device;
    }
    if (failure == rdma::Failure::stopped) {
        // Says nothing of the path, whatever was read until then.
        return verify::Outcome::not_run;
    }
    switch (phase) {
        case rdma::Phase::device:
        case rdma::Phase::setup:
            return verify::Outcome::setup_failed;
        case rdma::Phase::resolve:
        case rdma::Phase::connect:
        case rdma::Phase::descriptor:
            return verify::Outcome::connect_failed;
        case rdma::Phase::read:
        case rdma::Phase::disconnect:
            break;
    }
    return verify::Outcome::read_failed;
}

class Reader {
  public:
    Reader(const ReaderTask& task, ReadCheck check)
        : task_(task), check_(check), deadline_(rdma::Deadline::after(task.options.timeout)) {}

    verify::Result run();

  private:
    // Reads of this size in flight that are wanted, over all queue pairs.
    [[nodiscard]] std::uint32_t in_flight(std::uint64_t size) const;
    // Places for them to land in: twice as many if they are checked, so that the next ones are on
    // their way meanwhile.
    [[nodiscard]] std::uint32_t slots(std::uint64_t size) const;
    [[nodiscard]] std::size_t memory_needed() const;
    [[nodiscard]] rdma::ReadClientConfig client_config(std::span<std::byte> memory);
    [[nodiscard]] verify::Checker::Config checker_config(std::uint64_t bytes) const;
    void connect(std::span<std::byte> memory);
    // Keeps why an attempt to connect failed that was not the last one.
    void note_attempt(const std::string& cause);
    // Reads all sizes and sees to what the port counted meanwhile; false if that failed.
    bool read_all(std::span<std::byte> memory);
    // Whether the reader may go on.
    bool pass_self_test(std::span<std::byte> memory);
    bool read_size(std::uint64_t bytes, std::span<std::byte> memory);
    // Goes near the device, and notes what speaks against the numbers to come.
    void settle(const std::string& device);
    void warn(std::optional<std::string> warning);
    // How long the latency phase of the newest size may take.
    [[nodiscard]] std::chrono::nanoseconds latency_budget() const;
    std::optional<rdma::ReadFailure> measure_latency(rdma::ReadStream& stream,
                                                     verify::Checker& checker,
                                                     verify::SizeResult& size);
    std::optional<rdma::ReadFailure> measure_throughput(rdma::ReadStream& stream,
                                                        verify::Checker& checker,
                                                        verify::SizeResult& size);
    void fail(verify::Outcome outcome, std::string phase, std::string error, std::string hint);

    const ReaderTask& task_;
    ReadCheck check_;
    rdma::Deadline deadline_;
    std::optional<Placement> placement_;
    std::optional<Binding> binding_;
    // The client's registration covers the memory, so it goes first.
    std::optional<rdma::Buffer> memory_;
    std::unique_ptr<rdma::ReadClient> client_;
    verify::ClockCost clock_;
    verify::Result result_;
};

std::uint32_t Reader::in_flight(std::uint64_t size) const {
    const std::uint64_t wanted = std::uint64_t{task_.options.depth} * task_.options.qps;
    // While one is checked another one is in flight, and without a check two keep the wire busy.
    const std::uint64_t least = task_.options.verify ? 1 : 2;
    return static_cast<std::uint32_t>(std::min(wanted, std::max(kBytesInFlight / size, least)));
}

std::uint32_t Reader::slots(std::uint64_t size) const {
    return in_flight(size) * (task_.options.verify ? 2U : 1U);
}

std::size_t Reader::memory_needed() const {
    std::size_t most = 0;
    for (const std::uint64_t size : task_.options.sizes) {
        most = std::max(most, verify::Checker::bytes_needed(size, slots(size)));
    }
    return most;
}

void Reader::fail(verify::Outcome outcome, std::string phase, std::string error, std::string hint) {
    result_.outcome = outcome;
    result_.phase = std::move(phase);
    result_.error = std::move(error);
    result_.hint = std::move(hint);
}

rdma::ReadClientConfig Reader::client_config(std::span<std::byte> memory) {
    const verify::Announcement& announcement = task_.announcement;
    const auto server = rdma::Address::parse(announcement.server.address, announcement.server.port);
    if (!server) {
        throw rdma::Error(rdma::Failure::bad_address, rdma::Phase::resolve,
                          fmt::format("the server announced \"{}\", which is no address",
                                      announcement.server.address));
    }
    rdma::ReadClientConfig config;
    config.server = *server;
    config.hello = {announcement.run, static_cast<std::uint32_t>(task_.rank)};
    config.depth = task_.options.depth;
    config.queue_pairs = task_.options.qps;
    config.destination = memory;
    config.on_device = [this](const std::string& device) { settle(device); };
    config.stop = task_.stop;
    return config;
}

verify::Checker::Config Reader::checker_config(std::uint64_t bytes) const {
    verify::Checker::Config config;
    config.run = task_.announcement.run;
    config.server_rank = static_cast<std::uint32_t>(task_.announcement.server_rank);
    config.ranks = static_cast<std::uint32_t>(task_.ranks);
    config.buffer_bytes = task_.announcement.buffer_bytes;
    config.read_bytes = bytes;
    config.slots = slots(bytes);
    config.verify = task_.options.verify;
    return config;
}

void Reader::connect(std::span<std::byte> memory) {
    // The descriptor is the permission to read, and whoever has to wait for it has its whole budget
    // still before it.
    const auto wait = task_.options.longest_wait(static_cast<std::uint32_t>(task_.ranks) - 1);
    auto connected = rdma::connect_with_retry(
        client_config(memory), rdma::Deadline::after(wait + task_.options.timeout),
        result_.attempts, [this](const rdma::Error& error) { note_attempt(error.what()); });
    if (wait > std::chrono::nanoseconds::zero()) {
        deadline_ = rdma::Deadline::after(task_.options.timeout);
    }
    result_.read_started = utc_now_precisely();
    client_ = std::move(connected.client);
    result_.connect_ms = std::chrono::duration<double, std::milli>(connected.took).count();

    const rdma::ConnectionPath& path = client_->path();
    result_.path.local_device = path.device;
    result_.path.local_port_num = path.port_num;
    result_.path.local_address = path.local_address;
    result_.path.remote_address = path.remote_address;
    result_.path.gid = path.gid;
    if (path.mtu > 0) {
        result_.path.mtu = path.mtu;
    }
    result_.path.depth_negotiated = path.depth_negotiated;
    warn(depth_clamped(task_.options.depth, path.depth_negotiated));
    if (path.rate_gbps > 0) {
        result_.path.rate_gbps = path.rate_gbps;
    }
    if (client_->remote().length != task_.announcement.buffer_bytes) {
        throw rdma::Error(rdma::Failure::protocol, rdma::Phase::descriptor,
                          fmt::format("the server's descriptor says {} bytes, its announcement {}",
                                      client_->remote().length, task_.announcement.buffer_bytes),
                          "both ends must be of the same build and run");
    }
}

void Reader::note_attempt(const std::string& cause) {
    auto& causes = result_.attempt_errors;
    if (causes.size() < kCausesKept && (causes.empty() || causes.back() != cause)) {
        causes.push_back(cause);
    }
}

void Reader::warn(std::optional<std::string> warning) {
    auto& all = result_.warnings;
    if (warning && std::ranges::find(all, *warning) == all.end()) {
        all.push_back(*std::move(warning));
    }
}

void Reader::settle(const std::string& device) {
    if (binding_) {
        return;  // with an earlier attempt to connect
    }
    binding_.emplace(placement_->bind_near(device));
    if (const auto thread = placement_->thread()) {
        result_.cores = placement_->cores(*thread).to_string();
        warn(far_from_device(*placement_, *thread, device));
        warn(frequency_scaling(*thread));
    }
}

std::chrono::nanoseconds Reader::latency_budget() const {
    if (!task_.options.duration) {
        return deadline_.remaining() / kLatencyShare;
    }
    // What the throughput phases to come do not need, shared among the sizes to come.
    const auto sizes =
        static_cast<std::int64_t>(task_.options.sizes.size() - result_.sizes.size()) + 1;
    const auto spare = deadline_.remaining() - *task_.options.duration * sizes;
    return std::clamp<std::chrono::nanoseconds>(
        spare / (2 * sizes), std::chrono::nanoseconds::zero(), *task_.options.duration);
}

std::optional<rdma::ReadFailure> Reader::measure_latency(rdma::ReadStream& stream,
                                                         verify::Checker& checker,
                                                         verify::SizeResult& size) {
    checker.begin_phase(verify::Phase::latency);
    CheckedReads reads(checker, check_);
    const bool timed = task_.options.duration.has_value();
    const auto samples =
        timed ? kLatencySamples : std::min(kLatencySamples, task_.options.iterations);
    const auto enough = rdma::Deadline::after(latency_budget());
    verify::LatencyRecorder recorder(samples);
    std::optional<rdma::ReadFailure> failure;
    // At least one read is made, however little time there is.
    do {
        const rdma::StreamSummary summary = stream.run_one(reads, deadline_);
        failure = summary.failure;
        if (!failure) {
            recorder.add(summary.duration);
        }
    } while (!failure && recorder.samples() < samples && !enough.expired());
    size.latency_us = recorder.summary();
    return failure;
}

std::optional<rdma::ReadFailure> Reader::measure_throughput(rdma::ReadStream& stream,
                                                            verify::Checker& checker,
                                                            verify::SizeResult& size) {
    checker.begin_phase(verify::Phase::throughput);
    CheckedReads reads(checker, check_, clock_.read_ns);
    rdma::StreamPlan plan;
    plan.slots = slots(size.size);
    plan.in_flight = size.depth;
    if (task_.options.duration) {
        plan.until = rdma::Deadline::after(*task_.options.duration);
    } else {
        plan.reads = task_.options.iterations;
    }
    rdma::StreamSummary summary = stream.run(reads, plan, deadline_);
    size.reads = checker.reads();
    size.bytes_read = checker.reads() * size.size;
    size.bytes_verified = checker.bytes_verified();
    size.seconds = std::chrono::duration<double>(summary.duration).count();
    if (task_.options.verify) {
        size.checking_s = reads.checking_s();
    }
    if (!summary.failure) {
        // Of a timed phase the middle, where it is long enough to have one.
        const bool steady = summary.steady_reads > 0 && summary.steady_duration.count() > 0;
        const auto rate =
            steady ? verify::Rate::of(summary.steady_reads, size.size, summary.steady_duration)
                   : verify::Rate::of(size.reads, size.size, summary.duration);
        if (rate) {
            size.bandwidth_bytes_per_s = rate->bytes_per_s;
            size.reads_per_s = rate->reads_per_s;
        }
    }
    return std::move(summary.failure);
}

bool Reader::pass_self_test(std::span<std::byte> memory) {
    verify::SelfTest& proved = result_.self_test.emplace();
    std::optional<Disproof> disproof;
    try {
        for (const std::uint64_t size : task_.options.sizes) {
            verify::Checker checker(checker_config(size), memory);
            rdma::ReadStream stream(*client_);
            disproof = test_check(
                checker, static_cast<std::uint32_t>(task_.rank), check_,
                [&](rdma::ReadSink& sink) {
                    const auto summary = stream.run_one(sink, deadline_);
                    if (summary.failure) {
                        throw rdma::Error(summary.failure->failure, rdma::Phase::read,
                                          summary.failure->message, summary.failure->hint);
                    }
                },
                proved);
            if (disproof) {
                break;
            }
        }
        if (!disproof) {
            disproof = test_protection(client_config(memory), deadline_, proved);
        }
    } catch (const rdma::Error& error) {
        disproof = Disproof{outcome_of(error.failure(), error.phase()),
                            fmt::format("the self-test could not be made: {}", error.what()),
                            error.hint()};
    }
    if (disproof) {
        fail(disproof->outcome, "self_test", std::move(disproof->error), std::move(disproof->hint));
    }
    return !disproof;
}

bool Reader::read_size(std::uint64_t bytes, std::span<std::byte> memory) {
    const verify::Checker::Config config = checker_config(bytes);
    verify::Checker checker(config, memory);
    rdma::ReadStream stream(*client_);
    verify::SizeResult& size = result_.sizes.emplace_back();
    size.size = bytes;
    size.depth = std::min(in_flight(bytes), client_->send_entries() * client_->queue_pairs());
    if (auto note = depth_cut(task_.options.depth * task_.options.qps, in_flight(bytes), bytes)) {
        result_.notes.push_back(*std::move(note));
    }

    auto failure = measure_latency(stream, checker, size);
    if (!failure) {
        failure = measure_throughput(stream, checker, size);
    }
    size.mismatched_reads = checker.total().mismatched_reads;
    size.mismatches = checker.mismatches();
    size.guard_intact = checker.guards_intact();
    if (size.latency_us) {
        warn(coarse_clock(clock_, size.latency_us->min));
    }
    if (size.checking_s) {
        warn(slow_checking(*size.checking_s, size.seconds, size.bytes_read));
    }

    // Wrong data outweighs a failure that came after it.
    if (size.mismatched_reads > 0) {
        const verify::Mismatch* const first =
            size.mismatches.empty() ? nullptr : &size.mismatches.front();
        fail(
            verify::Outcome::corrupt, "check",
            first == nullptr
                ? fmt::format("{} reads of {} bytes brought wrong data", size.mismatched_reads,
                              bytes)
                : fmt::format("{} reads of {} bytes brought wrong data, first in read {} of the {} "
                              "phase at offset {}: {}, {}",
                              size.mismatched_reads, bytes, first->read, first->phase,
                              first->offset, verify::to_string(first->kind), first->detail),
            "do not trust this path; repeat between other hosts to find the side, then check "
            "memory (EDAC), PCIe errors (dmesg, lspci -vv) and NIC firmware");
        return false;
    }
    if (!size.guard_intact) {
        fail(verify::Outcome::corrupt, "check",
             fmt::format("reads of {} bytes wrote outside their destination", bytes),
             "the device or its driver is faulty; check its firmware");
        return false;
    }
    if (failure && failure->failure == rdma::Failure::timeout && size.reads > 0) {
        fail(verify::Outcome::timeout, "read",
             task_.options.duration ? fmt::format("{}; {} were done", failure->message, size.reads)
                                    : fmt::format("{}; {} of {} were done", failure->message,
                                                  size.reads, task_.options.iterations),
             "if reads went on until then, there were too many for the time: fewer --iterations, "
             "--duration, or a longer --timeout; else look at the server and the link");
        return false;
    }
    if (failure) {
        fail(outcome_of(failure->failure, rdma::Phase::read), "read", failure->message,
             failure->hint);
        return false;
    }
    return true;
}

bool Reader::read_all(std::span<std::byte> memory) {
    const auto counters = [this] {
        return trouble_counters(result_.path.local_device, result_.path.local_port_num.value_or(0));
    };
    // The reads of a self-test that are refused are none of the run's trouble.
    const auto before = counters();
    const bool all = std::ranges::all_of(task_.options.sizes,
                                         [&](auto size) { return read_size(size, memory); });
    result_.counters = increase(before, counters());
    return all;
}

verify::Result Reader::run() {
    result_.server_rank = task_.announcement.server_rank;
    result_.server_host = task_.announcement.server.host;
    result_.reader_rank = task_.rank;
    result_.reader_host = task_.host;
    try {
        memory_.emplace(memory_needed(), task_.options.pages());
        // Before the time that connecting takes begins, and before reads may.
        placement_.emplace();
        clock_ = verify::clock_cost();
        result_.clock_ns = clock_.read_ns;
        connect(memory_->bytes());
        const bool all_read = (!task_.options.self_test || pass_self_test(memory_->bytes()))
                              && read_all(memory_->bytes());
        result_.read_ended = utc_now_precisely();
        if (all_read && client_->ended()) {
            // The data was right, but the server or the device went away under it.
            fail(verify::Outcome::read_failed, "read",
                 fmt::format("the connection to {} ended before this reader was done",
                             client_->path().remote_address),
                 "look at the server's output, and at dmesg on both hosts");
        } else if (all_read) {
            result_.outcome = verify::Outcome::pass;
        }
        client_->disconnect(rdma::Deadline::after(kGoodbye));
    } catch (const rdma::Error& error) {
        fail(outcome_of(error.failure(), error.phase()),
             std::string(rdma::to_string(error.phase())), error.what(), error.hint());
    } catch (const std::exception& error) {
        fail(verify::Outcome::setup_failed, "setup", error.what(), "");
    }
    return std::move(result_);
}

}  // namespace

verify::Result read_buffer(const ReaderTask& task, ReadCheck check) {
    return Reader(task, check).run();
}

Roles real_roles() {
    return {[](const ServerTask& task) -> std::unique_ptr<Server> {
                return std::make_unique<BufferServer>(task, filled_buffer(task));
            },
            [](const ReaderTask& task) { return read_buffer(task, check_read); }};
}

}  // namespace rdma_read::app
