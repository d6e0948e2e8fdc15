// The messages between peers, byte by byte.
#include "rdma_read/rdma/wire.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rdma_read::rdma {
namespace {

using Bytes = std::vector<std::byte>;

constexpr RunId kRun{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                     0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};

Bytes from_hex(std::string_view text) {
    Bytes bytes;
    std::string digits;
    std::ranges::copy_if(text, std::back_inserter(digits), [](char c) { return c != ' '; });
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
        bytes.push_back(static_cast<std::byte>(std::stoi(digits.substr(i, 2), nullptr, 16)));
    }
    return bytes;
}

template <class Message>
Bytes encoded(const Message& message) {
    const auto bytes = encode(message);
    return {bytes.begin(), bytes.end()};
}

Bytes with(Bytes bytes, std::size_t at, unsigned char value) {
    bytes.at(at) = static_cast<std::byte>(value);
    return bytes;
}

Bytes padded(Bytes bytes, std::size_t size) {
    bytes.resize(size);
    return bytes;
}

const Hello kHello{kRun, 0x01020304, 0x05060708};
const RemoteBuffer kBuffer{0x1122334455667788, 0x0000000100000002, 0xcafebabe};

TEST(Wire, HelloHasTheseBytes) {
    EXPECT_EQ(encoded(kHello), from_hex("52445264 0002 0001 00112233445566778899aabbccddeeff "
                                        "01020304 05060708"));
}

TEST(Wire, RefusalHasTheseBytes) {
    EXPECT_EQ(encoded(Refusal::rank_already_connected), from_hex("52445264 0002 0002 0005"));
}

TEST(Wire, ReadyHasTheseBytes) {
    const auto ready = encode_ready();
    EXPECT_EQ(Bytes(ready.begin(), ready.end()), from_hex("52445264 0002 0003"));
}

TEST(Wire, RemoteBufferHasTheseBytes) {
    EXPECT_EQ(encoded(kBuffer),
              from_hex("52445264 0002 0004 1122334455667788 0000000100000002 cafebabe"));
}

TEST(Wire, HelloFitsTheConnectionRequest) {
    EXPECT_EQ(encoded(kHello).size(), 32U);
    EXPECT_LE(kHelloBytes, 56U);
}

TEST(Wire, HelloComesBackAsItWentAlsoPadded) {
    for (const std::size_t size : {32U, 33U, 56U, 196U, 255U}) {
        EXPECT_EQ(decode_hello(padded(encoded(kHello), size)).hello, kHello) << size;
    }
}

TEST(Wire, EveryTruncationOfAHelloIsNotOfThisProtocol) {
    const Bytes whole = encoded(kHello);
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const auto decoded = decode_hello(std::span(whole).first(size));
        EXPECT_FALSE(decoded.hello) << size;
        EXPECT_EQ(decoded.refusal, Refusal::not_this_protocol) << size;
    }
}

TEST(Wire, AHelloWithAnyWrongByteInItsHeadIsRefusedWithTheReason) {
    const Bytes whole = encoded(kHello);
    for (std::size_t at = 0; at < 8; ++at) {
        const auto decoded = decode_hello(with(whole, at, 0x7f));
        EXPECT_FALSE(decoded.hello) << at;
        const bool version = at == 4 || at == 5;
        EXPECT_EQ(decoded.refusal, version ? Refusal::other_version : Refusal::not_this_protocol)
            << at;
    }
}

TEST(Wire, AllZerosAreNoMessage) {
    const Bytes zeros(64);
    EXPECT_FALSE(decode_hello(zeros).hello);
    EXPECT_FALSE(decode_refusal(zeros));
    EXPECT_FALSE(is_ready(std::span(zeros).first(kReadyBytes)));
    EXPECT_FALSE(decode_remote_buffer(std::span(zeros).first(kRemoteBufferBytes)));
}

TEST(Wire, EveryRefusalComesBackAlsoPaddedAndHasAWordOfItsOwn) {
    std::set<std::string_view> words;
    for (std::uint16_t reason = 1; reason <= 9; ++reason) {
        const auto refusal = static_cast<Refusal>(reason);
        EXPECT_EQ(decode_refusal(encoded(refusal)), refusal);
        EXPECT_EQ(decode_refusal(padded(encoded(refusal), 148)), refusal);
        words.insert(to_string(refusal));
    }
    EXPECT_EQ(words.size(), 9U);
    EXPECT_FALSE(words.contains(to_string(static_cast<Refusal>(99))));
}

TEST(Wire, EveryTruncationOfARefusalIsNone) {
    const Bytes whole = encoded(Refusal::other_run);
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_FALSE(decode_refusal(std::span(whole).first(size))) << size;
    }
}

TEST(Wire, ARefusalOfAnUnknownReasonMagicOrKindIsNone) {
    const Bytes whole = encoded(Refusal::other_run);
    EXPECT_FALSE(decode_refusal(with(whole, 9, 0)));
    EXPECT_FALSE(decode_refusal(with(whole, 9, 10)));
    EXPECT_FALSE(decode_refusal(with(whole, 8, 1)));
    EXPECT_FALSE(decode_refusal(with(whole, 0, 0)));
    EXPECT_FALSE(decode_refusal(with(whole, 7, 1)));
}

TEST(Wire, ARefusalInAnotherVersionSaysThatTheVersionsDiffer) {
    EXPECT_EQ(decode_refusal(with(encoded(Refusal::other_run), 5, 9)), Refusal::other_version);
}

TEST(Wire, ReadyIsExactlyItself) {
    const auto ready = encode_ready();
    const Bytes whole(ready.begin(), ready.end());
    EXPECT_TRUE(is_ready(whole));
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_FALSE(is_ready(std::span(whole).first(size))) << size;
        EXPECT_FALSE(is_ready(with(whole, size, 0xee))) << size;
    }
    EXPECT_FALSE(is_ready(padded(whole, whole.size() + 1)));
}

TEST(Wire, RemoteBufferComesBackAsItWent) {
    EXPECT_EQ(decode_remote_buffer(encoded(kBuffer)), kBuffer);
}

TEST(Wire, ARemoteBufferOfAnyOtherLengthIsNone) {
    const Bytes whole = encoded(kBuffer);
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_FALSE(decode_remote_buffer(std::span(whole).first(size))) << size;
    }
    EXPECT_FALSE(decode_remote_buffer(padded(whole, whole.size() + 1)));
}

TEST(Wire, ARemoteBufferWithAnyWrongByteInItsHeadIsNone) {
    const Bytes whole = encoded(kBuffer);
    for (std::size_t at = 0; at < 8; ++at) {
        EXPECT_FALSE(decode_remote_buffer(with(whole, at, 0x7f))) << at;
    }
}

TEST(Wire, ARemoteBufferOfNoBytesIsNone) {
    EXPECT_FALSE(decode_remote_buffer(encoded(RemoteBuffer{0x1000, 0, 1})));
}

TEST(Wire, ARemoteBufferThatWrapsAroundTheAddressSpaceIsNone) {
    constexpr auto kEnd = std::numeric_limits<std::uint64_t>::max();
    EXPECT_TRUE(decode_remote_buffer(encoded(RemoteBuffer{kEnd - 16, 16, 1})));
    EXPECT_FALSE(decode_remote_buffer(encoded(RemoteBuffer{kEnd - 15, 17, 1})));
    EXPECT_FALSE(decode_remote_buffer(encoded(RemoteBuffer{kEnd, kEnd, 1})));
    EXPECT_TRUE(decode_remote_buffer(encoded(RemoteBuffer{0, kEnd, 1})));
}

}  // namespace
}  // namespace rdma_read::rdma
