// Keeps the books of the pretended librdmacm and libibverbs.
#include "world.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace rdma_read::rdma::fakes {

namespace {

World* living = nullptr;

void fill_address(sockaddr_storage& into, const std::string& text) {
    into = {};
    auto* const v4 = reinterpret_cast<sockaddr_in*>(&into);
    auto* const v6 = reinterpret_cast<sockaddr_in6*>(&into);
    if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
    } else if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
    } else {
        throw std::invalid_argument(text);
    }
}

}  // namespace

void set_ready(int fd, bool ready) {
    std::uint64_t value = 1;
    const auto moved =
        ready ? ::write(fd, &value, sizeof(value)) : ::read(fd, &value, sizeof(value));
    static_cast<void>(moved);
}

World::World() {
    if (living != nullptr) {
        throw std::logic_error("two worlds");
    }
    living = this;
    answer("rdma_resolve_addr", Event{RDMA_CM_EVENT_ADDR_RESOLVED, 0, {}, 0, 0});
    answer("rdma_resolve_route", Event{RDMA_CM_EVENT_ROUTE_RESOLVED, 0, {}, 0, 0});
    answer("rdma_connect", Event{RDMA_CM_EVENT_ESTABLISHED, 0, {}, 0, 16});
}

World::~World() {
    for (const auto& object : objects_) {
        if (object->live) {
            if (const auto* const channel = dynamic_cast<const Channel*>(object.get())) {
                ::close(channel->raw.fd);
            } else if (const auto* const comp = dynamic_cast<const CompChannel*>(object.get())) {
                ::close(comp->raw.fd);
            }
        }
    }
    living = nullptr;
}

World& World::current() {
    if (living == nullptr) {
        throw std::logic_error("no world");
    }
    return *living;
}

World* World::if_living() noexcept {
    return living;
}

Device& World::add_device(const std::string& name, const std::vector<std::string>& addresses) {
    const std::scoped_lock lock(mutex_);
    Device& device = make<Device>(
        "device", +[](const Device& made) -> const void* { return &made.context; });
    device.addresses = addresses;
    std::strncpy(device.device.name, name.c_str(), sizeof(device.device.name) - 1);
    device.device.transport_type = IBV_TRANSPORT_IB;
    device.context.device = &device.device;
    device.context.ops.poll_cq = poll_cq;
    device.context.ops.req_notify_cq = req_notify_cq;
    device.context.ops.post_send = post_send;
    device.context.ops.post_recv = post_recv;
    device.attributes.max_qp_wr = 1024;
    device.attributes.max_cqe = 65536;
    device.attributes.max_qp_rd_atom = 16;
    device.attributes.max_qp_init_rd_atom = 16;
    device.port.state = IBV_PORT_ACTIVE;
    device.port.max_msg_sz = 1U << 30U;
    device.port.active_mtu = IBV_MTU_4096;
    device.port.link_layer = IBV_LINK_LAYER_ETHERNET;
    device.port.active_width = 2;
    device.port.active_speed = 32;
    return device;
}

void World::add_interface(const std::string& name, const std::string& address) {
    const std::scoped_lock lock(mutex_);
    interfaces.push_back({name, address});
}

void World::fail(const std::string& function, int error_number, int nth) {
    const std::scoped_lock lock(mutex_);
    failures_[{function, nth}] = error_number;
}

void World::fail_call(std::size_t index, int error_number) {
    const std::scoped_lock lock(mutex_);
    failing_call_ = {index, error_number};
}

void World::answer(const std::string& function, Answer events) {
    const std::scoped_lock lock(mutex_);
    answers_[function] = std::move(events);
}

void World::answer(const std::string& function, const Event& event) {
    answer(function, [event](int) { return std::vector{event}; });
}

void World::answer_sends_with(Bytes message) {
    const std::scoped_lock lock(mutex_);
    reply_ = std::move(message);
}

void World::complete_reads_at_once(bool yes) {
    const std::scoped_lock lock(mutex_);
    reads_complete_ = yes;
}

void World::reads_carry_data(bool yes) {
    const std::scoped_lock lock(mutex_);
    reads_carry_data_ = yes;
}

void World::before_arming(std::function<void(Cq&)> action) {
    const std::scoped_lock lock(mutex_);
    arming = std::move(action);
}

void World::before_sleeping(std::function<void()> action) {
    const std::scoped_lock lock(mutex_);
    sleeping = std::move(action);
}

void World::before_taking(std::function<void()> action) {
    const std::scoped_lock lock(mutex_);
    taking = std::move(action);
}

void World::after_posting(std::function<void(Qp&)> action) {
    const std::scoped_lock lock(mutex_);
    after_posting_ = std::move(action);
}

