# What the scripts need from the distribution, and how it gets there. Sourced by them, not run.
# shellcheck shell=bash

# How to see that what a package brings is there, whoever put it there: a command, a library to link with,
# a header or a file.
declare -A package_brings=(
    [cmake]=command:cmake
    [g++]=command:c++
    [make]=command:make
    [pkg-config]=command:pkg-config
    [openmpi-bin]=command:mpirun
    [libopenmpi-dev]=command:mpicxx
    [libibverbs-dev]=library:ibverbs
    [librdmacm-dev]=library:rdmacm
    [libfmt-dev]=library:fmt
    [libhwloc-dev]=library:hwloc
    [libssl-dev]=library:crypto
    [libboost-serialization-dev]=library:boost_serialization
    [libcli11-dev]=header:CLI/CLI.hpp
    [nlohmann-json3-dev]=header:nlohmann/json.hpp
    [ibverbs-providers]=file:/etc/libibverbs.d/rxe.driver
    [qemu-system-x86]=command:qemu-system-x86_64
    [busybox-static]=command:busybox
    [cpio]=command:cpio
    [kmod]=command:modprobe
    [iproute2]=command:rdma
    [xz-utils]=command:xz
    [zstd]=command:zstd
    [libboost-filesystem-dev]=library:boost_filesystem
    [libgtest-dev]=library:gtest
    [libgmock-dev]=library:gmock
    [libbenchmark-dev]=library:benchmark
    [perftest]=command:ib_read_bw
    [rdmacm-utils]=command:rping
    [clang]=command:clang++
    [libclang-rt-dev]=clang-runtime:fuzzer
    [clang-format]=command:clang-format
    [clang-tidy]=command:clang-tidy
    [shellcheck]=command:shellcheck
    [dpkg-dev]=command:dpkg-shlibdeps
    [file]=command:file
    [lintian]=command:lintian
    [man-db]=command:mandb
    [jq]=command:jq
)
# shellcheck disable=SC2034 # for the scripts that source this, as are the other lists
packages_to_build=(
    g++ make cmake pkg-config openmpi-bin libopenmpi-dev libibverbs-dev librdmacm-dev ibverbs-providers
    libfmt-dev libboost-serialization-dev libcli11-dev libhwloc-dev libssl-dev nlohmann-json3-dev
)
packages_for_software_roce=(qemu-system-x86 busybox-static cpio kmod iproute2 xz-utils zstd)
# shellcheck disable=SC2034 # for the scripts that source this
packages_to_test=(
    libboost-filesystem-dev libgtest-dev libgmock-dev libbenchmark-dev clang libclang-rt-dev clang-format clang-tidy
    shellcheck dpkg-dev file lintian man-db jq rdmacm-utils
)
# shellcheck disable=SC2034 # for the scripts that source this
packages_to_measure=(perftest rdmacm-utils libbenchmark-dev jq)

say() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
}

stop() {
    say "$2"
    exit "$1"
}

# Shows the end of a log.
show_end() {
    tail -n "${2:-40}" -- "$1" >&2
}

# Succeeds if what the package brings is there.
is_there() {
    local what=${package_brings[$1]}
    local name=${what#*:}
    case $what in
        command:*) PATH=$PATH:/usr/sbin:/sbin command -v "$name" >/dev/null ;;
        library:*) c++ -x c++ -o /dev/null - "-l$name" <<<'int main() {}' 2>/dev/null ;;
        header:*) c++ -x c++ -E -o /dev/null - <<<"#include <$name>" 2>/dev/null ;;
        file:*) [[ -e $name ]] ;;
        # Where Clang keeps it depends on its version.
        clang-runtime:*) compgen -G "$(clang++ -print-resource-dir 2>/dev/null)/lib/*/libclang_rt.$name*.a" >/dev/null ;;
    esac
}

as_root() {
    if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo -- "$@"; fi
}

# Runs apt-get as root; its output goes to the log $1.
apt_get() {
    local log=$1
    shift
    command -v apt-get >/dev/null || return 1
    if [[ $(id -u) -ne 0 ]] && ! command -v sudo >/dev/null; then return 1; fi
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" </dev/null >>"$log" 2>&1
}

# Installs those of the packages that are missing, or names them and stops; nothing happens if none is.
install_missing() {
    local package log missing=()
    for package in "$@"; do
        is_there "$package" || missing+=("$package")
    done
    ((${#missing[@]} > 0)) || return 0
    if ! command -v apt-get >/dev/null; then
        stop 1 "not a Debian or Ubuntu machine: install what its packages ${missing[*]} bring, then run this again"
    fi
    if [[ $(id -u) -ne 0 ]] && ! command -v sudo >/dev/null; then
        stop 1 "neither root nor sudo: as root run apt-get install ${missing[*]}"
    fi
    say "installing ${missing[*]}"
    log=$(mktemp) || stop 1 "no temporary file"
    # Lists that are partly out of reach may still do.
    apt_get "$log" update || say "apt-get update had trouble, going on with what it has"
    if ! apt_get "$log" install --yes --no-install-recommends "${missing[@]}"; then
        show_end "$log"
        rm -f -- "$log"
        stop 1 "apt-get install ${missing[*]} failed: see above"
    fi
    rm -f -- "$log"
    for package in "${missing[@]}"; do
        is_there "$package" ||
            stop 1 "package $package is installed, but ${package_brings[$package]#*:} is still not found"
    done
}

# Installs what the software-RoCE machine needs. Its kernel is downloaded when it first starts, which takes
# package lists.
prepare_software_roce() {
    local log
    [[ $(uname -m) == x86_64 ]] ||
        stop 3 "no usable RDMA device here, and the software-RoCE machine runs on x86-64 only, not on $(uname -m)"
    install_missing "${packages_for_software_roce[@]}"
    if command -v apt-cache >/dev/null && ! compgen -G '/lib/modules/*/kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko*' >/dev/null &&
        [[ -z $(apt-cache show linux-image-amd64 linux-image-generic 2>/dev/null) ]]; then
        say "updating the package lists, to find a kernel for the software-RoCE machine"
        log=$(mktemp) || stop 1 "no temporary file"
        apt_get "$log" update || show_end "$log"
        rm -f -- "$log"
    fi
}

# Succeeds if the kernel says that some port of an RDMA device is up.
has_active_port() {
    grep -qs ACTIVE /sys/class/infiniband/*/ports/*/state
}

# What Open MPI wants to hear before it starts more ranks than there are processors, or anything as root.
# Other kinds of MPI do not read these.
allow_any_mpirun() {
    export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
    if [[ $(id -u) -eq 0 ]]; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
}

# Succeeds if the rdma_read_mpi in folder $1 can use an RDMA device of this machine.
has_usable_device() {
    local status=0
    has_active_port || return 1
    (
        allow_any_mpirun
        timeout 60 mpirun -np 2 "$1/rdma_read_mpi" --size 1 --iterations 1 --timeout 10 --progress never
    ) </dev/null >/dev/null 2>&1 || status=$?
    # 3: no device or no address. With any other trouble the real run says more about it.
    ((status != 3))
}
