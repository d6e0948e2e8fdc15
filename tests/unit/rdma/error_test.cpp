// Errors for people: the call, the object, the cause, the next step.
#include "rdma_read/rdma/error.hpp"

#include "rdma_read/rdma/buffer.hpp"
#include "rdma_read/rdma/unique_fd.hpp"
#include "support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <cerrno>
#include <limits>
#include <string>

namespace rdma_read::rdma {
namespace {

using fakes::error_of;
using testing::HasSubstr;

TEST(Error, NamesCallObjectAndCauseInOneLine) {
    const Error error =
        system_error({Phase::resolve, "rdma_resolve_addr", "10.0.0.2:7471"}, ENETUNREACH);
    EXPECT_STREQ(error.what(), "rdma_resolve_addr(10.0.0.2:7471): Network is unreachable (101)");
    EXPECT_EQ(error.code(), ENETUNREACH);
    EXPECT_EQ(error.phase(), Phase::resolve);
    EXPECT_EQ(error.failure(), Failure::unreachable);
    EXPECT_THAT(error.hint(), HasSubstr("ip route get"));
}

TEST(Error, TakesErrnoOnlyFromCallsThatSetIt) {
    errno = EDOM;
    const auto by_value = error_of([] {
        check_errno_value(EINVAL, {Phase::setup, "ibv_query_device", "x"});
    });
    EXPECT_EQ(by_value->code(), EINVAL);
    errno = ENOSPC;
    const auto by_errno = error_of([] { check_minus_one(-1, {Phase::setup, "rdma_listen", "x"}); });
    EXPECT_EQ(by_errno->code(), ENOSPC);
    errno = EMFILE;
    const auto old_provider = error_of([] {
        check_errno_value(-1, {Phase::setup, "ibv_post_recv", "x"});
    });
    EXPECT_EQ(old_provider->code(), EMFILE);
    errno = EACCES;
    const auto pointer = error_of([] {
        check_pointer(static_cast<int*>(nullptr), {Phase::setup, "ibv_alloc_pd", "x"});
    });
    EXPECT_EQ(pointer->code(), EACCES);
}

TEST(Error, SuccessThrowsNothing) {
    int object = 0;
    check_errno_value(0, {Phase::setup, "a", ""});
    check_minus_one(0, {Phase::setup, "a", ""});
    EXPECT_EQ(check_pointer(&object, {Phase::setup, "a", ""}), &object);
}

TEST(Error, TellsKindsOfFailureApart) {
    const auto kind = [](Phase phase, const char* call, int number) {
        return system_error({phase, call, ""}, number).failure();
    };
    EXPECT_EQ(kind(Phase::device, "rdma_create_event_channel", ENODEV), Failure::no_device);
    EXPECT_EQ(kind(Phase::device, "ibv_get_device_list", ENOSYS), Failure::no_device);
    EXPECT_EQ(kind(Phase::device, "rdma_bind_addr", ENODEV), Failure::bad_address);
    EXPECT_EQ(kind(Phase::device, "rdma_bind_addr", EADDRINUSE), Failure::bad_address);
    EXPECT_EQ(kind(Phase::device, "rdma_bind_addr", EADDRNOTAVAIL), Failure::bad_address);
    EXPECT_EQ(kind(Phase::resolve, "rdma_resolve_addr", ENODEV), Failure::bad_address);
    EXPECT_EQ(kind(Phase::setup, "ibv_reg_mr", ENOMEM), Failure::limit);
    EXPECT_EQ(kind(Phase::setup, "rdma_create_id", EMFILE), Failure::limit);
    EXPECT_EQ(kind(Phase::resolve, "rdma_resolve_addr", ETIMEDOUT), Failure::unreachable);
    EXPECT_EQ(kind(Phase::read, "poll", ETIMEDOUT), Failure::timeout);
    EXPECT_EQ(kind(Phase::connect, "rdma_connect", EINVAL), Failure::unreachable);
    EXPECT_EQ(kind(Phase::setup, "ibv_create_cq", EINVAL), Failure::setup);
}

TEST(Error, HintsSayTheNextStep) {
    const auto hint = [](Phase phase, const char* call, int number) {
        return system_error({phase, call, ""}, number).hint();
    };
    EXPECT_THAT(hint(Phase::device, "rdma_create_event_channel", ENODEV), HasSubstr("modprobe"));
    EXPECT_THAT(hint(Phase::device, "rdma_create_event_channel", ENODEV), HasSubstr("rdma_rxe"));
    EXPECT_THAT(hint(Phase::device, "rdma_create_event_channel", EACCES),
                HasSubstr("/dev/infiniband"));
    EXPECT_THAT(hint(Phase::device, "rdma_bind_addr", ENODEV), HasSubstr("rdma link"));
    EXPECT_THAT(hint(Phase::device, "rdma_bind_addr", EADDRNOTAVAIL), HasSubstr("ip -br addr"));
    EXPECT_THAT(hint(Phase::device, "rdma_bind_addr", EADDRINUSE), HasSubstr("--port"));
    for (const char* const call : {"rdma_create_id", "rdma_create_event_channel"}) {
        EXPECT_THAT(hint(Phase::setup, call, EMFILE), HasSubstr("ulimit -n")) << call;
    }
    EXPECT_THAT(hint(Phase::resolve, "rdma_resolve_addr", EHOSTUNREACH), HasSubstr("ip route"));
    EXPECT_THAT(hint(Phase::resolve, "rdma_resolve_addr", ENODEV), HasSubstr("rdma link"));
    EXPECT_THAT(hint(Phase::resolve, "rdma_resolve_addr", ETIMEDOUT), HasSubstr("ping"));
    EXPECT_THAT(hint(Phase::setup, "rdma_create_qp", EPERM), HasSubstr("/dev/infiniband"));
}

class MemlockLimit : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before_), 0); }
    void TearDown() override { setrlimit(RLIMIT_MEMLOCK, &before_); }

    // The hard limit stays, so that the old soft limit can come back.
    bool limit_to(rlim_t bytes) const {
        if (bytes > before_.rlim_max) {
            return false;
        }
        const rlimit changed{bytes, before_.rlim_max};
        return setrlimit(RLIMIT_MEMLOCK, &changed) == 0;
    }

  private:
    rlimit before_{};
};

