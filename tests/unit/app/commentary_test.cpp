// What is said about the numbers of a finished run.
#include "app/commentary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace rdma_read::app {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

// A reader on a port of 8 Gbit/s, which is 1e9 byte/s.
verify::Result reader(int rank, const std::string& host, double bytes_per_s) {
    verify::Result result;
    result.reader_rank = rank;
    result.reader_host = host;
    result.server_host = "node1";
    result.outcome = verify::Outcome::pass;
    result.path.rate_gbps = 8;
    verify::SizeResult size;
    size.size = 65536;
    size.bandwidth_bytes_per_s = bytes_per_s;
    result.sizes = {size};
    return result;
}

verify::Report report_of(std::vector<verify::Result> results) {
    verify::Report report;
    verify::ServerInfo server;
    server.rate_gbps = 8;
    report.servers = {server};
    report.results = std::move(results);
    return report;
}

TEST(Bounds, OfAReaderThatFillsItsPortAreANote) {
    auto report = report_of({reader(1, "node2", 0.95e9)});
    explain_bounds(report, {});
    const auto& result = report.results.front();
    EXPECT_EQ(result.sizes.front().bound->kind, verify::BoundKind::port);
    EXPECT_THAT(result.notes, ElementsAre(StartsWith("reads of 64K: ")));
}

TEST(Bounds, ThatDoNotBindAreNoNote) {
    auto report = report_of({reader(1, "node2", 0.1e9)});
    explain_bounds(report, {});
    EXPECT_EQ(report.results.front().sizes.front().bound->kind, verify::BoundKind::unknown);
    EXPECT_THAT(report.results.front().notes, IsEmpty());
}

TEST(Bounds, OfReadersAtOnePortAreTheirShareOfIt) {
    auto report = report_of({reader(1, "node2", 0.48e9), reader(2, "node3", 0.48e9)});
    explain_bounds(report, {});
    for (const auto& result : report.results) {
        EXPECT_EQ(result.sizes.front().bound->kind, verify::BoundKind::server_port);
    }
    Options one_at_a_time;
    one_at_a_time.concurrency = 1;
    report = report_of({reader(1, "node2", 0.48e9), reader(2, "node3", 0.48e9)});
    explain_bounds(report, one_at_a_time);
    EXPECT_EQ(report.results.front().sizes.front().bound->kind, verify::BoundKind::unknown);
}

TEST(Bounds, OfAReaderOnTheServersHostAreNotThoseOfThePort) {
    auto report = report_of({reader(1, "node1", 0.95e9)});
    explain_bounds(report, {});
    EXPECT_EQ(report.results.front().sizes.front().bound->kind, verify::BoundKind::unknown);
    EXPECT_THAT(report.results.front().notes, IsEmpty());
}

TEST(Bounds, OfAPortCountNoReaderThatDoesNotUseIt) {
    auto report = report_of({reader(1, "node1", 3e9), reader(2, "node2", 0.48e9)});
    explain_bounds(report, {});
    const auto& bound = report.results[1].sizes.front().bound;
    EXPECT_EQ(bound->kind, verify::BoundKind::unknown) << bound->text;
}

TEST(Bounds, OfASharedPortHoldAlsoForUnequalParts) {
    auto report = report_of({reader(1, "node2", 0.65e9), reader(2, "node3", 0.3e9)});
    explain_bounds(report, {});
    for (const auto& result : report.results) {
        EXPECT_EQ(result.sizes.front().bound->kind, verify::BoundKind::server_port);
    }
}

TEST(Bounds, OfDepthAreThoseOfTheReadsThatTheDevicesLetOntoTheWire) {
    auto report = report_of({reader(1, "node2", 0.1e9)});
    verify::SizeResult& size = report.results.front().sizes.front();
    size.depth = 16;
    size.latency_us = verify::LatencySummary{.min = 655.36, .samples = 1};
    report.results.front().path.depth_negotiated = 1;
    explain_bounds(report, {});
    EXPECT_EQ(size.bound->kind, verify::BoundKind::depth) << size.bound->text;
    Options more;
    more.qps = 16;
    explain_bounds(report, more);
    EXPECT_EQ(size.bound->kind, verify::BoundKind::unknown) << size.bound->text;
}

TEST(Bounds, OfAReaderThatReportsFewerSizesThanAnotherAreItsOwn) {
    auto report = report_of({reader(1, "node2", 0.48e9), reader(2, "node3", 0.48e9)});
    report.results[1].sizes.clear();
    explain_bounds(report, {});
    EXPECT_TRUE(report.results[0].sizes.front().bound);
}

TEST(Bounds, AreNotSoughtForAReaderThatFailed) {
    auto report = report_of({reader(1, "node2", 0.95e9)});
    report.results.front().outcome = verify::Outcome::corrupt;
    explain_bounds(report, {});
    EXPECT_FALSE(report.results.front().sizes.front().bound);
}

TEST(Warnings, NameReadersOfOneHostThatShareACore) {
    auto report = report_of({reader(1, "node2", 1), reader(2, "node2", 1), reader(3, "node3", 1)});
    for (auto& result : report.results) {
        result.cores = "0";
    }
    warn_of_shared_cores(report, {});
    EXPECT_THAT(report.results[0].warnings, SizeIs(1));
    EXPECT_THAT(report.results[1].warnings, SizeIs(1));
    EXPECT_THAT(report.results[2].warnings, IsEmpty());
    EXPECT_THAT(collected_warnings(report), ElementsAre(StartsWith("ranks 1-2 share 1 core")));
}

TEST(Warnings, OfSharedCoresAreForThoseThatWorkAtTheSameTime) {
    auto report = report_of({reader(1, "node2", 1), reader(2, "node2", 1)});
    for (auto& result : report.results) {
        result.cores = "0";
    }
    Options one_at_a_time;
    one_at_a_time.concurrency = 1;
    warn_of_shared_cores(report, one_at_a_time);
    EXPECT_THAT(collected_warnings(report), IsEmpty());
}

TEST(Warnings, AreSaidOnceWithAllTheirRanks) {
    auto report = report_of({reader(1, "a", 1), reader(2, "b", 1), reader(3, "c", 1)});
    for (auto& result : report.results) {
        result.warnings = {"the clock is coarse"};
    }
    report.results[1].warnings.emplace_back("far from its device");
    EXPECT_THAT(collected_warnings(report),
                ElementsAre("ranks 1-3: the clock is coarse", "rank 2: far from its device"));
}

}  // namespace
}  // namespace rdma_read::app
