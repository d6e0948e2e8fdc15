// Resolves, connects, introduces itself, and receives the permission to read.
#include "rdma_read/rdma/read_client.hpp"

#include "rdma_read/rdma/device.hpp"
#include "rdma_read/rdma/error.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <random>
#include <vector>

namespace rdma_read::rdma {

namespace {

// More than any message of this protocol, so that a longer one arrives and is refused here rather
// than failing the queue pair with a length error.
constexpr std::size_t kReceiveBytes = 128;

constexpr std::uint64_t kLongestRequest = 1ULL << 30U;

// Steps of connecting that are under way at a time: each is mostly waiting, yet a server that is
// asked for everything at once answers later, not sooner.
constexpr std::uint32_t kStepsInFlight = 8;

// A single step of address or route resolution; the kernel retries within it.
std::chrono::milliseconds step_timeout(Deadline deadline) {
    constexpr std::chrono::milliseconds kLongest{5000};
    return std::clamp(std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()),
                      std::chrono::milliseconds(1), kLongest);
}

Error event_error(const CmEvent& event, Phase phase, const Address& server) {
    const std::string peer = server.with_port_text();
    if (event.type == RDMA_CM_EVENT_REJECTED) {
        if (const auto refusal = decode_refusal(event.private_data())) {
            const char* hint = "start both ends from the same run and build";
            if (*refusal == Refusal::server_full || *refusal == Refusal::server_busy) {
                hint = "let fewer readers run at a time";
            } else if (*refusal == Refusal::server_error) {
                hint = "the server's output says which call failed";
            } else if (*refusal == Refusal::other_run) {
                hint =
                    "start both ends from the same run and build, with the same --token-file or "
                    "none";
            }
            return {*refusal == Refusal::server_busy ? Failure::busy : Failure::refused, phase,
                    fmt::format("the server at {} refused the connection: {}", peer,
                                to_string(*refusal)),
                    hint, event.status};
        }
        return {event.status == 28 ? Failure::refused : Failure::unreachable, phase,
                fmt::format("connection to {}: {}", peer, describe(event)),
                "check on the server's host that the program runs and listens on this address and "
                "port: rdma resource show cm_id",
                event.status};
    }
    if (event.type == RDMA_CM_EVENT_ADDR_ERROR && files_run_out()) {
        return {Failure::limit, phase, fmt::format("connection to {}: {}", peer, describe(event)),
                std::string(kFilesHint), event.status};
    }
    const Failure failure = event.type == RDMA_CM_EVENT_DEVICE_REMOVAL ? Failure::no_device
                            : event.type == RDMA_CM_EVENT_DISCONNECTED ? Failure::disconnected
                            : event.status == -ENODEV                  ? Failure::bad_address
                                                                       : Failure::unreachable;
    const char* hint = "check the path to the server: ping, ip route get, rdma link on both hosts";
    if (event.status == -ENODEV) {
        hint = "no RDMA device of this host leads to that address; check: rdma link; ip route get";
    } else if (failure == Failure::disconnected) {
        hint = "the server ended; look at its output, and at dmesg on its host";
    }
    return {failure, phase, fmt::format("connection to {}: {}", peer, describe(event)), hint,
            event.status};
}

bool may_pass(const Error& error) noexcept {
    // Calls tell an errno, events its negative.
    const int cause = std::abs(error.code());
    return error.failure() == Failure::busy
           || (error.failure() == Failure::unreachable && cause != ENETUNREACH
               && cause != EHOSTUNREACH);
}

}  // namespace

ReadClient::ReadClient(const ReadClientConfig& config, Deadline deadline)
    : server_(config.server),
      stop_(config.stop),
      message_memory_(kReceiveBytes * std::max<std::size_t>(config.queue_pairs, 1) + kReadyBytes) {
    waits_.add(channel_.fd());
    if (stop_.fd >= 0) {
        waits_.add(stop_.fd);
    }
    const std::uint32_t count = std::max<std::uint32_t>(config.queue_pairs, 1);
    for (std::uint32_t i = 0; i < count; ++i) {
        links_.emplace_back(channel_);
    }
    resolve(deadline);
    path_.device = device_name(links_.front().id.verbs());
    if (config.on_device) {
        config.on_device(path_.device);
    }
    set_up(config);
    connect(config.hello, deadline);
    established_ = Deadline::Clock::now();
    // Only now: who failed to connect all of them has been given no permission that it would have
    // to give back before it tries again.
    say_ready();
    receive_descriptors(deadline);
    // How long the server took to answer says nothing of reads.
    poll_budget_ = {};

    const CmId& id = links_.front().id;
    path_.port_num = id.port_num();
    const auto local = id.local_address();
    path_.local_address = local ? local->to_string() : std::string();
    path_.remote_address = server_.to_string();
    path_.gid = id.gid();
    path_.mtu = queue_pairs_.front().path_mtu();
}

