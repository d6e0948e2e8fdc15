// The place of a process in its job, told from variables alone.
#include "rdma_read/cluster/launch_environment.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <string>

namespace rdma_read::cluster {
namespace {

using ::testing::Eq;
using ::testing::Optional;

LaunchEnvironment from(const std::map<std::string, std::string>& variables) {
    return LaunchEnvironment::from_lookup([&](const char* name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
}

TEST(LaunchEnvironment, KnowsNothingWithoutALauncherAndSpeaks) {
    const auto environment = from({});
    EXPECT_EQ(environment.rank, std::nullopt);
    EXPECT_EQ(environment.size, std::nullopt);
    EXPECT_EQ(environment.slurm_tasks, std::nullopt);
    EXPECT_EQ(environment.slurm_job_id, "");
    EXPECT_TRUE(environment.speaks);
}

TEST(LaunchEnvironment, TakesRankAndSizeFromOpenMpi) {
    const auto environment = from({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
    EXPECT_THAT(environment.rank, Optional(2));
    EXPECT_THAT(environment.size, Optional(4));
    EXPECT_FALSE(environment.speaks);
}

TEST(LaunchEnvironment, OnlyRankZeroOfOneProgramSpeaks) {
    for (int rank = 0; rank < 4; ++rank) {
        const auto environment = from({{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
                                       {"OMPI_COMM_WORLD_SIZE", "4"},
                                       {"OMPI_NUM_APP_CTX", "1"},
                                       {"OMPI_FIRST_RANKS", "0"}});
        EXPECT_EQ(environment.speaks, rank == 0) << rank;
    }
}

TEST(LaunchEnvironment, TheFirstRankOfEachProgramOfAnMpmdStartSpeaks) {
    for (int rank = 0; rank < 6; ++rank) {
        const auto environment = from({{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
                                       {"OMPI_COMM_WORLD_SIZE", "6"},
                                       {"OMPI_NUM_APP_CTX", "3"},
                                       {"OMPI_FIRST_RANKS", "0 2 5"}});
        EXPECT_EQ(environment.speaks, rank == 0 || rank == 2 || rank == 5) << rank;
    }
}

TEST(LaunchEnvironment, AListOfFirstRanksThatCannotBeIsIgnored) {
    for (const auto* const list :
         {"0 2 5", "0", "", "0 x", "0 -2", "0,2", "0 2x", "2 2", "2 0", "1 2", "0 4", "0 0"}) {
        const auto environment = from({{"OMPI_COMM_WORLD_RANK", "2"},
                                       {"OMPI_COMM_WORLD_SIZE", "4"},
                                       {"OMPI_NUM_APP_CTX", "2"},
                                       {"OMPI_FIRST_RANKS", list}});
        EXPECT_FALSE(environment.speaks) << list;
    }
}

TEST(LaunchEnvironment, TheSizesOfTheProgramsTellTheirFirstRanksWhereOpenMpiDoesNot) {
    for (int rank = 0; rank < 6; ++rank) {
        const auto environment = from({{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
                                       {"OMPI_COMM_WORLD_SIZE", "6"},
                                       {"OMPI_NUM_APP_CTX", "3"},
                                       {"OMPI_FIRST_RANKS", "0 0 0"},
                                       {"OMPI_APP_CTX_NUM_PROCS", "2 3 1"}});
        EXPECT_EQ(environment.speaks, rank == 0 || rank == 2 || rank == 5) << rank;
    }
}

TEST(LaunchEnvironment, SizesOfTheProgramsThatDoNotAddUpAreIgnored) {
    for (const auto* const list : {"2", "2 3", "4 0", "2 2 2", "2147483647 2147483647", "x 2"}) {
        const auto environment = from({{"OMPI_COMM_WORLD_RANK", "2"},
                                       {"OMPI_COMM_WORLD_SIZE", "4"},
                                       {"OMPI_NUM_APP_CTX", "2"},
                                       {"OMPI_APP_CTX_NUM_PROCS", list}});
        EXPECT_FALSE(environment.speaks) << list;
    }
}

TEST(LaunchEnvironment, AMalformedRankIsUnknownAndSpeaks) {
    for (const auto* const text : {"", "x", "-1", "+1", "1x", " 1", "1 ", "99999999999999999999",
                                   "2147483648", "0x1", "1.0"}) {
        const auto environment = from({{"OMPI_COMM_WORLD_RANK", text}});
        EXPECT_EQ(environment.rank, std::nullopt) << '\'' << text << '\'';
        EXPECT_TRUE(environment.speaks) << '\'' << text << '\'';
    }
}

TEST(LaunchEnvironment, ARankThatIsNotBelowTheSizeIsUnknown) {
    const auto environment = from({{"OMPI_COMM_WORLD_RANK", "4"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
    EXPECT_EQ(environment.rank, std::nullopt);
    EXPECT_EQ(environment.size, std::nullopt);
    EXPECT_TRUE(environment.speaks);
}

TEST(LaunchEnvironment, ASizeOfZeroIsUnknown) {
    EXPECT_EQ(from({{"PMI_RANK", "0"}, {"PMI_SIZE", "0"}}).size, std::nullopt);
}

TEST(LaunchEnvironment, MpirunInsideASlurmJobIsBelievedBeforeSlurm) {
    const auto environment = from({{"OMPI_COMM_WORLD_RANK", "3"},
                                   {"OMPI_COMM_WORLD_SIZE", "4"},
                                   {"SLURM_PROCID", "0"},
                                   {"SLURM_STEP_NUM_TASKS", "2"}});
    EXPECT_THAT(environment.rank, Optional(3));
    EXPECT_THAT(environment.size, Optional(4));
    EXPECT_FALSE(environment.speaks);
}

TEST(LaunchEnvironment, UnderSrunWithPmixTheStepGivesTheSize) {
    const auto environment =
        from({{"PMIX_RANK", "1"}, {"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}});
    EXPECT_THAT(environment.rank, Optional(1));
    EXPECT_THAT(environment.size, Optional(8));
    EXPECT_FALSE(environment.speaks);
}

TEST(LaunchEnvironment, KnowsThePmiOfMpich) {
    const auto environment = from({{"PMI_RANK", "5"}, {"PMI_SIZE", "6"}});
    EXPECT_THAT(environment.rank, Optional(5));
    EXPECT_THAT(environment.size, Optional(6));
}

TEST(LaunchEnvironment, UnderSrunWithoutAnyPmiOneTaskSpeaks) {
    const std::map<std::string, std::string> step{{"SLURM_STEP_NUM_TASKS", "4"},
                                                  {"SLURM_NTASKS", "4"}};
    for (int rank = 0; rank < 4; ++rank) {
        auto variables = step;
        variables["SLURM_PROCID"] = std::to_string(rank);
        EXPECT_EQ(from(variables).speaks, rank == 0) << rank;
        EXPECT_THAT(from(variables).slurm_tasks, Optional(4));
    }
}

TEST(LaunchEnvironment, ATaskOfAStepHasNoPmiIfNoneIsAnnounced) {
    const std::map<std::string, std::string> step{{"SLURM_STEP_NUM_TASKS", "4"},
                                                  {"SLURM_PROCID", "1"}};
    EXPECT_TRUE(from(step).without_pmi);
    for (const auto* const name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
        auto variables = step;
        variables[name] = "1";
        EXPECT_FALSE(from(variables).without_pmi) << name;
    }
}

TEST(LaunchEnvironment, WhatIsNoTaskOfAStepNeedsNoPmi) {
    EXPECT_FALSE(from({}).without_pmi);
    // A batch script, and what it starts itself.
    EXPECT_FALSE(from({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}).without_pmi);
}

TEST(LaunchEnvironment, TellsTheSlurmJobStepAndNodes) {
    const auto environment = from({{"SLURM_JOB_ID", "4711"},
                                   {"SLURM_STEP_ID", "3"},
                                   {"SLURM_JOB_NODELIST", "node[1-4]"},
                                   {"SLURM_STEP_NODELIST", "node[1-2]"},
                                   {"SLURM_NTASKS", "16"}});
    EXPECT_EQ(environment.slurm_job_id, "4711");
    EXPECT_EQ(environment.slurm_step_id, "3");
    EXPECT_EQ(environment.slurm_nodelist, "node[1-2]");
    EXPECT_THAT(environment.slurm_tasks, Optional(16));
}

TEST(LaunchEnvironment, ReadsTheEnvironmentOfThisProcess) {
    ASSERT_EQ(setenv("SLURM_JOB_ID", "12345", 1), 0);
    EXPECT_THAT(LaunchEnvironment::from_environment().slurm_job_id, Eq("12345"));
    ASSERT_EQ(unsetenv("SLURM_JOB_ID"), 0);
}

}  // namespace
}  // namespace rdma_read::cluster
