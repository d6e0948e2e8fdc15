#!/bin/bash
# Verifies RDMA Read between the nodes of a Slurm job before the job's own work starts, one rank a node, and names the
# nodes to do without. Called or sourced at the start of a batch script (bash):
#
#     # called
#     bad=$(verify_before.sh --budget 60) || {
#         echo "RDMA does not work here; submit again with --exclude=$bad" >&2
#         exit 1
#     }
#
#     # sourced: the same, and sets RDMA_READ_BAD_NODES (the list) and RDMA_READ_VERIFY_STATUS (the exit status)
#     source verify_before.sh --budget 60 || exit
#
# If all is well it returns 0 and prints nothing on stdout. If not, stdout is the list of nodes to exclude in Slurm's
# hostlist form ("node[1-3,7]"), alone in one line; what happened is on stderr. Without a line the nodes to blame are
# not known. Status: 0 all reads right, 1 not, 2 wrong options, 3 nothing could be verified.
#
# A job can free itself of bad nodes and start again, for example with
#
#     scontrol update jobid="$SLURM_JOB_ID" excnodelist="$bad" && scontrol requeue "$SLURM_JOB_ID"
#
# The ranks are started by srun --mpi=pmix or, where that does not work, by mpirun inside the allocation. With one node
# only, two ranks on it read through its own device. Whatever happens, it is over when the budget is.
#
# To edit: nothing. RDMA_READ_MPI names the program if rdma_read_mpi is not beside this script, in ../../bin or on the
# PATH of all nodes. Load the MPI that it was built with before (module load ...).

if [ -z "${BASH_VERSION:-}" ]; then
    echo "verify_before.sh: sourced by a shell that is not bash: call it instead" >&2
    # shellcheck disable=SC2317 # in case it was not sourced
    return 2 2>/dev/null || exit 2
fi

if [[ ${BASH_SOURCE[0]} != "$0" ]]; then
    # The work is done by another shell: nothing of it is left in this one. The name of a file that is sourced without
    # arguments is the last thing put on BASH_ARGV, and "$@" then has the arguments of whoever sources it.
    RDMA_READ_VERIFY_STATUS=0
    if [[ ${BASH_ARGC[0]-} == 1 && ${BASH_ARGV[0]-} == "${BASH_SOURCE[0]}" ]]; then
        RDMA_READ_BAD_NODES=$(command bash -- "${BASH_SOURCE[0]}") || RDMA_READ_VERIFY_STATUS=$?
    else
        RDMA_READ_BAD_NODES=$(command bash -- "${BASH_SOURCE[0]}" "$@") || RDMA_READ_VERIFY_STATUS=$?
    fi
    if [[ -n $RDMA_READ_BAD_NODES ]]; then printf '%s\n' "$RDMA_READ_BAD_NODES"; fi
    return "$RDMA_READ_VERIFY_STATUS"
fi

set -uo pipefail
export LC_ALL=C

show_help() {
    cat <<'HELP'
usage: verify_before.sh [--budget SECONDS] [--launcher NAME] [-- OPTIONS OF rdma_read_mpi]
   or: source verify_before.sh [the same]

Inside a Slurm job: verifies RDMA Read between its nodes, one rank a node. If something is wrong, stdout is the list
of nodes to exclude (hostlist form), alone in one line; all else is on stderr.

  --budget SECONDS  time for all of it, from 10 to 3600 (default: 60)
  --launcher NAME   srun, mpirun or auto: srun --mpi=pmix, and mpirun if that starts nothing (default: auto)
  --help            shows this text

Environment:
  RDMA_READ_MPI     the program rdma_read_mpi (default: beside this script, in ../../bin, or on the PATH)

Exit status: 0 all reads right, 1 not, 2 wrong options, 3 nothing could be verified.
Sourced, it sets RDMA_READ_BAD_NODES to the list and RDMA_READ_VERIFY_STATUS to the status.
HELP
}

say() {
    printf 'verify_before.sh: %s\n' "$1" >&2
}

stop() {
    say "$2"
    exit "$1"
}

bad_usage() {
    stop 2 "$1 (--help shows the options)"
}

