// The functions of librdmacm, getifaddrs(3), poll(2) and epoll_wait(2), as the living World plays
// them.
#include "world.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>

namespace fakes = rdma_read::rdma::fakes;
using fakes::World;

namespace {

void act_before_sleeping() {
    World* const world = World::if_living();
    if (world == nullptr) {
        return;
    }
    std::function<void()> action;
    {
        const std::scoped_lock lock(world->mutex());
        action = world->sleeping;
    }
    if (action) {
        action();
    }
}

int failed(int error_number) {
    errno = error_number;
    return -1;
}

std::string text_of(const sockaddr* address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* const raw =
        address->sa_family == AF_INET
            ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
            : static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
    inet_ntop(address->sa_family, raw, text.data(), text.size());
    return text.data();
}

std::size_t size_of(const sockaddr* address) {
    return address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

in_port_t& port_of(sockaddr_storage& address) {
    return address.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(address).sin_port
                                        : reinterpret_cast<sockaddr_in6&>(address).sin6_port;
}

bool has_connection_parameters(unsigned int type) {
    return type == RDMA_CM_EVENT_CONNECT_REQUEST || type == RDMA_CM_EVENT_ESTABLISHED
           || type == RDMA_CM_EVENT_REJECTED || type == RDMA_CM_EVENT_CONNECT_RESPONSE;
}

fakes::Asked asked(const rdma_conn_param& parameters) {
    const auto* const data = static_cast<const std::byte*>(parameters.private_data);
    fakes::Asked copy;
    copy.parameters = parameters;
    if (data != nullptr) {
        copy.private_data.assign(data, data + parameters.private_data_len);
    }
    return copy;
}

}  // namespace

extern "C" {

rdma_event_channel* rdma_create_event_channel(void) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("rdma_create_event_channel"); error != 0) {
        failed(error);
        return nullptr;
    }
    auto& channel = world.make<fakes::Channel>("channel");
    channel.raw.fd = eventfd(0, EFD_CLOEXEC);
    world.note("rdma_create_event_channel", channel);
    return &channel.raw;
}

void rdma_destroy_event_channel(rdma_event_channel* raw) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    auto& channel = world.find<fakes::Channel>(raw);
    world.release("rdma_destroy_event_channel", channel);
    close(channel.raw.fd);
    channel.raw.fd = -1;
}

int rdma_create_id(rdma_event_channel* raw, rdma_cm_id** into, void* context,
                   enum rdma_port_space space) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("rdma_create_id"); error != 0) {
        return failed(error);
    }
    auto& channel = world.find<fakes::Channel>(raw);
    auto& id = world.make<fakes::Id>("id");
    id.needs = {&channel};
    id.channel = &channel;
    id.raw.channel = raw;
    id.raw.context = context;
    id.raw.ps = space;
    if (space != RDMA_PS_TCP) {
        world.violate("an id in another port space than TCP");
    }
    world.note("rdma_create_id", id);
    *into = &id.raw;
    return 0;
}

int rdma_destroy_id(rdma_cm_id* raw) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    auto& id = world.find<fakes::Id>(raw);
    world.release("rdma_destroy_id", id);
    if (id.unacknowledged > 0) {
        world.violate("rdma_destroy_id of " + id.name + " would block: an event is unacknowledged");
    }
    // The kernel forgets what it has not handed out yet.
    std::erase_if(id.channel->pending, [&](const auto& pending) { return pending.id == &id; });
    if (id.channel->live && id.channel->pending.empty()) {
        fakes::set_ready(id.channel->raw.fd, true);  // so that the reset does not block
        fakes::set_ready(id.channel->raw.fd, false);
    }
    return 0;
}

int rdma_bind_addr(rdma_cm_id* raw, sockaddr* address) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("rdma_bind_addr"); error != 0) {
        return failed(error);
    }
    auto& id = world.find<fakes::Id>(raw);
    const std::string text = text_of(address);
    if (text != "0.0.0.0" && text != "::") {
        fakes::Device* const device = world.device_at(text);
        if (device == nullptr) {
            return failed(ENODEV);
        }
        id.raw.verbs = &device->context;
        id.raw.port_num = 1;
    }
    auto& bound = id.raw.route.addr.src_storage;
    std::memcpy(&bound, address, size_of(address));
    if (port_of(bound) == 0) {
        port_of(bound) = htons(world.next_port++);
    }
    world.note("rdma_bind_addr", id);
    return 0;
}

int rdma_listen(rdma_cm_id* raw, int backlog) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("rdma_listen"); error != 0) {
        return failed(error);
    }
    auto& id = world.find<fakes::Id>(raw);
    id.backlog = backlog;
    world.note("rdma_listen", id);
    return 0;
}

