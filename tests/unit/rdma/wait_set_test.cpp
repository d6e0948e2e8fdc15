// Sleeping on several descriptors with a deadline.
#include "rdma_read/rdma/wait_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <chrono>

namespace rdma_read::rdma {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class WaitSetTest : public testing::Test {
  protected:
    WaitSetTest() {
        waits.add(first.get());
        waits.add(second.get());
    }
    UniqueFd first{eventfd(0, EFD_NONBLOCK)};
    UniqueFd second{eventfd(0, EFD_NONBLOCK)};
    WaitSet waits;
};

TEST_F(WaitSetTest, TellsWhichDescriptorsAreReadable) {
    eventfd_write(second.get(), 1);
    EXPECT_THAT(waits.wait(Deadline::after(seconds(60))), ElementsAre(second.get()));
    eventfd_write(first.get(), 1);
    EXPECT_THAT(waits.wait(Deadline::after(seconds(60))),
                UnorderedElementsAre(first.get(), second.get()));
}

TEST_F(WaitSetTest, TellsAgainWhatNobodyRead) {
    eventfd_write(first.get(), 1);
    const auto deadline = Deadline::after(seconds(60));
    EXPECT_THAT(waits.wait(deadline), ElementsAre(first.get()));
    EXPECT_THAT(waits.wait(deadline), ElementsAre(first.get()));
    eventfd_t value = 0;
    eventfd_read(first.get(), &value);
    EXPECT_THAT(waits.wait(Deadline::after(milliseconds(1))), IsEmpty());
}

TEST_F(WaitSetTest, EndsAtItsDeadlineAndNotBefore) {
    const auto deadline = Deadline::after(milliseconds(20));
    EXPECT_THAT(waits.wait(deadline), IsEmpty());
    EXPECT_TRUE(deadline.expired());
}

TEST_F(WaitSetTest, EachDeadlineCountsForItself) {
    EXPECT_THAT(waits.wait(Deadline::after(milliseconds(1))), IsEmpty());
    // Later than the one before, whose timer has run out.
    const auto later = Deadline::after(milliseconds(20));
    EXPECT_THAT(waits.wait(later), IsEmpty());
    EXPECT_TRUE(later.expired());
    // A far one does not outlast a near one.
    eventfd_write(first.get(), 1);
    EXPECT_THAT(waits.wait(Deadline::after(seconds(60))), ElementsAre(first.get()));
    eventfd_t value = 0;
    eventfd_read(first.get(), &value);
    EXPECT_THAT(waits.wait(Deadline::after(milliseconds(1))), IsEmpty());
}

TEST_F(WaitSetTest, ADeadlineThatHasPassedEndsAtOnce) {
    EXPECT_THAT(waits.wait(Deadline::after(seconds(-5))), IsEmpty());
    EXPECT_THAT(waits.wait(Deadline(Deadline::Clock::time_point::min())), IsEmpty());
}

TEST_F(WaitSetTest, AClosedDescriptorIsForgotten) {
    eventfd_write(first.get(), 1);
    first = UniqueFd();
    EXPECT_THAT(waits.wait(Deadline::after(milliseconds(1))), IsEmpty());
}

}  // namespace
}  // namespace rdma_read::rdma