void World::happen(Id& id, const Event& event) {
    const std::scoped_lock lock(mutex_);
    id.channel->pending.push_back({&id, nullptr, event});
    set_ready(id.channel->raw.fd, true);
}

Id& World::connect_request(Id& listener, Device& device, Bytes private_data, std::uint8_t depth,
                           const std::string& peer) {
    const std::scoped_lock lock(mutex_);
    Id& id = make<Id>("id");
    id.live = false;
    id.needs = {listener.channel};
    id.channel = listener.channel;
    id.raw.channel = &listener.channel->raw;
    id.raw.verbs = &device.context;
    id.raw.port_num = 1;
    fill_address(id.raw.route.addr.src_storage, device.addresses.front());
    fill_address(id.raw.route.addr.dst_storage, peer);
    Event event;
    event.type = RDMA_CM_EVENT_CONNECT_REQUEST;
    event.private_data = std::move(private_data);
    event.responder_resources = depth;
    listener.channel->pending.push_back({&listener, &id, event});
    set_ready(listener.channel->raw.fd, true);
    return id;
}

void World::receive(Qp& qp, const Bytes& message) {
    const std::scoped_lock lock(mutex_);
    if (qp.receives.empty()) {
        violate("a message for " + qp.name + " met no posted receive");
        return;
    }
    const ibv_recv_wr request = qp.receives.front();
    const auto [address, length] = qp.receive_memory.front();
    qp.receives.pop_front();
    qp.receive_memory.pop_front();
    ibv_wc completion{};
    completion.wr_id = request.wr_id;
    completion.qp_num = qp.raw.qp_num;
    completion.opcode = IBV_WC_RECV;
    if (message.size() > length) {
        completion.status = IBV_WC_LOC_LEN_ERR;
    } else {
        std::copy(message.begin(), message.end(), reinterpret_cast<std::byte*>(address));
        completion.byte_len = static_cast<std::uint32_t>(message.size());
    }
    complete(*qp.cq, completion);
}

void World::complete(Cq& cq, ibv_wc completion) {
    const std::scoped_lock lock(mutex_);
    if (completion.status != IBV_WC_SUCCESS) {
        // Not valid in a failed completion: whoever reads them shall notice.
        completion.opcode = IBV_WC_LOCAL_INV;
        completion.byte_len = 0xdeadbeef;
        completion.wc_flags = 0xff;
    }
    if (cq.pending.size() >= static_cast<std::size_t>(cq.raw.cqe)) {
        violate(cq.name + " overran");
    }
    cq.pending.push_back(completion);
    if (cq.armed) {
        wake(cq);
    }
}

void World::wake(Cq& cq) {
    cq.armed = false;
    cq.channel->wakeups.push_back(&cq.raw);
    set_ready(cq.channel->raw.fd, true);
}

void World::complete_read(Qp& qp, std::size_t index, ibv_wc_status status) {
    const std::scoped_lock lock(mutex_);
    const Read read = qp.in_flight.at(index);
    qp.in_flight.erase(qp.in_flight.begin() + static_cast<std::ptrdiff_t>(index));
    ibv_wc completion{};
    completion.wr_id = read.wr_id;
    completion.status = status;
    completion.opcode = IBV_WC_RDMA_READ;
    completion.qp_num = qp.raw.qp_num;
    completion.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0x7b;
    ++qp.silent;
    if (status == IBV_WC_SUCCESS) {
        completion.byte_len = read.length;
        if (reads_carry_data_) {
            std::memcpy(reinterpret_cast<void*>(read.local),
                        reinterpret_cast<const void*>(read.remote), read.length);
        }
        if (!read.signaled) {
            return;
        }
    }
    qp.reported.push_back(std::exchange(qp.silent, 0));
    complete(*qp.cq, completion);
}

std::vector<std::string> World::log() const {
    const std::scoped_lock lock(mutex_);
    return log_;
}

std::size_t World::place(const std::string& text, int nth) const {
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < log_.size(); ++i) {
        if (log_[i].starts_with(text) && --nth == 0) {
            return i;
        }
    }
    ADD_FAILURE() << "no such call: " << text;
    return log_.size();
}

int World::count(const std::string& text) const {
    const std::scoped_lock lock(mutex_);
    return static_cast<int>(std::ranges::count_if(
        log_, [&](const std::string& line) { return line.starts_with(text); }));
}

std::vector<std::string> World::attempted() const {
    const std::scoped_lock lock(mutex_);
    return attempted_;
}

std::vector<std::string> World::violations() const {
    const std::scoped_lock lock(mutex_);
    return violations_;
}

std::vector<std::string> World::held() const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> names;
    for (const auto& object : objects_) {
        if (object->live && dynamic_cast<const Device*>(object.get()) == nullptr) {
            names.push_back(object->name);
        }
    }
    for (const auto& [raw, event] : taken) {
        names.push_back(std::string("an unacknowledged ") + rdma_event_str(raw->event));
    }
    return names;
}

