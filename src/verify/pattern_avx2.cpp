// The pattern's loops for processors with AVX2; compiled with flags of its own.
#include "verify/pattern_kernels.hpp"

#include <immintrin.h>

namespace rdma_read::verify::kernels {

namespace {

// Four registers of four words: enough that no addition waits for the one before it.
constexpr std::size_t kWords = 16;
// Rounds between two looks at the answer: 4 KiB.
constexpr std::size_t kRounds = 32;

struct Lanes {
    __m256i a;
    __m256i b;
    __m256i c;
    __m256i d;
};

// The intrinsics take signed numbers; the bits are the same.
long long lane(std::uint64_t word) noexcept {
    return static_cast<long long>(word);
}

__m256i broadcast(std::uint64_t word) noexcept {
    return _mm256_set1_epi64x(lane(word));
}

Lanes lanes(std::uint64_t first, std::uint64_t step) noexcept {
    const std::uint64_t second = first + step;
    const std::uint64_t third = second + step;
    const __m256i a = _mm256_set_epi64x(lane(third + step), lane(third), lane(second), lane(first));
    return {a, _mm256_add_epi64(a, broadcast(4 * step)), _mm256_add_epi64(a, broadcast(8 * step)),
            _mm256_add_epi64(a, broadcast(12 * step))};
}

void advance(Lanes& words, __m256i by) noexcept {
    words.a = _mm256_add_epi64(words.a, by);
    words.b = _mm256_add_epi64(words.b, by);
    words.c = _mm256_add_epi64(words.c, by);
    words.d = _mm256_add_epi64(words.d, by);
}

__m256i load(const std::byte* at) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

void store(std::byte* at, __m256i words) noexcept {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), words);
}

void fill(std::byte* out, std::size_t count, std::uint64_t first, std::uint64_t step) noexcept {
    Lanes words = lanes(first, step);
    const __m256i by = broadcast(kWords * step);
    const std::size_t rounds = count / kWords;
    for (std::size_t i = 0; i < rounds; ++i) {
        store(out, words.a);
        store(out + 32, words.b);
        store(out + 64, words.c);
        store(out + 96, words.d);
        advance(words, by);
        out += 8 * kWords;
    }
    portable().fill(out, count % kWords, first + rounds * kWords * step, step);
}

bool matches(const std::byte* data, std::size_t count, std::uint64_t first,
             std::uint64_t step) noexcept {
    // Of a short read the registers would take longer to set than the words to look at.
    if (count < kWords) {
        return portable().matches(data, count, first, step);
    }
    Lanes words = lanes(first, step);
    const __m256i by = broadcast(kWords * step);
    const std::size_t rounds = count / kWords;
    for (std::size_t done = 0; done < rounds;) {
        const std::size_t end = rounds - done < kRounds ? rounds : done + kRounds;
        __m256i a = _mm256_setzero_si256();
        __m256i b = a;
        __m256i c = a;
        __m256i d = a;
        for (; done < end; ++done) {
            a = _mm256_or_si256(a, _mm256_xor_si256(load(data), words.a));
            b = _mm256_or_si256(b, _mm256_xor_si256(load(data + 32), words.b));
            c = _mm256_or_si256(c, _mm256_xor_si256(load(data + 64), words.c));
            d = _mm256_or_si256(d, _mm256_xor_si256(load(data + 96), words.d));
            advance(words, by);
            data += 8 * kWords;
        }
        const __m256i any = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
        if (_mm256_testz_si256(any, any) == 0) {
            return false;
        }
    }
    return portable().matches(data, count % kWords, first + rounds * kWords * step, step);
}

}  // namespace

const Kernels& avx2() noexcept {
    static constexpr Kernels kAvx2{fill, matches};
    return kAvx2;
}

}  // namespace rdma_read::verify::kernels
