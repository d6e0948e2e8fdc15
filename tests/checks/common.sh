# What the checks share. Sourced by them, not run.
# shellcheck shell=bash
set -uo pipefail
export LC_ALL=C
# The checks look at files relative to the top of the project.
cd -- "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/../.." || exit 1

# Goes on only if the tool is there.
need() {
    command -v "$1" >/dev/null && return
    printf '%s is missing: install the package %s\n' "$1" "$1" >&2
    [[ ${RDMA_READ_REQUIRE_TOOLS:-} != 1 ]] || exit 1
    exit 77
}

# Lists the files of the project, NUL after each, that match one of the patterns of find's -name; build folders are
# left out.
list_files() {
    local pattern names=()
    for pattern in "$@"; do names+=(-o -name "$pattern"); done
    find . \( -path './build*' -o -path ./.git \) -prune -o -type f \( "${names[@]:1}" \) -print0 | sort -z
}
