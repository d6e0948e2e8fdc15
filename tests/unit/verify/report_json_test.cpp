// Claims about the JSON report.
#include "sample_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <string>
#include <vector>

namespace rdma_read::verify {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> keys(const Json& object) {
    std::vector<std::string> names;
    for (const auto& item : object.items()) {
        names.push_back(item.key());
    }
    return names;
}

TEST(JsonReport, HasEveryKeyInItsDocumentedOrder) {
    const Json json = Json::parse(to_json(corrupt_report()));
    EXPECT_THAT(keys(json),
                ElementsAre("schema", "tool_version", "run_id", "started", "elapsed_s",
                            "interrupted", "ranks", "hosts", "pattern", "options", "mpi", "slurm",
                            "servers", "self_test", "results", "verdict"));
    EXPECT_THAT(keys(json["servers"][0]),
                ElementsAre("rank", "host", "device", "port_num", "address", "port", "link_layer",
                            "mtu", "rate_gbps", "cpu_s_while_serving", "serving_s", "connections"));
    EXPECT_THAT(keys(json["results"][1]),
                ElementsAre("server_rank", "reader_rank", "server_host", "reader_host", "outcome",
                            "phase", "error", "hint", "confirmed", "path", "connect_ms", "attempts",
                            "attempt_errors", "read_started", "read_ended", "sizes", "counters",
                            "degraded", "self_test", "clock_ns", "notes", "warnings"));
    EXPECT_THAT(keys(json["results"][1]["path"]),
                ElementsAre("local_device", "local_port_num", "local_address", "remote_address",
                            "gid", "mtu", "depth_negotiated", "rate_gbps"));
    const Json& size = json["results"][1]["sizes"][0];
    EXPECT_THAT(keys(size),
                ElementsAre("size", "reads", "bytes_read", "bytes_verified", "mismatches",
                            "guard_intact", "latency_us", "bandwidth_bytes_per_s", "reads_per_s",
                            "seconds", "depth", "checking_s", "bound"));
    EXPECT_THAT(keys(size["mismatches"][0]),
                ElementsAre("read", "offset", "length", "kind", "detail"));
    EXPECT_THAT(keys(size["latency_us"]),
                ElementsAre("min", "p50", "p90", "p99", "p999", "max", "samples"));
    EXPECT_THAT(keys(json["verdict"]),
                ElementsAre("outcome", "exit_code", "expected", "passed", "failed", "degraded",
                            "bytes_verified", "mismatches", "bad_hosts", "bad_hostlist"));
}

TEST(JsonReport, HasTheSelfTestOfAllReadersAndOfThoseThatFailedIt) {
    Report report = sample_report();
    EXPECT_TRUE(Json::parse(to_json(report))["self_test"].is_null());
    report.self_test = true;
    const Json unknown = Json::parse(to_json(report))["self_test"];
    EXPECT_THAT(keys(unknown),
                ElementsAre("planted_error_found", "wrong_key_refused", "out_of_bounds_refused"));
    EXPECT_TRUE(unknown["planted_error_found"].is_null());
    report.results[0].self_test = SelfTest{true, true, true};
    report.results[1].self_test = SelfTest{true, false, {}};
    const Json json = Json::parse(to_json(report));
    EXPECT_EQ(json["self_test"]["planted_error_found"], true);
    EXPECT_EQ(json["self_test"]["wrong_key_refused"], false);
    EXPECT_EQ(json["self_test"]["out_of_bounds_refused"], true);
    EXPECT_TRUE(json["results"][0]["self_test"].is_null());
    EXPECT_EQ(json["results"][1]["self_test"]["wrong_key_refused"], false);
    EXPECT_TRUE(json["results"][1]["self_test"]["out_of_bounds_refused"].is_null());
    EXPECT_TRUE(json["results"][2]["self_test"].is_null());
}

TEST(JsonReport, TellsNoTroubleFromTroubleThatIsNotKnown) {
    Report report = sample_report();
    report.results[0].counters.emplace();
    report.results[1].counters = std::map<std::string, std::int64_t>{{"out_of_sequence", 3}};
    report.results[1].attempts = 3;
    report.results[1].attempt_errors = {"busy", "nobody listens"};
    const Json json = Json::parse(to_json(report));
    const Json& results = json["results"];
    EXPECT_EQ(results[0]["degraded"], false);
    EXPECT_EQ(results[0]["counters"], Json::object());
    EXPECT_TRUE(results[0]["attempt_errors"].empty());
    EXPECT_EQ(results[1]["degraded"], true);
    EXPECT_EQ(results[1]["counters"]["out_of_sequence"], 3);
    EXPECT_THAT(results[1]["attempt_errors"], ElementsAre("busy", "nobody listens"));
    EXPECT_TRUE(results[2]["degraded"].is_null());
    EXPECT_TRUE(results[2]["counters"].is_null());
    EXPECT_EQ(json["verdict"]["degraded"], 1);
    EXPECT_EQ(json["verdict"]["outcome"], "PASS");
}

TEST(JsonReport, HasTheValuesOfTheReport) {
    const Json json = Json::parse(to_json(corrupt_report()));
    EXPECT_EQ(json["schema"], "rdma-read-report/1");
    EXPECT_EQ(json["run_id"], "deadbeef");
    EXPECT_EQ(json["ranks"], 4);
    EXPECT_EQ(json["hosts"], Json({"node1", "node2", "node3", "node4"}));
    EXPECT_EQ(json["options"]["size"], Json::array({65536}));
    EXPECT_EQ(json["options"]["timeout"], 30.0);
    EXPECT_EQ(json["options"]["hugepages"], false);
    EXPECT_TRUE(json["options"]["duration"].is_null());
    EXPECT_EQ(json["servers"][0]["port"], 18515);
    const Json& result = json["results"][1];
    EXPECT_EQ(result["outcome"], "CORRUPT");
    EXPECT_EQ(result["path"]["depth_negotiated"], 16);
    EXPECT_EQ(result["sizes"][0]["mismatches"][0]["kind"], "bit flip");
    EXPECT_EQ(result["sizes"][0]["mismatches"][0]["offset"], 4113);
    EXPECT_EQ(result["sizes"][0]["mismatches"][0]["detail"],
              "bit 5 of byte 4113; byte 17 of the read; throughput phase");
    EXPECT_EQ(result["sizes"][0]["latency_us"]["p999"], 30.0);
    EXPECT_EQ(json["verdict"]["outcome"], "FAIL");
    EXPECT_EQ(json["verdict"]["exit_code"], 1);
    EXPECT_EQ(json["verdict"]["mismatches"], 1);
    EXPECT_EQ(json["verdict"]["bad_hosts"], Json::array({"node3"}));
    EXPECT_EQ(json["verdict"]["bad_hostlist"], "node3");
    const Json pass = Json::parse(to_json(sample_report()));
    EXPECT_EQ(pass["verdict"]["outcome"], "PASS");
    EXPECT_EQ(pass["verdict"]["bad_hostlist"], "");
}

TEST(JsonReport, HasNullForWhatIsNotKnown) {
    Report report;
    report.results.emplace_back();
    report.results[0].sizes.emplace_back();
    report.servers.emplace_back();
    report.slurm.emplace();
    const Json json = Json::parse(to_json(report));
    for (const char* const key : {"tool_version", "started", "pattern", "mpi", "self_test"}) {
        EXPECT_TRUE(json[key].is_null()) << key;
    }
    EXPECT_EQ(json["options"], Json::object());
    for (const auto& item : json["slurm"].items()) {
        EXPECT_TRUE(item.value().is_null()) << item.key();
    }
    for (const auto& item : json["servers"][0].items()) {
        EXPECT_TRUE(item.value().is_null() || item.key() == "connections") << item.key();
    }
    for (const auto& item : json["results"][0]["path"].items()) {
        EXPECT_TRUE(item.value().is_null()) << item.key();
    }
    for (const char* const key :
         {"server_rank", "reader_rank", "server_host", "reader_host", "phase", "error", "hint",
          "confirmed", "connect_ms", "read_started", "read_ended"}) {
        EXPECT_TRUE(json["results"][0][key].is_null()) << key;
    }
    EXPECT_EQ(json["results"][0]["outcome"], "NOT_RUN");
    EXPECT_TRUE(json["results"][0]["counters"].is_null());
    for (const char* const key : {"latency_us", "bandwidth_bytes_per_s", "reads_per_s"}) {
        EXPECT_TRUE(json["results"][0]["sizes"][0][key].is_null()) << key;
    }
}

TEST(JsonReport, OfAnEmptyRunIsStillWhole) {
    const Json json = Json::parse(to_json(Report{}));
    EXPECT_EQ(json["results"], Json::array());
    EXPECT_EQ(json["hosts"], Json::array());
    EXPECT_TRUE(json["slurm"].is_null());
    EXPECT_EQ(json["verdict"]["exit_code"], 3);
    EXPECT_EQ(json["verdict"]["outcome"], "FAIL");
}

TEST(JsonReport, ShowsTheJobOfSlurm) {
    Report report = sample_report();
    report.slurm = Slurm{"17", "0", "node[1-4]"};
    EXPECT_EQ(Json::parse(to_json(report))["slurm"],
              Json({{"job_id", "17"}, {"step_id", "0"}, {"nodelist", "node[1-4]"}}));
}

TEST(JsonReport, TakesTextThatIsNotUtf8) {
    Report report = corrupt_report();
    report.results[1].error = "\xFF\xFE";
    report.results[1].counters = std::map<std::string, std::int64_t>{{"\xC3", 1}};
    report.hosts[0] = "\x80";
    const Json json = Json::parse(to_json(report));
    EXPECT_EQ(json["results"][1]["error"], "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(JsonReport, HasNullForANumberThatIsNone) {
    Report report = sample_report();
    report.results[0].connect_ms = std::numeric_limits<double>::quiet_NaN();
    report.results[0].sizes[0].seconds = std::numeric_limits<double>::infinity();
    const Json json = Json::parse(to_json(report));
    EXPECT_TRUE(json["results"][0]["connect_ms"].is_null());
    EXPECT_TRUE(json["results"][0]["sizes"][0]["seconds"].is_null());
}

TEST(JsonReport, NeverHoldsTheWholeRunId) {
    EXPECT_THAT(to_json(sample_report()), Not(HasSubstr("deadbeef55")));
}

TEST(JsonReport, NeverHasAPassThatIsNotProven) {
    Report report = sample_report();
    report.results[0].sizes[0].bytes_verified = 0;
    EXPECT_EQ(Json::parse(to_json(report))["results"][0]["outcome"], "READ_FAILED");
}

TEST(JsonReport, EndsWithANewline) {
    EXPECT_EQ(to_json(Report{}).back(), '\n');
}

}  // namespace
}  // namespace rdma_read::verify
