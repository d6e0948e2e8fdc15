// Decodes UTF-8 strictly, as far as needed to let nothing else through.
#include "rdma_read/verify/plain_text.hpp"

#include <algorithm>
#include <array>

namespace rdma_read::verify {

namespace {

struct Decoded {
    char32_t character = 0;
    std::size_t bytes = 0;  // 0: not UTF-8
};

// Overlong forms, surrogates and what is beyond Unicode are not UTF-8 (RFC 3629, section 3).
Decoded decode(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80U) {
        return {lead, 1};
    }
    const std::size_t bytes = lead >= 0xF0U ? 4 : lead >= 0xE0U ? 3 : 2;
    if (lead < 0xC2U || lead > 0xF4U || text.size() < bytes) {
        return {};
    }
    char32_t character = lead & (0x7FU >> bytes);
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xC0U) != 0x80U) {
            return {};
        }
        character = character << 6U | (byte(i) & 0x3FU);
    }
    constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = character >= 0xD800U && character <= 0xDFFFU;
    if (character < kLeast[bytes] || surrogate || character > 0x10FFFFU) {
        return {};
    }
    return {character, bytes};
}

bool controls(char32_t c) noexcept {
    return c < 0x20U || (c >= 0x7FU && c <= 0x9FU)  // C0, DEL, C1
           || c == 0x061CU || c == 0x200EU || c == 0x200FU || (c >= 0x2028U && c <= 0x202EU)
           || (c >= 0x2066U && c <= 0x2069U);  // line separators, direction of writing
}

}  // namespace

std::string plain(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        const auto [character, bytes] = decode(text);
        if (character == U'\n' || character == U'\r' || character == U'\t') {
            result += ' ';
        } else if (bytes == 0 || controls(character)) {
            result += '?';
        } else {
            result += text.substr(0, bytes);
        }
        text.remove_prefix(std::max<std::size_t>(bytes, 1));
    }
    return result;
}

std::size_t width(std::string_view text) noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(
        text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace rdma_read::verify
