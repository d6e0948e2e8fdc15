#!/bin/bash
# Installs what is missing, builds, and verifies RDMA Read between four ranks on this machine.
set -euo pipefail
here=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
root=$(dirname -- "$here")
build=$root/build
# shellcheck source=SCRIPTDIR/packages.sh
source "$here/packages.sh"

show_help() {
    cat <<'HELP'
usage: quickstart.sh [--ranks N] [options of rdma_read_mpi]

Installs what is missing (Debian, Ubuntu: with apt-get; elsewhere it names the packages and stops), builds
into the folder build and runs

    mpirun -np 4 build/rdma_read_mpi [options]

on this machine's RDMA device or, if it has none that can be used, in a virtual machine with software RoCE
that shares this machine's files. stderr says which. stdout is the tool's and nothing else.

  --ranks N   ranks to start, from 2 (default: 4); comes before the options of rdma_read_mpi
  --help      shows this text; build/rdma_read_mpi --help shows the other options, once built

Exit status: that of rdma_read_mpi (0: all reads right, 1: not, 2: wrong options, 3: nothing could be read);
1 also if the installation or the build fails.
HELP
}

ranks=4
while (($# > 0)); do
    case $1 in
        --help)
            show_help
            exit 0
            ;;
        --ranks | --ranks=*)
            if [[ $1 == --ranks ]]; then
                (($# >= 2)) || stop 2 "option --ranks wants a number from 2 to 1024"
                shift
            fi
            ranks=${1#--ranks=}
            if ! [[ $ranks =~ ^[0-9]{1,4}$ ]] || ((10#$ranks < 2 || 10#$ranks > 1024)); then
                stop 2 "option --ranks wants a number from 2 to 1024, not '$ranks'"
            fi
            ranks=$((10#$ranks))
            shift
            ;;
        *) break ;;
    esac
done

# Sets folders to the folders of the reports that the options ask for, each once.
find_report_folders() {
    local file folder
    folders=()
    while (($# > 0)); do
        file=
        case $1 in
            --json | --csv | --junit | --html) file=${2:-} ;;
            --json=* | --csv=* | --junit=* | --html=*) file=${1#*=} ;;
        esac
        shift
        [[ -n $file && $file != - ]] || continue
        folder=$(realpath -- "$(dirname -- "$file")" 2>/dev/null) || continue
        [[ -d $folder ]] || continue
        [[ " ${folders[*]} " == *" $folder "* ]] || folders+=("$folder")
    done
}

install_missing "${packages_to_build[@]}"

mkdir -p -- "$build"
log=$build/quickstart.log
configuration=()
# A build folder that was set up by hand keeps its settings.
[[ -e $build/CMakeCache.txt ]] || configuration=(-DRDMA_READ_BUILD_TESTS=OFF)
say "building"
if ! {
    cmake -S "$root" -B "$build" ${configuration[@]+"${configuration[@]}"} &&
        cmake --build "$build" --parallel "$(nproc)" --target rdma_read_mpi rdma_read
} </dev/null >"$log" 2>&1; then
    show_end "$log"
    stop 1 "the build failed: see above, all of it is in $log"
fi

if has_usable_device "$build"; then
    say "running $ranks ranks on this machine's RDMA device"
    allow_any_mpirun
    exec mpirun -np "$ranks" "$build/rdma_read_mpi" "$@" </dev/null
fi

if has_active_port; then
    reason="an RDMA port is active here, but rdma_read_mpi cannot use it (run it for the reason)"
else
    reason="no active RDMA port here"
fi
prepare_software_roce
say "$reason: running $ranks ranks in a virtual machine with software RoCE"
options=()
find_report_folders "$@"
# What is written in the machine vanishes with it, except in one folder.
((${#folders[@]} <= 1)) ||
    stop 2 "in the software-RoCE machine all reports go to one folder, not to ${folders[*]}"
if ((${#folders[@]} == 1)); then options=(--results "${folders[0]}"); fi
exec "$root/tests/softroce/run" ${options[@]+"${options[@]}"} -- \
    mpirun -np "$ranks" "$build/rdma_read_mpi" "$@"
