// main() for GoogleTest on several ranks: every rank runs every test, and prints its own failures.
#include "world.hpp"

#include <gmock/gmock.h>
#include <mpi.h>

#include <cstdio>
#include <sstream>
#include <string>

namespace rdma_read::cluster {
namespace {

MpiSession* the_session = nullptr;
Communicator* the_world = nullptr;

/// Rank 0 prints the usual lines; the others only their failures, each with its rank.
class FailuresOnly : public ::testing::EmptyTestEventListener {
  public:
    explicit FailuresOnly(int rank) : rank_(rank) {}

    void OnTestStart(const ::testing::TestInfo& test) override {
        test_ = std::string(test.test_suite_name()) + "." + test.name();
    }
    void OnTestEnd(const ::testing::TestInfo& /*test*/) override { test_.clear(); }

    void OnTestPartResult(const ::testing::TestPartResult& result) override {
        if (!result.failed()) {
            return;
        }
        std::ostringstream text;
        text << "rank " << rank_ << ": " << (test_.empty() ? "outside of a test" : test_) << '\n';
        if (result.file_name() != nullptr) {
            text << result.file_name() << ':' << result.line_number() << ": ";
        }
        text << result.message() << '\n';
        std::fputs(text.str().c_str(), stdout);  // in one piece, not mixed with other ranks' lines
        std::fflush(stdout);
    }

  private:
    int rank_;
    std::string test_;  // GoogleTest holds its lock while it reports a failure: ask it nothing then
};

}  // namespace

MpiSession& session() {
    return *the_session;
}

Communicator& world() {
    return *the_world;
}

}  // namespace rdma_read::cluster

int main(int argc, char** argv) {
    using namespace rdma_read::cluster;
    ::testing::InitGoogleMock(&argc, argv);
    MpiSession session;
    Communicator world(session);
    the_session = &session;
    the_world = &world;
    if (world.rank() != 0) {
        auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
        delete listeners.Release(listeners.default_result_printer());
        listeners.Append(new FailuresOnly(world.rank()));
    }
    const int own = RUN_ALL_TESTS();
    // A test that failed half-way may have left a collective call behind, and the next would pair
    // up with it; a mismatch shows as this deadline at the latest.
    if (session.abandoned() || !world.barrier(long_enough())) {
        session.abort(own == 0 ? 1 : own);
    }
    int worst = 1;
    MPI_Allreduce(&own, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return worst;
}
