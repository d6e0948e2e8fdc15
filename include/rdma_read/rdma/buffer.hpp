// Page-aligned memory that can be registered.
#pragma once

#include <cstddef>
#include <span>

namespace rdma_read::rdma {

/// Owns anonymous pages, zero-filled. Movable by construction only.
class Buffer {
  public:
    /// Throws Error (limit) when the system has no such amount. `bytes` may be 0.
    explicit Buffer(std::size_t bytes);
    Buffer(Buffer&& other) noexcept;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    Buffer& operator=(Buffer&&) = delete;
    ~Buffer();

    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return memory_; }

  private:
    std::span<std::byte> memory_;
};

}  // namespace rdma_read::rdma
