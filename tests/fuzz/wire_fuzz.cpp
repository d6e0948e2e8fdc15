// Private data and messages of a hostile peer.
#include "fuzz.hpp"
#include "rdma_read/rdma/wire.hpp"

#include <algorithm>
#include <limits>

using namespace rdma_read;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    const auto begins_with = [&](const auto& message) {
        return bytes.size() >= message.size()
               && std::ranges::equal(message, bytes.first(message.size()));
    };

    const rdma::HelloOrRefusal hello = rdma::decode_hello(bytes);
    if (hello.hello) {
        fuzz::claim(begins_with(rdma::encode(*hello.hello)), "a hello is its encoding");
    } else {
        fuzz::claim(!rdma::to_string(hello.refusal).empty(), "a refusal has words");
    }
    if (const auto refusal = rdma::decode_refusal(bytes)) {
        fuzz::claim(!rdma::to_string(*refusal).empty(), "a decoded refusal has words");
    }
    if (rdma::is_ready(bytes)) {
        fuzz::claim(begins_with(rdma::encode_ready()) && size == rdma::kReadyBytes,
                    "a ready message is its encoding");
    }
    if (const auto buffer = rdma::decode_remote_buffer(bytes)) {
        fuzz::claim(begins_with(rdma::encode(*buffer)) && size == rdma::kRemoteBufferBytes,
                    "a descriptor is its encoding");
        fuzz::claim(buffer->length > 0, "a descriptor has a length");
        fuzz::claim(
            buffer->address <= std::numeric_limits<std::uint64_t>::max() - (buffer->length - 1),
            "a descriptor does not wrap around the address space");
    }
    return 0;
}
