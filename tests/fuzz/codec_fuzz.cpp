// Results, announcements and closing words of a rank that sends anything.
#include "fuzz.hpp"
#include "rdma_read/verify/codec.hpp"

using namespace rdma_read;

namespace {

// What is decoded can be encoded and is the same then.
template <class Decode>
void come_and_go(std::span<const std::byte> bytes, Decode decode) {
    try {
        const auto first = verify::encode(decode(bytes));
        fuzz::claim(verify::encode(decode(first)) == first, "a decoded message is stable");
    } catch (const verify::CodecError& error) {
        fuzz::claim(*error.what() != '\0', "a codec error has words");
    }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    come_and_go(bytes, verify::decode_result);
    come_and_go(bytes, verify::decode_server_info);
    come_and_go(bytes, verify::decode_announcement);
    return 0;
}
