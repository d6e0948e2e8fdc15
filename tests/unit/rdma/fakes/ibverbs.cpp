// The functions of libibverbs as the living World plays them.
#include "allocation_count.hpp"
#include "world.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

// Macros of the header that stand in front of the functions defined here.
#undef ibv_reg_mr
#undef ibv_query_port

namespace fakes = rdma_read::rdma::fakes;
using fakes::World;

namespace {

std::nullptr_t no_object(int error_number) {
    errno = error_number;
    return nullptr;
}

// These functions return the errno; what errno says is of no meaning then.
int failed_with(int error_number) {
    errno = EDOM;
    return error_number;
}

ibv_mr* register_memory(ibv_pd* pd, void* address, std::size_t length, unsigned int access) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("ibv_reg_mr"); error != 0) {
        return no_object(error);
    }
    auto& mr = world.make<fakes::Mr>("mr");
    mr.needs = {&world.find<fakes::Pd>(pd)};
    mr.access = access;
    mr.raw.context = pd->context;
    mr.raw.pd = pd;
    mr.raw.addr = address;
    mr.raw.length = length;
    // Different, so that a mix-up is noticed.
    mr.raw.lkey = world.next_key++;
    mr.raw.rkey = world.next_key++;
    world.note("ibv_reg_mr", mr);
    return &mr.raw;
}

}  // namespace

namespace rdma_read::rdma::fakes {

int poll_cq(ibv_cq* raw, int entries, ibv_wc* into) {
    const Uncounted uncounted;
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    auto& cq = world.find<Cq>(raw);
    ++cq.looks;
    if (cq.pending.empty()) {
        return 0;
    }
    if (world.enter("ibv_poll_cq") != 0) {
        return -1;
    }
    int count = 0;
    while (count < entries && !cq.pending.empty()) {
        into[count] = cq.pending.front();
        for (Qp* const qp : world.all<Qp>()) {
            // A receive's completion frees no place in the send queue.
            if (qp->raw.qp_num == into[count].qp_num && into[count].opcode != IBV_WC_RECV
                && !qp->reported.empty()) {
                qp->sends_outstanding -= qp->reported.front();
                qp->reported.pop_front();
                break;
            }
        }
        cq.pending.pop_front();
        ++count;
    }
    return count;
}

int req_notify_cq(ibv_cq* raw, int /*solicited_only*/) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    auto& cq = world.find<Cq>(raw);
    // A copy: the action may put another in its place.
    if (const auto action = world.arming) {
        action(cq);
    }
    if (const int error = world.enter("ibv_req_notify_cq"); error != 0) {
        return failed_with(error);
    }
    cq.armed = true;
    return 0;
}

int post_send(ibv_qp* raw, ibv_send_wr* first, ibv_send_wr** bad) {
    const Uncounted uncounted;
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("ibv_post_send"); error != 0) {
        *bad = first;
        if (error == -1) {  // an old provider
            errno = ENOMEM;
            return -1;
        }
        return failed_with(error);
    }
    auto& qp = world.find<Qp>(raw);
    world.note("ibv_post_send", qp);
    world.posted(qp, first);
    return 0;
}

int post_recv(ibv_qp* raw, ibv_recv_wr* first, ibv_recv_wr** bad) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("ibv_post_recv"); error != 0) {
        *bad = first;
        return failed_with(error);
    }
    auto& qp = world.find<Qp>(raw);
    world.note("ibv_post_recv", qp);
    for (const ibv_recv_wr* request = first; request != nullptr; request = request->next) {
        world.check_memory(*request->sg_list, qp, IBV_ACCESS_LOCAL_WRITE);
        qp.receives.push_back(*request);
        qp.receive_memory.emplace_back(request->sg_list->addr, request->sg_list->length);
    }
    if (qp.receives.size() > qp.cap.max_recv_wr) {
        world.violate("the receive queue of " + qp.name + " overran");
    }
    return 0;
}

}  // namespace rdma_read::rdma::fakes

extern "C" {

int ibv_query_device(ibv_context* context, ibv_device_attr* into) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("ibv_query_device"); error != 0) {
        return failed_with(error);
    }
    *into = world.find<fakes::Device>(context).attributes;
    return 0;
}

// The header's inline function comes here when a context has no extended operations, with a
// structure of the full size.
int ibv_query_port(ibv_context* context, std::uint8_t /*port_num*/, _compat_ibv_port_attr* into) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("ibv_query_port"); error != 0) {
        return failed_with(error);
    }
    *reinterpret_cast<ibv_port_attr*>(into) = world.find<fakes::Device>(context).port;
    return 0;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("ibv_alloc_pd"); error != 0) {
        return no_object(error);
    }
    auto& pd = world.make<fakes::Pd>("pd");
    pd.raw.context = context;
    world.note("ibv_alloc_pd", pd);
    return &pd.raw;
}