void ReadClient::for_each_link(const Step& step, Deadline deadline) {
    const auto count = static_cast<std::uint32_t>(links_.size());
    std::vector<bool> finished(count);
    std::uint32_t begun = 0;
    for (std::uint32_t ended = 0; ended < count; ++ended) {
        while (begun < count && begun - ended < kStepsInFlight) {
            step.begin(begun++);
        }
        const CmEvent event =
            channel_.next(deadline, step.phase,
                          fmt::format("{} ({})", step.name, server_.with_port_text()), stop_);
        const auto link =
            std::ranges::find(links_, event.id, [](const Link& each) { return each.id.get(); });
        const auto index = static_cast<std::uint32_t>(link - links_.begin());
        // An event that comes twice is as unexpected as one of another kind.
        if (event.type != step.ended_by || index >= begun || finished[index]) {
            throw event_error(event, step.phase, server_);
        }
        finished[index] = true;
        step.end(index, event);
    }
}

void ReadClient::resolve(Deadline deadline) {
    const auto nothing = [](std::uint32_t, const CmEvent&) {};
    for_each_link({RDMA_CM_EVENT_ADDR_RESOLVED, Phase::resolve, "address resolution",
                   [&](std::uint32_t index) {
                       links_[index].id.resolve_address(server_, nullptr, step_timeout(deadline));
                   },
                   nothing},
                  deadline);
    for_each_link({RDMA_CM_EVENT_ROUTE_RESOLVED, Phase::resolve, "route resolution",
                   [&](std::uint32_t index) {
                       links_[index].id.resolve_route(server_, step_timeout(deadline));
                   },
                   nothing},
                  deadline);
    const ibv_context* const first = links_.front().id.verbs();
    for (const Link& link : links_) {
        if (link.id.verbs() != first) {
            throw Error(
                Failure::setup, Phase::resolve,
                fmt::format("the queue pairs to {} would be on different devices, {} and {}",
                            server_.with_port_text(), device_name(first),
                            device_name(link.id.verbs())),
                "use one queue pair, or let one device only lead to the server: ip route get");
        }
    }
}

void ReadClient::set_up(const ReadClientConfig& config) {
    const CmId& id = links_.front().id;
    ibv_context* const verbs = id.verbs();
    ibv_device_attr device{};
    check_errno_value(ibv_query_device(verbs, &device),
                      {Phase::setup, "ibv_query_device", device_name(verbs)});
    ibv_port_attr port{};
    check_errno_value(ibv_query_port(verbs, id.port_num(), &port),
                      {Phase::setup, "ibv_query_port", device_name(verbs)});
    path_.rate_gbps = rate_gbps(port);
    // A port that tells no limit must not make every request empty.
    max_message_ = port.max_msg_sz == 0 ? kLongestRequest
                                        : std::min<std::uint64_t>(port.max_msg_sz, kLongestRequest);
    // Beside its reads a queue pair sends one message and receives one.
    const auto count = static_cast<int>(links_.size());
    const int most = std::min(device.max_qp_wr - 1, device.max_cqe / count - 2);
    send_entries_ =
        std::clamp<std::uint32_t>(config.depth, 1, static_cast<std::uint32_t>(std::max(most, 1)));
    depth_asked_ = static_cast<std::uint8_t>(std::min<std::uint32_t>(
        send_entries_, static_cast<std::uint32_t>(std::clamp(device.max_qp_init_rd_atom, 1, 255))));

    pd_ = allocate_pd(verbs);
    cq_.emplace(verbs, count * static_cast<int>(send_entries_ + 2));
    waits_.add(cq_->fd());
    messages_.emplace(pd_.get(), message_memory_.bytes(), Intent::messages);
    if (!config.destination.empty()) {
        set_destination(config.destination);
    }
}

void ReadClient::connect(const Hello& hello, Deadline deadline) {
    for_each_link(
        {RDMA_CM_EVENT_ESTABLISHED, Phase::connect, "the connection",
         [&](std::uint32_t index) { request(index, hello); },
         [&](std::uint32_t, const CmEvent& established) {
             if (established.initiator_depth == 0) {
                 throw Error(
                     Failure::limit, Phase::connect,
                     fmt::format("{} grants no reads: the negotiated read depth is 0",
                                 server_.with_port_text()),
                     "the server's device or program answers no RDMA Read; check max_qp_rd_atom "
                     "with ibv_devinfo -v on the server");
             }
             path_.depth_negotiated =
                 path_.depth_negotiated == 0
                     ? established.initiator_depth
                     : std::min<std::uint32_t>(path_.depth_negotiated, established.initiator_depth);
         }},
        deadline);
}

