// Claims about when a run passes.
#include "sample_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace rdma_read::verify {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

void fail(Result& result, Outcome outcome) {
    result.outcome = outcome;
    result.sizes.clear();
}

TEST(Verdict, PassesWhenEveryExpectedByteWasVerified) {
    const Verdict verdict = judge(sample_report());
    EXPECT_EQ(verdict.exit_code, 0);
    EXPECT_EQ(verdict.outcome, Outcome::pass);
    EXPECT_EQ(verdict.expected, 3U);
    EXPECT_EQ(verdict.passed, 3U);
    EXPECT_EQ(verdict.failed, 0U);
    EXPECT_EQ(verdict.bytes_verified, 3 * 65536000U);
    EXPECT_EQ(verdict.mismatches, 0U);
    EXPECT_THAT(verdict.bad_hosts, IsEmpty());
}

TEST(Verdict, OfNoReadersIsNotAPass) {
    Report report = sample_report();
    report.results.clear();
    EXPECT_EQ(judge(report).exit_code, 3);
    EXPECT_EQ(judge(report).outcome, Outcome::not_run);
}

TEST(Verdict, FailsForEveryOutcomeButPass) {
    for (const Outcome outcome :
         {Outcome::corrupt, Outcome::slow, Outcome::connect_failed, Outcome::read_failed,
          Outcome::timeout, Outcome::no_device, Outcome::setup_failed, Outcome::not_run}) {
        Report report = sample_report();
        report.results[1].outcome = outcome;
        const Verdict verdict = judge(report);
        EXPECT_EQ(verdict.exit_code, 1) << to_string(outcome);
        EXPECT_EQ(verdict.outcome, outcome);
        EXPECT_EQ(verdict.passed, 2U);
        EXPECT_EQ(verdict.failed, 1U);
    }
}

TEST(Verdict, DoesNotBelieveAPassWithoutTheSelfTestThatWasAskedFor) {
    Report report = sample_report();
    report.self_test = true;
    EXPECT_EQ(judge(report).exit_code, 1);
    for (Result& result : report.results) {
        result.self_test = SelfTest{true, true, true};
    }
    EXPECT_EQ(judge(report).exit_code, 0);
    for (const SelfTest test :
         {SelfTest{false, true, true}, SelfTest{true, false, true}, SelfTest{true, true, false},
          SelfTest{true, true, {}}, SelfTest{true, {}, true}, SelfTest{{}, true, true}}) {
        report.results[1].self_test = test;
        EXPECT_EQ(judge(report).exit_code, 1);
        EXPECT_EQ(judge(report).outcome, Outcome::read_failed);
        EXPECT_EQ(judge(report).passed, 2U);
    }
}

TEST(JointSelfTest, IsProvedWhereEveryReaderThatGotThatFarProvedIt) {
    Report report = sample_report();
    EXPECT_EQ(joint_self_test(report), SelfTest{}) << "nobody made one";
    report.results[0].self_test = SelfTest{true, true, {}};
    report.results[1].self_test = SelfTest{true, {}, {}};
    EXPECT_EQ(joint_self_test(report), (SelfTest{true, true, {}}));
    report.results[2].self_test = SelfTest{true, false, {}};
    EXPECT_EQ(joint_self_test(report), (SelfTest{true, false, {}}));
    report.results[0].self_test->planted_error_found = false;
    EXPECT_EQ(joint_self_test(report), (SelfTest{false, false, {}}));
}

TEST(Verdict, DoesNotBelieveAPassWithoutItsEvidence) {
    const std::vector<std::pair<std::function<void(SizeResult&)>, Outcome>> spoilers{
        {[](SizeResult& s) { s.bytes_verified -= 1; }, Outcome::read_failed},
        {[](SizeResult& s) { s.bytes_verified += 1; }, Outcome::read_failed},
        {[](SizeResult& s) { s.bytes_read -= 1; }, Outcome::read_failed},
        {[](SizeResult& s) { s.reads = s.bytes_read = s.bytes_verified = 0; },
         Outcome::read_failed},
        {[](SizeResult& s) {
             s.size = std::uint64_t{1} << 63U;
             s.reads = 2;
             s.bytes_read = s.bytes_verified = 0;
         },
         Outcome::read_failed},
        {[](SizeResult& s) { s.guard_intact = false; }, Outcome::corrupt},
        {[](SizeResult& s) { s.mismatched_reads = 1; }, Outcome::corrupt},
        {[](SizeResult& s) { s.mismatches.emplace_back(); }, Outcome::corrupt},
    };
    for (const auto& [spoil, outcome] : spoilers) {
        Report report = sample_report();
        spoil(report.results[2].sizes[0]);
        EXPECT_EQ(judge(report).exit_code, 1);
        EXPECT_EQ(judge(report).outcome, outcome);
    }
    Report report = sample_report();
    report.results[0].sizes.clear();
    EXPECT_EQ(judge(report).exit_code, 1) << "a PASS without any size";
}

