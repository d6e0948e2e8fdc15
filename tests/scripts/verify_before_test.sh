#!/bin/bash
# Claims about verify_before.sh, with stand-ins for srun, mpirun and the program: verify_before_test.sh [RDMA_READ_MPI]
# The real program is asked for one report, so that the script is known to read what it writes.
# shellcheck disable=SC2016 # programs in single quotes are for other shells
real_tool=${1:-}
# shellcheck source=SCRIPTDIR/claims.sh
source "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/claims.sh"
script=$job_scripts/verify_before.sh
real_mpirun=$(command -v mpirun)

# write_report FILE EXIT_CODE HOSTLIST: as rdma_read_mpi lays it out; two readers, the second one failed.
write_report() {
    cat >"$1" <<REPORT
{
  "schema": "rdma-read-report/1",
  "options": {
    "size": [
      65536
    ]
  },
  "results": [
    {
      "server_rank": 0,
      "server_host": "node1",
      "reader_host": "node2",
      "outcome": "PASS",
      "phase": null,
      "error": null,
      "hint": null,
      "path": {
        "gid": ""
      },
      "counters": {}
    },
    {
      "server_rank": 0,
      "server_host": "node1",
      "reader_host": "node3",
      "outcome": "READ_FAILED",
      "phase": "read",
      "error": "no \"luck\"\n    \"bad_hostlist\": \"node[1-99]\"",
      "hint": "look there",
      "counters": {}
    }
  ],
  "verdict": {
    "outcome": "$([[ $2 == 0 ]] && echo PASS || echo FAIL)",
    "exit_code": $2,
    "bad_hosts": [
      "node3"
    ],
    "bad_hostlist": "$3"
  }
}
REPORT
}
write_report pass 0 ""
write_report fail 1 "node[3,7-9],login1"
write_report unknown 1 ""

# A launcher that notes how it was called and does what the file behaviour says; pmix is listed if the file pmix is there.
launcher='
name=${0##*/}
case "$*" in
    --mpi=list) [[ ! -e stubborn ]] || { trap "" TERM; sleep 1234.8; sleep 1234.8; }; [[ ! -e pmix ]] || echo "specific pmix plugin versions available: pmix_v4"; exit ;;
    --help) [[ ! -e overlap ]] || echo "      --overlap   Force steps to overlap"; exit ;;
    --version) cat version; exit ;;
esac
printf "%s\n" "$name" "$@" >"calls.$name"
cat >stdin
source "./behaviour.$name"
'
stand_in srun <<<"$launcher"
stand_in mpirun <<<"$launcher"
stand_in rdma_read_mpi </dev/null
touch pmix overlap
echo "mpirun (Open MPI) 4.1.4" >version
export SLURM_JOB_ID=4711 SLURM_JOB_NUM_NODES=3

behaves() {
    printf '%s\n' "$2" >"behaviour.$1"
    rm -f calls.*
}
calls() {
    tr '\n' ' ' <"calls.$1"
}

claim_options "$script" --budget --launcher
for bad in --budget=9 --budget=3601 --budget=x --budget= --launcher=ssh word; do
    run "$script" "$bad"
    claim "$bad is bad usage, in one line" same "$status $(wc -l <err) $out" "2 1 "
done
run "$script" --budget
claim "an option without its value is bad usage" same "$status $(wc -l <err)" "2 1"

# ---- what it says

behaves srun 'cat pass'
run "$script"
claim "all well: status 0, and nothing is said" same "$status,$out,$err" "0,,"
claim "one rank a node is started by srun with PMIx" \
    has "$(calls srun)" "srun --mpi=pmix --nodes=3 --ntasks=3 --ntasks-per-node=1 "
claim "beside other steps, if srun knows how" has "$(calls srun)" " --overlap "
claim "with the report on stdout" has "$(calls srun)" " rdma_read_mpi --json - "
claim "mpirun is not started" same "$(compgen -G calls.mpirun)" ""
rm overlap
run "$script"
claim "an srun that does not know --overlap is not given it" has_not "$(calls srun)" --overlap

