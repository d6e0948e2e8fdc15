// What the launcher's environment says about this process before MPI is initialised.
#include "rdma_read/cluster/launch_environment.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

namespace rdma_read::cluster {
namespace {

using Lookup = LaunchEnvironment::Lookup;

std::optional<int> to_number(std::string_view text, int least) {
    int number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc{} || rest != end || number < least) {
        return std::nullopt;
    }
    return number;
}

std::optional<int> number(const Lookup& lookup, const char* name, int least) {
    const auto text = lookup(name);
    return text ? to_number(*text, least) : std::nullopt;
}

/// The first of the variables that is set and not empty.
std::string first_text(const Lookup& lookup, std::initializer_list<const char*> names) {
    for (const char* const name : names) {
        if (auto text = lookup(name); text && !text->empty()) {
            return *std::move(text);
        }
    }
    return {};
}

std::optional<int> first_number(const Lookup& lookup, std::initializer_list<const char*> names,
                                int least) {
    for (const char* const name : names) {
        if (const auto found = number(lookup, name, least)) {
            return found;
        }
    }
    return std::nullopt;
}

/// The numbers of a list separated by spaces; nothing if one is malformed or below `least`.
std::vector<int> number_list(const Lookup& lookup, const char* name, int least) {
    const auto text = lookup(name);
    std::vector<int> numbers;
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    while (!rest.empty()) {
        const auto space = rest.find(' ');
        const auto word = rest.substr(0, space);
        rest = space == std::string_view::npos ? std::string_view{} : rest.substr(space + 1);
        if (word.empty()) {
            continue;
        }
        const auto found = to_number(word, least);
        if (!found) {
            return {};
        }
        numbers.push_back(*found);
    }
    return numbers;
}

/// The first rank of each program of an MPMD start under Open MPI; empty if it did not say, or said
/// what cannot be.
std::vector<int> first_ranks(const Lookup& lookup) {
    const auto programs = number(lookup, "OMPI_NUM_APP_CTX", 1);
    const auto size = number(lookup, "OMPI_COMM_WORLD_SIZE", 1);
    if (!programs || !size) {
        return {};
    }
    const auto count = static_cast<std::size_t>(*programs);
    auto firsts = number_list(lookup, "OMPI_FIRST_RANKS", 0);
    const bool rises =
        std::adjacent_find(firsts.begin(), firsts.end(), std::greater_equal<>()) == firsts.end();
    if (firsts.size() == count && rises && firsts.front() == 0 && firsts.back() < *size) {
        return firsts;
    }
    // Open MPI 4.1 says "0 0" for two programs; but ranks are numbered program by program.
    const auto processes = number_list(lookup, "OMPI_APP_CTX_NUM_PROCS", 1);
    if (processes.size() != count
        || std::accumulate(processes.begin(), processes.end(), std::int64_t{0}) != *size) {
        return {};
    }
    firsts.resize(count);
    std::exclusive_scan(processes.begin(), processes.end(), firsts.begin(), 0);
    return firsts;
}

/// Rank and size as one launcher tells them.
struct Place {
    std::optional<int> rank;
    std::optional<int> size;
};

Place find_place(const Lookup& lookup, std::optional<int> step_tasks) {
    if (const auto rank = number(lookup, "OMPI_COMM_WORLD_RANK", 0)) {
        return {rank, number(lookup, "OMPI_COMM_WORLD_SIZE", 1)};
    }
    if (const auto rank = number(lookup, "PMIX_RANK", 0)) {
        return {rank, step_tasks};
    }
    if (const auto rank = number(lookup, "PMI_RANK", 0)) {
        return {rank, number(lookup, "PMI_SIZE", 1)};
    }
    return {number(lookup, "SLURM_PROCID", 0), step_tasks};
}

}  // namespace

LaunchEnvironment LaunchEnvironment::from_lookup(const Lookup& lookup) {
    LaunchEnvironment environment;
    const auto step_tasks = number(lookup, "SLURM_STEP_NUM_TASKS", 1);
    const Place place = find_place(lookup, step_tasks);
    const bool contradicts = place.rank && place.size && *place.rank >= *place.size;
    if (!contradicts) {
        environment.rank = place.rank;
        environment.size = place.size;
    }
    if (environment.rank) {
        environment.speaks = *environment.rank == 0;
        for (const int first : first_ranks(lookup)) {
            environment.speaks = environment.speaks || *environment.rank == first;
        }
    }
    const auto announced = [&](const char* name) { return lookup(name).has_value(); };
    // A batch script has SLURM_PROCID too, but is no step that srun has started.
    environment.without_pmi = step_tasks && announced("SLURM_PROCID")
                              && !announced("OMPI_COMM_WORLD_RANK") && !announced("PMIX_RANK")
                              && !announced("PMI_RANK");
    environment.slurm_tasks =
        first_number(lookup, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"}, 1);
    environment.slurm_job_id = first_text(lookup, {"SLURM_JOB_ID", "SLURM_JOBID"});
    environment.slurm_step_id = first_text(lookup, {"SLURM_STEP_ID", "SLURM_STEPID"});
    environment.slurm_nodelist =
        first_text(lookup, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
    return environment;
}

LaunchEnvironment LaunchEnvironment::from_environment() {
    return from_lookup([](const char* name) -> std::optional<std::string> {
        const char* const text = std::getenv(name);
        return text == nullptr ? std::nullopt : std::optional<std::string>(text);
    });
}

}  // namespace rdma_read::cluster
