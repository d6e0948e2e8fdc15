// Page-aligned memory that can be registered.
#pragma once

#include "rdma_read/rdma/error.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rdma_read::rdma {

/// What kind of pages memory consists of.
enum class Pages {
    normal,
    huge  ///< of the system's default huge page size: fewer entries for a device to look up
};

/// The huge pages of this system, of the default size.
struct HugePages {
    std::size_t page_bytes = 0;   ///< 0: the kernel has none
    std::uint64_t total = 0;      ///< that are set aside, vm.nr_hugepages
    std::uint64_t available = 0;  ///< that nobody uses and nobody has reserved

    /// From the text of /proc/meminfo; what it does not say is 0.
    [[nodiscard]] static HugePages parse(std::string_view meminfo) noexcept;
    /// As they are now.
    [[nodiscard]] static HugePages of_this_system();

    /// How many hold so many bytes; 0 if the kernel has none.
    [[nodiscard]] std::uint64_t needed(std::size_t bytes) const noexcept;
};

/// The Error for `bytes` that cannot be had on huge pages: names how many of which size are needed
/// and how they are set aside.
[[nodiscard]] Error no_huge_pages(std::size_t bytes, const HugePages& pages, int error_number);

/// Owns anonymous pages, zero-filled. Movable by construction only.
class Buffer {
  public:
    /// Throws Error (limit) when the system has no such amount, of huge pages with the command that
    /// provides them. `bytes` may be 0.
    explicit Buffer(std::size_t bytes, Pages pages = Pages::normal);
    Buffer(Buffer&& other) noexcept;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    Buffer& operator=(Buffer&&) = delete;
    ~Buffer();

    /// As many as asked for, also where the last page has more.
    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return memory_; }

  private:
    std::span<std::byte> memory_;
    std::size_t mapped_bytes_ = 0;  // whole pages
};

}  // namespace rdma_read::rdma
