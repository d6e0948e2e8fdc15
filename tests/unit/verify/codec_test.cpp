// Claims about results as bytes: they come back whole, and nothing else is believed.
#include "rdma_read/verify/codec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>

namespace rdma_read::verify {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::byte>;

Result full_result() {
    Result result;
    result.server_rank = 0;
    result.reader_rank = 3;
    result.server_host = "node1";
    result.reader_host = "node4";
    result.outcome = Outcome::corrupt;
    result.phase = "throughput";
    result.error = "1 of 1000 reads brought wrong data";
    result.hint = "run it again";
    result.stopped_by = "SIGHUP";
    result.confirmed = true;
    result.path = {"mlx5_0", 1, "10.0.0.4", "10.0.0.1", "fe80::1", 4096, 16, 100.0};
    result.connect_ms = 1.25;
    result.attempts = 2;
    result.attempt_errors = {"nobody listens"};
    result.read_started = "2030-01-02T03:04:05.000006Z";
    result.read_ended = "2030-01-02T03:04:06.000007Z";
    SizeResult size;
    size.size = 65536;
    size.reads = 1000;
    size.bytes_read = 65536000;
    size.bytes_verified = 65470464;
    size.mismatched_reads = 1;
    size.mismatches = {{17, 4096, 1, MismatchKind::bit_flip, "bit 5 of byte 4096", "throughput"},
                       {18, 8, 16, MismatchKind::unknown, std::string("\0\xFF", 2), "latency"}};
    size.guard_intact = true;
    size.depth = 16;
    size.latency_us = LatencySummary{1, 2, 3, 4, 5, 6, 7};
    size.bandwidth_bytes_per_s = 1.5e9;
    size.reads_per_s = 22888;
    size.seconds = 0.5;
    size.checking_s = 0.125;
    result.sizes = {size, SizeResult{}};
    result.counters = std::map<std::string, std::int64_t>{{"out_of_sequence", 3}, {"retries", -1}};
    result.notes = {"one", "", "three"};
    result.warnings = {"two ranks share a core"};
    result.clock_ns = 21.5;
    result.cores = "0-3";
    result.self_test = SelfTest{true, false, {}};
    return result;
}

Announcement full_announcement() {
    Announcement announcement;
    announcement.usable = true;
    announcement.run = {1, 2, 3, 4};
    announcement.server_rank = 2;
    announcement.buffer_bytes = 1U << 20U;
    announcement.server = {2,    "node1", "rxe0", 1,   "10.0.0.1", 7471,    "Ethernet",
                           1024, 2.5,     0.25,   1.5, 3,          "SIGINT"};
    announcement.error = "none";
    announcement.hint = "none";
    return announcement;
}

// Every field is in the bytes, so equal bytes are equal values: what no field reaches would be lost
// and is looked at by hand below.
TEST(Codec, AResultComesBackWhole) {
    const Bytes bytes = encode(full_result());
    const Result result = decode_result(bytes);
    EXPECT_EQ(encode(result), bytes);
    EXPECT_EQ(result.server_rank, 0);
    EXPECT_EQ(result.reader_rank, 3);
    EXPECT_EQ(result.server_host, "node1");
    EXPECT_EQ(result.reader_host, "node4");
    EXPECT_EQ(result.outcome, Outcome::corrupt);
    EXPECT_EQ(result.phase, "throughput");
    EXPECT_EQ(result.error, "1 of 1000 reads brought wrong data");
    EXPECT_EQ(result.hint, "run it again");
    EXPECT_EQ(result.confirmed, true);
    EXPECT_EQ(result.path.local_device, "mlx5_0");
    EXPECT_EQ(result.path.local_port_num, 1U);
    EXPECT_EQ(result.path.local_address, "10.0.0.4");
    EXPECT_EQ(result.path.remote_address, "10.0.0.1");
    EXPECT_EQ(result.path.gid, "fe80::1");
    EXPECT_EQ(result.path.mtu, 4096U);
    EXPECT_EQ(result.path.depth_negotiated, 16U);
    EXPECT_EQ(result.stopped_by, "SIGHUP");
    EXPECT_EQ(result.connect_ms, 1.25);
    EXPECT_EQ(result.attempts, 2U);
    EXPECT_EQ(result.attempt_errors, full_result().attempt_errors);
    EXPECT_EQ(result.read_started, "2030-01-02T03:04:05.000006Z");
    EXPECT_EQ(result.read_ended, "2030-01-02T03:04:06.000007Z");
    ASSERT_EQ(result.sizes.size(), 2U);
    const SizeResult& size = result.sizes[0];
    EXPECT_EQ(size.size, 65536U);
    EXPECT_EQ(size.reads, 1000U);
    EXPECT_EQ(size.bytes_read, 65536000U);
    EXPECT_EQ(size.bytes_verified, 65470464U);
    EXPECT_EQ(size.mismatched_reads, 1U);
    ASSERT_EQ(size.mismatches.size(), 2U);
    EXPECT_EQ(size.mismatches[0].read, 17U);
    EXPECT_EQ(size.mismatches[0].offset, 4096U);
    EXPECT_EQ(size.mismatches[0].length, 1U);
    EXPECT_EQ(size.mismatches[0].kind, MismatchKind::bit_flip);
    EXPECT_EQ(size.mismatches[0].phase, "throughput");
    EXPECT_EQ(size.mismatches[1].detail, std::string("\0\xFF", 2));
    EXPECT_TRUE(size.guard_intact);
    EXPECT_EQ(size.depth, 16U);
    ASSERT_TRUE(size.latency_us);
    EXPECT_EQ(size.latency_us->p999, 5);
    EXPECT_EQ(size.latency_us->samples, 7U);
    EXPECT_EQ(size.bandwidth_bytes_per_s, 1.5e9);
    EXPECT_EQ(size.reads_per_s, 22888);
    EXPECT_EQ(size.seconds, 0.5);
    EXPECT_EQ(size.checking_s, 0.125);
    EXPECT_EQ(result.path.rate_gbps, 100.0);
    EXPECT_EQ(result.warnings, std::vector<std::string>{"two ranks share a core"});
    EXPECT_EQ(result.clock_ns, 21.5);
    EXPECT_EQ(result.cores, "0-3");
    EXPECT_FALSE(result.sizes[1].latency_us);
    EXPECT_EQ(result.counters, full_result().counters);
    EXPECT_EQ(result.notes, full_result().notes);
    EXPECT_EQ(result.self_test, full_result().self_test);
}

TEST(Codec, AnEmptyResultComesBackEmpty) {
    const Result result = decode_result(encode(Result{}));
    EXPECT_EQ(result.outcome, Outcome::not_run);
    EXPECT_EQ(result.reader_rank, -1);
    EXPECT_FALSE(result.confirmed);
    EXPECT_TRUE(result.sizes.empty());
    EXPECT_FALSE(result.counters) << "unknown, not none";
}

TEST(Codec, AnAnnouncementComesBackWhole) {
    const Bytes bytes = encode(full_announcement());
    const Announcement announcement = decode_announcement(bytes);
    EXPECT_EQ(encode(announcement), bytes);
    EXPECT_TRUE(announcement.usable);
    EXPECT_EQ(announcement.run, full_announcement().run);
    EXPECT_EQ(announcement.server_rank, 2);
    EXPECT_EQ(announcement.buffer_bytes, 1U << 20U);
    EXPECT_EQ(announcement.server.device, "rxe0");
    EXPECT_EQ(announcement.server.port, 7471);
    EXPECT_EQ(announcement.server.serving_s, 1.5);
    EXPECT_EQ(announcement.server.connections, 3U);
}

TEST(Codec, AServerInfoComesBackWhole) {
    const Bytes bytes = encode(full_announcement().server);
    const ServerInfo server = decode_server_info(bytes);
    EXPECT_EQ(encode(server), bytes);
    EXPECT_EQ(server.link_layer, "Ethernet");
    EXPECT_EQ(server.cpu_s_while_serving, 0.25);
}

TEST(Codec, OneKindOfMessageIsNotTakenForAnother) {
    EXPECT_THROW((void)decode_announcement(encode(Result{})), CodecError);
    EXPECT_THROW((void)decode_result(encode(Announcement{})), CodecError);
    EXPECT_THROW((void)decode_server_info(encode(Result{})), CodecError);
}

TEST(Codec, SaysWhatIsWrongWithTheBytes) {
    const auto message = [](const Bytes& bytes) -> std::string {
        try {
            (void)decode_result(bytes);
        } catch (const CodecError& error) {
            return error.what();
        }
        return "no error";
    };
    Bytes bytes = encode(full_result());
    bytes.push_back(std::byte{0});
    EXPECT_THAT(message(bytes), HasSubstr("1 bytes too many"));
    bytes.pop_back();
    bytes.pop_back();
    EXPECT_THAT(message(bytes), testing::AnyOf(HasSubstr("cut short"), HasSubstr("announced")));
    bytes[0] ^= std::byte{1};
    EXPECT_THAT(message(bytes), HasSubstr("not from this program"));
    bytes[0] ^= std::byte{1};
    bytes[4] ^= std::byte{1};
    EXPECT_THAT(message(bytes), HasSubstr("another version"));
    EXPECT_THAT(message({}), HasSubstr("cut short"));
}

TEST(Codec, NoEnumeratorOutOfRangeIsTaken) {
    Result result;
    result.outcome = static_cast<Outcome>(9);
    EXPECT_THROW((void)decode_result(encode(result)), CodecError);
    result = full_result();
    result.sizes[0].mismatches[0].kind = static_cast<MismatchKind>(8);
    EXPECT_THROW((void)decode_result(encode(result)), CodecError);
}

TEST(Codec, EveryTruncationIsRefused) {
    const Bytes result = encode(full_result());
    for (std::size_t length = 0; length < result.size(); ++length) {
        ASSERT_THROW((void)decode_result(std::span(result).first(length)), CodecError) << length;
    }
    const Bytes announcement = encode(full_announcement());
    for (std::size_t length = 0; length < announcement.size(); ++length) {
        ASSERT_THROW((void)decode_announcement(std::span(announcement).first(length)), CodecError);
    }
}

// Either the bytes are refused by CodecError, or they are those of some value, which then encodes
// to the very same bytes (but for the order and the doubles' many kinds of "not a number").
template <typename Decode>
void expect_value_or_error(const Bytes& bytes, Decode decode) {
    try {
        const auto value = decode(bytes);
        EXPECT_EQ(encode(value).size(), bytes.size());
    } catch (const CodecError&) {
        // Refused.
    }
}

template <typename Decode>
void change_every_byte(const Bytes& original, Decode decode) {
    for (std::size_t at = 0; at < original.size(); ++at) {
        for (const unsigned value : {0x00U, 0x01U, 0x02U, 0x7FU, 0x80U, 0xFEU, 0xFFU}) {
            Bytes bytes = original;
            bytes[at] = static_cast<std::byte>(value);
            expect_value_or_error(bytes, decode);
            bytes = original;
            bytes[at] ^= static_cast<std::byte>(value);
            expect_value_or_error(bytes, decode);
        }
        // Counts of four bytes, anywhere.
        if (at + 4 <= original.size()) {
            Bytes bytes = original;
            std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), 4, std::byte{0xFF});
            expect_value_or_error(bytes, decode);
        }
        // A byte that is missing.
        Bytes bytes = original;
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
        expect_value_or_error(bytes, decode);
    }
}

TEST(Codec, EveryChangedByteIsRefusedOrHarmless) {
    change_every_byte(encode(full_result()), decode_result);
    change_every_byte(encode(full_announcement()), decode_announcement);
    change_every_byte(encode(full_announcement().server), decode_server_info);
}

TEST(Codec, RandomBytesAfterARightBeginningAreRefusedOrHarmless) {
    std::mt19937 random(5);
    const Bytes start = encode(Result{});
    for (int round = 0; round < 20000; ++round) {
        Bytes bytes(start.begin(), start.begin() + static_cast<std::ptrdiff_t>(7 + random() % 30));
        for (std::size_t more = random() % 300; more > 0; --more) {
            // Mostly small values, which pass for counts and flags.
            bytes.push_back(
                static_cast<std::byte>(random() % 4 == 0 ? random() % 256 : random() % 3));
        }
        expect_value_or_error(bytes, decode_result);
    }
}

}  // namespace
}  // namespace rdma_read::verify