void ReadClient::request(std::uint32_t index, Hello hello) {
    CmId& id = links_[index].id;
    QueuePair& qp = queue_pairs_.emplace_back(id, pd_.get(), *cq_, send_entries_ + 1, 1);
    // Before connecting: the server's answer must meet a posted receive.
    qp.post_receive(*messages_, incoming(index), std::uint64_t{index} << 1U | kReceiveBit);

    hello.queue_pair += index;
    const auto introduction = encode(hello);
    ConnectionParameters parameters;
    parameters.initiator_depth = depth_asked_;
    parameters.private_data = introduction;
    id.connect(parameters, server_);
}

std::span<std::byte> ReadClient::incoming(std::uint32_t index) const {
    return messages_->memory().subspan(index * kReceiveBytes, kReceiveBytes);
}

void ReadClient::set_destination(std::span<std::byte> memory) {
    destination_.emplace(
        pd_.get(), memory,
        links_.front().id.is_iwarp() ? Intent::iwarp_read_destination : Intent::read_destination);
}

void ReadClient::say_ready() {
    // One message serves all: it is the same, and nobody writes it after this.
    const auto outgoing = messages_->memory().last(kReadyBytes);
    std::ranges::copy(encode_ready(), outgoing.begin());
    for (std::uint32_t i = 0; i < queue_pairs(); ++i) {
        queue_pairs_[i].post_send(*messages_, outgoing, std::uint64_t{i} << 1U | kSendBit);
    }
}

void ReadClient::receive_descriptors(Deadline deadline) {
    // The answer can be seen before the completion of what asked for it; both are needed, since the
    // send queue has room for reads only when the send is done.
    std::uint32_t outstanding = 2 * queue_pairs();
    std::vector<std::size_t> received(queue_pairs());
    std::array<ibv_wc, 16> completions{};
    while (outstanding > 0) {
        std::span<ibv_wc> done;
        switch (wait(completions, done, deadline)) {
            case WaitEnd::timeout:
                throw Error(Failure::timeout, Phase::descriptor,
                            fmt::format("{} accepted the connection but sent no descriptor before "
                                        "the deadline",
                                        server_.with_port_text()),
                            "the server may be stuck or stopped; look at its process and output");
            case WaitEnd::disconnected:
                throw Error(
                    Failure::disconnected, Phase::descriptor,
                    fmt::format("{} ended the connection before it sent the descriptor ({})",
                                server_.with_port_text(), ended_by_),
                    "the server ended or dropped this reader; look at its output");
            case WaitEnd::stopped:
                throw Error(Failure::stopped, Phase::descriptor,
                            fmt::format("stopped while waiting for the descriptor from {}",
                                        server_.with_port_text()));
            case WaitEnd::completions:
                break;
        }
        for (const ibv_wc& completion : done) {
            if (completion.status != IBV_WC_SUCCESS) {
                // The end of a connection flushes what is posted, which may be seen before the
                // event that tells of the end.
                const std::string what =
                    completion.status == IBV_WC_WR_FLUSH_ERR
                        ? server_.with_port_text()
                              + " ended the connection before it sent the descriptor"
                        : "exchanging the descriptor with " + server_.with_port_text();
                throw Error(Failure::disconnected, Phase::descriptor,
                            fmt::format("{}: work completion {} ({})", what,
                                        ibv_wc_status_str(completion.status),
                                        static_cast<int>(completion.status)),
                            "the server ended or dropped this reader; look at its output",
                            static_cast<int>(completion.status));
            }
            --outstanding;
            if ((completion.wr_id & kSendBit) == kReceiveBit) {
                received.at(completion.wr_id >> 1U) = completion.byte_len;
            }
        }
    }
    remote_ = descriptor_in(0, received.front());
    for (std::uint32_t i = 1; i < queue_pairs(); ++i) {
        if (descriptor_in(i, received.at(i)) != remote_) {
            throw Error(Failure::protocol, Phase::descriptor,
                        fmt::format("{} sent different descriptors for the queue pairs of one "
                                    "reader",
                                    server_.with_port_text()),
                        "the server's program is faulty, or several servers share one address");
        }
    }
}

RemoteBuffer ReadClient::descriptor_in(std::uint32_t index, std::size_t bytes) const {
    const auto message = incoming(index).first(std::min(bytes, kReceiveBytes));
    const auto descriptor = decode_remote_buffer(message);
    if (!descriptor) {
        throw Error(Failure::protocol, Phase::descriptor,
                    fmt::format("{} sent {} bytes that are no valid buffer descriptor",
                                server_.with_port_text(), bytes),
                    "the peer is another program or another version of this one");
    }
    return *descriptor;
}

bool ReadClient::connection_ended() {
    while (const auto event = channel_.try_next()) {
        if (event->type != RDMA_CM_EVENT_ADDR_CHANGE) {
            for (Link& link : links_) {
                link.ended = link.ended || link.id.get() == event->id;
            }
            ended_ = true;
            if (ended_by_.empty()) {
                ended_by_ = describe(*event);
            }
        }
    }
    return ended_;
}

