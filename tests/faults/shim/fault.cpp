// Reads the notation of faults.
#include "fault.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <map>
#include <optional>
#include <sstream>

namespace rdma_read::test {

namespace {

// Numbers of rdma_cm_event_type, and one that no librdmacm knows.
const std::map<std::string, unsigned int> kEvents{
    {"ADDR_RESOLVED", 0},   {"ADDR_ERROR", 1},       {"ROUTE_RESOLVED", 2}, {"ROUTE_ERROR", 3},
    {"CONNECT_REQUEST", 4}, {"CONNECT_RESPONSE", 5}, {"CONNECT_ERROR", 6},  {"UNREACHABLE", 7},
    {"REJECTED", 8},        {"ESTABLISHED", 9},      {"DISCONNECTED", 10},  {"DEVICE_REMOVAL", 11},
    {"ADDR_CHANGE", 14},    {"TIMEWAIT_EXIT", 15},   {"UNKNOWN", 99}};

const std::map<std::string, int> kErrors{{"EACCES", EACCES},
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
                                         {"ETIMEDOUT", ETIMEDOUT}};

const std::map<std::string, int> kSignals{
    {"STOP", SIGSTOP}, {"KILL", SIGKILL}, {"TERM", SIGTERM}, {"INT", SIGINT}};

const std::vector<std::string> kLimits{"max_qp_wr", "max_cqe", "max_qp_init_rd_atom",
                                       "max_qp_rd_atom", "max_msg_sz"};

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

template <class Value>
const Value& named(const std::map<std::string, Value>& names, const std::string& name,
                   const Fault& fault) {
    const auto found = names.find(name);
    if (found == names.end()) {
        bad(fault, "\"" + name + "\" is not known");
    }
    return found->second;
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

void parse_event(Fault& fault, const std::string& name, const std::string& text) {
    fault.event = named(kEvents, name, fault);
    const auto equals = text.find('=');
    const std::string edit = text.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
    static const std::map<std::string, EventEdit> edits{
        {"is", EventEdit::becomes},
        {"before", EventEdit::preceded},
        {"after", EventEdit::followed},
        {"data", EventEdit::data_length},
        {"initiator_depth", EventEdit::initiator_depth},
        {"responder_resources", EventEdit::responder_resources}};
    fault.edit = named(edits, edit, fault);
    switch (fault.edit) {
        case EventEdit::becomes:
        case EventEdit::preceded:
        case EventEdit::followed: {
            const auto slash = value.find('/');
            fault.stand_in = named(kEvents, value.substr(0, slash), fault);
            fault.value = slash == std::string::npos ? 0 : number(value.substr(slash + 1), fault);
            return;
        }
        default:
            fault.value = static_cast<int>(count(value, 0, fault));
            if (fault.value > 255) {
                bad(fault, "more than 255");
            }
    }
}

void parse_call(Fault& fault, const std::string& nth, std::string what) {
    if (std::ranges::find(known_calls(), fault.name) == known_calls().end()) {
        bad(fault, "no call \"" + fault.name + "\"");
    }
    fault.number = count(nth, 1, fault);
    if (kErrors.contains(what)) {
        fault.value = kErrors.at(what);
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
