// Tampers with the exposed buffer.
#include "tampered_memory.hpp"

#include "fault_name.hpp"
#include "rdma_read/verify/pattern.hpp"
#include "rdma_read/verify/window.hpp"

#include <algorithm>
#include <stdexcept>

namespace rdma_read::test {

namespace {

std::span<std::byte> part(std::span<std::byte> memory, std::uint64_t offset, std::uint64_t length) {
    if (offset > memory.size() || length > memory.size() - offset) {
        throw std::invalid_argument("the fault lies outside the buffer");
    }
    return memory.subspan(offset, length);
}

}  // namespace

bool tamper(const std::string& text, const Payload& payload, std::span<std::byte> memory) {
    const FaultName fault(text);
    const verify::Pattern right(payload.run, payload.rank);
    if (fault.name == "wrong-byte") {
        part(memory, fault.number(0), 1)[0] ^= std::byte{0xff};
    } else if (fault.name == "flip-bit") {
        part(memory, fault.number(0), 1)[0] ^= std::byte{1} << static_cast<int>(fault.number(1));
    } else if (fault.name == "zeros") {
        std::ranges::fill(part(memory, fault.number(0), fault.number(1)), std::byte{0});
    } else if (fault.name == "shift") {
        right.fill(part(memory, fault.number(0), fault.number(1)), fault.number(2));
    } else if (fault.name == "other-rank") {
        verify::Pattern(payload.run, static_cast<std::uint32_t>(fault.number(2)))
            .fill(part(memory, fault.number(0), fault.number(1)), fault.number(0));
    } else if (fault.name == "other-run") {
        verify::RunId other = payload.run;
        other[0] ^= 0xffU;
        verify::Pattern(other, payload.rank)
            .fill(part(memory, fault.number(0), fault.number(1)), fault.number(0));
    } else if (fault.name == "stale") {
        verify::Window window(memory.size(), fault.number(0), 1);
        const std::uint64_t first = window.next(0);
        const std::uint64_t second = window.next(0);
        right.fill(part(memory, second, fault.number(0)), first);
    } else {
        return false;
    }
    return true;
}

}  // namespace rdma_read::test