int ibv_dealloc_pd(ibv_pd* raw) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    world.release("ibv_dealloc_pd", world.find<fakes::Pd>(raw));
    return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
    return register_memory(pd, address, length, static_cast<unsigned int>(access));
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                         unsigned int access) {
    if (iova != reinterpret_cast<std::uintptr_t>(address)) {
        World::current().violate("a region that peers see at another address");
    }
    return register_memory(pd, address, length, access);
}

int ibv_dereg_mr(ibv_mr* raw) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    world.release("ibv_dereg_mr", world.find<fakes::Mr>(raw));
    return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("ibv_create_comp_channel"); error != 0) {
        return no_object(error);
    }
    auto& channel = world.make<fakes::CompChannel>("comp_channel");
    channel.raw.context = context;
    channel.raw.fd = eventfd(0, EFD_CLOEXEC);
    world.note("ibv_create_comp_channel", channel);
    return &channel.raw;
}

int ibv_destroy_comp_channel(ibv_comp_channel* raw) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    auto& channel = world.find<fakes::CompChannel>(raw);
    world.release("ibv_destroy_comp_channel", channel);
    close(channel.raw.fd);
    channel.raw.fd = -1;
    return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context, ibv_comp_channel* raw,
                      int /*vector*/) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("ibv_create_cq"); error != 0) {
        return no_object(error);
    }
    if (entries < 1 || entries > world.find<fakes::Device>(context).attributes.max_cqe) {
        return no_object(EINVAL);
    }
    auto& channel = world.find<fakes::CompChannel>(raw);
    auto& cq = world.make<fakes::Cq>("cq");
    cq.needs = {&channel};
    cq.channel = &channel;
    cq.raw.context = context;
    cq.raw.channel = raw;
    cq.raw.cq_context = cq_context;
    cq.raw.cqe = entries;
    world.note("ibv_create_cq", cq);
    return &cq.raw;
}

int ibv_destroy_cq(ibv_cq* raw) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    auto& cq = world.find<fakes::Cq>(raw);
    world.release("ibv_destroy_cq", cq);
    if (cq.unacknowledged > 0) {
        world.violate("ibv_destroy_cq of " + cq.name + " would block: a wake-up is unacknowledged");
    }
    return 0;
}

int ibv_get_cq_event(ibv_comp_channel* raw, ibv_cq** cq, void** cq_context) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    auto& channel = world.find<fakes::CompChannel>(raw);
    if (channel.wakeups.empty()) {
        if ((fcntl(channel.raw.fd, F_GETFL) & O_NONBLOCK) == 0) {
            world.violate("ibv_get_cq_event would block");
        }
        errno = EAGAIN;
        return -1;
    }
    *cq = channel.wakeups.front();
    *cq_context = (*cq)->cq_context;
    channel.wakeups.pop_front();
    if (channel.wakeups.empty()) {
        fakes::set_ready(channel.raw.fd, false);
    }
    ++world.find<fakes::Cq>(*cq).unacknowledged;
    return 0;
}

void ibv_ack_cq_events(ibv_cq* raw, unsigned int count) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    auto& cq = world.find<fakes::Cq>(raw);
    if (!cq.live || cq.unacknowledged < count) {
        world.violate(cq.name + " got more acknowledgements than wake-ups");
        return;
    }
    cq.unacknowledged -= count;
}

int ibv_query_qp(ibv_qp* /*qp*/, ibv_qp_attr* into, int /*mask*/, ibv_qp_init_attr* /*initial*/) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("ibv_query_qp"); error != 0) {
        return failed_with(error);
    }
    into->path_mtu = IBV_MTU_1024;
    return 0;
}

ibv_device** ibv_get_device_list(int* count) {
    World& world = World::current();
    const std::scoped_lock lock(world.mutex());
    if (const int error = world.enter("ibv_get_device_list"); error != 0) {
        return no_object(error);
    }
    const auto devices = world.all<fakes::Device>();
    auto** const list = new ibv_device*[devices.size() + 1];
    std::ranges::transform(devices, list, [](fakes::Device* device) { return &device->device; });
    list[devices.size()] = nullptr;
    *count = static_cast<int>(devices.size());
    return list;
}

void ibv_free_device_list(ibv_device** list) {
    delete[] list;
}

}  // extern "C"
