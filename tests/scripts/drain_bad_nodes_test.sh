#!/bin/bash
# Claims about which nodes drain_bad_nodes.sh takes out of Slurm.
# shellcheck source=SCRIPTDIR/claims.sh
source "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/claims.sh"
skip_without jq
script=$job_scripts/drain_bad_nodes.sh
quote=\'

# report FILE "SERVER READER OUTCOME"...: a report of these results. Of an outcome may follow, after a colon each, the
# phase and whether a retest failed as well.
report() {
    local file=$1
    shift
    printf '%s\n' "$@" | jq --raw-input --null-input '
        [inputs | split(" ") | (.[2] | split(":")) as $how | {server_rank: 0, reader_rank: 1, server_host: .[0],
         reader_host: .[1], outcome: $how[0], phase: ($how[1] // "read"), error: "the call failed",
         hint: null, confirmed: (if $how[2] then $how[2] == "true" else null end)}]
        | {schema: "rdma-read-report/1", run_id: "deadbeef",
           options: {size: [65536], depth: 16, buffer: 131064, port: 0, server_ip: null, interface: null, device: null},
           servers: [{host: .[0].server_host, device: "rxe0", address: "10.0.0.1"}], results: .}' >"$file"
}

# change FILE PROGRAM [ARGUMENT...]: changes a report with jq.
change() {
    local file=$1 program=$2
    shift 2
    jq "$@" "$program" "$file" >changed && mv -- changed "$file"
}

# The names of the nodes in the commands on stdout.
drained() {
    sed -nE 's/^scontrol update nodename=([A-Za-z0-9._-]+) state=drain reason="[A-Za-z0-9 ._:,/()+-]*"$/\1/p' out | paste -sd' '
}

# proposes TEXT NODES REPORT...: the claim that these nodes are proposed, and nothing else is on stdout.
proposes() {
    local text=$1 nodes=$2
    shift 2
    run "$script" "$@"
    claim "$text" same "$status $(drained) $(wc -l <out)" "0 $nodes $(wc -w <<<"$nodes")"
}

claim_options "$script" --apply --most
run "$script"
claim "no report is bad usage" same "$status $(wc -l <err)" "2 1"
run "$script" --most many r.json
claim "a number that is none is bad usage" same "$status $(wc -l <err)" "2 1"

# ---- the rules

report r "n1 n2 PASS" "n1 n3 PASS" "n1 n4 PASS"
proposes "nothing is proposed when all is well" "" r
claim "and nothing is said" same "$err" ""

report r "n1 n2 READ_FAILED"
proposes "of two nodes that fail with each other neither is proposed" "" r
claim "but it is said that this is open" has "$err" "n1 and n2 failed with each other"
report s "n2 n1 CORRUPT"
proposes "nor when they fail both ways and again" "" r r s
report r "n1 n1 PASS" "n1 n2 TIMEOUT" "n1 n2 TIMEOUT"
proposes "nor because a node reads well from itself" "" r
report r "n1 n1 PASS" "n1 n2 READ_FAILED" "n1 n3 PASS"
proposes "which does not clear a server either" "" r

report r "n1 n2 NO_DEVICE"
proposes "a reader without a device is proposed, also of two nodes" n2 r
report r "n1 n2 SETUP_FAILED"
proposes "so is one whose device or limits refuse little" n2 r
change r '.options.depth = 1024 | .options.size = [65536, 1048576]'
proposes "but not when they refuse much" "" r
report r "n1 n2 SETUP_FAILED"
change r '.options.hugepages = true'
proposes "nor when it was asked for huge pages" "" r
report r "n1 n2 NOT_RUN" "n1 n3 NOT_RUN"
proposes "readers that did not run are no evidence" "" r
change r '.servers[0] |= (.device = null | .address = null)'
proposes "but a server whose device could not be used is proposed" n1 r
change r '.interrupted = "SIGTERM"'
proposes "unless the run was stopped before it listened" "" r
change r '.interrupted = null'
change r '.options.server_ip = "10.9.9.9"'
proposes "unless an address was asked for" "" r

report r "n1 n2 READ_FAILED" "n1 n3 CONNECT_FAILED" "n1 n4 TIMEOUT"
proposes "a server that fails with every reader is proposed, its readers are not" n1 r
change r '.interrupted = "SIGTERM"'
proposes "unless the run was stopped" "" r
change r '.interrupted = null | .results[].outcome = "TIMEOUT" | .results[].sizes = [{reads: 640}]'
proposes "or was making progress when the time was over" "" r
change r '.results[].sizes = [{reads: 0}]'
proposes "which it was not without a read" n1 r
report r "n1 n2 READ_FAILED" "n1 n3 CONNECT_FAILED" "n1 n4 TIMEOUT"
"$script" r >/dev/full 2>err
claim "commands that cannot be written are a failure" same "$? $(wc -l <err)" "1 1"
run "$script" r
claim "the reason says what failed, with how many, and the run" \
    has "$out" 'reason="rdma_read: CONNECT_FAILED READ_FAILED TIMEOUT with 3 of 3 partners, run deadbeef"'
report r "n1 n2 PASS" "n1 n3 CORRUPT" "n1 n4 PASS"
proposes "a reader that fails at a server with which two others do well is proposed" n3 r
report r "n1 n2 PASS" "n1 n3 READ_FAILED"
proposes "one other that does well does not clear a server" "" r
report r "n1 n2 READ_FAILED" "n1 n3 READ_FAILED" n1\ n{4..12}\ PASS
proposes "a server is not blamed for two bad readers among many" "n2 n3" r
report r "n1 n2 READ_FAILED" "n1 n3 READ_FAILED" "n1 n4 READ_FAILED" "n1 n5 PASS" "n1 n6 PASS" "n1 n7 PASS"
proposes "when half of the readers fail nobody is proposed" "" r
claim "and it is said that this is open" has "$err" "n1 and n2 failed with each other"
report r "n1 n2 READ_FAILED" "n1 n3 PASS" "n2 n3 READ_FAILED"
proposes "in a mesh of three the one that fails with both is proposed" n2 r
report r "n1 n2 READ_FAILED" "n1 n3 READ_FAILED" "n1 n4 PASS" "n1 n5 PASS" "n2 n3 READ_FAILED" "n2 n4 TIMEOUT" \
    "n2 n5 CORRUPT" "n3 n4 READ_FAILED" "n3 n5 READ_FAILED" "n4 n5 PASS"
proposes "in a mesh with two bad ones the good ones, which fail with both, are not proposed" "n2 n3" r
report r "n1 n2 PASS" "n1 n3 READ_FAILED"
report s "n2 n3 READ_FAILED"
proposes "several reports are weighed together" n3 r s

report r "n1 n2 SLOW" "n1 n3 SLOW" "n1 n4 SLOW"
proposes "slow nodes are not proposed" "" r
report r "n1 n2 READ_FAILED:read:false" "n1 n3 PASS" "n1 n4 PASS"
proposes "a failure that a retest did not confirm is no evidence" "" r
report r "n1 n2 CORRUPT:check:false" "n1 n3 PASS" "n1 n4 PASS"
proposes "wrong data is, whatever a retest says" n2 r
report r "n1 n2 READ_FAILED:read:true" "n1 n3 PASS" "n1 n4 PASS"
proposes "so is a failure that a retest confirmed" n2 r
report r "n1 n2 TIMEOUT:gather" "n1 n3 PASS" "n1 n4 PASS"
proposes "a rank that was not heard of says nothing about RDMA" "" r
report r "n1 ? READ_FAILED" "n1 n2 READ_FAILED"
change r '.results[0].server_host = null'
proposes "a host that is not known is no partner" "" r

report r "n1 n2 NO_DEVICE" "n1 n3 NO_DEVICE" "n1 n4 PASS"
proposes "half of the nodes may be drained" "n2 n3" r
report r "n1 n2 NO_DEVICE" "n1 n3 NO_DEVICE" "n1 n4 NO_DEVICE"
run "$script" r
claim "but not more than half: then it is not the nodes" same "$status $out $(wc -l <err)" "1  1"
proposes "unless that is allowed" "n2 n3 n4" --most 3 r
run "$script" --most=0 r
claim "--most 0 drains nothing" same "$status $out" "1 "

# ---- what is no report

# refused TEXT FILE...
refused() {
    local text=$1
    shift
    run "$script" "$@"
    claim "refused with one line: $text" same "$status $out $(wc -l <err)" "1  1"
}
report good "n1 n2 NO_DEVICE"
refused "a file that is not there" missing
refused "a folder" /
printf '' >r && refused "an empty file" r
printf '{' >r && refused "half an object" r
printf '[]' >r && refused "an array" r
cat good good >r && refused "two objects" r
refused "a good report with a bad one" good missing
for spoil in '.schema = "rdma-read-report/2"' 'del(.schema)' 'del(.results)' '.results = {}' '.results[0] = 1' \
    '.results[0].outcome = "FINE"' '.results[0].outcome = ["PASS"]' 'del(.results[0].outcome)' '.results[0].error = {}' \
    '.results[0].phase = 1' '.results[0].confirmed = "no"' '.results[0].reader_host = 5' '.servers = null' \
    '.servers = [1]' '.options = []' '.options.size = 1' '.options.size = ["1"]' '.options.depth = null'; do
    cp good r && change r "$spoil" && refused "$spoil" r
done
# shellcheck disable=SC2016 # not to be expanded, which is the claim
for name in 'n2;touch here' 'n2$(touch here)' 'n2`touch here`' 'n2"' "n2$quote" 'n[1-99]' 'n1,n3' 'ALL' 'all' 'DEFAULT' \
    '-n2' '' ' ' $'n2\n' $'n2\nn3' 'n2 state=resume' 'n2=x' 'n2*' '../n2' $'n\xc3\xb62' $'\x1b[2Jn'; do
    cp good r
    # shellcheck disable=SC2016
    change r '.results[0].reader_host = $name' --arg name "$name"
    refused "the host name $(printf '%q' "$name")" r
    cp good r
    # shellcheck disable=SC2016
    change r '.servers[0].host = $name' --arg name "$name"
    refused "the server name $(printf '%q' "$name")" r
done
# shellcheck disable=SC2016
for error in '"; touch here; "' '$(touch here)' '`touch here`' "$quote; touch here; $quote" $'x\ntouch here\n' \
    $'drain n9 x\ndrain n9 x' '\"' '!!' $'\x1b]0;x\x07' '"' ''; do
    cp good r
    # shellcheck disable=SC2016
    change r '.results[0].error = $error' --arg error "$error"
    proposes "the error $(printf '%q' "$error") stays within the reason" n2 r
    bash -c 'scontrol() { [[ $# == 4 ]] && printf "%s\n" "$@" >arguments; }; source ./out' >shell 2>&1
    claim "and does nothing in a shell" same "$(<shell) $(grep -c . arguments) $(compgen -G here)" " 4 "
done
cp good r && change r '.run_id = "\"; touch here"' && proposes "a strange run id is left out" n2 r
claim "of the reason" has_not "$out" run

# ---- --apply

cp good r
stand_in scontrol <<'S'
printf '%s|' "$@" >>calls
printf '\n' >>calls
if [[ $1 == --oneliner ]]; then
    [[ $4 != unknown* ]] || { echo "Node $4 not found" >&2; exit 1; }
    case $4 in
        idle*) echo "NodeName=$4 State=IDLE ThreadsPerCore=1" ;;
        *) echo "NodeName=$4 State=IDLE+DRAIN ThreadsPerCore=1 Reason=mine" ;;
    esac
