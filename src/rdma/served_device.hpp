// What a server needs on each device that readers come in through; internal to the library.
#pragma once

#include "rdma_read/rdma/buffer.hpp"
#include "rdma_read/rdma/completion_queue.hpp"
#include "rdma_read/rdma/handles.hpp"
#include "rdma_read/rdma/memory_region.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rdma_read::rdma {

/// One completion queue, one registration of the exposed buffer and one of memory for messages, for
/// all connections of a device. Each connection takes a slot of that memory.
struct ServedDevice {
    /// What the device sets bounds to.
    struct Limits {
        std::uint8_t responder_resources = 0;
        std::uint32_t connections = 1;
    };

    /// For as many connections as were asked for and the device's completion queues can hold.
    /// Throws Error.
    ServedDevice(ibv_context* context, std::span<std::byte> buffer, std::uint32_t max_connections);

    /// Where a slot's connection receives; longer than any message of this protocol, so that a
    /// longer one arrives and can be refused.
    [[nodiscard]] std::span<std::byte> incoming(std::uint32_t slot) const;
    /// What a slot's connection sends.
    [[nodiscard]] std::span<std::byte> outgoing(std::uint32_t slot) const;
    /// Whether so many connections were dropped since the completion queue was last found empty
    /// that what they left in it could fill it.
    [[nodiscard]] bool needs_a_look() const noexcept;

    ibv_context* verbs;
    Limits limits;
    PdHandle pd;
    CompletionQueue cq;
    MemoryRegion exposed;
    Buffer message_memory;
    MemoryRegion messages;
    std::vector<std::uint32_t> free_slots;
    std::uint32_t dropped = 0;  ///< connections, since the queue was last found empty
};

}  // namespace rdma_read::rdma
