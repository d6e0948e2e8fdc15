// Faults as a test writes them down for the shim.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace rdma_read::test {

/// What a fault changes.
enum class FaultKind {
    call_fails,    ///< `rdma_connect:1:EINVAL`: the first rdma_connect of the program fails;
                   ///< `ibv_poll_cq:r5:EIO`: the first ibv_poll_cq after five reads were posted
    call_signals,  ///< `rdma_accept:1:STOP`, or `…:KILL_AFTER`: the program gets a signal there
    event,         ///< `event:ESTABLISHED:…`: the first event of that name, see EventEdit
    arrival,       ///< `arrive:5:UNKNOWN`: an event that never was, once five reads were posted
    hello,         ///< `hello:4:255`: byte 4 of the private data of rdma_connect(3)
    message,       ///< `message:0:255`: byte 0 of the first message that is sent
    long_message,  ///< `message:length:20`: the first message has this length
    limit,         ///< `limit:max_cqe:10`: what the device or the port says of itself, and keeps to
    completion,    ///< `completion:3:10`: the third completion has this status
    empty_read     ///< `read:2:empty`: the second read brings no bytes, and is a success
};

/// What becomes of an event.
enum class EventEdit {
    becomes,             ///< `is=REJECTED/28`: another type, and status
    preceded,            ///< `before=ADDR_CHANGE`: an event that never was comes first, `*100`: so
                         ///< often
    followed,            ///< `after=DISCONNECTED`: or next
    data_length,         ///< `data=8`: private data cut short or padded with zeros
    initiator_depth,     ///< `initiator_depth=0`
    responder_resources  ///< `responder_resources=1`
};

struct Fault {
    std::string text;  ///< as written
    FaultKind kind = FaultKind::call_fails;
    std::string name;          ///< of the call or the limit
    std::uint64_t number = 0;  ///< which call, byte, completion or read
    int value = 0;             ///< errno, signal, byte, limit, status, or number of the edit
    bool after = false;        ///< the signal comes when the call is done
    bool after_reads = false;  ///< `number` counts reads that were posted before the call
    int times = 1;             ///< how often the event that never was comes
    EventEdit edit = EventEdit::becomes;
    unsigned int event = 0;     ///< whose event
    unsigned int stand_in = 0;  ///< the event that comes instead or besides
};

/// Calls that can be made to fail, or during which a signal can come.
[[nodiscard]] const std::vector<std::string>& known_calls();

/// Reads a list of faults, separated by commas. \throws std::invalid_argument that names the fault
/// and what is wrong with it: a fault that is not injected would let a test pass for nothing.
[[nodiscard]] std::vector<Fault> parse_faults(const std::string& text);

}  // namespace rdma_read::test
