// Which settings keep MPI itself off the fabric that is to be tested.
#include "rdma_read/cluster/transport.hpp"

#include <charconv>

namespace rdma_read::cluster {
namespace {

/// The major version in "Open MPI v4.1.4, package: …"; 0 for another library.
int open_mpi_major(std::string_view library_version) {
    constexpr std::string_view kPrefix = "Open MPI v";
    if (!library_version.starts_with(kPrefix)) {
        return 0;
    }
    const std::string_view digits = library_version.substr(kPrefix.size());
    int major = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), major);
    return major;
}

}  // namespace

std::map<std::string, std::string> settings_off_the_fabric(
    std::string_view library_version, const std::function<bool(const std::string&)>& is_set) {
    const int major = open_mpi_major(library_version);
    if (major == 0 || is_set("OMPI_MCA_pml") || is_set("OMPI_MCA_btl")) {
        return {};
    }
    std::map<std::string, std::string> settings{
        {"OMPI_MCA_pml", "ob1"},
        // What is left out here also keeps openib, ofi, uct and usnic unopened and silent. The
        // shared memory transport is named vader up to Open MPI 4, where "sm" only prints that it
        // is gone, and sm from 5 on.
        {"OMPI_MCA_btl", major >= 5 ? "self,sm,tcp" : "self,vader,tcp"},
        // One-sided operations and collectives can open UCX and hcoll whatever the pml is.
        {"OMPI_MCA_osc", "^ucx"},
        {"OMPI_MCA_coll_hcoll_enable", "0"},
    };
    if (major < 5) {
        // In containers without CAP_SYS_PTRACE copying out of another process fails, loudly.
        settings.emplace("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
    }
    std::erase_if(settings, [&](const auto& setting) { return is_set(setting.first); });
    return settings;
}

}  // namespace rdma_read::cluster
