// Copies and describes connection manager events.
#include "rdma_read/rdma/cm_event.hpp"

#include "rdma_read/rdma/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rdma_read::rdma {

namespace {

std::string status_text(const CmEvent& event) {
    if (event.type == RDMA_CM_EVENT_REJECTED) {
        switch (event.status) {
            case 8:
                return "status 8: nobody listens there, or the listener is overloaded";
            case 10:
                return "status 10: stale connection";
            case 28:
                return "status 28: refused by the peer's program";
            default:
                break;
        }
    }
    return event.status < 0 ? errno_text(-event.status) : fmt::format("status {}", event.status);
}

}  // namespace

void CmEvent::set_private_data(std::span<const std::byte> data) noexcept {
    private_size_ = std::min(data.size(), private_storage_.size());
    std::copy_n(data.begin(), private_size_, private_storage_.begin());
}

std::string describe(const CmEvent& event) {
    std::string name = rdma_event_str(static_cast<rdma_cm_event_type>(event.type));
    if (event.type > RDMA_CM_EVENT_TIMEWAIT_EXIT) {
        name += fmt::format(" {}", event.type);
    }
    if (event.status == 0) {
        return name;
    }
    return fmt::format("{} ({})", name, status_text(event));
}

}  // namespace rdma_read::rdma
