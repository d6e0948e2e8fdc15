# What the tests of the job scripts share: claims, and stand-ins for commands. Sourced by them, not run.
# shellcheck shell=bash
set -uo pipefail
export LC_ALL=C
here=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
# shellcheck disable=SC2034 # for the tests that source this
job_scripts=$(realpath -- "$here/../../job-scripts")
failed=0
work=$(mktemp -d) || exit 1
work=$(realpath -- "$work")
trap 'rm -rf -- "$work"' EXIT
cd -- "$work" || exit 1
mkdir -- "$work/bin"
PATH=$work/bin:$PATH
# What a job that these tests run in would tell the scripts.
while read -r name; do unset "$name"; done < <(compgen -e | grep -E '^(SLURM_|SRUN_|RDMA_READ(_MPI|_BAD|_SYSFS)?$|BASH_ENV$)')

# claim TEXT COMMAND...: the claim holds if the command succeeds.
claim() {
    local text=$1
    shift
    if "$@"; then
        printf 'ok    %s\n' "$text"
    else
        failed=$((failed + 1))
        printf 'FAIL  %s\n' "$text"
        if [[ -s err ]]; then sed 's/^/      stderr: /' err; fi
    fi
}

same() {
    [[ $1 == "$2" ]] || {
        printf '      got:    %q\n      wanted: %q\n' "$1" "$2"
        return 1
    }
}

has() {
    [[ $1 == *"$2"* ]] || {
        printf '      got:         %q\n      wanted in it: %q\n' "$1" "$2"
        return 1
    }
}

has_not() {
    [[ $1 != *"$2"* ]] || {
        printf '      got:             %q\n      not wanted in it: %q\n' "$1" "$2"
        return 1
    }
}

# Runs a command: status, out and err are what became of it; the files out and err have its output.
run() {
    status=0
    "$@" >out 2>err </dev/null || status=$?
    out=$(<out)
    # shellcheck disable=SC2034 # for the tests
    err=$(<err)
}

# stand_in NAME: a command NAME whose text comes from stdin.
stand_in() {
    { printf '#!/bin/bash\n' && cat; } >"$work/bin/$1" && chmod +x "$work/bin/$1"
}

# Wrong options end with 2 and one line on stderr, --help with 0 and each of the options.
claim_options() {
    local script=$1 option
    shift
    run "$script" --help
    claim "--help ends with 0" same "$status" 0
    for option in "$@"; do
        claim "--help names $option" has "$out" "$option"
    done
    run "$script" --no-such-option
    claim "an unknown option ends with 2 and one line on stderr" same "$status $(wc -l <err) $out" "2 1 "
}

# Processes whose command line has a text.
processes_with() {
    local process words
    for process in /proc/[0-9]*; do
        { mapfile -d '' -t words <"$process/cmdline"; } 2>/dev/null || continue
        [[ "${words[*]-}" != *"$1"* ]] || printf '%s\n' "${words[*]}"
    done
}

none_left() {
    local tries
    for ((tries = 0; tries < 100; ++tries)); do
        [[ -n $(processes_with "$1") ]] || return 0
        sleep 0.05
    done
    printf '      left: %s\n' "$(processes_with "$1")"
    return 1
}

end_of_claims() {
    ((failed == 0)) || printf '%d claims do not hold\n' "$failed"
    exit $((failed > 0))
}

# skip_without COMMAND
skip_without() {
    command -v "$1" >/dev/null && return
    printf '%s is missing\n' "$1" >&2
    [[ ${RDMA_READ_REQUIRE_TOOLS:-} != 1 ]] || exit 1
    exit 77
}
