// A pretended librdmacm and libibverbs: records every call and plays events and completions.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rdma_read::rdma::fakes {

using Bytes = std::vector<std::byte>;

/// Whatever is acquired and must be released once, after everything that needs it.
struct Object {
    Object() = default;
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
    Object(Object&&) = delete;
    Object& operator=(Object&&) = delete;
    virtual ~Object() = default;

    std::string name;
    std::vector<Object*> needs;
    bool live = true;
};

struct Device : Object {
    ibv_device device{};
    ibv_context context{};
    ibv_device_attr attributes{};
    ibv_port_attr port{};
    std::vector<std::string> addresses;
};

/// An event as a test writes it down.
struct Event {
    /// A number, so that it can be one that this version of librdmacm does not know.
    unsigned int type = RDMA_CM_EVENT_ADDR_RESOLVED;
    int status = 0;
    Bytes private_data;
    std::uint8_t responder_resources = 0;
    std::uint8_t initiator_depth = 0;
};

struct Id;

struct Channel : Object {
    struct Pending {
        Id* id = nullptr;
        Id* arriving = nullptr;  ///< for CONNECT_REQUEST: the new id
        Event event;
    };
    rdma_event_channel raw{};
    std::deque<Pending> pending;
};

struct Qp;

/// The parameters of rdma_connect(3) or rdma_accept(3), with the private data copied.
struct Asked {
    rdma_conn_param parameters{};
    Bytes private_data;
};

struct Id : Object {
    rdma_cm_id raw{};
    Channel* channel = nullptr;
    Qp* qp = nullptr;
    int unacknowledged = 0;
    int backlog = 0;
    std::optional<Asked> asked;
    std::optional<Bytes> rejected_with;
    int disconnects = 0;
};

struct Pd : Object {
    ibv_pd raw{};
};

struct CompChannel : Object {
    ibv_comp_channel raw{};
    std::deque<ibv_cq*> wakeups;
};

struct Cq : Object {
    ibv_cq raw{};
    CompChannel* channel = nullptr;
    std::deque<ibv_wc> pending;
    bool armed = false;
    int looks = 0;  ///< calls of ibv_poll_cq
    unsigned int unacknowledged = 0;
};

struct Mr : Object {
    ibv_mr raw{};
    unsigned int access = 0;
};

/// One RDMA Read as it was posted.
struct Read {
    std::uint64_t wr_id = 0;
    std::uint64_t remote = 0;
    std::uint32_t rkey = 0;
    std::uint64_t local = 0;
    std::uint32_t length = 0;
    bool signaled = true;
};

struct Qp : Object {
    ibv_qp raw{};
    ibv_qp_cap cap{};
    Id* id = nullptr;
    Cq* cq = nullptr;
    std::deque<ibv_recv_wr> receives;
    std::vector<ibv_sge> receive_elements;
    std::deque<std::pair<std::uint64_t, std::uint64_t>> receive_memory;  ///< address, length
    std::uint32_t sends_outstanding = 0;
    std::uint32_t silent = 0;              ///< completed, and not reported yet
    std::deque<std::uint32_t> reported;    ///< how many each completion that waits speaks for
    std::vector<Bytes> sent;               ///< payload of each SEND
    std::vector<std::vector<Read>> posts;  ///< the reads of each ibv_post_send call
    std::deque<Read> in_flight;            ///< reads posted and not completed
};

/// The devices, objects and peers of one test. Exactly one lives at a time; the fake functions act
/// on it. Its functions may be called from any thread.
class World {
  public:
    World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;
    World(World&&) = delete;
    World& operator=(World&&) = delete;
    ~World();
    static World& current();
    /// Null where no test has one.
    static World* if_living() noexcept;

    // ---- what a test sets up ----

    /// A device with one ACTIVE port that holds these IP addresses.
    Device& add_device(const std::string& name, const std::vector<std::string>& addresses);
    /// A net interface of the host, for getifaddrs(3).
    void add_interface(const std::string& name, const std::string& address);
    /// Makes the nth call of a function fail.
    void fail(const std::string& function, int error_number, int nth = 1);
    /// Makes the call fail that is at this place in attempted().
    void fail_call(std::size_t index, int error_number);
    /// What follows a call, by name of the function; the argument counts its calls from 1.
    using Answer = std::function<std::vector<Event>(int nth)>;
    void answer(const std::string& function, Answer events);
    void answer(const std::string& function, const Event& event);
    /// What a server sends to whoever sends it something; nothing by default.
    void answer_sends_with(Bytes message);
    /// Lets reads complete as they are posted; else they stay in flight.
    void complete_reads_at_once(bool yes);
    /// Lets completed reads copy their bytes, which is what they do unless a test has none.
    void reads_carry_data(bool yes);
    /// Called each time a queue is about to be armed.
    void before_arming(std::function<void(Cq&)> action);
    /// Called each time somebody is about to sleep in poll(2), whether or not there is a reason to.
    void before_sleeping(std::function<void()> action);
    /// Called each time an event is about to be handed out.
    void before_taking(std::function<void()> action);
    /// Called after each ibv_post_send.
    void after_posting(std::function<void(Qp&)> action);

