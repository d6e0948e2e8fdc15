# What the scripts that measure share: where they run, one run of the tool, and the numbers of a list. Sourced by them,
# not run.
# shellcheck shell=bash
set -uo pipefail
export LC_ALL=C
bench=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
root=$(realpath -- "$bench/../..")
# shellcheck source=SCRIPTDIR/../../job-scripts/packages.sh
source "$root/job-scripts/packages.sh"

# Where $build is the folder of the built programs: goes on if this machine has an RDMA device, or is the software-RoCE
# machine. Else runs the caller there, with its options: enter_machine LIMIT FOLDER OPTION... -- CALLER...
# FOLDER is the one that it writes to.
enter_machine() {
    local limit=$1 folder=$2 options=()
    shift 2
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    shift
    [[ -z ${RDMA_READ_SOFTROCE:-} ]] || return 0
    if has_active_port; then
        allow_any_mpirun
        return 0
    fi
    prepare_software_roce
    say "no active RDMA port here: measuring in a virtual machine with software RoCE"
    exec "$root/tests/softroce/run" --limit "$limit" --results "$folder" ${options[@]+"${options[@]}"} -- "$@"
}

need_commands() {
    local name
    for name in "$@"; do
        command -v "$name" >/dev/null || stop 1 "$name is missing: install the packages ${packages_to_measure[*]}"
    done
}

need_programs() {
    local name
    for name in "$@"; do
        # shellcheck disable=SC2154 # the caller sets it
        [[ -x $build/$name ]] || stop 1 "$build has no program $name: build there first, or name the folder with --build"
    done
}

# Bytes of a size such as 64K, in the variable bytes.
parse_size() {
    [[ $1 =~ ^([1-9][0-9]{0,12})([KMG]?)$ ]] || return 1
    bytes=${BASH_REMATCH[1]}
    case ${BASH_REMATCH[2]} in
        K) bytes=$((bytes << 10)) ;;
        M) bytes=$((bytes << 20)) ;;
        G) bytes=$((bytes << 30)) ;;
    esac
}

# whole NAME VALUE LEAST MOST: stops unless the option's value is a whole number in that range.
whole() {
    if ! [[ $2 =~ ^[0-9]{1,9}$ ]] || ((10#$2 < $3 || 10#$2 > $4)); then
        stop 2 "option $1 wants a whole number from $3 to $4, not '$2'"
    fi
}

# one_of NAME LIST WORD...: stops unless all parts of the comma-separated list are among the words.
one_of() {
    local name=$1 list=$2 part
    shift 2
    for part in ${list//,/ }; do
        [[ " $* " == *" $part "* ]] || stop 2 "option $name knows $*, not '$part'"
    done
    [[ -n $list ]] || stop 2 "option $name wants at least one of $*"
}

# True of a free TCP port's number.
is_free_port() {
    local hex
    printf -v hex ':%04X' "$1"
    ! grep -qs "^ *[0-9]*: [0-9A-F]*$hex " /proc/net/tcp /proc/net/tcp6
}

# Somewhere to listen, in the variable port; below where the kernel takes ports for itself.
choose_port() {
    local tries
    for ((tries = 0; tries < 100; ++tries)); do
        port=$((20000 + RANDOM % 10000))
        if is_free_port "$port"; then return 0; fi
    done
    return 1
}

# await SECONDS COMMAND...: looks again and again until the command succeeds.
await() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.02
    done
}

listens_on() {
    local hex
    printf -v hex ':%04X' "$1"
    grep -qs "^ *[0-9]*: [0-9A-F]*$hex [0-9A-F:]* 0A " /proc/net/tcp /proc/net/tcp6
}
