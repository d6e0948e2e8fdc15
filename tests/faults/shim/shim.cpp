// Stands between a program and librdmacm and libibverbs (LD_PRELOAD), and injects the faults that
// RDMA_READ_FAULT names. Each strikes once and is then written to the file RDMA_READ_FAULT_LOG.
#include "fault.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <link.h>
#include <rdma/rdma_cma.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

// Macros of the headers that stand in front of the functions defined here.
#undef ibv_reg_mr
#undef ibv_query_port
#undef ibv_get_device_list

namespace rdma_read::test {
namespace {

constexpr int kExitBadFault = 125;

// Where the program itself is in memory: calls that the libraries make among themselves do not
// count.
struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
};

Range find_program() {
    Range range{std::numeric_limits<std::uintptr_t>::max(), 0};
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* into) {
            Range& found = *static_cast<Range*>(into);
            for (int i = 0; i < object->dlpi_phnum; ++i) {
                const ElfW(Phdr)& part = object->dlpi_phdr[i];
                if (part.p_type == PT_LOAD) {
                    const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
                    found.begin = std::min(found.begin, begin);
                    found.end = std::max(found.end, begin + part.p_memsz);
                }
            }
            return 1;  // the first object is the program
        },
        &range);
    return range;
}

// What a device's functions were before they were replaced.
struct Device {
    ibv_context_ops ops{};
    int (*query_port)(ibv_context*, std::uint8_t, ibv_port_attr*, std::size_t) = nullptr;
};

class Shim {
  public:
    Shim();

    [[nodiscard]] bool by_program(const void* caller) const noexcept {
        const auto address = reinterpret_cast<std::uintptr_t>(caller);
        return address >= program_.begin && address < program_.end;
    }

    // The fault that this call of the program meets, if any.
    const Fault* enter(const std::string& call) {
        const std::scoped_lock lock(mutex_);
        const std::uint64_t nth = ++counts_[call];
        for (Armed& armed : faults_) {
            const Fault& fault = armed.fault;
            if ((fault.kind == FaultKind::call_fails || fault.kind == FaultKind::call_signals)
                && fault.name == call
                && (fault.after_reads ? !armed.struck && posted_ >= fault.number
                                      : fault.number == nth)) {
                strike(armed);
                return &fault;
            }
        }
        return nullptr;
    }

    // Applies a change for each fault of a kind that is meant; `change` says whether it is.
    template <class Change>
    void apply(FaultKind kind, Change change) {
        const std::scoped_lock lock(mutex_);
        for (Armed& armed : faults_) {
            if (armed.fault.kind == kind && change(armed.fault, armed.struck)) {
                strike(armed);
            }
        }
    }

    // Whether the device would refuse so much of what it says that it has less of.
    [[nodiscard]] bool beyond_limit(const std::string& name, std::uint64_t asked) {
        const std::scoped_lock lock(mutex_);
        return std::ranges::any_of(faults_, [&](const Armed& armed) {
            const auto limit = static_cast<std::uint64_t>(armed.fault.value);
            // A port that says 0 there tells no limit.
            return armed.fault.kind == FaultKind::limit && armed.fault.name == name && asked > limit
                   && (limit > 0 || name != "max_msg_sz");
        });
    }

    void reads_were_posted(std::uint64_t reads) {
        const std::scoped_lock lock(mutex_);
        posted_ += reads;
    }

    [[nodiscard]] std::uint64_t count(const std::string& what) {
        const std::scoped_lock lock(mutex_);
        return ++counts_[what];
    }

    void replace_functions(ibv_context* context);
    [[nodiscard]] Device original(const ibv_context* context) {
        const std::scoped_lock lock(mutex_);
        return devices_.at(context);
    }

    // ---- events that are handed out later or never were

    void hold_back(const rdma_event_channel* channel, rdma_cm_event* event) {
        const std::scoped_lock lock(mutex_);
        waiting_.emplace_back(channel, event);
    }
    rdma_cm_event* next_waiting(const rdma_event_channel* channel) {
        const std::scoped_lock lock(mutex_);
        for (auto entry = waiting_.begin(); entry != waiting_.end(); ++entry) {
            if (entry->first == channel) {
                rdma_cm_event* const event = entry->second;
                waiting_.erase(entry);
                return event;
            }
        }
        return nullptr;
    }
    // The next channel may be at the same place in memory.
    void forget_channel(const rdma_event_channel* channel) {
        const std::scoped_lock lock(mutex_);
        std::erase_if(waiting_, [&](const auto& entry) { return entry.first == channel; });
        if (connected_.first == channel) {
            connected_ = {};
        }
    }