    // ---- what happens ----

    void happen(Id& id, const Event& event);
    /// A connection request at a listener; the id lives once the event has been taken.
    Id& connect_request(Id& listener, Device& device, Bytes private_data, std::uint8_t depth = 16,
                        const std::string& peer = "10.0.0.99");
    /// A message arrives on a queue pair and takes its first receive.
    void receive(Qp& qp, const Bytes& message);
    void complete(Cq& cq, ibv_wc completion);
    /// Completes the read at `index` of those in flight; copies its bytes if it is a success.
    void complete_read(Qp& qp, std::size_t index = 0, ibv_wc_status status = IBV_WC_SUCCESS);

    // ---- what a test looks at ----

    /// "rdma_create_id id1", in order; releases included.
    [[nodiscard]] std::vector<std::string> log() const;
    /// Where in the log the nth line begins with this text; fails the test if nowhere.
    [[nodiscard]] std::size_t place(const std::string& text, int nth = 1) const;
    [[nodiscard]] int count(const std::string& text) const;
    /// Names of the calls so far that could have failed.
    [[nodiscard]] std::vector<std::string> attempted() const;
    /// What was released twice or too early, posted wrongly, or would have blocked.
    [[nodiscard]] std::vector<std::string> violations() const;
    /// What is still held.
    [[nodiscard]] std::vector<std::string> held() const;
    /// All objects of a kind in order of creation, released ones included.
    template <class T>
    [[nodiscard]] std::vector<T*> all() const {
        const std::scoped_lock lock(mutex_);
        std::vector<T*> found;
        for (const auto& object : objects_) {
            if (auto* const fitting = dynamic_cast<T*>(object.get())) {
                found.push_back(fitting);
            }
        }
        return found;
    }

    // ---- for the fake functions ----

    std::recursive_mutex& mutex() noexcept { return mutex_; }
    /// Counts a call that can fail; the errno that it is to fail with, or 0.
    int enter(const std::string& function);
    void note(const std::string& function, const Object& object);
    void violate(const std::string& what);
    void release(const std::string& function, Object& object);
    void play(const std::string& function, Id& id);
    void wake(Cq& cq);
    void posted(Qp& qp, ibv_send_wr* first);
    [[nodiscard]] Device* device_at(const std::string& address);
    [[nodiscard]] Mr* region(std::uint32_t lkey);
    void check_memory(const ibv_sge& element, Qp& user, unsigned int needed_access);

    template <class T>
    T& make(const std::string& kind, const void* key_of(const T&)) {
        auto object = std::make_unique<T>();
        T& made = *object;
        made.name = kind + std::to_string(++numbers_[kind]);
        by_key_[key_of(made)] = object.get();
        objects_.push_back(std::move(object));
        return made;
    }
    template <class T>
    T& make(const std::string& kind) {
        return make<T>(
            kind, +[](const T& object) -> const void* { return &object.raw; });
    }
    /// The object behind a C pointer.
    template <class T>
    T& find(const void* raw) {
        return dynamic_cast<T&>(*by_key_.at(raw));
    }

    struct Interface {
        std::string name;
        std::string address;
    };
    std::vector<Interface> interfaces;
    struct TakenEvent {
        rdma_cm_event raw{};
        Bytes data;
        Id* id = nullptr;
    };
    std::map<const rdma_cm_event*, std::unique_ptr<TakenEvent>> taken;
    std::function<void(Cq&)> arming;
    std::function<void()> taking;
    std::function<void()> sleeping;
    std::uint16_t next_port = 40000;
    std::uint32_t next_key = 0x1000;

  private:
    mutable std::recursive_mutex mutex_;
    std::vector<std::unique_ptr<Object>> objects_;
    std::unordered_map<const void*, Object*> by_key_;
    std::map<std::string, int> numbers_;
    std::vector<std::string> log_;
    std::vector<std::string> attempted_;
    std::vector<std::string> violations_;
    std::map<std::string, int> counts_;
    std::map<std::pair<std::string, int>, int> failures_;
    std::optional<std::pair<std::size_t, int>> failing_call_;
    std::map<std::string, Answer> answers_;
    std::map<std::string, int> played_;
    Bytes reply_;
    bool reads_complete_ = false;
    bool reads_carry_data_ = true;
    std::function<void(Qp&)> after_posting_;
};

/// The functions that a device brings along; they are reached through its context only.
int poll_cq(ibv_cq* cq, int entries, ibv_wc* into);
int req_notify_cq(ibv_cq* cq, int solicited_only);
int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad);
int post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad);

/// Sets the readiness of an eventfd to what it stands for.
void set_ready(int fd, bool ready);

}  // namespace rdma_read::rdma::fakes
