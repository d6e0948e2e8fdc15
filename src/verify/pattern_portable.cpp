// The pattern's loops for any processor.
#include "verify/pattern_kernels.hpp"

#include <algorithm>
#include <cstring>

namespace rdma_read::verify::kernels {

namespace {

// Words of one turn of the loops, which the compiler is to unroll.
// Even and odd words are counted apart: in one row each addition waits for the one before it, and
// more than two rows or longer turns need more registers than some processors have.
constexpr std::size_t kWords = 8;
// Turns between two looks at the answer: 4 KiB.
constexpr std::size_t kTurns = 64;

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
    std::uint64_t even = first;
    std::uint64_t odd = first + step;
    for (; count >= kWords; count -= kWords) {
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kWords; i += 2) {
            store(out + 8 * i, even);
            store(out + 8 * i + 8, odd);
            even += 2 * step;
            odd += 2 * step;
        }
        out += 8 * kWords;
    }
    for (; count > 0; --count) {
        store(out, even);
        even += step;
        out += 8;
    }
}

bool matches(const std::byte* data, std::size_t count, std::uint64_t first,
             std::uint64_t step) noexcept {
    std::uint64_t even = first;
    std::uint64_t odd = first + step;
    while (count >= kWords) {
        const std::size_t turns = std::min(count / kWords, kTurns);
        std::uint64_t even_difference = 0;
        std::uint64_t odd_difference = 0;
        for (std::size_t turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 4
            for (std::size_t i = 0; i < kWords; i += 2) {
                even_difference |= load(data + 8 * i) ^ even;
                odd_difference |= load(data + 8 * i + 8) ^ odd;
                even += 2 * step;
                odd += 2 * step;
            }
            data += 8 * kWords;
        }
        count -= turns * kWords;
        if ((even_difference | odd_difference) != 0) {
            return false;
        }
    }
    std::uint64_t difference = 0;
    for (; count > 0; --count) {
        difference |= load(data) ^ even;
        even += step;
        data += 8;
    }
    return difference == 0;
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
