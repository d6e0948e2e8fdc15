// What a launcher's environment and the hosts' names may hold: a line each.
#include "fuzz.hpp"
#include "rdma_read/cluster/launch_environment.hpp"
#include "rdma_read/verify/hostlist.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

using namespace rdma_read;

namespace {

constexpr std::array kVariables{"OMPI_COMM_WORLD_RANK",
                                "OMPI_FIRST_RANKS",
                                "OMPI_APP_CTX_NUM_PROCS",
                                "OMPI_NUM_APP_CTX",
                                "PMIX_RANK",
                                "PMI_RANK",
                                "PMI_SIZE",
                                "SLURM_PROCID",
                                "SLURM_NTASKS",
                                "SLURM_NPROCS",
                                "SLURM_STEP_NUM_TASKS",
                                "SLURM_JOB_ID",
                                "SLURM_JOBID",
                                "SLURM_STEP_ID",
                                "SLURM_STEPID",
                                "SLURM_JOB_NODELIST",
                                "SLURM_NODELIST",
                                "SLURM_STEP_NODELIST"};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::vector<std::string> lines(1);
    for (const char c : fuzz::text_of({data, size})) {
        if (c == '\n') {
            lines.emplace_back();
        } else if (c != '\0') {
            lines.back().push_back(c);
        }
    }

    std::map<std::string, std::string> environment;
    for (std::size_t i = 0; i < std::min(lines.size(), kVariables.size()); ++i) {
        if (!lines[i].empty()) {
            environment.emplace(kVariables[i], lines[i]);
        }
    }
    const auto launch = cluster::LaunchEnvironment::from_lookup(
        [&](const char* name) -> std::optional<std::string> {
            const auto found = environment.find(name);
            return found == environment.end() ? std::nullopt : std::optional(found->second);
        });
    fuzz::claim(!launch.rank || *launch.rank >= 0, "a rank is not negative");
    fuzz::claim(!launch.rank || !launch.size || *launch.rank < *launch.size,
                "a rank is below the size");

    const std::string list = verify::hostlist(lines);
    const auto is_of_a_list = [](char c) {
        return verify::is_host_name(std::string("a") + c) || c == '[' || c == ']' || c == ',';
    };
    fuzz::claim(std::ranges::all_of(list, is_of_a_list), "a host list holds nothing but names");
    return 0;
}
