// Reads counters out of sysfs.
#include "app/port_counters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace rdma_read::app {

namespace {

// As the drivers name them in the kernel's drivers/infiniband.
constexpr auto kOfTheDriver = std::to_array<std::string_view>({
    // sw/rxe, and with the same meaning others
    "duplicate_request",
    "out_of_seq_request",
    "rcvd_rnr_err",
    "send_rnr_err",
    "rcvd_seq_err",
    "completer_retry_err",
    "retry_exceeded_err",
    "retry_rnr_exceeded_err",
    "send_err",
    "link_downed",
    // hw/mlx5
    "out_of_buffer",
    "out_of_sequence",
    "rnr_nak_retry_err",
    "packet_seq_err",
    "implied_nak_seq_err",
    "local_ack_timeout_err",
    "roce_adp_retrans",
    "roce_adp_retrans_to",
    "rx_icrc_encapsulated",
    // hw/bnxt_re
    "to_retransmits",
    "seq_err_naks_rcvd",
    "max_retry_exceeded",
    "rnr_naks_rcvd",
    "missing_resp",
    "dup_req",
    "oos_drop_count",
    "recoverable_errors",
    "rx_roce_errors",
    "rx_roce_discards",
    "tx_roce_errors",
    "tx_roce_discards",
    // hw/irdma
    "ip4InDiscards",
    "ip4InTruncPkts",
    "ip6InDiscards",
    "ip6InTruncPkts",
    "tcpRetransSegs",
    "tcpInOptErrors",
    "tcpInProtoErrors",
    "rxVlanErrors",
    // hw/hns
    "rx_err_pkt",
    "tx_err_pkt",
});

// InfiniBand Architecture Specification, PortCounters.
constexpr auto kOfThePort = std::to_array<std::string_view>({
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "port_xmit_discards",
    "port_xmit_constraint_errors",
    "port_rcv_constraint_errors",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
});

// Only what is there is opened: most names are those of other drivers' counters.
template <class Names>
void add(PortCounters& counters, const std::string& folder, const Names& names) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        std::string name = entry->path().filename();
        std::uint64_t value = 0;
        if (std::ranges::find(names, name) != names.end()
            && std::ifstream(entry->path()) >> value) {
            counters.try_emplace(std::move(name), value);
        }
    }
}

}  // namespace

std::optional<PortCounters> trouble_counters(const std::string& device, std::uint32_t port_num,
                                             const std::string& sysfs) {
    const std::string port =
        fmt::format("{}/class/infiniband/{}/ports/{}", sysfs, device, port_num);
    PortCounters counters;
    add(counters, port + "/hw_counters", kOfTheDriver);
    add(counters, port + "/counters", kOfThePort);
    return counters.empty() ? std::nullopt : std::optional(std::move(counters));
}

std::optional<std::map<std::string, std::int64_t>> increase(
    const std::optional<PortCounters>& before, const std::optional<PortCounters>& after) {
    if (!before || !after) {
        return std::nullopt;
    }
    std::map<std::string, std::int64_t> increased;
    bool all_known = before->size() == after->size();
    for (const auto& [name, value] : *after) {
        const auto earlier = before->find(name);
        if (earlier == before->end() || value < earlier->second) {
            all_known = false;
        } else if (value > earlier->second) {
            increased.emplace(name, static_cast<std::int64_t>(value - earlier->second));
        }
    }
    return increased.empty() && !all_known ? std::nullopt : std::optional(std::move(increased));
}

}  // namespace rdma_read::app