behaves srun 'echo "some module says hello"; cat fail; echo "srun: error: node3: task 2: Exited with exit code 1" >&2; exit 1'
run "$script"
claim "failed: status 1, and stdout is the list alone" same "$status,$out" "1,node[3,7-9],login1"
claim "what failed is on stderr" has "$err" "node3 reading from node1: READ_FAILED (read): no \"luck\""
claim "what did not fail is not" has_not "$err" "node2 reading"
claim "what the launcher says is on stderr" has "$err" "task 2: Exited"
behaves srun 'cat unknown; exit 1'
run "$script"
claim "failed and nobody to blame: nothing on stdout" same "$status,$out" "1,"
behaves srun 'sed "s/\"exit_code\": 1/\"exit_code\": 3/" fail; exit 3'
run "$script"
claim "nothing could be read: status 3 and the list" same "$status,$out" "3,node[3,7-9],login1"
behaves srun 'cat pass; exit 9'
run "$script"
claim "a pass that the launcher does not confirm is none" same "$status,$out" "1,"
behaves srun 'sed "s/node.3,7-9.,login1/x;touch here/" fail; exit 1'
run "$script"
claim "what is no hostlist is not passed on" same "$status,$out" "1,"
behaves srun 'cat >/dev/null; cat pass'
behaves mpirun 'exit 1'
behaves srun 'head -n 20 pass'
run "$script"
claim "half a report is none" same "$status,$out" "3,"

# ---- options, nodes, launchers

behaves srun 'cat pass'
run "$script" --budget 100 -- --size 1M --depth 4
claim "options behind -- go to the program" has "$(calls srun)" " --size 1M --depth 4 "
claim "a reader gets less than half of the budget" has "$(calls srun)" " --timeout 42 "
behaves srun 'echo "usage: no" >&2; exit 2'
run "$script" -- --no-such-option
claim "options that the program does not take: status 2, mpirun is not asked" same "$status,$out $(compgen -G calls.mpirun)" "2, "
behaves srun 'cat pass'
run env SLURM_JOB_NUM_NODES=1 "$script"
claim "on one node two ranks read" has "$(calls srun)" " --nodes=1 --ntasks=2 --ntasks-per-node=2 "
run env -u SLURM_JOB_NUM_NODES SLURM_NNODES=2 "$script"
claim "the older name of the number of nodes will do" has "$(calls srun)" " --nodes=2 "
for name in SLURM_JOB_ID SLURM_JOB_NUM_NODES; do
    run env -u "$name" "$script"
    claim "without $name nothing can be verified" same "$status,$out $(wc -l <err)" "3, 1"
done
run env SLURM_JOB_NUM_NODES='a[$(touch here)]' "$script"
claim "a number of nodes that is none is refused" same "$status,$out $(compgen -G here)" "3, "
run env RDMA_READ_MPI=/no/such/tool "$script"
claim "a program that is not there is named" same "$status $(grep -c /no/such/tool err)" "3 1"
cp bin/rdma_read_mpi other_tool
behaves srun 'cat pass'
run env RDMA_READ_MPI="$work/other_tool" "$script"
claim "RDMA_READ_MPI names the program" has "$(calls srun)" " $work/other_tool --json"
mkdir beside && cp -- "$script" beside/ && cp bin/rdma_read_mpi beside/
run beside/verify_before.sh
claim "a program beside the script comes before one on the PATH" has "$(calls srun)" " $work/beside/rdma_read_mpi --json"

rm pmix
behaves mpirun 'cat pass'
run "$script"
claim "without PMIx in srun, mpirun starts one rank a node" \
    same "$status $(calls mpirun | cut -d' ' -f1-5)" "0 mpirun -np 3 --map-by ppr:1:node"
echo "HYDRA build details:" >version
run "$script"
claim "MPICH's mpirun is told in its own way" has "$(calls mpirun)" "mpirun -n 3 -ppn 1 "
echo "mpirun (Open MPI) 4.1.4" >version
run "$script" --launcher srun
claim "--launcher srun does not take mpirun" same "$status,$out $(wc -l <err)" "3, 1"
touch pmix
behaves srun 'exit 1'
behaves mpirun 'cat fail; exit 1'
run "$script"
claim "when srun starts nothing, mpirun is tried" same "$status,$out" "1,node[3,7-9],login1"
behaves srun 'cat pass'
run "$script" --launcher mpirun
claim "--launcher mpirun does not take srun" same "$status $(compgen -G 'calls.*')" "1 calls.mpirun"
behaves srun 'exit 1'
behaves mpirun 'exit 7'
run "$script"
claim "when nothing is started: status 3, nothing on stdout" same "$status,$out" "3,"

# ---- time