TEST(Verdict, DoesNotBelieveAPassOfLessThanWasAskedFor) {
    Report report = sample_report();
    report.sizes = {65536};
    report.reads = 1000;
    EXPECT_EQ(judge(report).exit_code, 0);
    report.reads = 1001;
    EXPECT_EQ(judge(report).outcome, Outcome::read_failed);
    report.reads.reset();
    EXPECT_EQ(judge(report).exit_code, 0) << "as many as the time allowed";
    for (const auto& sizes : {std::vector<std::uint64_t>{65536, 8}, {4096}}) {
        report.sizes = sizes;
        EXPECT_EQ(judge(report).outcome, Outcome::read_failed);
    }
}

TEST(Verdict, WithVerifyOffNeedsReadsButNoVerifiedBytes) {
    Report report = sample_report();
    report.verified = false;
    for (Result& result : report.results) {
        result.sizes[0].bytes_verified = 0;
    }
    EXPECT_EQ(judge(report).exit_code, 0);
    report.results[0].sizes[0].bytes_read = 0;
    EXPECT_EQ(judge(report).exit_code, 1);
}

TEST(Verdict, SaysNothingReadWhenNoReaderGotBeyondSetup) {
    Report report = sample_report();
    fail(report.results[0], Outcome::no_device);
    fail(report.results[1], Outcome::setup_failed);
    fail(report.results[2], Outcome::not_run);
    EXPECT_EQ(judge(report).exit_code, 3);
    fail(report.results[2], Outcome::connect_failed);
    EXPECT_EQ(judge(report).exit_code, 1);
}

TEST(Verdict, NamesTheWorstOutcome) {
    Report report = corrupt_report();
    fail(report.results[0], Outcome::timeout);
    EXPECT_EQ(judge(report).outcome, Outcome::corrupt);
    EXPECT_EQ(judge(report).mismatches, 1U);
}

TEST(Verdict, BlamesTheReadersHostWhenOthersPass) {
    EXPECT_THAT(judge(corrupt_report()).bad_hosts, ElementsAre("node3"));
}

TEST(Verdict, BlamesTheServersHostWhenEveryReaderFails) {
    Report report = sample_report();
    for (Result& result : report.results) {
        fail(result, Outcome::connect_failed);
    }
    EXPECT_THAT(judge(report).bad_hosts, ElementsAre("node1"));
}

TEST(Verdict, BlamesBothEndsWhenThereIsOnlyOneReader) {
    Report report = sample_report();
    report.results.resize(1);
    fail(report.results[0], Outcome::timeout);
    EXPECT_THAT(judge(report).bad_hosts, ElementsAre("node1", "node2"));
}

TEST(Verdict, BlamesNobodyForWhatWasNotRun) {
    Report report = sample_report();
    report.interrupted = "SIGTERM";
    for (Result& result : report.results) {
        fail(result, Outcome::not_run);
    }
    EXPECT_THAT(judge(report).bad_hosts, IsEmpty());
    EXPECT_EQ(judge(report).exit_code, 3);
    report.servers[0].address.clear();
    EXPECT_THAT(judge(report).bad_hosts, IsEmpty());
}

TEST(Verdict, OfAnInterruptedRunCountsWhatWasReadUntilThen) {
    Report report = sample_report();
    report.interrupted = "SIGTERM";
    for (Result& result : report.results) {
        result.outcome = Outcome::not_run;
    }
    EXPECT_EQ(judge(report).exit_code, 1);
    EXPECT_EQ(judge(report).bytes_verified, 3U * 65536000U);
}

TEST(Verdict, OfAnInterruptedRunBlamesWhoFailedBefore) {
    Report report = sample_report();
    report.interrupted = "SIGTERM";
    fail(report.results[0], Outcome::not_run);
    fail(report.results[1], Outcome::read_failed);
    EXPECT_THAT(judge(report).bad_hosts, ElementsAre("node3"));
    fail(report.results[2], Outcome::not_run);
    EXPECT_THAT(judge(report).bad_hosts, ElementsAre("node1", "node3"))
        << "with one reader alone either end may be at fault";
}

TEST(Verdict, BlamesAServerThatNeverListened) {
    Report report = sample_report();
    report.servers[0].address.clear();
    for (Result& result : report.results) {
        fail(result, Outcome::not_run);
    }
    EXPECT_THAT(judge(report).bad_hosts, ElementsAre("node1"));
}

TEST(Verdict, BlamesAReaderForItsOwnMissingDevice) {
    Report report = sample_report();
    for (Result& result : report.results) {
        fail(result, Outcome::no_device);
    }
    EXPECT_THAT(judge(report).bad_hosts, ElementsAre("node2", "node3", "node4"));
}

}  // namespace
}  // namespace rdma_read::verify
