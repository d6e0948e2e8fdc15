// Writes a report as JSON for a script.
#include "rdma_read/verify/hostlist.hpp"
#include "rdma_read/verify/report.hpp"

#include <nlohmann/json.hpp>

#include <string_view>
#include <type_traits>

namespace rdma_read::verify {

namespace {

// Keys stay in the order in which they are documented.
using Json = nlohmann::ordered_json;

Json or_null(const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
}

template <typename T>
Json or_null(const std::optional<T>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json rank(std::int32_t value) {
    return value < 0 ? Json(nullptr) : Json(value);
}

template <typename T, typename Convert>
Json array(const std::vector<T>& values, Convert convert) {
    Json list = Json::array();
    for (const T& value : values) {
        list.push_back(convert(value));
    }
    return list;
}

Json option(const OptionValue& value) {
    return std::visit(
        [](const auto& given) {
            if constexpr (std::is_same_v<std::decay_t<decltype(given)>, std::monostate>) {
                return Json(nullptr);
            } else {
                return Json(given);
            }
        },
        value);
}

Json options(const OptionMap& map) {
    Json object = Json::object();
    for (const auto& [name, value] : map) {
        object[name] = option(value);
    }
    return object;
}

Json slurm(const std::optional<Slurm>& job) {
    if (!job) {
        return nullptr;
    }
    return {{"job_id", or_null(job->job_id)},
            {"step_id", or_null(job->step_id)},
            {"nodelist", or_null(job->nodelist)}};
}

Json server(const ServerInfo& info) {
    return {{"rank", rank(info.rank)},
            {"host", or_null(info.host)},
            {"device", or_null(info.device)},
            {"port_num", or_null(info.port_num)},
            {"address", or_null(info.address)},
            {"port", info.port == 0 ? Json(nullptr) : Json(info.port)},
            {"link_layer", or_null(info.link_layer)},
            {"mtu", or_null(info.mtu)},
            {"rate_gbps", or_null(info.rate_gbps)},
            {"cpu_s_while_serving", or_null(info.cpu_s_while_serving)},
            {"serving_s", or_null(info.serving_s)},
            {"connections", info.connections}};
}

Json path(const Path& way) {
    return {{"local_device", or_null(way.local_device)},
            {"local_port_num", or_null(way.local_port_num)},
            {"local_address", or_null(way.local_address)},
            {"remote_address", or_null(way.remote_address)},
            {"gid", or_null(way.gid)},
            {"mtu", or_null(way.mtu)},
            {"depth_negotiated", or_null(way.depth_negotiated)},
            {"rate_gbps", or_null(way.rate_gbps)}};
}

Json mismatch(const Mismatch& wrong) {
    // Reads are numbered in their phase, so the number alone would name two of them.
    const std::string detail =
        wrong.phase.empty() ? wrong.detail : wrong.detail + "; " + wrong.phase + " phase";
    return {{"read", wrong.read},
            {"offset", wrong.offset},
            {"length", wrong.length},
            {"kind", to_string(wrong.kind)},
            {"detail", detail}};
}

Json latency(const std::optional<LatencySummary>& summary) {
    if (!summary) {
        return nullptr;
    }
    return {{"min", summary->min},        {"p50", summary->p50},   {"p90", summary->p90},
            {"p99", summary->p99},        {"p999", summary->p999}, {"max", summary->max},
            {"samples", summary->samples}};
}

Json bound(const std::optional<Bound>& found) {
    if (!found) {
        return nullptr;
    }
    return {{"kind", to_string(found->kind)},
            {"bytes_per_s", or_null(found->bytes_per_s)},
            {"used", or_null(found->used)},
            {"text", found->text}};
}

Json size(const SizeResult& reads) {
    return {{"size", reads.size},
            {"reads", reads.reads},
            {"bytes_read", reads.bytes_read},
            {"bytes_verified", reads.bytes_verified},
            {"mismatches", array(reads.mismatches, mismatch)},
            {"guard_intact", reads.guard_intact},
            {"latency_us", latency(reads.latency_us)},
            {"bandwidth_bytes_per_s", or_null(reads.bandwidth_bytes_per_s)},
            {"reads_per_s", or_null(reads.reads_per_s)},
            {"seconds", reads.seconds > 0 ? Json(reads.seconds) : Json(nullptr)},
            {"depth", reads.depth},
            {"checking_s", or_null(reads.checking_s)},
            {"bound", bound(reads.bound)}};
}

Json counters(const std::optional<std::map<std::string, std::int64_t>>& deltas) {
    if (!deltas) {
        return nullptr;
    }
    Json object = Json::object();
    for (const auto& [name, delta] : *deltas) {
        object[name] = delta;
    }
    return object;
}

Json self_test(const SelfTest& test) {
    return {{"planted_error_found", or_null(test.planted_error_found)},
            {"wrong_key_refused", or_null(test.wrong_key_refused)},
            {"out_of_bounds_refused", or_null(test.out_of_bounds_refused)}};
}

// Of a reader that proved all there is nothing more to say.
Json failed_self_test(const std::optional<SelfTest>& test) {
    return !test || test->proved() ? Json(nullptr) : self_test(*test);
}

Json result(const Result& reader, const Report& report) {
    return {{"server_rank", rank(reader.server_rank)},
            {"reader_rank", rank(reader.reader_rank)},
            {"server_host", or_null(reader.server_host)},
            {"reader_host", or_null(reader.reader_host)},
            {"outcome", to_string(weighed_outcome(reader, report))},
            {"phase", or_null(reader.phase)},
            {"error", or_null(reader.error)},
            {"hint", or_null(reader.hint)},
            {"confirmed", or_null(reader.confirmed)},
            {"path", path(reader.path)},
            {"connect_ms", or_null(reader.connect_ms)},
            {"attempts", reader.attempts},
            {"attempt_errors", reader.attempt_errors},
            {"read_started", or_null(reader.read_started)},
            {"read_ended", or_null(reader.read_ended)},
            {"sizes", array(reader.sizes, size)},
            {"counters", counters(reader.counters)},
            {"degraded", or_null(reader.degraded())},
            {"self_test", failed_self_test(reader.self_test)},
            {"clock_ns", or_null(reader.clock_ns)},
            {"notes", reader.notes},
            {"warnings", reader.warnings}};
}

Json verdict(const Verdict& sum) {
    return {{"outcome", sum.exit_code == kExitPass ? "PASS" : "FAIL"},
            {"exit_code", sum.exit_code},
            {"expected", sum.expected},
            {"passed", sum.passed},
            {"failed", sum.failed},
            {"degraded", sum.degraded},
            {"bytes_verified", sum.bytes_verified},
            {"mismatches", sum.mismatches},
            {"bad_hosts", sum.bad_hosts},
            {"bad_hostlist", hostlist(sum.bad_hosts)}};
}

}  // namespace

std::string to_json(const Report& report) {
    const Json json{
        {"schema", "rdma-read-report/1"},
        {"tool_version", or_null(report.tool_version)},
        {"run_id", short_name(report.run)},
        {"started", or_null(report.started)},
        {"elapsed_s", report.elapsed_s},
        {"interrupted", or_null(report.interrupted)},
        {"ranks", report.ranks},
        {"hosts", report.hosts},
        {"pattern", or_null(report.pattern)},
        {"options", options(report.options)},
        {"mpi", or_null(report.mpi)},
        {"slurm", slurm(report.slurm)},
        {"servers", array(report.servers, server)},
        {"self_test", report.self_test ? self_test(joint_self_test(report)) : Json(nullptr)},
        {"results",
         array(report.results, [&](const Result& reader) { return result(reader, report); })},
        {"verdict", verdict(judge(report))}};
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace rdma_read::verify