int rdma_resolve_addr(rdma_cm_id* raw, sockaddr* source, sockaddr* target, int timeout_ms) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("rdma_resolve_addr"); error != 0) {
        return failed(error);
    }
    const auto devices = world.all<fakes::Device>();
    if (devices.empty() || source != nullptr || timeout_ms <= 0) {
        return failed(EINVAL);
    }
    auto& id = world.find<fakes::Id>(raw);
    id.raw.verbs = &devices.front()->context;
    id.raw.port_num = 1;
    id.raw.route.addr.src_sin.sin_family = AF_INET;
    inet_pton(AF_INET, devices.front()->addresses.front().c_str(),
              &id.raw.route.addr.src_sin.sin_addr);
    std::memcpy(&id.raw.route.addr.dst_storage, target, size_of(target));
    world.note("rdma_resolve_addr", id);
    world.play("rdma_resolve_addr", id);
    return 0;
}

int rdma_resolve_route(rdma_cm_id* raw, int timeout_ms) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("rdma_resolve_route"); error != 0) {
        return failed(error);
    }
    if (timeout_ms <= 0) {
        return failed(EINVAL);
    }
    auto& id = world.find<fakes::Id>(raw);
    world.note("rdma_resolve_route", id);
    world.play("rdma_resolve_route", id);
    return 0;
}

int rdma_create_qp(rdma_cm_id* raw, ibv_pd* pd, ibv_qp_init_attr* attributes) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("rdma_create_qp"); error != 0) {
        return failed(error);
    }
    auto& id = world.find<fakes::Id>(raw);
    if (id.raw.verbs == nullptr || pd->context != id.raw.verbs || id.qp != nullptr
        || attributes->qp_type != IBV_QPT_RC) {
        return failed(EINVAL);
    }
    const auto& device = world.find<fakes::Device>(id.raw.verbs);
    if (attributes->cap.max_send_wr > static_cast<std::uint32_t>(device.attributes.max_qp_wr)) {
        return failed(ENOMEM);
    }
    auto& cq = world.find<fakes::Cq>(attributes->send_cq);
    auto& qp = world.make<fakes::Qp>("qp");
    qp.needs = {&id, &world.find<fakes::Pd>(pd), &cq, &world.find<fakes::Cq>(attributes->recv_cq)};
    qp.raw.context = id.raw.verbs;
    qp.raw.pd = pd;
    qp.raw.send_cq = attributes->send_cq;
    qp.raw.recv_cq = attributes->recv_cq;
    qp.raw.qp_num = world.next_key++;
    qp.cap = attributes->cap;
    qp.id = &id;
    qp.cq = &cq;
    id.qp = &qp;
    id.raw.qp = &qp.raw;
    world.note("rdma_create_qp", qp);
    return 0;
}

void rdma_destroy_qp(rdma_cm_id* raw) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    auto& id = world.find<fakes::Id>(raw);
    if (!id.live || id.qp == nullptr) {
        world.violate("rdma_destroy_qp on " + id.name + ", which has none");
        return;
    }
    world.release("rdma_destroy_qp", *id.qp);
    id.qp = nullptr;
    id.raw.qp = nullptr;
}

int rdma_connect(rdma_cm_id* raw, rdma_conn_param* parameters) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("rdma_connect"); error != 0) {
        return failed(error);
    }
    auto& id = world.find<fakes::Id>(raw);
    id.asked = asked(*parameters);
    world.note("rdma_connect", id);
    world.play("rdma_connect", id);
    return 0;
}

int rdma_accept(rdma_cm_id* raw, rdma_conn_param* parameters) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("rdma_accept"); error != 0) {
        return failed(error);
    }
    auto& id = world.find<fakes::Id>(raw);
    id.asked = asked(*parameters);
    world.note("rdma_accept", id);
    world.play("rdma_accept", id);
    return 0;
}

int rdma_reject(rdma_cm_id* raw, const void* data, std::uint8_t size) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("rdma_reject"); error != 0) {
        return failed(error);
    }
    auto& id = world.find<fakes::Id>(raw);
    const auto* const bytes = static_cast<const std::byte*>(data);
    id.rejected_with.emplace(bytes, bytes + size);
    world.note("rdma_reject", id);
    return 0;
}

int rdma_disconnect(rdma_cm_id* raw) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("rdma_disconnect"); error != 0) {
        return failed(error);
    }
    auto& id = world.find<fakes::Id>(raw);
    ++id.disconnects;
    world.note("rdma_disconnect", id);
    world.play("rdma_disconnect", id);
    return 0;
}

