// Replaces operator new by one that counts. In a file of its own, so that no caller sees into it.
#include "allocation_count.hpp"

#include <cstdlib>
#include <new>

namespace {
thread_local std::size_t allocations = 0;
thread_local int uncounted = 0;
}  // namespace

// NOLINTBEGIN(cppcoreguidelines-no-malloc)
void* operator new(std::size_t size) {
    if (uncounted == 0) {
        ++allocations;
    }
    if (void* const memory = std::malloc(size == 0 ? 1 : size)) {
        return memory;
    }
    throw std::bad_alloc();
}
// With it the memory of both comes from one place, also where a sanitizer has its own.
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
    try {
        return operator new(size);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
    std::free(memory);
}
// NOLINTEND(cppcoreguidelines-no-malloc)

namespace rdma_read {

std::size_t allocation_count() noexcept {
    return allocations;
}

Uncounted::Uncounted() noexcept {
    ++uncounted;
}
Uncounted::~Uncounted() {
    --uncounted;
}

}  // namespace rdma_read
