// Sizes what is shared by the connections of one device.
#include "rdma/served_device.hpp"

#include "rdma_read/rdma/error.hpp"
#include "rdma_read/rdma/wire.hpp"

#include <algorithm>

namespace rdma_read::rdma {

namespace {

// One slot of message memory holds what a connection receives and what it sends.
constexpr std::size_t kSlotBytes = 64;
constexpr std::size_t kSendOffset = 32;
static_assert(kReadyBytes < kSendOffset && kRemoteBufferBytes <= kSlotBytes - kSendOffset);

// A receive and a send.
constexpr std::uint32_t kCompletionsPerConnection = 2;
// Connections that are gone may have left theirs, until these are looked at.
constexpr std::uint32_t kDroppedBetweenLooks = 64;

int completions_of(std::uint32_t connections) noexcept {
    return static_cast<int>(kCompletionsPerConnection * (connections + kDroppedBetweenLooks));
}

ServedDevice::Limits limits_of(ibv_context* verbs, std::uint32_t max_connections) {
    ibv_device_attr attributes{};
    check_errno_value(ibv_query_device(verbs, &attributes),
                      {Phase::setup, "ibv_query_device", device_name(verbs)});
    ServedDevice::Limits limits;
    limits.responder_resources =
        static_cast<std::uint8_t>(std::clamp(attributes.max_qp_rd_atom, 0, 255));
    const auto longest_queue = static_cast<std::uint32_t>(std::max(attributes.max_cqe, 0));
    const auto fit = std::max(longest_queue / kCompletionsPerConnection, kDroppedBetweenLooks + 1)
                     - kDroppedBetweenLooks;
    limits.connections = std::clamp<std::uint32_t>(max_connections, 1, fit);
    return limits;
}

}  // namespace

ServedDevice::ServedDevice(ibv_context* context, std::span<std::byte> buffer,
                           std::uint32_t max_connections)
    : verbs(context),
      limits(limits_of(context, max_connections)),
      pd(allocate_pd(context)),
      cq(context, completions_of(limits.connections)),
      exposed(pd.get(), buffer, Intent::exposed_for_read),
      message_memory(kSlotBytes * limits.connections),
      messages(pd.get(), message_memory.bytes(), Intent::messages) {
    free_slots.reserve(limits.connections);
    for (std::uint32_t slot = limits.connections; slot > 0; --slot) {
        free_slots.push_back(slot - 1);
    }
    cq.arm();
}

std::span<std::byte> ServedDevice::incoming(std::uint32_t slot) const {
    return messages.memory().subspan(slot * kSlotBytes, kSendOffset);
}

std::span<std::byte> ServedDevice::outgoing(std::uint32_t slot) const {
    return messages.memory().subspan(slot * kSlotBytes + kSendOffset, kRemoteBufferBytes);
}

bool ServedDevice::needs_a_look() const noexcept {
    return dropped >= kDroppedBetweenLooks;
}

}  // namespace rdma_read::rdma
