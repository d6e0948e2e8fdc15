// What the fuzzers share: claims that hold for every input, and bytes as other types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

namespace rdma_read::fuzz {

/// Ends the fuzzer with the input that broke the claim.
inline void claim(bool holds, const char* what) {
    if (!holds) {
        std::fputs(what, stderr);
        std::fputs(": this claim does not hold\n", stderr);
        std::abort();
    }
}

inline std::string_view text_of(std::span<const std::uint8_t> input) {
    return {reinterpret_cast<const char*>(input.data()), input.size()};
}

}  // namespace rdma_read::fuzz

/// What libFuzzer calls for each input.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
