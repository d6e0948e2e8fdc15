// The loops under Pattern: one portable, one for AVX2.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rdma_read::verify::kernels {

/// How the words of a pattern are written and compared. Both take `count` whole words at any
/// alignment, the first of which is `first`; each next one is `step` more.
struct Kernels {
    void (*fill)(std::byte* out, std::size_t count, std::uint64_t first,
                 std::uint64_t step) noexcept;
    bool (*matches)(const std::byte* data, std::size_t count, std::uint64_t first,
                    std::uint64_t step) noexcept;
};

/// Runs on every processor.
[[nodiscard]] const Kernels& portable() noexcept;

#ifdef RDMA_READ_HAVE_AVX2
/// Runs only where the processor has AVX2. Its file is compiled for AVX2 and therefore uses no
/// inline function of any other header: the linker might keep that file's copy for everybody.
[[nodiscard]] const Kernels& avx2() noexcept;
#endif

/// The fastest one that this processor runs.
[[nodiscard]] const Kernels& best() noexcept;

/// A number with its bytes in memory order from least to most significant, and back: on a
/// little-endian host the number itself.
[[nodiscard]] constexpr std::uint64_t little_endian(std::uint64_t word) noexcept {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return word;
#else
    return __builtin_bswap64(word);
#endif
}

}  // namespace rdma_read::verify::kernels
