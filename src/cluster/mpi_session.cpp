// The lifetime of MPI in this process.
#include "rdma_read/cluster/mpi_session.hpp"

#include "mpi_call.hpp"
#include "rdma_read/cluster/transport.hpp"

#include <dlfcn.h>
#include <link.h>
#include <mpi.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace rdma_read::cluster {
namespace {

void set_unless_set(const std::string& name, const std::string& value) {
    if (setenv(name.c_str(), value.c_str(), 0) != 0) {
        throw Error("setenv " + name + ": " + std::strerror(errno));
    }
}

// Processors and NUMA nodes, all that is asked of hwloc here, by MPI too, it finds without its
// plugins. They load the libraries of X11, OpenCL and XML into every rank: a fifth of MPI_Init.
void leave_out_plugins_of_hwloc() {
    set_unless_set("HWLOC_PLUGINS_PATH", "");
}

void keep_off_the_fabric() {
    const auto is_set = [](const std::string& name) {
        return std::getenv(name.c_str()) != nullptr;
    };
    for (const auto& [name, value] :
         settings_off_the_fabric(MpiSession::library_version(), is_set)) {
        set_unless_set(name, value);
    }
}

// Keeps every library that is loaded now in memory until the process ends. MPI_Finalize of Open MPI
// 4 unloads its components while its progress thread may still be in one of them: seen as a rank
// that crashes now and then at the end of a right run, when another rank's exit status is not 0.
void pin_loaded_libraries() {
    std::vector<std::string> names;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t /*size*/, void* into) {
            if (info->dlpi_name != nullptr && *info->dlpi_name != '\0') {
                static_cast<std::vector<std::string>*>(into)->emplace_back(info->dlpi_name);
            }
            return 0;
        },
        &names);
    for (const std::string& name : names) {
        // The handle is not needed: the flag stays with the library. What cannot be pinned (the
        // kernel's own vdso) is not unloaded either.
        (void)dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }
}

}  // namespace

MpiSession::MpiSession() {
    int initialized = 0;
    check("MPI_Initialized", MPI_Initialized(&initialized));
    if (initialized != 0) {
        throw Error("MPI_Init_thread: MPI is initialised already in this process");
    }
    leave_out_plugins_of_hwloc();
    keep_off_the_fabric();
    int provided = MPI_THREAD_SINGLE;
    check("MPI_Init_thread", MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
    pin_loaded_libraries();
    if (provided < MPI_THREAD_FUNNELED) {
        MPI_Finalize();
        throw Error(
            "MPI_Init_thread: this MPI library was built without support for threads "
            "(MPI_THREAD_FUNNELED), which this program needs");
    }
    check("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    // Errors of calls that have no communicator are raised on this one.
    check("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
}

MpiSession::~MpiSession() {
    if (!abandoned_) {
        MPI_Finalize();
    }
}

// A member although MPI needs no object: who has no session has no initialised MPI to abort.
// NOLINTNEXTLINE(readability-convert-member-functions-to-static)
void MpiSession::abort(int code) {
    std::fflush(nullptr);  // MPI_Abort may end the process by a signal
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
}

std::string MpiSession::library_version() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    check("MPI_Get_library_version", MPI_Get_library_version(text.data(), &length));
    // Open MPI's length counts the NUL; the text ends before it in any case.
    const std::string version(text.data(), strnlen(text.data(), text.size()));
    return version.substr(0, version.find_first_of("\n\r"));
}

}  // namespace rdma_read::cluster
