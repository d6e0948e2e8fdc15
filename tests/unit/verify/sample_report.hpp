// A report of a run in which three readers passed, for tests to spoil.
#pragma once

#include "rdma_read/verify/report.hpp"

namespace rdma_read::verify {

inline Result sample_result(std::int32_t reader) {
    Result result;
    result.server_rank = 0;
    result.reader_rank = reader;
    result.server_host = "node1";
    result.reader_host = "node" + std::to_string(reader + 1);
    result.outcome = Outcome::pass;
    result.path = {"rxe0", 1, "10.0.0." + std::to_string(reader + 1), "10.0.0.1", "", 1024, 16, {}};
    result.connect_ms = 3.5;
    result.attempts = 1;
    SizeResult size;
    size.size = 65536;
    size.reads = 1000;
    size.bytes_read = 65536000;
    size.bytes_verified = 65536000;
    size.guard_intact = true;
    size.depth = 16;
    size.latency_us = LatencySummary{10, 12.345, 15, 20.5, 30, 40, 500};
    size.bandwidth_bytes_per_s = 1.2345e9;
    size.reads_per_s = 18837.5;
    size.seconds = 0.05;
    result.sizes = {size};
    return result;
}

inline Report sample_report() {
    Report report;
    report.tool_version = "0.1.0";
    report.run = {0xDE, 0xAD, 0xBE, 0xEF, 0x55, 0x66};
    report.started = "2030-01-02T03:04:05Z";
    report.elapsed_s = 1.5;
    report.ranks = 4;
    report.hosts = {"node1", "node2", "node3", "node4"};
    report.pattern = "star";
    report.options = {{"size", std::vector<std::uint64_t>{65536}},
                      {"iterations", std::uint64_t{1000}},
                      {"timeout", 30.0},
                      {"verify", std::string("full")},
                      {"hugepages", false},
                      {"duration", std::monostate{}}};
    report.mpi = "An MPI 1.0";
    report.servers = {
        {0, "node1", "rxe0", 1, "10.0.0.1", 18515, "Ethernet", 1024, 2.5, 0.01, 1.25, 3, ""}};
    report.results = {sample_result(1), sample_result(2), sample_result(3)};
    return report;
}

/// Reader 2 got one byte wrong.
inline Report corrupt_report() {
    Report report = sample_report();
    Result& result = report.results[1];
    result.outcome = Outcome::corrupt;
    result.phase = "throughput";
    result.error = "1 of 1000 reads brought wrong data";
    result.hint = "run it again with --retest";
    result.sizes[0].bytes_verified -= 65536;
    result.sizes[0].mismatched_reads = 1;
    result.sizes[0].mismatches = {{17, 4113, 1, MismatchKind::bit_flip,
                                   "bit 5 of byte 4113; byte 17 of the read", "throughput"}};
    return report;
}

}  // namespace rdma_read::verify
