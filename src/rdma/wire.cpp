// Encodes and checks the messages between peers.
#include "rdma_read/rdma/wire.hpp"

#include <algorithm>
#include <limits>

namespace rdma_read::rdma {

namespace {

// "RDRd": every message begins with it.
constexpr std::uint32_t kMagic = 0x52445264;

enum class Kind : std::uint16_t { hello = 1, refusal = 2, ready = 3, remote_buffer = 4 };

// Appends integers in network byte order.
class Writer {
  public:
    explicit Writer(std::span<std::byte> out) noexcept : out_(out) {}
    template <class T>
    void put(T value) noexcept {
        for (std::size_t i = sizeof(T); i > 0; --i) {
            out_[at_++] = static_cast<std::byte>((value >> (8 * (i - 1))) & 0xff);
        }
    }
    void head(Kind kind) noexcept {
        put(kMagic);
        put(kProtocolVersion);
        put(static_cast<std::uint16_t>(kind));
    }

  private:
    std::span<std::byte> out_;
    std::size_t at_ = 0;
};

// Takes integers in network byte order; the caller has checked the length.
class Reader {
  public:
    explicit Reader(std::span<const std::byte> in) noexcept : in_(in) {}
    template <class T>
    T take() noexcept {
        T value = 0;
        for (std::size_t i = 0; i < sizeof(T); ++i) {
            value = static_cast<T>((static_cast<std::uint64_t>(value) << 8U)
                                   | std::to_integer<std::uint64_t>(in_[at_++]));
        }
        return value;
    }

  private:
    std::span<const std::byte> in_;
    std::size_t at_ = 0;
};

enum class Head { right, foreign, other_version };

Head check_head(Reader& reader, Kind kind) noexcept {
    if (reader.take<std::uint32_t>() != kMagic) {
        return Head::foreign;
    }
    if (reader.take<std::uint16_t>() != kProtocolVersion) {
        return Head::other_version;
    }
    return reader.take<std::uint16_t>() == static_cast<std::uint16_t>(kind) ? Head::right
                                                                            : Head::foreign;
}

}  // namespace

std::string_view to_string(Refusal refusal) noexcept {
    switch (refusal) {
        case Refusal::not_this_protocol:
            return "the connection request is not from this program";
        case Refusal::other_version:
            return "the programs are of different protocol versions";
        case Refusal::other_run:
            return "the reader belongs to another run, or has another token";
        case Refusal::rank_out_of_range:
            return "the reader's rank is out of range";
        case Refusal::rank_already_connected:
            return "a reader of this rank is connected already";
        case Refusal::server_full:
            return "the server has no room for another connection";
        case Refusal::server_error:
            return "the server failed to set the connection up";
        case Refusal::server_busy:
            return "the server is busy with the first messages of too many readers";
        case Refusal::queue_pair_out_of_range:
            return "the reader has more queue pairs than the server allows";
    }
    return "unknown reason";
}

std::array<std::byte, kHelloBytes> encode(const Hello& hello) noexcept {
    std::array<std::byte, kHelloBytes> bytes{};
    Writer writer(bytes);
    writer.head(Kind::hello);
    for (const std::uint8_t byte : hello.run) {
        writer.put(byte);
    }
    writer.put(hello.rank);
    writer.put(hello.queue_pair);
    return bytes;
}

std::array<std::byte, kRefusalBytes> encode(Refusal refusal) noexcept {
    std::array<std::byte, kRefusalBytes> bytes{};
    Writer writer(bytes);
    writer.head(Kind::refusal);
    writer.put(static_cast<std::uint16_t>(refusal));
    return bytes;
}

std::array<std::byte, kReadyBytes> encode_ready() noexcept {
    std::array<std::byte, kReadyBytes> bytes{};
    Writer(bytes).head(Kind::ready);
    return bytes;
}

std::array<std::byte, kRemoteBufferBytes> encode(const RemoteBuffer& buffer) noexcept {
    std::array<std::byte, kRemoteBufferBytes> bytes{};
    Writer writer(bytes);
    writer.head(Kind::remote_buffer);
    writer.put(buffer.address);
    writer.put(buffer.length);
    writer.put(buffer.rkey);
    return bytes;
}

HelloOrRefusal decode_hello(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() < kHelloBytes) {
        return {std::nullopt, Refusal::not_this_protocol};
    }
    Reader reader(bytes);
    switch (check_head(reader, Kind::hello)) {
        case Head::foreign:
            return {std::nullopt, Refusal::not_this_protocol};
        case Head::other_version:
            return {std::nullopt, Refusal::other_version};
        case Head::right:
            break;
    }
    Hello hello;
    for (std::uint8_t& byte : hello.run) {
        byte = reader.take<std::uint8_t>();
    }
    hello.rank = reader.take<std::uint32_t>();
    hello.queue_pair = reader.take<std::uint32_t>();
    return {hello, {}};
}

std::optional<Refusal> decode_refusal(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() < kRefusalBytes) {
        return std::nullopt;
    }
    Reader reader(bytes);
    // A refusal by another version still says so: its head is older than its contents.
    const Head head = check_head(reader, Kind::refusal);
    if (head == Head::foreign) {
        return std::nullopt;
    }
    if (head == Head::other_version) {
        return Refusal::other_version;
    }
    const auto reason = reader.take<std::uint16_t>();
    if (reason < static_cast<std::uint16_t>(Refusal::not_this_protocol)
        || reason > static_cast<std::uint16_t>(Refusal::queue_pair_out_of_range)) {
        return std::nullopt;
    }
    return static_cast<Refusal>(reason);
}

bool is_ready(std::span<const std::byte> bytes) noexcept {
    const auto expected = encode_ready();
    return std::ranges::equal(bytes, expected);
}

std::optional<RemoteBuffer> decode_remote_buffer(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() != kRemoteBufferBytes) {
        return std::nullopt;
    }
    Reader reader(bytes);
    if (check_head(reader, Kind::remote_buffer) != Head::right) {
        return std::nullopt;
    }
    RemoteBuffer buffer;
    buffer.address = reader.take<std::uint64_t>();
    buffer.length = reader.take<std::uint64_t>();
    buffer.rkey = reader.take<std::uint32_t>();
    if (buffer.length == 0
        || buffer.address > std::numeric_limits<std::uint64_t>::max() - buffer.length) {
        return std::nullopt;
    }
    return buffer;
}

}  // namespace rdma_read::rdma
