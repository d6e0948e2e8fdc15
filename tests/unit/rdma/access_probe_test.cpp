// Reads that have to be refused: what proves a refusal, and what proves nothing.
#include "rdma_read/rdma/access_probe.hpp"

#include "support.hpp"

#include <cerrno>
#include <memory>
#include <string>

namespace rdma_read::rdma {
namespace {

using fakes::far;
using fakes::near;
using testing::HasSubstr;

class AccessProbe : public fakes::ClientTest {
  protected:
    void SetUp() override { client_ = std::make_unique<ReadClient>(config(1), far()); }
    void TearDown() override {
        client_.reset();
        ClientTest::TearDown();
    }

    // Every read ends like this, as soon as it is posted.
    void end_reads_with(ibv_wc_status status) {
        world.after_posting([this, status](fakes::Qp& qp) { world.complete_read(qp, 0, status); });
    }
    bool refused(Deadline deadline = far()) {
        return device_refuses(*client_, {0x1000, 0x77, std::span(destination).first(16)}, deadline);
    }
    std::optional<Error> undecided(Deadline deadline = far()) {
        return fakes::error_of([&] { (void)refused(deadline); });
    }

    std::unique_ptr<ReadClient> client_;
};

TEST_F(AccessProbe, ARemoteAccessErrorIsARefusal) {
    end_reads_with(IBV_WC_REM_ACCESS_ERR);
    EXPECT_TRUE(refused());
}

TEST_F(AccessProbe, ARemoteInvalidRequestIsARefusal) {
    end_reads_with(IBV_WC_REM_INV_REQ_ERR);
    EXPECT_TRUE(refused());
}

TEST_F(AccessProbe, AReadThatSucceedsWasLetThrough) {
    world.reads_carry_data(false);
    end_reads_with(IBV_WC_SUCCESS);
    EXPECT_FALSE(refused());
}

TEST_F(AccessProbe, TheReadIsTheOneAskedForAndNotTheOneAllowed) {
    end_reads_with(IBV_WC_REM_ACCESS_ERR);
    (void)refused();
    const fakes::Read& read = world.all<fakes::Qp>().back()->posts.back().front();
    EXPECT_EQ(read.remote, 0x1000U);
    EXPECT_EQ(read.rkey, 0x77U);
    EXPECT_EQ(read.length, 16U);
}

TEST_F(AccessProbe, APeerThatDoesNotAnswerProvesNothing) {
    for (const auto status : {IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR,
                              IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR, IBV_WC_GENERAL_ERR}) {
        end_reads_with(status);
        const auto error = undecided();
        ASSERT_TRUE(error);
        EXPECT_EQ(error->failure(), Failure::read);
        EXPECT_EQ(error->phase(), Phase::read);
        EXPECT_EQ(error->code(), static_cast<int>(status));
        EXPECT_THAT(std::string(error->what()), HasSubstr(ibv_wc_status_str(status)));
    }
}

TEST_F(AccessProbe, NoAnswerInTimeProvesNothing) {
    const auto error = undecided(near());
    ASSERT_TRUE(error);
    EXPECT_EQ(error->failure(), Failure::timeout);
}

TEST_F(AccessProbe, AConnectionThatEndsProvesNothing) {
    world.after_posting([this](fakes::Qp& qp) {
        fakes::Event event;
        event.type = RDMA_CM_EVENT_DISCONNECTED;
        world.happen(*qp.id, event);
    });
    const auto error = undecided();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->failure(), Failure::disconnected);
}

TEST_F(AccessProbe, AReadThatCannotBePostedProvesNothing) {
    world.fail("ibv_post_send", ENOMEM, 2);
    const auto error = undecided();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ENOMEM);
}

}  // namespace
}  // namespace rdma_read::rdma
