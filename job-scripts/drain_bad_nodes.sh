#!/bin/bash
# Prints the commands that take bad nodes out of Slurm, from reports of rdma_read_mpi (--json FILE):
#
#     drain_bad_nodes.sh rdma-read-4711.json              # look at the commands
#     drain_bad_nodes.sh --apply rdma-read-4711.json      # run them, as a Slurm administrator
#
# Several reports are weighed together: read in other combinations of nodes, and hand all reports over.
#
# A node is proposed on evidence that names it and nobody else, never on one pair of nodes alone:
#
#   1. It failed by itself: NO_DEVICE or SETUP_FAILED as a reader, or as a server whose device could not be used (not
#      when the run asked for a certain address, interface, device or port). SETUP_FAILED counts only if the run
#      asked for little, --buffer and --size times --depth at most 64 MiB each, without --hugepages and --qps: a
#      sound node may refuse more.
#   2. It failed with at least two partners, and with more than twice as many as it did well with.
#   3. It failed with one partner or more and did well with none, and one of these partners is cleared: that one did
#      well with at least two other nodes, and with at least twice as many as it failed with.
#
# Pairs are of different nodes, whichever of the two read; a pair failed if any read between the two did. What counts
# as a failure of a pair is CORRUPT, CONNECT_FAILED, READ_FAILED and TIMEOUT, unless a retest passed (not for
# CORRUPT). NOT_RUN says nothing, nor does a rank that was not heard of, and SLOW depends on what was asked for. A
# TIMEOUT in the middle of reads says nothing either, there may have been too many for the time, and of a run that was
# stopped (interrupted) only CORRUPT counts.
# So of two nodes that cannot read from each other neither is proposed, as nothing tells which of them it is; a server
# is not blamed for one bad reader, nor a reader for a bad server. Failed pairs that settle nothing are said on stderr.
#
# If more than half of the nodes in the reports would be proposed (--most changes that), none is: then look at the
# fabric and at the run.
#
# The names in a report are those of hostname -s: NodeName in slurm.conf has to be the same. --apply leaves alone what
# is drained already, so that its reason stays.
#
# To edit: nothing. Needs jq; with --apply also scontrol, and the right to use it.
set -uo pipefail
export LC_ALL=C

show_help() {
    cat <<'HELP'
usage: drain_bad_nodes.sh [--apply] [--most N] REPORT.json...

Prints the scontrol commands that drain the nodes which the reports of rdma_read_mpi prove to be bad. The rules are
at the head of this script.

  --apply     runs the commands, too; nodes that are drained already stay as they are
  --most N    proposes no node if there are more than N (default: half of the nodes in the reports, at least 1)
  --help      shows this text

The commands are on stdout, remarks on stderr.
Exit status: 0 if the reports were weighed (and the commands ran), whether or not there is a bad node; 1 if a report
cannot be used, there are too many bad nodes or a command failed; 2 wrong options.
HELP
}

say() {
    printf 'drain_bad_nodes.sh: %s\n' "$1" >&2
}

stop() {
    say "$2"
    exit "$1"
}

