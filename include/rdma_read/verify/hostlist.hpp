// Names of hosts written short, as Slurm's commands take them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rdma_read::verify {

/// Whether `name` can be a host's: letters, digits, '.', '_' and '-', not '-' first. Other
/// characters have a meaning in a hostlist, or are not what they seem.
[[nodiscard]] bool is_host_name(std::string_view name) noexcept;

/// `hosts` in Slurm's hostlist form (scontrol(1), "show hostlist"), each once, in the order of
/// prefix and number: "login1,node[1-3,7]"; empty for none.
///
/// Digits at the end of a name are its number, earlier ones belong to its prefix. Zero padding is
/// kept: "node[08-10]" is node08, node09 and node10. Padded numbers of different widths, which do
/// not expand from one bracket everywhere, get brackets of their own. What is no host name is left
/// out, so that the list never names a host that was not given.
[[nodiscard]] std::string hostlist(std::span<const std::string> hosts);

}  // namespace rdma_read::verify
