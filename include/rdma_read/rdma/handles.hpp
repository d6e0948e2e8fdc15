// Owned librdmacm and libibverbs objects: each is released by the call that its man page names.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <memory>

namespace rdma_read::rdma {

/// Releases one object. A failing release is a bug in the order of destruction and cannot be
/// handled in a destructor; it is ignored here and tested by the order that the unit tests record.
struct Release {
    void operator()(rdma_event_channel* channel) const noexcept {
        rdma_destroy_event_channel(channel);
    }
    void operator()(rdma_cm_id* id) const noexcept { rdma_destroy_id(id); }
    void operator()(ibv_pd* pd) const noexcept { ibv_dealloc_pd(pd); }
    void operator()(ibv_comp_channel* channel) const noexcept { ibv_destroy_comp_channel(channel); }
    void operator()(ibv_cq* cq) const noexcept { ibv_destroy_cq(cq); }
    void operator()(ibv_mr* mr) const noexcept { ibv_dereg_mr(mr); }
};

template <class T>
using Handle = std::unique_ptr<T, Release>;

using EventChannelHandle = Handle<rdma_event_channel>;
using CmIdHandle = Handle<rdma_cm_id>;
using PdHandle = Handle<ibv_pd>;
using CompChannelHandle = Handle<ibv_comp_channel>;
using CqHandle = Handle<ibv_cq>;
using MrHandle = Handle<ibv_mr>;

/// A protection domain of our own on `verbs`. It must outlive the memory regions and queue pairs in
/// it. Throws Error.
[[nodiscard]] PdHandle allocate_pd(ibv_context* verbs);

/// "rxe0": the name of the device behind `verbs`, or "?" if there is none yet.
[[nodiscard]] const char* device_name(const ibv_context* verbs) noexcept;

}  // namespace rdma_read::rdma