int World::enter(const std::string& function) {
    const std::scoped_lock lock(mutex_);
    const std::size_t index = attempted_.size();
    attempted_.push_back(function);
    const int nth = ++counts_[function];
    if (failing_call_ && failing_call_->first == index) {
        return failing_call_->second;
    }
    const auto failure = failures_.find({function, nth});
    return failure == failures_.end() ? 0 : failure->second;
}

void World::note(const std::string& function, const Object& object) {
    log_.push_back(function + " " + object.name);
}

void World::violate(const std::string& what) {
    const std::scoped_lock lock(mutex_);
    violations_.push_back(what);
}

void World::release(const std::string& function, Object& object) {
    note(function, object);
    if (!object.live) {
        violate(object.name + " was released twice");
    }
    object.live = false;
    for (const auto& other : objects_) {
        if (other->live && std::ranges::find(other->needs, &object) != other->needs.end()) {
            violate(object.name + " was released before " + other->name);
        }
    }
}

void World::play(const std::string& function, Id& id) {
    const auto events = answers_.find(function);
    if (events == answers_.end()) {
        return;
    }
    for (const Event& event : events->second(++played_[function])) {
        happen(id, event);
    }
}

Device* World::device_at(const std::string& address) {
    for (Device* const device : all<Device>()) {
        if (std::ranges::find(device->addresses, address) != device->addresses.end()) {
            return device;
        }
    }
    return nullptr;
}

Mr* World::region(std::uint32_t lkey) {
    for (Mr* const mr : all<Mr>()) {
        if (mr->live && mr->raw.lkey == lkey) {
            return mr;
        }
    }
    return nullptr;
}

void World::check_memory(const ibv_sge& element, Qp& user, unsigned int needed_access) {
    Mr* const mr = region(element.lkey);
    if (mr == nullptr) {
        violate(user.name + " used an unknown local key");
        return;
    }
    const auto begin = reinterpret_cast<std::uintptr_t>(mr->raw.addr);
    if (element.addr < begin || element.addr + element.length > begin + mr->raw.length) {
        violate(user.name + " used memory outside of " + mr->name);
    }
    if ((mr->access & needed_access) != needed_access) {
        violate(mr->name + " does not allow what " + user.name + " did with it");
    }
    if (mr->raw.pd != user.raw.pd) {
        violate(mr->name + " is of another protection domain than " + user.name);
    }
    if (std::ranges::find(user.needs, mr) == user.needs.end()) {
        user.needs.push_back(mr);
    }
}

void World::posted(Qp& qp, ibv_send_wr* first) {
    std::vector<Read> reads;
    std::vector<ibv_wc> done;
    bool sent = false;
    for (const ibv_send_wr* request = first; request != nullptr; request = request->next) {
        if (++qp.sends_outstanding > qp.cap.max_send_wr) {
            violate("the send queue of " + qp.name + " overran");
        }
        if (request->num_sge != 1) {
            violate("a request without memory");
            continue;
        }
        const bool signaled = (request->send_flags & IBV_SEND_SIGNALED) != 0;
        const ibv_sge& element = *request->sg_list;
        if (request->opcode == IBV_WR_SEND) {
            if (!signaled) {
                violate("a SEND that nobody hears of again");
            }
            check_memory(element, qp, 0);
            const auto* const from = reinterpret_cast<const std::byte*>(element.addr);
            qp.sent.emplace_back(from, from + element.length);
            ibv_wc completion{};
            completion.wr_id = request->wr_id;
            completion.opcode = IBV_WC_SEND;
            completion.qp_num = qp.raw.qp_num;
            done.push_back(completion);
            sent = true;
        } else if (request->opcode == IBV_WR_RDMA_READ) {
            check_memory(element, qp, IBV_ACCESS_LOCAL_WRITE);
            reads.push_back({request->wr_id, request->wr.rdma.remote_addr, request->wr.rdma.rkey,
                             element.addr, element.length, signaled});
        } else {
            violate("an operation that is neither SEND nor RDMA READ");
        }
    }
    for (const ibv_wc& completion : done) {
        qp.reported.push_back(1);
        complete(*qp.cq, completion);
    }
    if (sent && !reply_.empty()) {
        receive(qp, reply_);
    }
    if (!reads.empty()) {
        qp.posts.push_back(reads);
        qp.in_flight.insert(qp.in_flight.end(), reads.begin(), reads.end());
        while (reads_complete_ && !qp.in_flight.empty()) {
            complete_read(qp);
        }
    }
    if (const auto action = after_posting_) {
        action(qp);
    }
}

}  // namespace rdma_read::rdma::fakes
