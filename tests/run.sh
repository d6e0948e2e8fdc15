#!/bin/bash
# Installs what is missing, builds with warnings as errors and runs all tests; the last line sums them up.
set -uo pipefail
here=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
root=$(dirname -- "$here")
# shellcheck source=SCRIPTDIR/../job-scripts/packages.sh
source "$root/job-scripts/packages.sh"
export LC_ALL=C

show_help() {
    cat <<'HELP'
usage: run.sh [--quick] [--faults] [--slurm] [--sanitize] [--jobs N]

Installs what is missing (Debian, Ubuntu: with apt-get; elsewhere it names the packages and stops), builds with
warnings as errors and runs all tests:

  - static checks, unit tests and MPI tests, on this machine;
  - device tests, on this machine's RDMA device or, if it has none that can be used, in one boot of a virtual
    machine with software RoCE;
  - unit tests and fuzzers, each of these for some seconds, with the address and undefined-behaviour sanitizers;
  - unit tests of what has threads with the thread sanitizer.

  --quick     leaves out the static checks, the sanitizers and the fuzzers
  --faults    adds the fault matrix to the device tests
  --slurm     adds the tests between two nodes in a Slurm, which are virtual machines; needs Slurm's packages
  --sanitize  adds the MPI tests and the device tests with the address and undefined-behaviour sanitizers
  --jobs N    what runs at a time (default: the number of processors)
  --help      shows this text

The build trees are build/tests, build/asan and build/tsan. The last line is "N passed, N failed", all runs of
ctest summed up.

Exit status: 0 if everything passed and every device test ran, else 1; 2 for bad options.
HELP
}

quick=no
faults=no
slurm=no
sanitize=no
jobs=$(nproc)
while (($# > 0)); do
    case $1 in
        --help)
            show_help
            exit 0
            ;;
        --quick) quick=yes ;;
        --faults) faults=yes ;;
        --slurm) slurm=yes ;;
        --sanitize) sanitize=yes ;;
        --jobs)
            [[ ${2:-} =~ ^[1-9][0-9]{0,2}$ ]] || stop 2 "option --jobs wants a number from 1 to 999, not '${2:-}'"
            jobs=$2
            shift
            ;;
        *) stop 2 "unknown option $1 (--help shows the options)" ;;
    esac
    shift
done

[[ $quick == no || $sanitize == no ]] || stop 2 "options --quick and --sanitize contradict each other"

passed=0
failed=0
troubles=()
step=
log=$(mktemp) || stop 1 "no temporary file"