WaitEnd ReadClient::wait_longer(std::span<ibv_wc> into, std::span<ibv_wc>& done,
                                Deadline deadline) {
    const auto begun = Deadline::Clock::now();
    const auto look_until = begun + poll_budget_.begin_wait();
    for (auto now = begun; now < look_until;) {
        done = cq_->poll(into);
        now = Deadline::Clock::now();
        if (!done.empty()) {
            poll_budget_.answered(now - begun, false);
            return WaitEnd::completions;
        }
    }
    const WaitEnd end = sleep(into, done, deadline);
    if (end == WaitEnd::completions) {
        poll_budget_.answered(Deadline::Clock::now() - begun, true);
    }
    return end;
}

WaitEnd ReadClient::sleep(std::span<ibv_wc> into, std::span<ibv_wc>& done, Deadline deadline) {
    for (;;) {
        cq_->arm();
        // What finished between the last poll and the arming raises no wake-up, and completions
        // that were on their way when the peer left come before the news of that.
        done = cq_->poll(into);
        if (!done.empty()) {
            return WaitEnd::completions;
        }
        if (ended_) {
            return WaitEnd::disconnected;
        }
        if (stop_.made()) {
            return WaitEnd::stopped;
        }
        if (deadline.expired()) {
            return WaitEnd::timeout;
        }
        for (const int fd : waits_.wait(deadline)) {
            if (fd == cq_->fd()) {
                cq_->woken();
            } else if (fd == channel_.fd()) {
                (void)connection_ended();
            }
        }
        // First what it was woken for: the wake-up itself is taken when there is time.
        done = cq_->poll(into);
        if (!done.empty()) {
            return WaitEnd::completions;
        }
    }
}

void ReadClient::disconnect(Deadline deadline) noexcept {
    for (Link& link : links_) {
        link.goodbye_said = link.id.disconnect();
    }
    const auto unanswered = [](const Link& link) { return link.goodbye_said && !link.ended; };
    // The answer lets the server forget this reader in order, but nobody depends on it: towards a
    // stopped peer it never comes.
    try {
        (void)connection_ended();
        while (std::ranges::any_of(links_, unanswered) && !deadline.expired()) {
            pollfd ready{channel_.fd(), POLLIN, 0};
            ::poll(&ready, 1, deadline.poll_timeout_ms());
            (void)connection_ended();
        }
    } catch (const Error&) {
        return;
    }
}

namespace {

// Pauses between attempts, but not through a request to stop.
void rest_for(std::chrono::milliseconds time, const StopRequest& stop) {
    const auto deadline = Deadline::after(time);
    while (!stop.made() && !deadline.expired()) {
        pollfd wake{stop.fd, POLLIN, 0};
        ::poll(&wake, 1, deadline.poll_timeout_ms());
    }
}

// Who is stopped knows less than the attempt before it.
Error stopped_after(const Error& cause, Phase phase, const std::string& text) {
    return {Failure::stopped, phase, fmt::format("{}; the last one: {}", text, cause.what()),
            cause.hint()};
}

}  // namespace

Connected connect_with_retry(const ReadClientConfig& config, Deadline deadline,
                             std::uint32_t& attempts,
                             const std::function<void(const Error&)>& on_retry) {
    const auto started = Deadline::Clock::now();
    std::minstd_rand random(std::random_device{}());
    std::chrono::milliseconds pause{20};
    std::optional<Error> cause;
    for (attempts = 1;; ++attempts) {
        // Jitter spreads readers that were turned away together.
        std::uniform_int_distribution<int> jitter(0, static_cast<int>(pause.count()));
        const auto rest = pause / 2 + std::chrono::milliseconds(jitter(random));
        try {
            Connected connected;
            connected.client = std::make_unique<ReadClient>(config, deadline);
            connected.attempts = attempts;
            connected.took = connected.client->established() - started;
            return connected;
        } catch (const Error& error) {
            if (cause && error.failure() == Failure::stopped) {
                throw stopped_after(*cause, error.phase(), error.what());
            }
            if (cause && error.failure() == Failure::timeout) {
                // An attempt cut short by the deadline knows less than the one before it.
                throw Error(*cause);
            }
            if (!may_pass(error) || deadline.remaining() <= rest) {
                throw;
            }
            cause = error;
            if (on_retry) {
                on_retry(error);
            }
        }
        rest_for(rest, config.stop);
        if (config.stop.made()) {
            throw stopped_after(*cause, Phase::connect, "stopped between two attempts to connect");
        }
        pause = std::min(pause * 2, std::chrono::milliseconds(1000));
    }
}

}  // namespace rdma_read::rdma
