// Sizes, times and addresses as anybody may type them.
#include "app/quantity.hpp"
#include "fuzz.hpp"
#include "rdma_read/rdma/address.hpp"

using namespace rdma_read;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = fuzz::text_of({data, size});
    if (const auto bytes = app::parse_bytes(text)) {
        fuzz::claim(app::parse_bytes(app::format_bytes(*bytes)) == bytes,
                    "a size comes back as it was shown");
    }
    if (const auto number = app::parse_whole(text)) {
        fuzz::claim(app::parse_bytes(text) == number, "a whole number is a size");
    }
    if (const auto seconds = app::parse_seconds(text)) {
        fuzz::claim(seconds->count() >= 0, "a time is not negative");
        fuzz::claim(app::parse_seconds(app::format_seconds(*seconds)) == seconds,
                    "a time comes back as it was shown");
    }
    if (const auto address = rdma::Address::parse(text, 7471)) {
        fuzz::claim(address->port() == 7471, "an address has the port that was given");
        const auto again = rdma::Address::parse(address->to_string());
        fuzz::claim(again && again->same_host(*address), "an address comes back as it was shown");
    }
    if (app::is_ip_address(std::string(text))) {
        fuzz::claim(rdma::Address::parse(text).has_value(), "an IP address can be parsed");
    }
    return 0;
}
