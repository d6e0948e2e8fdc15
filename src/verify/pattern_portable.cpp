// The pattern's loops for any processor.
#include "verify/pattern_kernels.hpp"

#include <array>
#include <cstring>

namespace rdma_read::verify::kernels {

namespace {

constexpr std::size_t kLanes = 8;
// Words that are compared between two looks at the answer: 4 KiB.
constexpr std::size_t kBlock = 512;

std::uint64_t load(const std::byte* at) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return little_endian(word);
}

void store(std::byte* at, std::uint64_t word) noexcept {
    word = little_endian(word);
    std::memcpy(at, &word, sizeof word);
}

void fill(std::byte* out, std::size_t count, std::uint64_t first, std::uint64_t step) noexcept {
    // The lanes do not wait for one another: each adds its own multiple of the step.
    while (count >= kLanes) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            store(out + 8 * lane, first + lane * step);
        }
        first += kLanes * step;
        out += 8 * kLanes;
        count -= kLanes;
    }
    for (; count > 0; --count) {
        store(out, first);
        first += step;
        out += 8;
    }
}

bool matches(const std::byte* data, std::size_t count, std::uint64_t first,
             std::uint64_t step) noexcept {
    while (count >= kLanes) {
        const std::size_t block = (count < kBlock ? count : kBlock) / kLanes;
        std::array<std::uint64_t, kLanes> differences{};
        for (std::size_t i = 0; i < block; ++i) {
            for (std::size_t lane = 0; lane < kLanes; ++lane) {
                differences[lane] |= load(data + 8 * lane) ^ (first + lane * step);
            }
            first += kLanes * step;
            data += 8 * kLanes;
        }
        count -= block * kLanes;
        std::uint64_t any = 0;
        for (const std::uint64_t difference : differences) {
            any |= difference;
        }
        if (any != 0) {
            return false;
        }
    }
    std::uint64_t any = 0;
    for (; count > 0; --count) {
        any |= load(data) ^ first;
        first += step;
        data += 8;
    }
    return any == 0;
}

}  // namespace

const Kernels& portable() noexcept {
    static constexpr Kernels kPortable{fill, matches};
    return kPortable;
}

const Kernels& best() noexcept {
#ifdef RDMA_READ_HAVE_AVX2
    static const bool has_avx2 = static_cast<bool>(__builtin_cpu_supports("avx2"));
    if (has_avx2) {
        return avx2();
    }
#endif
    return portable();
}

}  // namespace rdma_read::verify::kernels
