// Numbers with units as a user types them.
#include "app/quantity.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace rdma_read::app {
namespace {

constexpr double kLongestSeconds = 86400.0;

constexpr std::array<std::pair<char, std::uint64_t>, 3> kUnits{{
    {'G', std::uint64_t{1} << 30U},
    {'M', std::uint64_t{1} << 20U},
    {'K', std::uint64_t{1} << 10U},
}};

}  // namespace

std::optional<std::uint64_t> parse_whole(std::string_view text) {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc{} || rest != end) {
        return std::nullopt;
    }
    return number;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
    std::uint64_t unit = 1;
    if (!text.empty()) {
        for (const auto& [letter, factor] : kUnits) {
            if (text.back() == letter || text.back() == letter + ('a' - 'A')) {
                unit = factor;
                text.remove_suffix(1);
                break;
            }
        }
    }
    const auto number = parse_whole(text);
    if (!number || *number > std::numeric_limits<std::uint64_t>::max() / unit) {
        return std::nullopt;
    }
    return *number * unit;
}

std::optional<std::chrono::nanoseconds> parse_seconds(std::string_view text) {
    // from_chars would also take a sign, "inf" and "nan".
    if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos
        || text.front() == '.' || text.back() == '.') {
        return std::nullopt;
    }
    double seconds = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, seconds, std::chars_format::fixed);
    if (error != std::errc{} || rest != end || seconds > kLongestSeconds) {
        return std::nullopt;
    }
    return std::chrono::nanoseconds(std::llround(seconds * 1e9));
}

std::string format_bytes(std::uint64_t bytes) {
    for (const auto& [letter, factor] : kUnits) {
        if (bytes != 0 && bytes % factor == 0) {
            return fmt::format("{}{}", bytes / factor, letter);
        }
    }
    return fmt::format("{}", bytes);
}

std::string format_seconds(std::chrono::nanoseconds duration) {
    constexpr std::int64_t kBillion = 1'000'000'000;
    std::string text =
        fmt::format("{}.{:09}", duration.count() / kBillion, duration.count() % kBillion);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') {
        text.pop_back();
    }
    return text;
}

bool is_ip_address(const std::string& text) {
    // What comes behind a zero byte would go unseen.
    if (text.find('\0') != std::string::npos) {
        return false;
    }
    in6_addr address{};
    return inet_pton(AF_INET, text.c_str(), &address) == 1
           || inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

}  // namespace rdma_read::app
