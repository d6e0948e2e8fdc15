// Reads the notation of faults.
#include "fault.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

namespace rdma_read::test {

namespace {

// The program's start reads faults, when objects of this library need not be constructed yet: these
// are constants.
template <class Value>
using Name = std::pair<std::string_view, Value>;

// Numbers of rdma_cm_event_type, and one that no librdmacm knows.
constexpr auto kEvents = std::to_array<Name<unsigned int>>({{"ADDR_RESOLVED", 0U},
                                                            {"ADDR_ERROR", 1U},
                                                            {"ROUTE_RESOLVED", 2U},
                                                            {"ROUTE_ERROR", 3U},
                                                            {"CONNECT_REQUEST", 4U},
                                                            {"CONNECT_RESPONSE", 5U},
                                                            {"CONNECT_ERROR", 6U},
                                                            {"UNREACHABLE", 7U},
                                                            {"REJECTED", 8U},
                                                            {"ESTABLISHED", 9U},
                                                            {"DISCONNECTED", 10U},
                                                            {"DEVICE_REMOVAL", 11U},
                                                            {"ADDR_CHANGE", 14U},
                                                            {"TIMEWAIT_EXIT", 15U},
                                                            {"UNKNOWN", 99U}});

constexpr auto kEdits =
    std::to_array<Name<EventEdit>>({{"is", EventEdit::becomes},
                                    {"before", EventEdit::preceded},
                                    {"after", EventEdit::followed},
                                    {"data", EventEdit::data_length},
                                    {"initiator_depth", EventEdit::initiator_depth},
                                    {"responder_resources", EventEdit::responder_resources}});

constexpr auto kErrors = std::to_array<Name<int>>({{"EACCES", EACCES},
                                                   {"EADDRINUSE", EADDRINUSE},
                                                   {"EAFNOSUPPORT", EAFNOSUPPORT},
                                                   {"EAGAIN", EAGAIN},
                                                   {"EBADF", EBADF},
                                                   {"EBUSY", EBUSY},
                                                   {"EINVAL", EINVAL},
                                                   {"EIO", EIO},
                                                   {"EMFILE", EMFILE},
                                                   {"ENETUNREACH", ENETUNREACH},
                                                   {"ENODEV", ENODEV},
                                                   {"ENOMEM", ENOMEM},
                                                   {"EPERM", EPERM},
                                                   {"ETIMEDOUT", ETIMEDOUT}});

constexpr auto kSignals = std::to_array<Name<int>>(
    {{"STOP", SIGSTOP}, {"KILL", SIGKILL}, {"TERM", SIGTERM}, {"INT", SIGINT}});

constexpr auto kLimits = std::to_array<std::string_view>(
    {"max_qp_wr", "max_cqe", "max_qp_init_rd_atom", "max_qp_rd_atom", "max_msg_sz"});

[[noreturn]] void bad(const Fault& fault, const std::string& problem) {
    throw std::invalid_argument("fault \"" + fault.text + "\": " + problem);
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) {
        parts.push_back(part);
    }
    return parts;
}

// The value of a name; nothing if it is not among them.
template <class Names>
auto value_of(const Names& names, std::string_view name) {
    const auto found = std::ranges::find(names, name, &Names::value_type::first);
    return found == names.end() ? std::nullopt : std::optional(found->second);
}

template <class Names>
auto named(const Names& names, const std::string& name, const Fault& fault) {
    const auto value = value_of(names, name);
    if (!value) {
        bad(fault, "\"" + name + "\" is not known");
    }
    return *value;
}

int number(const std::string& text, const Fault& fault) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
        bad(fault, "\"" + text + "\" is not a number");
    }
    return value;
}

std::uint64_t count(const std::string& text, int least, const Fault& fault) {
    const int value = number(text, fault);
    if (value < least) {
        bad(fault, "\"" + text + "\" is too small");
    }
    return static_cast<std::uint64_t>(value);
}

// NAME, NAME/STATUS or NAME*TIMES.
void parse_stand_in(Fault& fault, std::string text) {
    if (const auto star = text.find('*'); star != std::string::npos) {
        if (fault.edit == EventEdit::becomes) {
            bad(fault, "an event becomes one");
        }
        fault.times = static_cast<int>(count(text.substr(star + 1), 1, fault));
        text.resize(star);
    }
    const auto slash = text.find('/');
    fault.stand_in = named(kEvents, text.substr(0, slash), fault);
    fault.value = slash == std::string::npos ? 0 : number(text.substr(slash + 1), fault);
}

