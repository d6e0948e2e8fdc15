// What the tests of the rdma leaf share.
#pragma once

#include "fakes/world.hpp"
#include "rdma_read/rdma/address.hpp"
#include "rdma_read/rdma/deadline.hpp"
#include "rdma_read/rdma/error.hpp"
#include "rdma_read/rdma/read_client.hpp"
#include "rdma_read/rdma/stop_request.hpp"
#include "rdma_read/rdma/unique_fd.hpp"
#include "rdma_read/rdma/wire.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <utility>

namespace rdma_read::rdma::fakes {

inline constexpr RunId kRun{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
inline constexpr std::uint32_t kRemoteKey = 0xabcd;

inline Address address_of(const std::string& text, std::uint16_t port = 0) {
    return Address::parse(text, port).value();
}

/// The name of an event by its number.
inline std::string name_of(unsigned int type) {
    return rdma_event_str(static_cast<rdma_cm_event_type>(type));
}

/// Far enough away that only a hanging test meets it.
inline Deadline far() {
    return Deadline::after(std::chrono::seconds(10));
}

inline Deadline near() {
    return Deadline::after(std::chrono::milliseconds(3));
}
/// Passes soon as well, but not before what the test does first, also where it is kept waiting.
constexpr std::chrono::milliseconds kNotTooNear{300};
inline Deadline not_too_near() {
    return Deadline::after(kNotTooNear);
}

template <std::ranges::contiguous_range Range>
Bytes bytes_of(const Range& range) {
    return {std::ranges::begin(range), std::ranges::end(range)};
}

inline Bytes hello_of(std::uint32_t rank, const RunId& run = kRun, std::uint32_t queue_pair = 0) {
    return bytes_of(encode(Hello{run, rank, queue_pair}));
}

/// What the Error says that `action` throws; fails the test if it throws none.
template <class Action>
std::optional<Error> error_of(Action&& action) {
    try {
        std::forward<Action>(action)();
    } catch (const Error& error) {
        return error;
    }
    ADD_FAILURE() << "no Error was thrown";
    return std::nullopt;
}

/// Somebody who asks to stop.
class Stopper {
  public:
    Stopper() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
    void ask() {
        flag_ = true;
        EXPECT_EQ(eventfd_write(fd_.get(), 1), 0);
    }
    [[nodiscard]] StopRequest request() const { return {&flag_, fd_.get()}; }

  private:
    std::atomic<bool> flag_{false};
    UniqueFd fd_;
};

/// A world with one device, in which everything must be released at the end.
class WorldTest : public testing::Test {
  protected:
    void TearDown() override { expect_clean(); }

    void expect_clean() const {
        EXPECT_THAT(world.violations(), testing::IsEmpty());
        EXPECT_THAT(world.held(), testing::IsEmpty());
    }

    World world;
    Device& device = world.add_device("fake0", {"10.0.0.1"});
};

/// A world in which a reader meets a well-behaved server that exposes `exposed`.
class ClientTest : public WorldTest {
  protected:
    ClientTest() {
        for (std::size_t i = 0; i < exposed.size(); ++i) {
            exposed[i] = static_cast<std::byte>(i * 7 + i / 256);
        }
        serve(RemoteBuffer{reinterpret_cast<std::uintptr_t>(exposed.data()), exposed.size(),
                           kRemoteKey});
    }

    void serve(const RemoteBuffer& buffer) { world.answer_sends_with(bytes_of(encode(buffer))); }

    [[nodiscard]] ReadClientConfig config(std::uint32_t depth = 4) {
        ReadClientConfig made;
        made.server = address_of("10.0.0.2", 7471);
        made.hello = Hello{kRun, 3, 0};
        made.depth = depth;
        made.destination = destination;
        return made;
    }

    Bytes exposed = Bytes(1 << 16);
    Bytes destination = Bytes(1 << 16);
};

}  // namespace rdma_read::rdma::fakes
