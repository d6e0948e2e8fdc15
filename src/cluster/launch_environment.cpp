// What the launcher's environment says about this process before MPI is initialised.
#include "rdma_read/cluster/launch_environment.hpp"

#include <charconv>
#include <cstdlib>
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

/// The first rank of each program of an MPMD start; empty if Open MPI did not say, or not clearly.
std::vector<int> first_ranks(const Lookup& lookup) {
    const auto programs = number(lookup, "OMPI_NUM_APP_CTX", 1);
    const auto text = lookup("OMPI_FIRST_RANKS");
    if (!programs || !text) {
        return {};
    }
    std::vector<int> ranks;
    std::string_view rest = *text;
    while (!rest.empty()) {
        const auto space = rest.find(' ');
        const auto word = rest.substr(0, space);
        rest = space == std::string_view::npos ? std::string_view{} : rest.substr(space + 1);
        if (word.empty()) {
            continue;
        }
        const auto rank = to_number(word, 0);
        if (!rank) {
            return {};
        }
        ranks.push_back(*rank);
    }
    if (ranks.size() != static_cast<std::size_t>(*programs)) {
        return {};
    }
    return ranks;
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