    // The connection and the channel whose reads are counted.
    void connected(const rdma_event_channel* channel, rdma_cm_id* id) {
        const std::scoped_lock lock(mutex_);
        connected_ = {channel, id};
    }
    // Makes the events that are due by now; the channel that has some waiting then, or -1.
    int arrive() {
        const std::scoped_lock lock(mutex_);
        int fd = -1;
        for (Armed& armed : faults_) {
            const Fault& fault = armed.fault;
            if (fault.kind != FaultKind::arrival || armed.struck || posted_ < fault.number
                || connected_.first == nullptr) {
                continue;
            }
            strike(armed);
            for (int i = 0; i < fault.times; ++i) {
                hold_back(connected_.first,
                          make_event(connected_.second, fault.stand_in, fault.value));
            }
            fd = connected_.first->fd;
        }
        return fd;
    }

    // An event that never was.
    rdma_cm_event* make_event(rdma_cm_id* id, unsigned int type, int status) {
        auto made = std::make_unique<OwnEvent>();
        made->event.id = id;
        made->event.event = static_cast<rdma_cm_event_type>(type);
        made->event.status = status;
        return keep(std::move(made));
    }
    // The same event, which no longer needs the original.
    rdma_cm_event* copy_event(const rdma_cm_event& original) {
        auto made = std::make_unique<OwnEvent>();
        made->event = original;
        if (original.param.conn.private_data != nullptr) {
            std::memcpy(made->data.data(), original.param.conn.private_data,
                        original.param.conn.private_data_len);
            made->event.param.conn.private_data = made->data.data();
        }
        return keep(std::move(made));
    }
    // True if the event is one of ours, and is gone now.
    bool forget(const rdma_cm_event* event) {
        const std::scoped_lock lock(mutex_);
        return made_.erase(event) > 0;
    }

  private:
    struct Armed {
        Fault fault;
        bool struck = false;
    };
    struct OwnEvent {
        rdma_cm_event event{};
        std::array<std::uint8_t, 256> data{};
    };

    rdma_cm_event* keep(std::unique_ptr<OwnEvent> made) {
        const std::scoped_lock lock(mutex_);
        rdma_cm_event* const raw = &made->event;
        made_.emplace(raw, std::move(made));
        return raw;
    }

    void strike(Armed& armed) {
        if (!armed.struck) {
            armed.struck = true;
            const std::string line = armed.fault.text + "\n";
            [[maybe_unused]] const auto written = write(log_, line.data(), line.size());
        }
    }
    [[noreturn]] static void give_up(const std::string& problem) {
        const std::string line = "RDMA_READ_FAULT: " + problem + "\n";
        [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
        _exit(kExitBadFault);
    }

    std::recursive_mutex mutex_;
    Range program_ = find_program();
    int log_ = -1;
    std::deque<Armed> faults_;
    std::map<std::string, std::uint64_t> counts_;
    std::uint64_t posted_ = 0;  // reads
    std::pair<const rdma_event_channel*, rdma_cm_id*> connected_{};
    std::map<const ibv_context*, Device> devices_;
    std::deque<std::pair<const rdma_event_channel*, rdma_cm_event*>> waiting_;
    std::map<const rdma_cm_event*, std::unique_ptr<OwnEvent>> made_;
};

Shim::Shim() {
    const char* const text = std::getenv("RDMA_READ_FAULT");
    const char* const log = std::getenv("RDMA_READ_FAULT_LOG");
    if (text == nullptr || log == nullptr) {
        give_up("not set, or RDMA_READ_FAULT_LOG is not");
    }
    try {
        for (Fault& fault : parse_faults(text)) {
            faults_.push_back({std::move(fault)});
        }
    } catch (const std::invalid_argument& error) {
        give_up(error.what());
    }
    log_ = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log_ < 0) {
        give_up(std::string("cannot write ") + log);
    }
}