int rdma_get_cm_event(rdma_event_channel* raw, rdma_cm_event** into) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    auto& channel = world.find<fakes::Channel>(raw);
    if (channel.pending.empty()) {
        if ((fcntl(channel.raw.fd, F_GETFL) & O_NONBLOCK) == 0) {
            world.violate("rdma_get_cm_event would block");
        }
        return failed(EAGAIN);
    }
    if (const int error = world.enter("rdma_get_cm_event"); error != 0) {
        return failed(error);
    }
    if (const auto action = world.taking) {
        action();
    }
    const auto pending = channel.pending.front();
    channel.pending.pop_front();
    if (channel.pending.empty()) {
        fakes::set_ready(channel.raw.fd, false);
    }
    auto event = std::make_unique<World::TakenEvent>();
    event->id = pending.arriving != nullptr ? pending.arriving : pending.id;
    if (pending.arriving != nullptr) {
        event->id->live = true;
    }
    ++event->id->unacknowledged;
    event->data = pending.event.private_data;
    event->raw.id = &event->id->raw;
    event->raw.listen_id = pending.arriving != nullptr ? &pending.id->raw : nullptr;
    static_assert(sizeof(event->raw.event) == sizeof(pending.event.type));
    std::memcpy(&event->raw.event, &pending.event.type, sizeof(pending.event.type));
    event->raw.status = pending.event.status;
    if (has_connection_parameters(pending.event.type)) {
        auto& parameters = event->raw.param.conn;
        parameters.private_data = event->data.empty() ? nullptr : event->data.data();
        parameters.private_data_len = static_cast<std::uint8_t>(event->data.size());
        parameters.responder_resources = pending.event.responder_resources;
        parameters.initiator_depth = pending.event.initiator_depth;
    } else {
        // Not meant for these events: whoever follows the pointer shall notice.
        std::memset(&event->raw.param, 0x5a, sizeof(event->raw.param));
    }
    if (pending.arriving != nullptr) {
        world.note("CONNECT_REQUEST", *pending.arriving);
    }
    *into = &event->raw;
    world.taken.emplace(&event->raw, std::move(event));
    return 0;
}

int rdma_ack_cm_event(rdma_cm_event* raw) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    const auto found = world.taken.find(raw);
    if (found == world.taken.end()) {
        world.violate("an event was acknowledged twice");
        return failed(EINVAL);
    }
    --found->second->id->unacknowledged;
    world.taken.erase(found);
    return 0;
}

ibv_context** rdma_get_devices(int* count) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("rdma_get_devices"); error != 0) {
        failed(error);
        return nullptr;
    }
    std::vector<ibv_context*> contexts;
    for (fakes::Device* const device : world.all<fakes::Device>()) {
        contexts.push_back(&device->context);
    }
    contexts.push_back(nullptr);
    auto** const raw = new ibv_context*[contexts.size()];
    std::copy(contexts.begin(), contexts.end(), raw);
    *count = static_cast<int>(contexts.size() - 1);
    return raw;
}

void rdma_free_devices(ibv_context** list) {
    delete[] list;
}

// These sleep as the real ones do, once the test has done what it does before that.
int poll(pollfd* fds, nfds_t count, int timeout_ms) {
    act_before_sleeping();
    const timespec timeout{timeout_ms / 1000, timeout_ms % 1000 * 1'000'000L};
    return ppoll(fds, count, timeout_ms < 0 ? nullptr : &timeout, nullptr);
}

int epoll_wait(int epoll, epoll_event* events, int most, int timeout_ms) {
    act_before_sleeping();
    return epoll_pwait(epoll, events, most, timeout_ms, nullptr);
}

int getifaddrs(ifaddrs** into) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("getifaddrs"); error != 0) {
        return failed(error);
    }
    *into = nullptr;
    for (auto at = world.interfaces.rbegin(); at != world.interfaces.rend(); ++at) {
        auto* const entry = new ifaddrs{};
        auto* const storage = new sockaddr_storage{};
        entry->ifa_name = strdup(at->name.c_str());
        auto* const v4 = reinterpret_cast<sockaddr_in*>(storage);
        auto* const v6 = reinterpret_cast<sockaddr_in6*>(storage);
        if (inet_pton(AF_INET, at->address.c_str(), &v4->sin_addr) == 1) {
            storage->ss_family = AF_INET;
        } else if (inet_pton(AF_INET6, at->address.c_str(), &v6->sin6_addr) == 1) {
            storage->ss_family = AF_INET6;
        } else {
            storage->ss_family = AF_UNSPEC;  // like an interface's hardware address
        }
        entry->ifa_addr = reinterpret_cast<sockaddr*>(storage);
        entry->ifa_next = *into;
        *into = entry;
    }
    return 0;
}

void freeifaddrs(ifaddrs* first) {
    while (first != nullptr) {
        ifaddrs* const next = first->ifa_next;
        free(first->ifa_name);
        delete reinterpret_cast<sockaddr_storage*>(first->ifa_addr);
        delete first;
        first = next;
    }
}

}  // extern "C"