apply=no
most=
files=()
while (($# > 0)); do
    case $1 in
        --help)
            show_help
            exit 0
            ;;
        --apply) apply=yes ;;
        --most | --most=*)
            if [[ $1 == --most ]]; then
                (($# >= 2)) || stop 2 "option --most wants a number from 0 to 1000000 (--help shows the options)"
                shift
            fi
            most=${1#--most=}
            if ! [[ $most =~ ^[0-9]{1,7}$ ]] || ((10#$most > 1000000)); then
                stop 2 "option --most wants a number from 0 to 1000000, not '$most' (--help shows the options)"
            fi
            most=$((10#$most))
            ;;
        --)
            shift
            files+=("$@")
            break
            ;;
        -?*) stop 2 "unknown option '$1' (--help shows the options)" ;;
        *) files+=("$1") ;;
    esac
    shift
done
((${#files[@]} > 0)) || stop 2 "no report: drain_bad_nodes.sh REPORT.json... (--help shows the options)"
command -v jq >/dev/null || stop 1 "jq is missing: install the package jq"
if [[ $apply == yes ]] && ! command -v scontrol >/dev/null; then
    stop 1 "scontrol is missing: --apply works only where Slurm's commands are"
fi

# A name that Slurm takes for one node: no list, no range, and not ALL, which is every node. "?" and null are unknown.
# shellcheck disable=SC2016
common='
def known: . != null and . != "?";
def node_name: (type == "string") and test("\\A[A-Za-z0-9][A-Za-z0-9._-]{0,252}\\z")
    and (ascii_downcase | . != "all" and . != "default" and . != "unknown" and . != "cloud");
'

# Says what is wrong with a report; nothing if it can be used.
# shellcheck disable=SC2016
check='
def outcomes: ["PASS", "CORRUPT", "SLOW", "CONNECT_FAILED", "READ_FAILED", "TIMEOUT", "NO_DEVICE", "SETUP_FAILED", "NOT_RUN"];
def text_or_null: . == null or type == "string";
def host_trouble($what):
    if known and (node_name | not) then "\($what) \(tojson | .[0:60]) is not the name of one node" else empty end;
def result_trouble:
    if type != "object" then "a result is no object"
    elif .outcome as $outcome | outcomes | index([$outcome]) == null then "a result has no known outcome"
    elif [.phase, .error] | all(text_or_null) | not then "a result has a phase or an error that is no text"
    elif .confirmed | . != null and type != "boolean" then "a result has a confirmed that is no boolean"
    else (.server_host | host_trouble("server_host")), (.reader_host | host_trouble("reader_host")) end;
if length != 1 then "it is not one JSON object"
else .[0]
| if type != "object" then "it is not one JSON object"
  elif .schema != "rdma-read-report/1" then "its schema is not rdma-read-report/1"
  elif (.results | type) != "array" or (.servers | type) != "array" or (.options | type) != "object"
  then "results, servers or options are missing"
  elif (.options.size | type) != "array" or ([.options.size[], .options.depth, .options.buffer] | all(type == "number") | not)
  then "its size, depth or buffer is missing among the options"
  else (.results[] | result_trouble),
    (.servers[] | if type != "object" then "a server is no object" else .host | host_trouble("host") end)
  end
end'

# Each node of all reports with what is known of it, one line: verdict, name, reason.
# shellcheck disable=SC2016
weigh='
def failures: ["CORRUPT", "CONNECT_FAILED", "READ_FAILED", "TIMEOUT"];
def plain: (. // "") | gsub("[^A-Za-z0-9 ._:/()+-]+"; " ") | gsub(" +"; " ") | .[0:120] | sub("[ :]+$"; "");
def count($noun): "\(.) \($noun)\(if . == 1 then "" else "s" end)";
def run: (.run_id | if type == "string" and test("\\A[0-9a-f]{1,32}\\z") then ", run \(.)" else "" end);
def asks_little: (.options.size | max) * .options.depth <= 67108864 and .options.buffer <= 67108864
    and .options.hugepages != true and (.options.qps // 1) == 1;
def asks_for_a_place: [.options.server_ip, .options.interface, .options.device] | any(. != null);
def in_progress: .outcome == "TIMEOUT" and .phase == "read" and ([.sizes[]?.reads?] | map(numbers) | add // 0) > 0;
def pair($report): .outcome as $outcome
    | if $outcome == "PASS" then "well"
      elif $outcome != "CORRUPT" and ($report.interrupted != null or in_progress) then null
      elif (failures | index([$outcome]) | . != null) and .phase != "gather" and ($outcome == "CORRUPT" or .confirmed != false)
      then "failed" else null end;
[.[] | . as $report | run as $run
 # Rule 1.
 | (.results[] | select(.reader_host | known)
    | select(.outcome == "NO_DEVICE" or (.outcome == "SETUP_FAILED" and ($report | asks_little)))
    | {host: .reader_host, alone: "\(.outcome): \(.error | plain)\($run)"}),
   (.servers[] | select((.host | known) and .address == null and .device == null)
    | select($report | (.results | length > 0 and all(.outcome == "NOT_RUN")) and asks_little
        and (asks_for_a_place | not) and .options.port == 0 and .interrupted == null)
    | {host: .host, alone: "no server: \($report.results[0].error | plain)\($run)"}),
 # For rules 2 and 3: each pair from either end.
   (.results[] | select((.reader_host | known) and (.server_host | known))
    | pair($report) as $went | select($went != null and .reader_host != .server_host)
    | {went: $went, outcome: .outcome, run: $run} as $what
    | ({host: .reader_host, partner: .server_host} + $what), ({host: .server_host, partner: .reader_host} + $what)),
   (.results[] | .reader_host, .server_host | select(known) | {host: .}),
   (.servers[] | .host | select(known) | {host: .})]
| group_by(.host)
| map({key: .[0].host, value: {
    alone: (map(.alone | select(. != null)) | unique | .[0]),
    failed: (map(select(.went == "failed").partner) | unique),
    outcomes: (map(select(.went == "failed").outcome) | unique | join(" ")),
    run: (map(select(.went == "failed").run) | .[0]),
    well: ((map(select(.went == "well").partner) | unique) - (map(select(.went == "failed").partner) | unique) | length)}})
| from_entries as $nodes
| def cleared: . as $node | ($node.well >= 2 and $node.well >= 2 * ($node.failed | length));
  [$nodes | to_entries[] | .key as $name | .value | (.failed | length) as $failed
   | {name: $name, failed: .failed, reason:
      (if .alone != null then .alone
       elif $failed >= 2 and $failed > 2 * .well
       then "\(.outcomes) with \($failed) of \($failed + .well | count("partner"))\(.run)"
       elif $failed >= 1 and .well == 0 and (.failed | any($nodes[.] | cleared))
       then "\(.outcomes) with \([.failed[] | select($nodes[.] | cleared)][0]) that other nodes read with\(.run)"
       else null end)}]
| [.[] | select(.reason != null)] as $bad
| ($bad | map({key: .name, value: true}) | from_entries) as $is_bad
| "nodes \(length)",
  (.[] | select($is_bad[.name] | not) | .name as $name | .failed[] | select(($is_bad[.] | not) and . > $name)
   | "open \($name) \(.)"),
  ($bad[] | "drain \(.name) rdma_read: \(.reason)")'

reports=()
for file in "${files[@]}"; do
    shown=${file//[^[:print:]]/?}
    # Read once: what was checked is what is weighed.
    if [[ -d $file ]] || ! report=$(tr -d '\000' 2>/dev/null <"$file"); then
        stop 1 "$shown is not a file that can be read"
    fi
    reports+=("$report")
    trouble=$(jq --raw-output --slurp "$common $check" <<<"$report" 2>/dev/null) ||
        stop 1 "$shown is not a report of rdma_read_mpi: it is not JSON, or not of its form"
    [[ -z $trouble ]] || stop 1 "$shown is not a report of rdma_read_mpi: ${trouble%%$'\n'*}"
done
weighed=$(printf '%s\n' "${reports[@]}" | jq --raw-output --slurp "$common $weigh") ||
    stop 1 "the reports cannot be weighed: see above"

names=()
reasons=()
nodes=0
opens=0
while read -r kind first rest; do
    case $kind in
        nodes) nodes=$first ;;
        open)
            opens=$((opens + 1))
            if ((opens <= 10)); then
                say "$first and $rest failed with each other, which does not tell which of them is bad; read between each of them and other nodes"
            fi
            ;;
        drain)
            # jq has looked at all of this already; what becomes a command is looked at twice.
            [[ $first =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ && ${first,,} != all && $rest =~ ^[A-Za-z0-9\ ._:/,()+-]+$ ]] ||
                stop 1 "a name or a reason has characters that it must not have"
            names+=("$first")
            reasons+=("$rest")
            ;;
    esac
done <<<"$weighed"
((opens <= 10)) || say "and $((opens - 10)) more such pairs"

if [[ -z $most ]]; then
    most=$((nodes / 2))
    ((most >= 1)) || most=1
fi
if ((${#names[@]} > most)); then
    shown=${names[*]:0:20}
    stop 1 "${#names[@]} of $nodes nodes look bad, more than $most (--most): look at the fabric and the run first; nothing is drained ($shown)"
fi

status=0
for ((i = 0; i < ${#names[@]}; ++i)); do
    name=${names[i]}
    printf 'scontrol update nodename=%s state=drain reason="%s"\n' "$name" "${reasons[i]}" 2>/dev/null ||
        stop 1 "the commands cannot be written to stdout; nothing more is done"
    [[ $apply == yes ]] || continue
    if ! state=$(scontrol --oneliner show node "$name" 2>&1); then
        say "scontrol show node $name failed: ${state//[^[:print:]]/ }"
        status=1
    elif [[ " $state " =~ \ State=[^\ ]*DRAIN ]]; then
        say "$name is drained already"
    elif ! scontrol update "nodename=$name" state=drain "reason=${reasons[i]}" >&2; then
        say "scontrol update nodename=$name failed"
        status=1
    fi
done
exit "$status"