budget=60
launcher=auto
while (($# > 0)); do
    option=$1
    case $option in
        --help)
            show_help
            exit 0
            ;;
        --)
            shift
            break
            ;;
        --budget=* | --launcher=*)
            value=${option#*=}
            option=${option%%=*}
            shift
            ;;
        --budget | --launcher)
            (($# >= 2)) || bad_usage "option $option wants a value"
            value=$2
            shift 2
            ;;
        *) bad_usage "unknown option '$option'" ;;
    esac
    case $option in
        --budget)
            if ! [[ $value =~ ^[0-9]{1,4}$ ]] || ((10#$value < 10 || 10#$value > 3600)); then
                bad_usage "option --budget wants a whole number of seconds from 10 to 3600, not '$value'"
            fi
            budget=$((10#$value))
            ;;
        --launcher)
            [[ $value =~ ^(auto|srun|mpirun)$ ]] ||
                bad_usage "option --launcher wants auto, srun or mpirun, not '$value'"
            launcher=$value
            ;;
    esac
done

[[ -n ${SLURM_JOB_ID:-} ]] || stop 3 "not inside a Slurm job: nothing was verified"
nodes=${SLURM_JOB_NUM_NODES:-${SLURM_NNODES:-}}
[[ $nodes =~ ^[1-9][0-9]{0,5}$ ]] || stop 3 "SLURM_JOB_NUM_NODES is '$nodes': the number of nodes is not known"

here=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
tool=${RDMA_READ_MPI:-}
if [[ -z $tool ]]; then
    for tool in "$here/rdma_read_mpi" "$here/../../bin/rdma_read_mpi" rdma_read_mpi; do
        if command -v "$tool" >/dev/null; then break; fi
    done
fi
command -v "$tool" >/dev/null || stop 3 "$tool is not found on $(hostname): set RDMA_READ_MPI to its full name"

# One rank a node; alone, a node reads from itself.
ranks=$nodes
per_node=1
if ((nodes == 1)); then
    ranks=2
    per_node=2
fi

# ---- ending: whatever happens, the ranks end and no file stays

running=
reports=
# shellcheck disable=SC2317 # a trap calls it
clean_up() {
    trap '' INT TERM HUP
    if [[ -n $running ]]; then
        # timeout passes it on to what it started, and insists after a while.
        kill -TERM "$running" 2>/dev/null
        wait "$running" 2>/dev/null
    fi
    [[ -z $reports ]] || rm -rf -- "$reports"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
reports=$(mktemp -d) || stop 3 "no temporary folder"
report=$reports/report

# The time that a question to a launcher may take: a part of what is left, so that the rest is still worth something.
probe() {
    local left=$(((budget - SECONDS) / 4))
    ((left >= 1)) || left=1
    timeout --kill-after=1 "$((left < 10 ? left : 10))" "$@" </dev/null 2>&1
}

srun_has() {
    probe srun "$1" | grep -w -e "$2" >/dev/null
}

# What the job was submitted with decides for its own steps, not for this one, nor what it does with their output.
srun_command() {
    unset SLURM_LABELIO SLURM_STDOUTMODE SLURM_STDERRMODE
    command=(srun --mpi=pmix "--nodes=$nodes" "--ntasks=$ranks" "--ntasks-per-node=$per_node"
        --distribution=block --kill-on-bad-exit=0 --input=none)
    ((nodes > 1)) || command+=(--overcommit)
    # Older ones share the nodes with other steps without being asked.
    if srun_has --help --overlap; then command+=(--overlap); fi
}

mpirun_command() {
    local version
    version=$(probe mpirun --version)
    if [[ $version == *"Open MPI"* || $version == *[Oo]pen-?[Mm][Pp][Ii]* || $version == *[Pp][Rr][Rr][Tt][Ee]* ]]; then
        command=(mpirun -np "$ranks" --map-by "ppr:$per_node:node")
        ((nodes > 1)) || command+=(--oversubscribe)
    else
        command=(mpirun -n "$ranks" -ppn "$per_node")
    fi
}

# Runs the command with the report in the file $report. The time that is left is shared out: half of it is a reader's,
# so that slow ones are in the report, some more is for the start and for the gathering of results, and at the end
# nobody is asked any more.
attempt() {
    local left=$((budget - SECONDS)) reserve reader
    reserve=$((left / 6))
    ((reserve >= 2)) || reserve=2
    ((reserve <= 15)) || reserve=15
    # timeout takes 0 for no limit at all.
    ((left - reserve >= 2)) || stop 3 "no time left of $budget s (--budget): nothing is known of the nodes"
    reader=$(((left - reserve) / 2))
    ((reader >= 1)) || reader=1
    : >"$report"
    timeout "--kill-after=$((reserve - 1))" $((left - reserve)) \
        "${command[@]}" "$tool" --json - --progress never --timeout "$reader" "$@" </dev/null >"$report" &
    running=$!
    wait "$running"
    status=$?
    running=
    # Text before the report is not the tool's.
    exit_code=$(sed -n '/^  "verdict": {$/,/^}$/p' "$report" | sed -nE 's/^    "exit_code": ([0-3]),?$/\1/p')
}

status=0
exit_code=
tried=
if [[ $launcher != mpirun ]]; then
    if ! command -v srun >/dev/null; then
        [[ $launcher == auto ]] || stop 3 "srun is not found"
    elif ! srun_has --mpi=list pmix; then
        [[ $launcher == auto ]] || stop 3 "srun has no PMIx (srun --mpi=list)"
    else
        srun_command
        attempt "$@"
        tried=srun
    fi
fi
# Wrong options are wrong for mpirun, too; without a report srun started no ranks that know of each other.
if [[ $launcher != srun && -z $exit_code && $status != 2 ]] && command -v mpirun >/dev/null; then
    if [[ -z $tried ]] || ((budget - SECONDS >= 5 && status != 124 && status != 137)); then
        [[ -z $tried ]] || say "srun --mpi=pmix started nothing that reported (status $status): trying mpirun"
        mpirun_command
        attempt "$@"
        tried=mpirun
    fi
fi
[[ -n $tried ]] || stop 3 "neither srun with PMIx nor mpirun is here: load the module of the MPI that $tool was built with"

if [[ $exit_code == 0 && $status == 0 ]]; then exit 0; fi
if [[ -z $exit_code ]]; then
    ((status != 2)) || stop 2 "rdma_read_mpi does not take these options: see above"
    if ((status == 124 || status == 137)); then
        stop 3 "no report within $budget s (--budget): nothing is known of the nodes"
    fi
    stop 3 "${command[0]} ended with status $status and no report: nothing was verified"
fi
if [[ $exit_code == 0 ]]; then
    stop 1 "all reads were right, but ${command[0]} ended with status $status: look at what it says above"
fi

# The report has one key a line; what is wrong, one line each.
awk '
function value(line) {
    sub(/^ *"[a-z_]+": /, "", line); sub(/,$/, "", line)
    if (line == "null") return "?"
    gsub(/^"|"$/, "", line); gsub(/\\"/, "\"", line); gsub(/\\\\/, "\\", line)
    return line
}
/^  "results": \[/ { inside = 1 }
/^  "verdict": \{/ { inside = 0 }
inside && /^      "(server_host|reader_host|outcome|phase|error|hint)": / {
    name = $1; gsub(/[":]/, "", name); is[name] = value($0)
}
inside && /^    \}/ {
    if (is["outcome"] != "PASS" && ++wrong <= 20)
        printf "verify_before.sh: %s reading from %s: %s (%s): %s; %s\n", is["reader_host"], is["server_host"],
            is["outcome"], is["phase"], is["error"], is["hint"]
}
END { if (wrong > 20) printf "verify_before.sh: and %d more\n", wrong - 20 }
' "$report" >&2
bad=$(sed -n '/^  "verdict": {$/,/^}$/p' "$report" | sed -nE 's/^    "bad_hostlist": "([][A-Za-z0-9._,-]+)",?$/\1/p')
if [[ -n $bad ]]; then
    say "do without: $bad"
    printf '%s\n' "$bad"
else
    say "which nodes to do without is not known"
fi
exit "$exit_code"