# Ends what a step left running, which has the step's own process group.
# shellcheck disable=SC2317 # a trap calls it
clean_up() {
    trap '' INT TERM HUP
    if [[ -n $step ]]; then
        kill -TERM -- "-$step" 2>/dev/null
        wait "$step" 2>/dev/null
        kill -KILL -- "-$step" 2>/dev/null
    fi
    rm -f -- "$log"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Runs a command in a process group of its own, so that a signal ends all of it at once.
run_step() {
    setsid -- "$@" </dev/null &
    step=$!
    wait "$step"
    local status=$?
    kill -TERM -- "-$step" 2>/dev/null
    step=
    return "$status"
}

# A failure that no line of ctest tells of; counted as one.
trouble() {
    troubles+=("$1")
    failed=$((failed + 1))
}

title() {
    printf '\n==== %s (%d s after the start)\n' "$1" "$SECONDS"
}

# build TREE OPTION...: configures build/TREE with these options and builds it.
build() {
    local tree=$root/build/$1
    title "build $1"
    shift
    run_step cmake -G "Unix Makefiles" -S "$root" -B "$tree" -DRDMA_READ_BUILD_TESTS=ON -DRDMA_READ_WARNINGS_AS_ERRORS=ON "$@" >"$log" 2>&1 || {
        cat -- "$log"
        return 1
    }
    # On after an error: all of them are worth knowing.
    run_step cmake --build "$tree" --parallel "$jobs" -- --keep-going --no-print-directory >"$log" 2>&1 || {
        grep -vE '^\[ *[0-9]+%\] (Building|Built|Linking|Generating)' "$log"
        return 1
    }
}

# run_tests WHAT COMMAND...: runs a command that ends with the summary of ctest, and adds it to the sum.
run_tests() {
    local what=$1 line skipped all bad
    shift
    title "$what"
    # shellcheck disable=SC2016
    run_step bash -c 'set -o pipefail; log=$1; shift; "$@" 2>&1 | tee -- "$log"' run_tests "$log" "$@"
    local status=$?
    line=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests? failed out of [0-9]+' "$log" | tail -n 1)
    # A device test that does not run proves nothing.
    skipped=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#[0-9]+: .*\*\*\*(Skipped|Not Run)' "$log")
    if ! [[ $line =~ ,\ ([0-9]+)\ tests?\ failed\ out\ of\ ([0-9]+) ]]; then
        trouble "$what: no tests ran (status $status)"
        return 1
    fi
    bad=${BASH_REMATCH[1]}
    all=${BASH_REMATCH[2]}
    failed=$((failed + bad))
    passed=$((passed + all - bad - skipped))
    if ((skipped > 0)); then printf '%s: %d skipped\n' "$what" "$skipped"; fi
    if [[ $what == device* ]] && ((skipped > 0)); then trouble "$what: $skipped tests were skipped"; fi
    if ((status != 0 && bad == 0)); then trouble "$what: status $status"; fi
    if ((bad > 0)); then troubles+=("$what: $bad failed"); fi
}

# device_tests TREE LABELS
device_tests() {
    local tree=$root/build/$1
    local tests=(ctest --test-dir "$tree" --no-tests=error --output-on-failure --timeout 180 -L "$2")
    export RDMA_READ_REQUIRE_DEVICE=1
    if has_usable_device "$root/build/tests"; then
        run_tests "device tests of build/$1 on this machine's RDMA device" "${tests[@]}"
    else
        (prepare_software_roce) || {
            trouble "device tests: no software-RoCE machine"
            return
        }
        run_tests "device tests of build/$1 in a virtual machine with software RoCE" \
            "$here/softroce/run" --limit 3600 --env "LSAN_OPTIONS=$LSAN_OPTIONS" --env "UBSAN_OPTIONS=$UBSAN_OPTIONS" \
            --env "ASAN_OPTIONS=${ASAN_OPTIONS:-}" -- \
            "${tests[@]}"
    fi
}

# Two nodes in a real Slurm, both virtual machines here.
slurm_tests() {
    local missing
    missing=$(for tool in slurmctld slurmd srun munged; do command -v "$tool" >/dev/null || echo "$tool"; done)
    if [[ -n $missing ]]; then
        # Not installed from here: these packages start services on the machine that they are installed on.
        trouble "Slurm tests: missing ${missing//$'\n'/ }; they are in slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge"
        return
    fi
    (prepare_software_roce) || {
        trouble "Slurm tests: no software-RoCE machine"
        return
    }
    local results=$root/build/tests/slurm-results
    RDMA_READ_REQUIRE_DEVICE=1 RDMA_READ_REQUIRE_SLURM=1 run_tests "tests between two virtual machines, in a Slurm" \
        "$here/softroce/run" --nodes 2 --slurm --limit 2400 --results "$results" -- \
        ctest --test-dir "$root/build/tests" --no-tests=error --output-on-failure -L '^(nodes|slurm)$'
}

# sanitized_tests TREE LABELS OPTION...: tests with sanitizers, which cannot all be combined with each other in one build.
sanitized_tests() {
    local tree=$1 labels=$2
    shift 2
    # Several sources at a time: that each compiles alone the other tree has shown.
    if build "$tree" -DCMAKE_UNITY_BUILD=ON "$@"; then
        run_tests "tests with sanitizers, build/$tree" \
            ctest --test-dir "$root/build/$tree" --no-tests=error --output-on-failure --timeout 180 -j "$jobs" -L "$labels"
    else
        trouble "the build in build/$tree failed"
        return 1
    fi
}

(install_missing "${packages_to_build[@]}" "${packages_to_test[@]}") || exit 1
# What libraries never free is not this program's leak. They are known by name, if allocations are followed through their
# functions, which have no frame pointer.
export LSAN_OPTIONS="suppressions=\"$here/leaks_of_libraries.txt\":print_suppressions=0"
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 TSAN_OPTIONS=halt_on_error=1
if build tests -DRDMA_READ_TESTS_TOGETHER=ON; then
    left_out='^(device|faults|nodes|slurm)$'
    if [[ $quick == yes ]]; then left_out='^(device|faults|nodes|slurm|static)$'; fi
    allow_any_mpirun
    RDMA_READ_REQUIRE_TOOLS=1 run_tests "tests without a device" \
        ctest --test-dir "$root/build/tests" --no-tests=error --output-on-failure --timeout 180 -j "$jobs" -LE "$left_out"
    labels='^device$'
    if [[ $faults == yes ]]; then labels='^(device|faults)$'; fi
    device_tests tests "$labels"
    if [[ $slurm == yes ]]; then slurm_tests; fi
else
    trouble "the build failed"
fi
if [[ $quick == no ]]; then
    kinds='unit;fuzz'
    if [[ $sanitize == yes ]]; then
        kinds='unit;fuzz;mpi;device'
        export ASAN_OPTIONS=fast_unwind_on_malloc=0
    fi
    if sanitized_tests asan '^(unit|fuzz|mpi)$' -C "$here/fuzz/options.cmake" "-DRDMA_READ_TEST_KINDS=$kinds" &&
        [[ $sanitize == yes ]]; then
        # Following every allocation that far takes several times as long in a virtual machine, where the MPI tests have
        # shown already what fewer suppressions show.
        cat -- "$here/leaks_of_libraries.txt" "$here/leaks_without_callers.txt" >"$root/build/asan/leaks.txt"
        export ASAN_OPTIONS=fast_unwind_on_malloc=1
        LSAN_OPTIONS="suppressions=\"$root/build/asan/leaks.txt\":print_suppressions=0" device_tests asan '^device$'
    fi
    unset ASAN_OPTIONS
    # Where threads are.
    sanitized_tests tsan '^unit$' -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="-O1 -g1" -DRDMA_READ_SANITIZE=thread \
        "-DRDMA_READ_TEST_KINDS=unit/app;unit/rdma"
fi

title "end"
for text in ${troubles[@]+"${troubles[@]}"}; do
    printf 'FAILED: %s\n' "$text"
done
printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
