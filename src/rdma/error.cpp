// Turns errno values into one line with the cause, and a hint with the next step.
#include "rdma_read/rdma/error.hpp"

#include "rdma_read/rdma/unique_fd.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace rdma_read::rdma {

namespace {

Failure classify(const Where& where, int error_number) {
    switch (error_number) {
        case ENODEV:
        case ENOSYS:
        case ENOENT:
            return where.phase == Phase::resolve || where.call == "rdma_bind_addr"
                       ? Failure::bad_address
                       : Failure::no_device;
        case ENOMEM:
        case EMFILE:
        case ENFILE:
        case EAGAIN:
            return Failure::limit;
        case EADDRNOTAVAIL:
        case EADDRINUSE:
        case EAFNOSUPPORT:
            return Failure::bad_address;
        case EACCES:
        case EPERM:
            return Failure::limit;
        case ENETUNREACH:
        case EHOSTUNREACH:
        case ECONNREFUSED:
            return Failure::unreachable;
        case ETIMEDOUT:
            return where.phase == Phase::resolve || where.phase == Phase::connect
                       ? Failure::unreachable
                       : Failure::timeout;
        default:
            return where.phase == Phase::connect ? Failure::unreachable : Failure::setup;
    }
}

// Where nothing may be locked, the kernel says EPERM (mlock(2)).
bool may_lock_nothing() {
    rlimit limit{};
    return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == 0;
}

std::string hint_for(const Where& where, int error_number) {
    if (where.call == "mmap" && error_number == ENOMEM) {
        return "not enough memory for the buffers; ask for less: --size, --depth, --buffer";
    }
    if (where.call == "ibv_reg_mr"
        && (error_number == ENOMEM || error_number == EAGAIN
            || (error_number == EPERM && may_lock_nothing()))) {
        return fmt::format(
            "the locked-memory limit (memlock) of this process is {}; raise it with \"* - memlock "
            "unlimited\" in /etc/security/limits.conf for logins, LimitMEMLOCK=infinity for "
            "systemd "
            "units, and the same in slurmd's unit (with PropagateResourceLimitsExcept=MEMLOCK in "
            "slurm.conf) for Slurm jobs; check inside the job with: ulimit -l",
            memlock_limit_text());
    }
    if (error_number == EMFILE || error_number == ENFILE) {
        return std::string(kFilesHint);
    }
    if (where.call == "rdma_create_event_channel" && files_run_out()) {
        return std::string(kFilesHint);
    }
    if (where.call == "rdma_create_event_channel" || where.call == "ibv_get_device_list") {
        return error_number == EACCES || error_number == EPERM
                   ? "this user may not open the RDMA devices; check: ls -l /dev/infiniband"
                   : "load the drivers (modprobe rdma_ucm, and the device's own), or software RoCE "
                     "(modprobe rdma_rxe; rdma link add rxe0 type rxe netdev <interface>); check "
                     "with: rdma link";
    }
    if (where.call == "rdma_bind_addr") {
        switch (error_number) {
            case ENODEV:
                return "no RDMA device has this address; list them with: rdma link; ip -br addr";
            case EADDRNOTAVAIL:
                return "this is no address of this host; list them with: ip -br addr";
            case EADDRINUSE:
                return "another listener holds this port; choose another --port (0: any free one), "
                       "or look for it with: rdma resource show cm_id";
            default:
                break;
        }
    }
    switch (error_number) {
        case ENETUNREACH:
        case EHOSTUNREACH:
            return "no route from this host to that address; check: ip route get <address>";
        case ENODEV:
            return where.phase == Phase::resolve
                       ? "no RDMA device of this host leads to that address; check: rdma link; ip "
                         "route get <address>"
                       : "";
        case ETIMEDOUT:
            return where.phase == Phase::resolve
                       ? "the address did not answer; check that the peer is up: ping <address>"
                       : "";
        case EACCES:
        case EPERM:
            return "check: ls -l /dev/infiniband, and limits of the container";
        default:
            return {};
    }
}

}  // namespace

std::string_view to_string(Phase phase) noexcept {
    switch (phase) {
        case Phase::device:
            return "device";
        case Phase::setup:
            return "setup";
        case Phase::resolve:
            return "resolve";
        case Phase::connect:
            return "connect";
        case Phase::descriptor:
            return "descriptor";
        case Phase::read:
            return "read";
        case Phase::disconnect:
            return "disconnect";
    }
    return "?";
}

std::string errno_text(int error_number) {
    return fmt::format("{} ({})", std::system_category().message(error_number), error_number);
}

bool files_run_out() noexcept {
    // What failed may have closed some again.
    std::array<UniqueFd, 8> probes;
    for (UniqueFd& probe : probes) {
        probe = UniqueFd(eventfd(0, EFD_CLOEXEC));
        if (!probe) {
            return errno == EMFILE || errno == ENFILE;
        }
    }
    return false;
}

std::string memlock_limit_text() {
    rlimit limit{};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
        return "unknown";
    }
    if (limit.rlim_cur == RLIM_INFINITY) {
        return "unlimited";
    }
    return fmt::format("{} KiB", limit.rlim_cur / 1024);
}

Error system_error(const Where& where, int error_number) {
    return {classify(where, error_number), where.phase,
            fmt::format("{}({}): {}", where.call, where.object, errno_text(error_number)),
            hint_for(where, error_number), error_number};
}

void throw_system_error(const Where& where, int error_number) {
    const int saved = error_number < 0 ? errno : error_number;
    throw system_error(where, saved);
}

void check_minus_one(int result, const Where& where) {
    if (result != 0) {
        throw_system_error(where, -1);
    }
}

void check_errno_value(int result, const Where& where) {
    if (result != 0) {
        // Most verbs return the errno; a few old providers return -1 and set it.
        throw_system_error(where, result);
    }
}

}  // namespace rdma_read::rdma
