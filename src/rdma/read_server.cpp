// One event loop for all readers: requests, first messages, descriptors, goodbyes.
#include "rdma_read/rdma/read_server.hpp"

#include "rdma/served_device.hpp"
#include "rdma_read/rdma/deadline.hpp"
#include "rdma_read/rdma/error.hpp"
#include "rdma_read/rdma/queue_pair.hpp"
#include "rdma_read/rdma/wait_set.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

namespace rdma_read::rdma {

namespace {

// A stranger who comes again and again must not fill the log.
constexpr std::uint64_t kRefusalsTold = 10;
constexpr std::uint64_t kRefusalsPerSum = 1000;

// Events that are handled before stop, limits and completions are looked at again: while requests
// come faster than they are answered there is always one more.
constexpr int kEventsPerLook = 64;

CmId bound_id(const EventChannel& channel, const Address& address) {
    CmId id(channel);
    id.bind(address);
    return id;
}

// A listener on a wildcard is not told of a device that goes away, which its driver may wait for;
// an id that is bound to an address of it is.
std::vector<CmId> bound_to_each_device(const EventChannel& channel) {
    std::vector<CmId> ids;
    for (const DevicePort& port : list_device_ports(channel)) {
        const auto is_on_it = [&](const CmId& id) {
            return device_name(id.verbs()) == port.device;
        };
        if (std::ranges::none_of(ids, is_on_it)) {
            CmId id = bound_id(channel, port.address);
            if (id.verbs() != nullptr) {
                ids.push_back(std::move(id));
            }
        }
    }
    return ids;
}

// An early exit would tell a stranger how much of the run id was right.
bool same_run(const RunId& left, const RunId& right) noexcept {
    unsigned int difference = 0;
    for (std::size_t i = 0; i < left.size(); ++i) {
        difference |= static_cast<unsigned int>(left[i] ^ right[i]);
    }
    return difference == 0;
}

double thread_cpu_seconds() noexcept {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

// One rank with all its connections, which are one reader to the outside.
struct ReadServer::Reader {
    Reader(std::uint64_t number, std::uint32_t queue_pairs)
        : key(number), connections(queue_pairs) {}

    std::uint64_t key;
    std::vector<Connection*> connections;  // by Hello::queue_pair; null: not there
    std::uint32_t open = 0;
    // Where it stands among those that may read.
    std::optional<std::list<Reader*>::iterator> turn;
    Deadline turn_limit{Deadline::Clock::time_point::max()};
    // Was sent a descriptor.
    bool served = false;
    // Where it stands among those that wait for the descriptor.
    std::optional<std::list<Reader*>::iterator> waiting;
};

struct ReadServer::Connection {
    Connection(CmIdHandle incoming, std::uint64_t number, const Hello& introduction,
               ServedDevice& on)
        : serial(number),
          hello(introduction),
          device(on),
          slot(on.free_slots.back()),
          id(std::move(incoming)) {
        device.free_slots.pop_back();
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    Connection(Connection&&) = delete;
    Connection& operator=(Connection&&) = delete;
    ~Connection() { device.free_slots.push_back(slot); }

    // The first message can overtake the event that says that the connection stands.
    [[nodiscard]] bool is_ready() const noexcept { return established && said_ready; }

    std::uint64_t serial;
    Hello hello;
    ServedDevice& device;
    std::uint32_t slot;
    Deadline handshake_limit{Deadline::Clock::time_point::max()};
    // Where it stands among those whose first message is awaited.
    std::optional<std::list<Connection*>::iterator> handshake;
    Reader* reader = nullptr;
    bool established = false;
    bool said_ready = false;
    bool described = false;
    CmId id;
    std::optional<QueuePair> qp;
};

ReadServer::ReadServer(const ReadServerConfig& config, std::span<std::byte> exposed)
    : config_(config),
      listener_(bound_id(channel_, config.address)),
      stop_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!stop_event_) {
        throw_system_error({Phase::setup, "eventfd", ""}, -1);
    }
    config_.queue_pairs_per_rank = std::max<std::uint32_t>(config.queue_pairs_per_rank, 1);
    if (listener_.verbs() != nullptr) {
        port_ = query_port(listener_.verbs(), listener_.port_num());
        port_->address = config.address.with_port(0);
        devices_.push_back(
            std::make_unique<ServedDevice>(listener_.verbs(), exposed, config.max_connections));
    } else {
        int count = 0;
        errno = 0;
        const std::unique_ptr<ibv_context*, decltype(&rdma_free_devices)> all(
            rdma_get_devices(&count), &rdma_free_devices);
        const int error = errno;
        for (int i = 0; all != nullptr && i < count; ++i) {
            devices_.push_back(
                std::make_unique<ServedDevice>(all.get()[i], exposed, config.max_connections));
        }
        if (devices_.empty()) {
            // A device that cannot be opened for want of descriptors is left out of the list, or
            // there is none.
            const bool told = error != 0 && (all == nullptr || error == EMFILE || error == ENFILE);
            throw_system_error({Phase::device, "rdma_get_devices", ""}, files_run_out() ? EMFILE
                                                                        : told          ? error
                                                                                        : ENODEV);
        }
        on_devices_ = bound_to_each_device(channel_);
    }
    // Last: from here on readers may come.
    listener_.listen(static_cast<int>(config.max_connections));
    address_ = listener_.local_address().value_or(config.address);
}

ReadServer::~ReadServer() = default;

void ReadServer::stop() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(stop_event_.get(), &one, sizeof(one));
}

ServeSummary ReadServer::serve(std::uint64_t finished_limit) {
    WaitSet waits;
    waits.add(stop_event_.get());
    if (config_.stop_fd >= 0) {
        waits.add(config_.stop_fd);
    }
    waits.add(channel_.fd());
    for (const auto& device : devices_) {
        waits.add(device->cq.fd());
    }

    const double cpu_at_start = thread_cpu_seconds();
    const auto started = Deadline::Clock::now();
    const auto account = [&] {
        summary_.seconds = std::chrono::duration<double>(Deadline::Clock::now() - started).count();
        summary_.cpu_seconds = thread_cpu_seconds() - cpu_at_start;
    };
    try {
        while ((finished_limit == 0 || summary_.finished < finished_limit) && look(waits)) {
        }
    } catch (...) {
        account();
        throw;
    }
    account();
    if (strangers_ > kRefusalsTold) {
        notice(fmt::format("refused {} connections in all", strangers_));
    }
    return summary_;
}

bool ReadServer::look(WaitSet& waits) {
    bool goes_on = true;
    for (const int fd : waits.wait(next_limit())) {
        if (fd == stop_event_.get() || fd == config_.stop_fd) {
            goes_on = false;
        } else if (fd == channel_.fd()) {
            handle_events();
        } else {
            const auto device = std::ranges::find_if(
                devices_, [&](const auto& candidate) { return candidate->cq.fd() == fd; });
            drain(**device);
            grant_waiting();
        }
    }
    drop_silent_peers();
    end_overdue_turns();
    grant_waiting();
    return goes_on;
}

void ReadServer::handle_events() {
    for (int handled = 0; handled < kEventsPerLook; ++handled) {
        auto event = channel_.try_next();
        if (!event) {
            return;
        }
        handle(std::move(*event));
        grant_waiting();
    }
    // The channel stays readable as long as there are more.
}

void ReadServer::handle(CmEvent event) {
    switch (event.type) {
        case RDMA_CM_EVENT_CONNECT_REQUEST:
            request(std::move(event));
            return;
        case RDMA_CM_EVENT_ESTABLISHED:
            if (Connection* const connection = find(event.id)) {
                connection->established = true;
                ready(*connection);
            }
            return;
        case RDMA_CM_EVENT_ADDR_CHANGE:
        case RDMA_CM_EVENT_TIMEWAIT_EXIT:
            return;
        case RDMA_CM_EVENT_DEVICE_REMOVAL:
            if (event.id == listener_.get()
                || std::ranges::any_of(on_devices_,
                                       [&](const CmId& id) { return id.get() == event.id; })) {
                throw Error(Failure::no_device, Phase::device,
                            fmt::format("device {} was removed while serving",
                                        device_name(event.id->verbs)),
                            "check: dmesg; rdma link", event.status);
            }
            break;
        default:
            break;
    }
    // Whatever else happens on a connection ends it: DISCONNECTED, UNREACHABLE, CONNECT_ERROR, and
    // events that this program does not know.
    if (Connection* const connection = find(event.id)) {
        if (event.type != RDMA_CM_EVENT_DISCONNECTED) {
            notice(fmt::format("reader of rank {}: {}", connection->hello.rank, describe(event)));
        } else {
            connection->id.disconnect();
        }
        drop(*connection);
    }
}

void ReadServer::request(CmEvent event) {
    const HelloOrRefusal decoded = decode_hello(event.private_data());
    if (!decoded.hello) {
        refuse(std::move(event.incoming), decoded.refusal);
        return;
    }
    ServedDevice* const device = find_device(event.incoming->verbs);
    if (const auto objection = objection_to(*decoded.hello, device)) {
        refuse(std::move(event.incoming), *objection);
        return;
    }
    accept(std::move(event), *decoded.hello, *device);
}

std::optional<Refusal> ReadServer::objection_to(const Hello& hello, ServedDevice* device) {
    if (!same_run(hello.run, config_.run)) {
        return Refusal::other_run;
    }
    if (config_.ranks > 0 && hello.rank >= config_.ranks) {
        return Refusal::rank_out_of_range;
    }
    if (hello.queue_pair >= config_.queue_pairs_per_rank) {
        return Refusal::queue_pair_out_of_range;
    }
    if (device == nullptr) {
        return Refusal::server_full;
    }
    if (device->needs_a_look()) {
        // In a storm of connections that come and go there is no other look before the queue is
        // full of what they left.
        drain(*device);
    }
    const auto known = config_.ranks > 0 ? readers_.find(hello.rank) : readers_.end();
    if (known != readers_.end()) {
        Connection* const first = known->second->connections[hello.queue_pair];
        if (first != nullptr && first->described) {
            return Refusal::rank_already_connected;
        }
        if (first != nullptr) {
            // A reader that gave up on its first attempt comes back before that attempt is over.
            drop(*first);
        }
    }
    if (device->free_slots.empty()) {
        return Refusal::server_full;
    }
    if (config_.max_half_open > 0 && handshakes_.size() >= config_.max_half_open) {
        return Refusal::server_busy;
    }
    return std::nullopt;
}

void ReadServer::accept(CmEvent event, const Hello& hello, ServedDevice& device) {
    const std::uint64_t serial = next_serial_++;
    auto owned = std::make_unique<Connection>(std::move(event.incoming), serial, hello, device);
    Connection& connection = *owned;
    try {
        connection.qp.emplace(connection.id, device.pd.get(), device.cq, 1, 1);
        connection.qp->post_receive(device.messages, device.incoming(connection.slot),
                                    serial << 1U | kReceiveBit);
        ConnectionParameters parameters;
        parameters.responder_resources =
            std::min(event.responder_resources, device.limits.responder_resources);
        connection.id.accept(parameters);
    } catch (const Error& error) {
        // One reader's failure must not end the service for the others.
        connection.id.reject(encode(Refusal::server_error));
        ++summary_.refused;
        ++device.dropped;
        notice(fmt::format("reader of rank {}: {}", hello.rank, error.what()));
        return;
    }
    connections_.emplace(serial, std::move(owned));
    by_id_.emplace(connection.id.get(), &connection);
    join_reader(connection);
    begin_handshake(connection);
}

void ReadServer::refuse(CmIdHandle incoming, Refusal refusal) {
    CmId id(std::move(incoming));
    const auto peer = id.peer_address();
    id.reject(encode(refusal));
    ++summary_.refused;
    ++strangers_;
    const bool in_detail = strangers_ <= kRefusalsTold;
    const bool sum = strangers_ % kRefusalsPerSum == 0;
    if (!in_detail && !sum) {
        return;
    }
    std::string text = fmt::format("refused a connection from {}: {}",
                                   peer ? peer->to_string() : std::string("?"), to_string(refusal));
    if (sum) {
        text += fmt::format("; {} by now", strangers_);
    } else if (strangers_ == kRefusalsTold) {
        text += fmt::format("; of those to come one in {} is told", kRefusalsPerSum);
    }
    notice(text);
}

void ReadServer::completed(const ibv_wc& completion) {
    // Only wr_id, status, qp_num and vendor_err are valid when the status is not success.
    const auto found = connections_.find(completion.wr_id >> 1U);
    if (found == connections_.end()) {
        return;  // flushed after the connection was dropped
    }
    Connection& connection = *found->second;
    if (completion.status != IBV_WC_SUCCESS) {
        if (completion.status != IBV_WC_WR_FLUSH_ERR) {
            notice(fmt::format("reader of rank {}: work completion {} ({})", connection.hello.rank,
                               ibv_wc_status_str(completion.status),
                               static_cast<int>(completion.status)));
            hang_up(connection);
        }
        return;
    }
    if ((completion.wr_id & kSendBit) == kSendBit) {
        return;
    }
    const auto memory = connection.device.incoming(connection.slot);
    const auto message = memory.first(std::min<std::size_t>(completion.byte_len, memory.size()));
    if (!is_ready(message)) {
        notice(fmt::format("reader of rank {}: its first message is not of this protocol",
                           connection.hello.rank));
        hang_up(connection);
        return;
    }
    connection.said_ready = true;
    // Not silent, even if the event that the connection stands is still behind many others.
    end_handshake(connection);
    ready(connection);
}

void ReadServer::begin_handshake(Connection& connection) {
    connection.handshake = handshakes_.insert(handshakes_.end(), &connection);
    // A reader speaks when it has connected all its queue pairs, one after the other: those before
    // the newest are not silent yet.
    for (Connection* const sibling : connection.reader->connections) {
        if (sibling != nullptr && sibling->handshake) {
            sibling->handshake_limit = Deadline::after(config_.handshake_limit);
            handshakes_.splice(handshakes_.end(), handshakes_, *sibling->handshake);
        }
    }
}

void ReadServer::end_handshake(Connection& connection) noexcept {
    if (connection.handshake) {
        handshakes_.erase(*connection.handshake);
        connection.handshake.reset();
    }
}

void ReadServer::ready(Connection& connection) {
    if (!connection.is_ready() || connection.described) {
        return;
    }
    Reader& reader = *connection.reader;
    if (reader.turn) {
        send_descriptor(connection);
    } else if (!reader.waiting) {
        reader.waiting = waiting_.insert(waiting_.end(), &reader);
        start_limit_ = Deadline::after(config_.start_patience);
    }
}

bool ReadServer::may_start() const noexcept {
    return started_ || waiting_.size() >= config_.start_together
           || (start_limit_ && start_limit_->expired());
}

void ReadServer::grant_waiting() {
    if (waiting_.empty() || !may_start()) {
        return;
    }
    started_ = true;
    while (!waiting_.empty() && (config_.concurrency == 0 || turns_.size() < config_.concurrency)) {
        Reader& reader = *waiting_.front();
        waiting_.pop_front();
        reader.waiting.reset();
        reader.turn = turns_.insert(turns_.end(), &reader);
        reader.turn_limit = Deadline::after(config_.turn_limit);
        // A connection that is dropped on the way can be the reader's last.
        const std::uint64_t key = reader.key;
        for (std::uint32_t i = 0; i < config_.queue_pairs_per_rank; ++i) {
            const auto found = readers_.find(key);
            if (found == readers_.end()) {
                break;
            }
            Connection* const connection = found->second->connections[i];
            if (connection != nullptr && connection->is_ready()) {
                send_descriptor(*connection);
            }
        }
    }
}

void ReadServer::send_descriptor(Connection& connection) {
    const MemoryRegion& exposed = connection.device.exposed;
    const auto descriptor =
        encode(RemoteBuffer{exposed.address(), exposed.memory().size(), exposed.rkey()});
    const auto memory = connection.device.outgoing(connection.slot);
    std::ranges::copy(descriptor, memory.begin());
    try {
        connection.qp->post_send(connection.device.messages, memory,
                                 connection.serial << 1U | kSendBit);
        connection.described = true;
        if (!connection.reader->served) {
            connection.reader->served = true;
            ++summary_.connections;
        }
    } catch (const Error& error) {
        notice(fmt::format("reader of rank {}: {}", connection.hello.rank, error.what()));
        hang_up(connection);
    }
}

void ReadServer::drop(Connection& connection) {
    end_handshake(connection);
    leave_reader(connection);
    ++connection.device.dropped;
    by_id_.erase(connection.id.get());
    connections_.erase(connection.serial);
}

void ReadServer::hang_up(Connection& connection) {
    connection.id.disconnect();
    drop(connection);
}

void ReadServer::join_reader(Connection& connection) {
    const Hello& hello = connection.hello;
    const std::uint64_t key = config_.ranks > 0 ? hello.rank : connection.serial;
    auto& reader = readers_[key];
    if (!reader) {
        reader = std::make_unique<Reader>(key, config_.queue_pairs_per_rank);
    }
    reader->connections[hello.queue_pair] = &connection;
    ++reader->open;
    connection.reader = reader.get();
}

void ReadServer::leave_reader(Connection& connection) {
    Reader& reader = *connection.reader;
    reader.connections[connection.hello.queue_pair] = nullptr;
    if (--reader.open > 0) {
        return;
    }
    if (reader.waiting) {
        waiting_.erase(*reader.waiting);
    }
    if (reader.turn) {
        turns_.erase(*reader.turn);
    }
    if (reader.served) {
        ++summary_.finished;
    }
    readers_.erase(reader.key);
}

void ReadServer::drop_silent_peers() {
    while (!handshakes_.empty() && handshakes_.front()->handshake_limit.expired()) {
        Connection& silent = *handshakes_.front();
        notice(
            fmt::format("reader of rank {}: connected and then said nothing", silent.hello.rank));
        hang_up(silent);
    }
}

bool ReadServer::turns_are_limited() const noexcept {
    return config_.turn_limit > std::chrono::milliseconds::zero() && !turns_.empty()
           && (config_.turns_end_always || !waiting_.empty());
}

void ReadServer::end_overdue_turns() {
    while (turns_are_limited() && turns_.front()->turn_limit.expired()) {
        // The last of them takes the reader with it.
        const std::vector<Connection*> connections = turns_.front()->connections;
        const auto open =
            std::ranges::find_if(connections, [](auto* each) { return each != nullptr; });
        const auto peer = (*open)->id.peer_address();
        notice(fmt::format(
            "reader of rank {}: dropped, it is still there after {} s{}; its process may be "
            "stopped or its host dead: look at {}",
            (*open)->hello.rank, std::chrono::duration<double>(config_.turn_limit).count(),
            waiting_.empty() ? "" : " and others wait",
            peer ? peer->to_string() : std::string("it")));
        for (Connection* const connection : connections) {
            if (connection != nullptr) {
                hang_up(*connection);
            }
        }
        grant_waiting();
    }
}

void ReadServer::drain(ServedDevice& device) {
    std::array<ibv_wc, 64> completions{};
    device.cq.woken();
    device.cq.arm();
    for (;;) {
        const auto done = device.cq.poll(completions);
        std::ranges::for_each(done, [&](const ibv_wc& wc) { completed(wc); });
        if (done.empty()) {
            device.dropped = 0;
            return;
        }
    }
}

ServedDevice* ReadServer::find_device(const ibv_context* verbs) noexcept {
    const auto found =
        std::ranges::find_if(devices_, [&](const auto& device) { return device->verbs == verbs; });
    return found == devices_.end() ? nullptr : found->get();
}

ReadServer::Connection* ReadServer::find(const rdma_cm_id* id) noexcept {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second;
}

Deadline ReadServer::next_limit() const noexcept {
    Deadline limit = handshakes_.empty() ? Deadline(Deadline::Clock::time_point::max())
                                         : handshakes_.front()->handshake_limit;
    if (!started_ && !waiting_.empty() && start_limit_) {
        limit = limit.or_earlier(*start_limit_);
    }
    if (turns_are_limited()) {
        limit = limit.or_earlier(turns_.front()->turn_limit);
    }
    return limit;
}

void ReadServer::notice(const std::string& text) const {
    if (notice_) {
        notice_(text);
    }
}

}  // namespace rdma_read::rdma