// Lives to the end of the process, for what is called during its exit.
Shim& shim() {
    static Shim& instance = *new Shim;
    return instance;
}

__attribute__((constructor)) void read_faults() {
    (void)shim();
}

// Told to its process as anybody would tell it; but of a stop only the thread that is told is sure
// to do nothing more.
void strike(int signal_number) {
    (void)(signal_number == SIGSTOP ? raise(signal_number) : kill(getpid(), signal_number));
}

// One call of the program, from before the real function to after it.
class Call {
  public:
    Call(const char* name, const void* caller) : by_program_(shim().by_program(caller)) {
        const Fault* const fault = by_program_ ? shim().enter(name) : nullptr;
        if (fault == nullptr) {
            return;
        }
        if (fault->kind == FaultKind::call_fails) {
            error_ = fault->value;
        } else if (fault->after) {
            signal_after_ = fault->value;
        } else {
            strike(fault->value);
        }
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    Call(Call&&) = delete;
    Call& operator=(Call&&) = delete;
    ~Call() {
        if (signal_after_ != 0) {
            const int saved = errno;
            strike(signal_after_);
            errno = saved;
        }
    }
    // The errno to fail with, or 0.
    [[nodiscard]] int error() const noexcept { return error_; }
    [[nodiscard]] bool by_program() const noexcept { return by_program_; }

  private:
    bool by_program_;
    int error_ = 0;
    int signal_after_ = 0;
};

// How a function reports failure.
struct Null {
    static std::nullptr_t failed(int error) {
        errno = error;
        return nullptr;
    }
};
struct MinusOne {
    static int failed(int error) {
        errno = error;
        return -1;
    }
};
struct Positive {
    static int failed(int error) {
        errno = EDOM;  // what errno says is of no meaning then
        return error;
    }
};

template <class Function>
Function* real(Function* /*type*/, const char* name) {
    void* const found = dlsym(RTLD_NEXT, name);
    if (found == nullptr) {
        std::fprintf(stderr, "RDMA_READ_FAULT: there is no %s\n", name);
        _exit(kExitBadFault);
    }
    return reinterpret_cast<Function*>(found);
}

// Fails as the function would, or calls it.
template <class Convention, class Function, class... Arguments>
auto relay(Function* type, const char* name, const void* caller, Arguments... arguments)
    -> decltype(type(arguments...)) {
    const Call call(name, caller);
    if (call.error() != 0) {
        return Convention::failed(call.error());
    }
    return real(type, name)(arguments...);
}

#define CALLED(function) &(function), #function, __builtin_return_address(0)

// ---- what is called through a device

int query_port(ibv_context* context, std::uint8_t port_num, ibv_port_attr* into, std::size_t size) {
    const Call call("ibv_query_port", __builtin_return_address(0));
    if (call.error() != 0) {
        return Positive::failed(call.error());
    }
    const int result = shim().original(context).query_port(context, port_num, into, size);
    if (result == 0 && call.by_program()) {
        shim().apply(FaultKind::limit, [&](const Fault& fault, bool) {
            if (fault.name != "max_msg_sz") {
                return false;
            }
            into->max_msg_sz = static_cast<std::uint32_t>(fault.value);
            return true;
        });
    }
    return result;
}

int poll_cq(ibv_cq* cq, int entries, ibv_wc* into) {
    const Call call("ibv_poll_cq", __builtin_return_address(0));
    if (call.error() != 0) {
        return -call.error();
    }
    const int count = shim().original(cq->context).ops.poll_cq(cq, entries, into);
    for (int i = 0; i < count; ++i) {
        const std::uint64_t nth = shim().count("completion");
        shim().apply(FaultKind::completion, [&](const Fault& fault, bool) {
            if (fault.number != nth) {
                return false;
            }
            into[i].status = static_cast<ibv_wc_status>(fault.value);
            return true;
        });
    }
    return count;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
    const Call call("ibv_req_notify_cq", __builtin_return_address(0));
    if (call.error() != 0) {
        return Positive::failed(call.error());
    }
    return shim().original(cq->context).ops.req_notify_cq(cq, solicited_only);
}

std::uint64_t length_of(const ibv_send_wr& request) {
    std::uint64_t length = 0;
    for (int i = 0; i < request.num_sge; ++i) {
        length += request.sg_list[i].length;
    }
    return length;
}

// The memory is the caller's own, and the message is sent from there.
void edit_message(const ibv_send_wr& request) {
    if (shim().count("message") != 1 || request.num_sge < 1) {
        return;
    }
    ibv_sge& element = *request.sg_list;
    shim().apply(FaultKind::message, [&](const Fault& fault, bool) {
        reinterpret_cast<std::uint8_t*>(element.addr)[fault.number] =
            static_cast<std::uint8_t>(fault.value);
        return true;
    });
    shim().apply(FaultKind::long_message, [&](const Fault& fault, bool) {
        // A reader's message is the last of what it registered: a longer one begins earlier.
        const auto length = static_cast<std::uint32_t>(fault.value);
        element.addr = element.addr + element.length - length;
        element.length = length;
        return true;
    });
}

int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) {
    const Call call("ibv_post_send", __builtin_return_address(0));
    if (call.error() != 0) {
        *bad = first;
        return Positive::failed(call.error());
    }
    // Read from the request while it is posted, and the caller's again after it.
    std::vector<std::pair<ibv_sge*, ibv_sge>> changed;
    std::uint64_t reads = 0;
    for (ibv_send_wr* request = first; request != nullptr; request = request->next) {
        if (request->opcode == IBV_WR_SEND) {
            changed.emplace_back(request->sg_list, *request->sg_list);
            edit_message(*request);
        }
        if (request->opcode != IBV_WR_RDMA_READ) {
            continue;
        }
        if (shim().beyond_limit("max_msg_sz", length_of(*request))) {
            *bad = first;
            return Positive::failed(EINVAL);
        }
        ++reads;
        const std::uint64_t nth = shim().count("read");
        shim().apply(FaultKind::empty_read, [&](const Fault& fault, bool) {
            if (fault.number != nth) {
                return false;
            }
            changed.emplace_back(request->sg_list, *request->sg_list);
            request->sg_list->length = 0;
            return true;
        });
    }
    const int result = shim().original(qp->context).ops.post_send(qp, first, bad);
    shim().reads_were_posted(reads);
    for (const auto& [element, was] : changed) {
        *element = was;
    }
    return result;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) {
    const Call call("ibv_post_recv", __builtin_return_address(0));
    if (call.error() != 0) {
        *bad = first;
        return Positive::failed(call.error());
    }
    return shim().original(qp->context).ops.post_recv(qp, first, bad);
}