TEST_F(MemlockLimit, IsToldAsItIsNowWithEveryPlaceWhereItIsRaised) {
    ASSERT_TRUE(limit_to(64U * 1024U));
    EXPECT_EQ(memlock_limit_text(), "64 KiB");
    for (const int number : {ENOMEM, EAGAIN}) {
        const std::string hint = system_error({Phase::setup, "ibv_reg_mr", ""}, number).hint();
        for (const char* const word :
             {"64 KiB", "/etc/security/limits.conf", "systemd", "LimitMEMLOCK", "slurmd",
              "PropagateResourceLimitsExcept", "ulimit -l"}) {
            EXPECT_THAT(hint, HasSubstr(word));
        }
    }
    ASSERT_TRUE(limit_to(0));
    EXPECT_EQ(memlock_limit_text(), "0 KiB");
}

TEST_F(MemlockLimit, WithoutEndIsCalledUnlimited) {
    if (!limit_to(RLIM_INFINITY)) {
        GTEST_SKIP() << "the hard limit is finite here";
    }
    EXPECT_EQ(memlock_limit_text(), "unlimited");
}

// A process that may open no more than a few files beside those that it has.
class FilesLimit : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0); }
    void TearDown() override { setrlimit(RLIMIT_NOFILE, &before_); }
    [[nodiscard]] bool leave(rlim_t files) const {
        const UniqueFd next(eventfd(0, EFD_CLOEXEC));
        const rlimit changed{static_cast<rlim_t>(next.get()) + files, before_.rlim_max};
        return setrlimit(RLIMIT_NOFILE, &changed) == 0;
    }

  private:
    rlimit before_{};
};

TEST_F(FilesLimit, IsNoticedWhenItIsNearAndNotBefore) {
    ASSERT_TRUE(leave(100));
    EXPECT_FALSE(files_run_out());
    ASSERT_TRUE(leave(2));
    EXPECT_TRUE(files_run_out());
    EXPECT_EQ(system_error({Phase::device, "rdma_create_event_channel", ""}, ENODEV).hint(),
              kFilesHint);
    ASSERT_TRUE(leave(0));
    EXPECT_TRUE(files_run_out());
}

TEST(Error, PhasesHaveNames) {
    EXPECT_EQ(to_string(Phase::device), "device");
    EXPECT_EQ(to_string(Phase::setup), "setup");
    EXPECT_EQ(to_string(Phase::resolve), "resolve");
    EXPECT_EQ(to_string(Phase::connect), "connect");
    EXPECT_EQ(to_string(Phase::descriptor), "descriptor");
    EXPECT_EQ(to_string(Phase::read), "read");
    EXPECT_EQ(to_string(Phase::disconnect), "disconnect");
}

TEST(Buffer, IsZeroFilledAndOnPageBoundaries) {
    const Buffer buffer(10000);
    ASSERT_EQ(buffer.bytes().size(), 10000U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.bytes().data()) % 4096, 0U);
    EXPECT_TRUE(std::ranges::all_of(buffer.bytes(), [](std::byte b) { return b == std::byte{0}; }));
}

TEST(Buffer, OfNothingIsEmptyAndAMovedOneLeavesNothing) {
    EXPECT_TRUE(Buffer(0).bytes().empty());
    Buffer from(4096);
    const auto bytes = from.bytes();
    const Buffer into(std::move(from));
    EXPECT_EQ(into.bytes().data(), bytes.data());
}

TEST(Buffer, ThatNoSystemHasIsALimitErrorWithItsSize) {
    const auto error = error_of([] { const Buffer buffer(std::size_t{1} << 60U); });
    EXPECT_EQ(error->failure(), Failure::limit);
    EXPECT_THAT(error->what(), HasSubstr("mmap(1152921504606846976 bytes)"));
}

TEST(UniqueFd, ThatCannotBeMadeNonBlockingIsNamed) {
    const auto error = error_of([] { make_non_blocking(-1, "event channel"); });
    EXPECT_STREQ(error->what(), "fcntl(event channel): Bad file descriptor (9)");
}

TEST(Deadline, NeverLeavesLessThanNothingAndRoundsUp) {
    const Deadline past = Deadline::after(std::chrono::seconds(-1));
    EXPECT_TRUE(past.expired());
    EXPECT_EQ(past.remaining().count(), 0);
    EXPECT_EQ(past.poll_timeout_ms(), 0);
    EXPECT_GE(Deadline::after(std::chrono::microseconds(900)).poll_timeout_ms(), 0);
    EXPECT_LE(Deadline::after(std::chrono::microseconds(900)).poll_timeout_ms(), 1);
    EXPECT_EQ(Deadline::after(std::chrono::hours(1000)).poll_timeout_ms(), 60'000);
    const Deadline later = Deadline::after(std::chrono::hours(1));
    EXPECT_EQ(later.or_earlier(past).at(), past.at());
    EXPECT_EQ(past.or_earlier(later).at(), past.at());
}

}  // namespace
}  // namespace rdma_read::rdma
