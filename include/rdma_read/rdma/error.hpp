// The one exception of the rdma leaf, and one checker for each way in which a C call reports
// failure.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace rdma_read::rdma {

/// Where in a connection's life something failed.
enum class Phase { device, setup, resolve, connect, descriptor, read, disconnect };

/// What kind of failure it was, as far as a caller would act differently on it.
enum class Failure {
    no_device,     ///< this host has no usable RDMA device or no RDMA support
    bad_address,   ///< the address is not one that RDMA can use here
    limit,         ///< a resource limit of this process or device
    setup,         ///< creating a local object failed for another reason
    unreachable,   ///< the peer cannot be reached, or nobody listens there
    refused,       ///< the peer answered and does not want this connection
    busy,          ///< the peer answered and does not want this connection now
    timeout,       ///< the deadline passed
    stopped,       ///< somebody asked this side to stop
    disconnected,  ///< the connection ended before the work did
    protocol,      ///< the peer sent something that is not this protocol
    read           ///< a read completed with an error
};

[[nodiscard]] std::string_view to_string(Phase phase) noexcept;

/// The place a failure is reported from: the call, and the object or peer it was made on.
struct Where {
    Phase phase;
    std::string_view call;  ///< name of the C function, a string literal
    std::string object;     ///< for example "10.0.0.1:7471" or "4096 bytes for remote read"
};

/// What went wrong, decided once, where it is known.
///
/// what() is one line: call, object and cause. hint() says the likely reason and what to do next;
/// it may be empty. code() is the errno, CM status or work completion status behind it, or 0.
class Error : public std::runtime_error {
  public:
    Error(Failure failure, Phase phase, const std::string& message, std::string hint = {},
          int code = 0)
        : std::runtime_error(message),
          failure_(failure),
          phase_(phase),
          hint_(std::move(hint)),
          code_(code) {}

    [[nodiscard]] Failure failure() const noexcept { return failure_; }
    [[nodiscard]] Phase phase() const noexcept { return phase_; }
    [[nodiscard]] const std::string& hint() const noexcept { return hint_; }
    [[nodiscard]] int code() const noexcept { return code_; }

  private:
    Failure failure_;
    Phase phase_;
    std::string hint_;
    int code_;
};

/// Builds the Error for an errno that a call left behind, with the hint that fits call and errno.
[[nodiscard]] Error system_error(const Where& where, int error_number);

/// Throws the Error for `error_number`.
[[noreturn]] void throw_system_error(const Where& where, int error_number);

/// For calls that return NULL and set errno, such as ibv_alloc_pd(3).
template <class T>
T* check_pointer(T* pointer, const Where& where) {
    if (pointer == nullptr) {
        throw_system_error(where, -1);
    }
    return pointer;
}

/// For calls that return -1 and set errno, such as all of librdmacm (rdma_cm(7), "RETURN CODES").
void check_minus_one(int result, const Where& where);

/// For calls that return a positive errno, such as ibv_post_send(3) and ibv_query_device(3).
void check_errno_value(int result, const Where& where);

/// "Connection timed out (110)"; thread-safe, unlike strerror(3).
[[nodiscard]] std::string errno_text(int error_number);

/// What to do about EMFILE.
inline constexpr std::string_view kFilesHint = "too many open files; raise the limit (ulimit -n)";

/// Whether this process can open hardly any more files. The libraries then tell of devices that are
/// missing and of operations that are not permitted, and not of the limit.
[[nodiscard]] bool files_run_out() noexcept;

/// "64 KiB" or "unlimited": the RLIMIT_MEMLOCK of this process as it is now.
[[nodiscard]] std::string memlock_limit_text();

}  // namespace rdma_read::rdma