// ---- events

// An event that never was is of the same connection or, beside a request, of its listener.
rdma_cm_id* whose(const rdma_cm_event& event) {
    return event.event == RDMA_CM_EVENT_CONNECT_REQUEST ? event.listen_id : event.id;
}

rdma_cm_event* edited(const rdma_event_channel* channel, rdma_cm_event* event) {
    const auto type = static_cast<unsigned int>(event->event);
    rdma_cm_event* first = event;
    if (event->event == RDMA_CM_EVENT_ESTABLISHED) {
        shim().connected(channel, event->id);
    }
    shim().apply(FaultKind::event, [&](const Fault& fault, bool struck) {
        if (fault.event != type || struck) {
            return false;
        }
        const auto value = static_cast<std::uint8_t>(fault.value);
        const auto hold_more_back = [&](int times) {
            for (int i = 0; i < times; ++i) {
                shim().hold_back(channel,
                                 shim().make_event(whose(*event), fault.stand_in, fault.value));
            }
        };
        switch (fault.edit) {
            case EventEdit::becomes:
                event->event = static_cast<rdma_cm_event_type>(fault.stand_in);
                event->status = fault.value;
                break;
            case EventEdit::preceded:
                first = shim().make_event(whose(*event), fault.stand_in, fault.value);
                hold_more_back(fault.times - 1);
                // Whoever gives up at the first event never takes the second, and must not wait in
                // rdma_destroy_id for its acknowledgement.
                shim().hold_back(channel, shim().copy_event(*event));
                (void)real(&rdma_ack_cm_event, "rdma_ack_cm_event")(event);
                break;
            case EventEdit::followed:
                hold_more_back(fault.times);
                break;
            case EventEdit::data_length:
                // librdmacm keeps room for 256 bytes, zeros behind what came.
                event->param.conn.private_data_len = value;
                break;
            case EventEdit::initiator_depth:
                event->param.conn.initiator_depth = value;
                break;
            case EventEdit::responder_resources:
                event->param.conn.responder_resources = value;
                break;
        }
        return true;
    });
    return first;
}

}  // namespace