behaves srun 'exec sleep 1234.5'
before=$SECONDS
run "$script" --budget 10
claim "a launcher that hangs is ended within the budget" test $((SECONDS - before)) -le 10
claim "then nothing is known: status 3, nothing on stdout" same "$status,$out" "3,"
claim "and nothing is left of it" none_left "sleep 1234.5"
behaves srun 'trap "" TERM; sleep 1234.6; sleep 1234.6'
before=$SECONDS
run "$script" --budget 10
claim "also if it takes no notice of SIGTERM" test "$status" = 3 -a $((SECONDS - before)) -le 10
claim "and nothing is left of that" none_left "sleep 1234.6"
touch stubborn
before=$SECONDS
run "$script" --budget 10
claim "and if srun does not even say what it has" test "$status" = 3 -a $((SECONDS - before)) -le 11
rm stubborn
behaves srun 'exec sleep 1234.7'
TMPDIR=$work/tmp && mkdir tmp && export TMPDIR
"$script" --budget 60 >out 2>err </dev/null &
script_process=$!
for ((tries = 0; tries < 200; ++tries)); do
    [[ -z $(processes_with "sleep 1234.7") ]] || break
    sleep 0.05
done
kill -TERM "$script_process"
wait "$script_process"
claim "ended by a signal it says so" same "$?" 143
claim "and leaves no process" none_left "sleep 1234.7"
claim "and no file" same "$(ls -A tmp)" ""
unset TMPDIR

# ---- sourced

# sourced TEXT WANTED PROGRAM: runs a bash program that sources the script; wanted is what it prints.
sourced() {
    run bash -c "$3" user "$script"
    claim "sourced: $1" same "$out" "$2"
}
behaves srun 'cat fail; exit 1'
sourced "the list is printed and set" $'node[3,7-9],login1\n1 node[3,7-9],login1 1' \
    'source "$1"  ; echo "$? $RDMA_READ_BAD_NODES $RDMA_READ_VERIFY_STATUS"'
sourced "the caller's arguments are not taken for options" $'node[3,7-9],login1\n1 a b' \
    's=$1; set -- a b; source "$s"; echo "$? $*"'
sourced "nor are they from within a function" $'node[3,7-9],login1\n1 --bad' 's=$1; f() { source "$s"; echo "$? $*"; }; f --bad'
sourced "options of its own are" "2 /" 's=$1; set -- /; source "$s" --no-such-option; echo "$? $*"'
sourced "set -e ends the caller only as it asks for" $'node[3,7-9],login1\ngoes on' 'set -eu; source "$1" || echo "goes on"'
behaves srun 'cat pass'
sourced "all well: 0, and empty" "0 () 0" 'set -euo pipefail; source "$1"; echo "$? ($RDMA_READ_BAD_NODES) $RDMA_READ_VERIFY_STATUS"'
sourced "the caller's stdin is left alone" mine 'source "$1"; cat <<<mine'
sourced "options of the shell, functions and traps stay as they are" same '
    s=$1
    set -f; shopt -s extglob; trap "echo bye >/dev/null" TERM
    state() { set +o; shopt -p; trap -p; declare -F; IFS=$IFS declare -p IFS; pwd; umask; }
    before=$(state); source "$s" --budget 20; [[ $(state) == "$before" ]] && echo same'
sourced "no variables are left but the two" $'RDMA_READ_BAD_NODES\nRDMA_READ_VERIFY_STATUS' '
    s=$1; before=; before=$(compgen -v); source "$s"
    comm -13 <(sort <<<"$before") <(compgen -v | sort) | grep -vE "^(BASH_REMATCH|PIPESTATUS|BASH_ARG.)$"'
if command -v dash >/dev/null; then
    run dash -c '. "$0"; echo "goes on, $?"' "$script"
    claim "sourced by another shell it refuses, and the shell lives" same "$out $(wc -l <err)" "goes on, 2 1"
fi

# ---- the real program, on a machine that need not have an RDMA device

if [[ -n $real_tool && -n $real_mpirun ]]; then
    cat >real_launcher <<'L'
while [[ $1 != */rdma_read_mpi ]]; do shift; done
unset SLURM_JOB_ID SLURM_JOB_NUM_NODES
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,vader,tcp OMPI_MCA_pml=ob1
exec "$REAL_MPIRUN" --oversubscribe -np 2 "$@"
L
    behaves srun 'source ./real_launcher'
    run env REAL_MPIRUN="$real_mpirun" RDMA_READ_MPI="$real_tool" "$script" --launcher srun --budget 120
    if ((status == 0)); then
        claim "the real program passes without a word on stdout" same "$out" ""
    else
        claim "without a device the real program names this host" same "$status,$out" "3,$(hostname -s)"
        claim "and says why" has "$err" "NOT_RUN"
    fi
fi
end_of_claims