else
    [[ $2 != *denied ]] || { echo "slurm_update error: Access/permission denied" >&2; exit 1; }
fi
S
report r "n1 idle2 NO_DEVICE" "n1 n3 PASS"
rm -f calls
run "$script" r
claim "without --apply nothing is run" same "$(ls calls 2>/dev/null)" ""
run "$script" --apply r
claim "with --apply the node is drained with the reason" same "$status $(grep update calls)" \
    "0 update|nodename=idle2|state=drain|reason=rdma_read: NO_DEVICE: the call failed, run deadbeef|"
report r "n1 drained2 NO_DEVICE" "n1 n3 PASS"
rm -f calls
run "$script" --apply r
claim "a node that is drained already keeps its reason" same "$status $(grep -c update calls)" "0 0"
report r "n1 unknown2 NO_DEVICE" "n1 idle3 NO_DEVICE" "n1 n4 PASS"
run "$script" --apply r
claim "a node that Slurm does not know is an error, the others are drained all the same" \
    same "$status $(grep -c 'update.*idle3' calls)" "1 1"
report r "n1 idle-denied NO_DEVICE"
run "$script" r --apply
claim "a command that fails is an error" same "$status" 1

rm -- "$work/bin/scontrol"
mkdir no_jq
ln -s -- "$(command -v bash)" "$(command -v tr)" no_jq/
run env PATH="$work/no_jq" bash "$script" good
claim "a missing jq is named" same "$status $err" "1 drain_bad_nodes.sh: jq is missing: install the package jq"
ln -s -- "$(command -v jq)" no_jq/
run env PATH="$work/no_jq" bash "$script" --apply good
claim "with --apply a missing scontrol is named" same "$status $(wc -l <err) ${err:0:40}" "1 1 drain_bad_nodes.sh: scontrol is missing:"
end_of_claims