void Shim::replace_functions(ibv_context* context) {
    const std::scoped_lock lock(mutex_);
    if (context == nullptr || devices_.contains(context)) {
        return;
    }
    Device& device = devices_[context];
    device.ops = context->ops;
    context->ops.poll_cq = &poll_cq;
    context->ops.req_notify_cq = &req_notify_cq;
    context->ops.post_send = &post_send;
    context->ops.post_recv = &post_recv;
    if (verbs_context* const extended = verbs_get_ctx(context)) {
        device.query_port = extended->query_port;
        extended->query_port = &query_port;
    }
}

}  // namespace rdma_read::test

using namespace rdma_read::test;  // NOLINT(google-build-using-namespace)

extern "C" {

rdma_event_channel* rdma_create_event_channel() {
    return relay<Null>(CALLED(rdma_create_event_channel));
}

void rdma_destroy_event_channel(rdma_event_channel* channel) {
    shim().forget_channel(channel);
    real(&rdma_destroy_event_channel, "rdma_destroy_event_channel")(channel);
}

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context,
                   rdma_port_space space) {
    return relay<MinusOne>(CALLED(rdma_create_id), channel, id, context, space);
}

int rdma_destroy_id(rdma_cm_id* id) {
    return relay<MinusOne>(CALLED(rdma_destroy_id), id);
}

int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) {
    const int result = relay<MinusOne>(CALLED(rdma_bind_addr), id, address);
    const int saved = errno;
    shim().replace_functions(id->verbs);
    errno = saved;
    return result;
}

int rdma_listen(rdma_cm_id* id, int backlog) {
    return relay<MinusOne>(CALLED(rdma_listen), id, backlog);
}

int rdma_resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* destination, int timeout_ms) {
    return relay<MinusOne>(CALLED(rdma_resolve_addr), id, source, destination, timeout_ms);
}

int rdma_resolve_route(rdma_cm_id* id, int timeout_ms) {
    return relay<MinusOne>(CALLED(rdma_resolve_route), id, timeout_ms);
}

int rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* attributes) {
    if (shim().by_program(__builtin_return_address(0))
        && shim().beyond_limit(
            "max_qp_wr", std::max(attributes->cap.max_send_wr, attributes->cap.max_recv_wr))) {
        return MinusOne::failed(EINVAL);
    }
    return relay<MinusOne>(CALLED(rdma_create_qp), id, pd, attributes);
}

int rdma_connect(rdma_cm_id* id, rdma_conn_param* parameters) {
    std::array<std::uint8_t, 256> data{};
    rdma_conn_param changed = *parameters;
    std::memcpy(data.data(), parameters->private_data, parameters->private_data_len);
    shim().apply(FaultKind::hello, [&](const Fault& fault, bool) {
        data.at(fault.number) = static_cast<std::uint8_t>(fault.value);
        return true;
    });
    changed.private_data = data.data();
    if (shim().beyond_limit("max_qp_init_rd_atom", parameters->initiator_depth)) {
        return MinusOne::failed(EINVAL);
    }
    return relay<MinusOne>(CALLED(rdma_connect), id, &changed);
}

int rdma_accept(rdma_cm_id* id, rdma_conn_param* parameters) {
    if (shim().beyond_limit("max_qp_rd_atom", parameters->responder_resources)) {
        return MinusOne::failed(EINVAL);
    }
    return relay<MinusOne>(CALLED(rdma_accept), id, parameters);
}

int rdma_reject(rdma_cm_id* id, const void* data, std::uint8_t length) {
    return relay<MinusOne>(CALLED(rdma_reject), id, data, length);
}

int rdma_disconnect(rdma_cm_id* id) {
    return relay<MinusOne>(CALLED(rdma_disconnect), id);
}

int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
    const Call call("rdma_get_cm_event", __builtin_return_address(0));
    if (call.error() != 0) {
        return MinusOne::failed(call.error());
    }
    *event = shim().next_waiting(channel);
    if (*event != nullptr) {
        return 0;
    }
    const int result = real(&rdma_get_cm_event, "rdma_get_cm_event")(channel, event);
    if (result == 0) {
        shim().replace_functions((*event)->id->verbs);
        *event = edited(channel, *event);
    }
    return result;
}

