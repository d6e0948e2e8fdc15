// Addresses as they are read, printed and told apart.
#include "rdma_read/rdma/address.hpp"

#include "rdma_read/rdma/error.hpp"
#include "support.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <string_view>

namespace rdma_read::rdma {
namespace {

// A name whose servers do not answer before the test says so, and how often names were asked for.
constexpr std::string_view kUnanswered = "unanswered.example";
std::atomic<int> asked_by_name = 0;
std::promise<void> give_up;

}  // namespace
}  // namespace rdma_read::rdma

extern "C" {

int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** found) {
    if ((hints->ai_flags & AI_NUMERICHOST) == 0) {
        if (name == rdma_read::rdma::kUnanswered) {
            const auto answer = rdma_read::rdma::give_up.get_future();
            ++rdma_read::rdma::asked_by_name;
            rdma_read::rdma::asked_by_name.notify_all();
            answer.wait();
            return EAI_AGAIN;
        }
        ++rdma_read::rdma::asked_by_name;
    }
    using Function = int(const char*, const char*, const addrinfo*, addrinfo**);
    static auto* const real = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "getaddrinfo"));
    return real(name, service, hints, found);
}

}  // extern "C"

namespace rdma_read::rdma {
namespace {

using fakes::address_of;

TEST(Address, IsTheIpv4WildcardWhenNothingIsSaid) {
    const Address address;
    EXPECT_EQ(address.with_port_text(), "0.0.0.0:0");
    EXPECT_TRUE(address.is_wildcard());
}

TEST(Address, PrintsWhatItRead) {
    EXPECT_EQ(address_of("10.0.0.1").to_string(), "10.0.0.1");
    EXPECT_EQ(address_of("10.0.0.1", 7471).with_port_text(), "10.0.0.1:7471");
    EXPECT_EQ(address_of("fd00::1", 7471).to_string(), "fd00::1");
    EXPECT_EQ(address_of("fd00:0:0::1", 7471).with_port_text(), "[fd00::1]:7471");
    EXPECT_EQ(address_of("[fd00::1]", 65535).with_port_text(), "[fd00::1]:65535");
}

TEST(Address, ReadsNothingThatIsNoNumericAddress) {
    for (const std::string text : {"", "localhost", "10.0.0", "10.0.0.256", "10.0.0.1:7471", "::g",
                                   "[]", "[fd00::1", " 10.0.0.1", "10.0.0.1 "}) {
        EXPECT_FALSE(Address::parse(text)) << text;
    }
    EXPECT_FALSE(Address::parse(std::string_view("10.0.0.1\0junk", 13)));
}

TEST(Address, KnowsItsFamilyAndPort) {
    EXPECT_EQ(address_of("10.0.0.1", 1).family(), AF_INET);
    EXPECT_EQ(address_of("::1", 258).family(), AF_INET6);
    EXPECT_EQ(address_of("::1", 258).port(), 258);
    EXPECT_EQ(address_of("10.0.0.1", 1).with_port(513).port(), 513);
    EXPECT_EQ(address_of("10.0.0.1").raw_size(), sizeof(sockaddr_in));
    EXPECT_EQ(address_of("::1").raw_size(), sizeof(sockaddr_in6));
    EXPECT_EQ(address_of("::1").raw()->sa_family, AF_INET6);
}

TEST(Address, KnowsLoopback) {
    for (const std::string text : {"127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.1.1"}) {
        EXPECT_TRUE(address_of(text).is_loopback()) << text;
    }
    for (const std::string text : {"128.0.0.1", "126.255.255.255", "::2", "::ffff:10.0.0.1"}) {
        EXPECT_FALSE(address_of(text).is_loopback()) << text;
    }
}

TEST(Address, KnowsWildcardAndLinkLocal) {
    EXPECT_TRUE(address_of("::").is_wildcard());
    EXPECT_FALSE(address_of("0.0.0.1").is_wildcard());
    EXPECT_TRUE(address_of("169.254.1.1").is_link_local());
    EXPECT_TRUE(address_of("fe80::1").is_link_local());
    EXPECT_FALSE(address_of("169.253.1.1").is_link_local());
    EXPECT_FALSE(address_of("fd00::1").is_link_local());
}

TEST(Address, IsTheSameHostWhateverThePort) {
    EXPECT_TRUE(address_of("10.0.0.1", 1).same_host(address_of("10.0.0.1", 2)));
    EXPECT_TRUE(address_of("fd00::1", 1).same_host(address_of("fd00::1", 2)));
    EXPECT_FALSE(address_of("10.0.0.1").same_host(address_of("10.0.0.2")));
    EXPECT_FALSE(address_of("fd00::1").same_host(address_of("fd00::2")));
    EXPECT_FALSE(address_of("::").same_host(address_of("0.0.0.0")));
}

TEST(Address, IsNotMadeFromNothingOrAnotherFamily) {
    EXPECT_FALSE(Address::from(nullptr));
    sockaddr_storage local{};
    local.ss_family = AF_UNIX;
    EXPECT_FALSE(Address::from(reinterpret_cast<const sockaddr*>(&local)));
}

TEST(Address, ResolvesANumericAddressWithoutAskingAnyone) {
    asked_by_name = 0;
    const auto found = Address::resolve("fd00::7", 99, fakes::far());
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found.front().with_port_text(), "[fd00::7]:99");
    // Numeric too, though not for inet_pton(3).
    EXPECT_EQ(Address::resolve("10.1", 99, fakes::far()).front().with_port_text(), "10.0.0.1:99");
    EXPECT_EQ(asked_by_name, 0);
}

TEST(Address, ANameThatNobodyAnswersForIsWaitedForUntilTheDeadline) {
    asked_by_name = 0;
    const auto limit = Deadline::after(std::chrono::milliseconds(30));
    const auto error =
        fakes::error_of([&] { (void)Address::resolve(std::string(kUnanswered), 1, limit); });
    ASSERT_TRUE(error);
    EXPECT_TRUE(limit.expired());
    EXPECT_EQ(error->failure(), Failure::timeout);
    EXPECT_EQ(error->phase(), Phase::resolve);
    EXPECT_THAT(error->what(),
                testing::HasSubstr("getaddrinfo(unanswered.example): no answer before"));
    EXPECT_THAT(error->hint(), testing::HasSubstr("/etc/resolv.conf"));
    // The resolver cannot be called off; its answer comes when nobody waits any more.
    asked_by_name.wait(0);
    give_up.set_value();
}

TEST(Address, ANameIsLookedUp) {
    asked_by_name = 0;
    const auto found = Address::resolve("localhost", 99, fakes::far());
    EXPECT_EQ(asked_by_name, 1);
    EXPECT_TRUE(found.at(0).is_loopback());
    EXPECT_EQ(found.at(0).port(), 99);
}

TEST(Address, AnEmptyNameIsABadAddressThatTheErrorNames) {
    const auto error =
        fakes::error_of([] { (void)Address::resolve("no name at all", 1, fakes::far()); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->failure(), Failure::bad_address);
    EXPECT_THAT(error->what(), testing::HasSubstr("getaddrinfo(no name at all)"));
    EXPECT_FALSE(error->hint().empty());
}

}  // namespace
}  // namespace rdma_read::rdma