void parse_event(Fault& fault, const std::string& name, const std::string& text) {
    fault.event = named(kEvents, name, fault);
    const auto equals = text.find('=');
    const std::string edit = text.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
    fault.edit = named(kEdits, edit, fault);
    switch (fault.edit) {
        case EventEdit::becomes:
        case EventEdit::preceded:
        case EventEdit::followed:
            parse_stand_in(fault, value);
            return;
        default:
            fault.value = static_cast<int>(count(value, 0, fault));
            if (fault.value > 255) {
                bad(fault, "more than 255");
            }
    }
}

void parse_call(Fault& fault, std::string nth, std::string what) {
    if (std::ranges::find(known_calls(), fault.name) == known_calls().end()) {
        bad(fault, "no call \"" + fault.name + "\"");
    }
    fault.after_reads = nth.starts_with('r');
    if (fault.after_reads) {
        nth.erase(0, 1);
    }
    fault.number = count(nth, 1, fault);
    if (const auto error = value_of(kErrors, what)) {
        fault.value = *error;
        return;
    }
    constexpr std::string_view kAfter = "_AFTER";
    fault.kind = FaultKind::call_signals;
    fault.after = what.ends_with(kAfter);
    if (fault.after) {
        what.resize(what.size() - kAfter.size());
    }
    fault.value = named(kSignals, what, fault);
}

Fault parse_fault(const std::string& text) {
    Fault fault;
    fault.text = text;
    const auto words = split(text, ':');
    if (words.size() != 3) {
        bad(fault, "not three words with colons between them");
    }
    fault.name = words[0];
    if (fault.name == "event") {
        fault.kind = FaultKind::event;
        parse_event(fault, words[1], words[2]);
    } else if (fault.name == "arrive") {
        fault.kind = FaultKind::arrival;
        fault.edit = EventEdit::followed;
        fault.number = count(words[1], 1, fault);
        parse_stand_in(fault, words[2]);
    } else if (fault.name == "message") {
        const bool is_length = words[1] == "length";
        fault.kind = is_length ? FaultKind::long_message : FaultKind::message;
        fault.number = is_length ? 0 : count(words[1], 0, fault);
        fault.value = static_cast<int>(count(words[2], 0, fault));
    } else if (fault.name == "hello") {
        fault.kind = FaultKind::hello;
        fault.number = count(words[1], 0, fault);
        fault.value = static_cast<int>(count(words[2], 0, fault));
    } else if (fault.name == "limit") {
        fault.kind = FaultKind::limit;
        fault.name = words[1];
        if (std::ranges::find(kLimits, fault.name) == kLimits.end()) {
            bad(fault, "no limit \"" + fault.name + "\"");
        }
        fault.value = static_cast<int>(count(words[2], 0, fault));
    } else if (fault.name == "completion") {
        fault.kind = FaultKind::completion;
        fault.number = count(words[1], 1, fault);
        fault.value = static_cast<int>(count(words[2], 1, fault));
    } else if (fault.name == "read") {
        fault.kind = FaultKind::empty_read;
        fault.number = count(words[1], 1, fault);
        if (words[2] != "empty") {
            bad(fault, "a read can only be empty");
        }
    } else {
        parse_call(fault, words[1], words[2]);
    }
    return fault;
}

}  // namespace

const std::vector<std::string>& known_calls() {
    static const std::vector<std::string> calls{"ibv_alloc_pd",        "ibv_create_comp_channel",
                                                "ibv_create_cq",       "ibv_dealloc_pd",
                                                "ibv_dereg_mr",        "ibv_destroy_comp_channel",
                                                "ibv_destroy_cq",      "ibv_get_cq_event",
                                                "ibv_get_device_list", "ibv_poll_cq",
                                                "ibv_post_recv",       "ibv_post_send",
                                                "ibv_query_device",    "ibv_query_port",
                                                "ibv_query_qp",        "ibv_reg_mr",
                                                "ibv_req_notify_cq",   "rdma_accept",
                                                "rdma_ack_cm_event",   "rdma_bind_addr",
                                                "rdma_connect",        "rdma_create_event_channel",
                                                "rdma_create_id",      "rdma_create_qp",
                                                "rdma_destroy_id",     "rdma_disconnect",
                                                "rdma_get_cm_event",   "rdma_get_devices",
                                                "rdma_listen",         "rdma_reject",
                                                "rdma_resolve_addr",   "rdma_resolve_route"};
    return calls;
}

std::vector<Fault> parse_faults(const std::string& text) {
    std::vector<Fault> faults;
    for (const std::string& one : split(text, ',')) {
        faults.push_back(parse_fault(one));
    }
    if (faults.empty()) {
        throw std::invalid_argument("no fault is given");
    }
    return faults;
}

}  // namespace rdma_read::test