int rdma_ack_cm_event(rdma_cm_event* event) {
    const Call call("rdma_ack_cm_event", __builtin_return_address(0));
    // Done in any case: an event that stays unacknowledged blocks rdma_destroy_id for ever, and the
    // real function has no failure that leaves one so.
    const int result =
        shim().forget(event) ? 0 : real(&rdma_ack_cm_event, "rdma_ack_cm_event")(event);
    return call.error() != 0 ? MinusOne::failed(call.error()) : result;
}

ibv_context** rdma_get_devices(int* count) {
    ibv_context** const list = relay<Null>(CALLED(rdma_get_devices), count);
    for (ibv_context** context = list; context != nullptr && *context != nullptr; ++context) {
        shim().replace_functions(*context);
    }
    return list;
}

ibv_device** ibv_get_device_list(int* count) {
    return relay<Null>(CALLED(ibv_get_device_list), count);
}

int ibv_query_device(ibv_context* context, ibv_device_attr* into) {
    const Call call("ibv_query_device", __builtin_return_address(0));
    if (call.error() != 0) {
        return Positive::failed(call.error());
    }
    const int result = real(&ibv_query_device, "ibv_query_device")(context, into);
    if (result == 0 && call.by_program()) {
        const std::map<std::string, int*> limits{
            {"max_qp_wr", &into->max_qp_wr},
            {"max_cqe", &into->max_cqe},
            {"max_qp_init_rd_atom", &into->max_qp_init_rd_atom},
            {"max_qp_rd_atom", &into->max_qp_rd_atom}};
        shim().apply(FaultKind::limit, [&](const Fault& fault, bool) {
            const auto limit = limits.find(fault.name);
            if (limit == limits.end()) {
                return false;
            }
            *limit->second = fault.value;
            return true;
        });
    }
    return result;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
    return relay<Null>(CALLED(ibv_alloc_pd), context);
}

int ibv_dealloc_pd(ibv_pd* pd) {
    return relay<Positive>(CALLED(ibv_dealloc_pd), pd);
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
    return relay<Null>(CALLED(ibv_reg_mr), pd, address, length, access);
}

// What the macro ibv_reg_mr calls where the access flags are not constant.
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                         unsigned int access) {
    const Call call("ibv_reg_mr", __builtin_return_address(0));
    if (call.error() != 0) {
        return Null::failed(call.error());
    }
    return real(&ibv_reg_mr_iova2, "ibv_reg_mr_iova2")(pd, address, length, iova, access);
}

int ibv_dereg_mr(ibv_mr* mr) {
    return relay<Positive>(CALLED(ibv_dereg_mr), mr);
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
    return relay<Null>(CALLED(ibv_create_comp_channel), context);
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
    return relay<Positive>(CALLED(ibv_destroy_comp_channel), channel);
}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context,
                      ibv_comp_channel* channel, int vector) {
    if (shim().beyond_limit("max_cqe", static_cast<std::uint64_t>(entries))) {
        return Null::failed(EINVAL);
    }
    return relay<Null>(CALLED(ibv_create_cq), context, entries, cq_context, channel, vector);
}

int ibv_destroy_cq(ibv_cq* cq) {
    return relay<Positive>(CALLED(ibv_destroy_cq), cq);
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
    return relay<MinusOne>(CALLED(ibv_get_cq_event), channel, cq, cq_context);
}

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask, ibv_qp_init_attr* initial) {
    return relay<Positive>(CALLED(ibv_query_qp), qp, attributes, mask, initial);
}

// The program sleeps here while its reads are in flight, and keeps descriptors in the events.
int epoll_wait(int epoll, epoll_event* events, int most, int timeout) {
    if (shim().by_program(__builtin_return_address(0)) && most > 0) {
        if (const int fd = shim().arrive(); fd >= 0) {
            events[0].events = EPOLLIN;
            events[0].data.fd = fd;
            return 1;
        }
    }
    return real(&epoll_wait, "epoll_wait")(epoll, events, most, timeout);
}

}  // extern "C"
