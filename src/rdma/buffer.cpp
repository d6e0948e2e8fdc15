// Anonymous pages from mmap(2).
#include "rdma_read/rdma/buffer.hpp"

#include "rdma_read/rdma/error.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <utility>

namespace rdma_read::rdma {

Buffer::Buffer(std::size_t bytes) {
    if (bytes == 0) {
        return;
    }
    void* const pages =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        throw_system_error({Phase::setup, "mmap", fmt::format("{} bytes", bytes)}, -1);
    }
    memory_ = {static_cast<std::byte*>(pages), bytes};
}

Buffer::Buffer(Buffer&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}

Buffer::~Buffer() {
    if (!memory_.empty()) {
        munmap(memory_.data(), memory_.size());
    }
}

}  // namespace rdma_read::rdma
