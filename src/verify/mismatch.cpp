// Names of the kinds of mismatch.
#include "rdma_read/verify/mismatch.hpp"

namespace rdma_read::verify {

std::string_view to_string(MismatchKind kind) noexcept {
    switch (kind) {
        case MismatchKind::untouched:
            return "untouched";
        case MismatchKind::stale:
            return "stale";
        case MismatchKind::shifted:
            return "shifted";
        case MismatchKind::other_server:
            return "other server";
        case MismatchKind::other_run:
            return "other run";
        case MismatchKind::bit_flip:
            return "bit flip";
        case MismatchKind::zeros:
            return "zeros";
        case MismatchKind::unknown:
            break;
    }
    return "unknown";
}

}  // namespace rdma_read::verify
