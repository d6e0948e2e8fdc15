// Which settings keep MPI itself off the fabric that is to be tested.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace rdma_read::cluster {

/// The environment variables to set before MPI_Init so that MPI bootstraps over shared memory and
/// TCP only: a broken fabric must not break the bootstrap, and an MPI that opens the devices under
/// test warns, takes registered memory and starts slowly.
///
/// Nothing is returned when the user chose a transport (OMPI_MCA_pml or OMPI_MCA_btl is set, which
/// is also how `mpirun --mca pml …` reaches a process), for another library than Open MPI, and no
/// variable is returned that is set already.
///
/// \param library_version  what MPI_Get_library_version says
/// \param is_set           whether an environment variable is set
std::map<std::string, std::string> settings_off_the_fabric(
    std::string_view library_version, const std::function<bool(const std::string&)>& is_set);

}  // namespace rdma_read::cluster
