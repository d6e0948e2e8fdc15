// Acquisition of the handles that have no class of their own.
#include "rdma_read/rdma/handles.hpp"

#include "rdma_read/rdma/error.hpp"

namespace rdma_read::rdma {

PdHandle allocate_pd(ibv_context* verbs) {
    return PdHandle(
        check_pointer(ibv_alloc_pd(verbs), {Phase::setup, "ibv_alloc_pd", device_name(verbs)}));
}

const char* device_name(const ibv_context* verbs) noexcept {
    const char* const name =
        verbs == nullptr || verbs->device == nullptr ? nullptr : ibv_get_device_name(verbs->device);
    return name == nullptr ? "?" : name;
}

}  // namespace rdma_read::rdma
