// Plants a wrong byte, and tries reads that nobody allowed.
#include "app/self_test.hpp"

#include "rdma_read/rdma/access_probe.hpp"
#include "rdma_read/rdma/buffer.hpp"
#include "rdma_read/verify/pattern.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>

namespace rdma_read::app {

namespace {

constexpr std::chrono::milliseconds kGoodbye{500};
constexpr std::uint64_t kWord = 8;

// Multiples of 2^64 divided by the golden ratio spread evenly over 64 bits, whatever the ranks are.
std::uint64_t place_of(std::uint32_t rank, std::uint64_t size) {
    return (rank * verify::Pattern::kStep >> 32U) % size;
}

// Makes the reads that a checker asks for, and changes a byte of what one of them brought.
class PlantingReads : public rdma::ReadSink {
  public:
    PlantingReads(verify::Checker& checker, ReadCheck check) : checker_(checker), check_(check) {}

    // In the data of the reads from now on, the byte at this place.
    void plant(std::uint64_t place) { place_ = place; }

    rdma::ReadRequest next(std::uint32_t slot) override {
        const auto target = checker_.next(slot);
        return {target.remote_offset, target.destination};
    }
    void finished(std::uint32_t slot) override {
        if (place_) {
            checker_.landed(slot).destination[*place_] ^= std::byte{0x10};
        }
        check_(checker_, slot);
    }

  private:
    verify::Checker& checker_;
    ReadCheck check_;
    std::optional<std::uint64_t> place_;
};

std::string described(const verify::Checker& checker) {
    if (checker.mismatches().empty()) {
        return fmt::format("{} of {} reads were found wrong", checker.mismatched_reads(),
                           checker.reads());
    }
    const verify::Mismatch& first = checker.mismatches().front();
    return fmt::format("{} of {} reads were found wrong, first at offset {}, {} bytes: {}, {}",
                       checker.mismatched_reads(), checker.reads(), first.offset, first.length,
                       verify::to_string(first.kind), first.detail);
}

Disproof let_through(std::string_view what) {
    return {
        verify::Outcome::read_failed, fmt::format("the server's device let {} through", what),
        "any peer may read the memory of the server's host: do not connect it to peers that you "
        "do not trust; check the firmware and the driver of its device"};
}

// Whether a read like that of the server's buffer is refused, on a connection of its own.
template <class Spoil>
bool refused(rdma::ReadClientConfig config, rdma::Deadline deadline, Spoil spoil) {
    const rdma::Buffer memory(2 * kWord);
    config.queue_pairs = 1;
    config.depth = 1;
    config.destination = memory.bytes();
    std::uint32_t attempts = 0;
    const auto client = rdma::connect_with_retry(config, deadline, attempts).client;
    rdma::ForbiddenRead read{client->remote().address, client->remote().rkey, memory.bytes()};
    spoil(read, client->remote());
    const bool was_refused = rdma::device_refuses(*client, read, deadline);
    client->disconnect(rdma::Deadline::after(kGoodbye).or_earlier(deadline));
    return was_refused;
}

}  // namespace

bool check_read(verify::Checker& checker, std::uint32_t slot) noexcept {
    return checker.finished(slot);
}

std::optional<Disproof> test_check(verify::Checker& checker, std::uint32_t rank, ReadCheck check,
                                   const OneRead& read, verify::SelfTest& proved) {
    PlantingReads reads(checker, check);
    read(reads);
    const std::uint64_t size = checker.landed(0).destination.size();
    if (checker.mismatched_reads() != 0 || checker.bytes_verified() != size) {
        // The data may be as wrong as it was found.
        return Disproof{
            verify::Outcome::corrupt,
            fmt::format("a read of {} bytes that nobody tampered with is not right: {}", size,
                        described(checker)),
            "run without --self-test to see whether it is the data, and how much of it"};
    }
    const std::uint64_t place = place_of(rank, size);
    reads.plant(place);
    read(reads);
    const std::uint64_t offset = checker.landed(0).remote_offset + place;
    const auto& found = checker.mismatches();
    proved.planted_error_found = checker.mismatched_reads() == 1 && found.size() == 1
                                 && found.front().offset == offset && found.front().length == 1
                                 && checker.bytes_verified() == size;
    if (*proved.planted_error_found) {
        return std::nullopt;
    }
    return Disproof{
        verify::Outcome::corrupt,
        fmt::format("the check did not find the wrong byte that was planted at offset {} in a read "
                    "of {} bytes: {}",
                    offset, size, described(checker)),
        "believe no PASS of this program on this host: build it again, run its tests there, and "
        "check the host's processor and memory"};
}

std::optional<Disproof> test_protection(const rdma::ReadClientConfig& reader,
                                        rdma::Deadline deadline, verify::SelfTest& proved) {
    rdma::ReadClientConfig config = reader;
    config.hello.queue_pair = reader.hello.queue_pair + reader.queue_pairs;
    proved.wrong_key_refused = refused(
        config, deadline, [](auto& read, const auto& /*remote*/) { read.rkey ^= kWrongKeyBits; });
    if (!*proved.wrong_key_refused) {
        return let_through("a read with a wrong key");
    }
    ++config.hello.queue_pair;
    // The last word that may be read and the first one that may not.
    proved.out_of_bounds_refused = refused(config, deadline, [](auto& read, const auto& remote) {
        read.address += remote.length - kWord;
    });
    if (!*proved.out_of_bounds_refused) {
        return let_through("a read past the end of the exposed buffer");
    }
    return std::nullopt;
}

}  // namespace rdma_read::app
