// What the launcher's environment says about this process before MPI is initialised.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace rdma_read::cluster {

/// The place of this process in the job as told by environment variables. MPI_Init takes about a
/// second per rank and opens devices, so whatever can be said without it (a usage error, --help) is
/// said without it, once, by the process that `speaks`.
///
/// The variables are hints from outside: what is malformed, negative or contradicts itself
/// (a rank that is not below the size) counts as unknown.
struct LaunchEnvironment {
    /// Looks one variable up; nullopt when it is unset.
    using Lookup = std::function<std::optional<std::string>(const char* name)>;

    /// The rank, from the first of OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK, SLURM_PROCID that is
    /// well-formed. The inner launcher comes first: mpirun inside a Slurm job inherits
    /// SLURM_PROCID.
    std::optional<int> rank;
    /// The number of ranks according to the same launcher; PMIx names none of its own, there the
    /// size of the Slurm step is taken.
    std::optional<int> size;
    /// True for exactly one process of each program: under Open MPI the first rank of each program
    /// of an `mpirun a : b` start (told by OMPI_FIRST_RANKS, or OMPI_APP_CTX_NUM_PROCS where that
    /// is wrong), else rank 0. A process whose rank is unknown speaks: to hear an error twice is
    /// better than not at all. Slurm does not tell the programs of `srun --multi-prog` apart.
    bool speaks = true;
    /// The tasks of the Slurm step, or of the job where no step is known. More than one beside a
    /// single MPI rank means: started without a PMI.
    std::optional<int> slurm_tasks;
    /// True for a task of a Slurm step that no PMI was announced to, neither PMIx nor PMI-1 or 2.
    /// Open MPI ends such a process in MPI_Init; of other libraries some find their way all the
    /// same.
    bool without_pmi = false;
    std::string slurm_job_id;    ///< Empty outside Slurm.
    std::string slurm_step_id;   ///< Empty outside a step.
    std::string slurm_nodelist;  ///< Of the step, else of the job; in Slurm's bracket notation.

    /// Reads the environment of this process. Not to be called while another thread changes it.
    static LaunchEnvironment from_environment();
    /// The same from any source of variables.
    static LaunchEnvironment from_lookup(const Lookup& lookup);
};

}  // namespace rdma_read::cluster
