// The lifetime of MPI in this process.
#pragma once

#include <string>

namespace rdma_read::cluster {

/// Initialises MPI when built and finalizes it when destroyed. At most one per process, ever (MPI
/// cannot be initialised twice).
///
/// Threads: MPI is initialised as MPI_THREAD_FUNNELED. Only the thread that built the session may
/// use it, or any Communicator of it; other threads are free to do anything but MPI.
class MpiSession {
  public:
    /// Keeps MPI off the fabric (see settings_off_the_fabric) and hwloc, MPI's and this program's,
    /// from its plugins (HWLOC_PLUGINS_PATH, unless it is set), then initialises MPI. Changes the
    /// environment, so build the session before any other thread exists. Errors are returned from
    /// then on and become Error; a failure of MPI_Init itself ends the process in MPI.
    /// \throws Error if MPI is or was initialised already, or cannot be used beside threads
    MpiSession();

    /// Finalizes MPI, unless the session was abandoned. MPI_Finalize waits for every rank: call
    /// Communicator::barrier before, which waits with a deadline and without burning a core.
    ~MpiSession();

    MpiSession(const MpiSession&) = delete;
    MpiSession& operator=(const MpiSession&) = delete;
    MpiSession(MpiSession&&) = delete;
    MpiSession& operator=(MpiSession&&) = delete;

    /// Ends all ranks of the job without waiting for any of them. The launcher returns `code`.
    /// Flushes the C streams; runs no destructor.
    [[noreturn]] void abort(int code);

    /// From now on the destructor does not finalize: a request is outstanding that may never
    /// complete, and MPI_Finalize would wait for it. A Communicator does this by itself. A process
    /// that ends so, without abort(), is reported by mpirun as one that did not finalize.
    void abandon() noexcept { abandoned_ = true; }
    [[nodiscard]] bool abandoned() const noexcept { return abandoned_; }

    /// The first line of what MPI_Get_library_version says, for the report.
    [[nodiscard]] static std::string library_version();

  private:
    bool abandoned_ = false;
};

}  // namespace rdma_read::cluster
