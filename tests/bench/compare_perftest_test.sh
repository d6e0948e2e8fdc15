#!/bin/bash
# Claims about the table of ratios and about the options, without measuring.
# shellcheck source=SCRIPTDIR/../scripts/claims.sh
source "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/../scripts/claims.sh"
compare=$here/../bench/compare_perftest

# pairs FILE OURS... / THEIRS: a file of pairs whose other side is always 10.
pairs() {
    local file=$1 ours round=0
    shift
    printf 'size,depth,reads,verify,against,metric,round,first,ours,theirs\n' >"$file"
    for ours in "$@"; do
        round=$((round + 1))
        printf '8,16,64,off,bw,rate,%d,ours,%s,10\n' "$round" "$ours" >>"$file"
    done
}

claim_options "$compare" --build --sizes --verify --against --pairs --depth --list --seconds --options --perftest --pin \
    --hosts --nodes --machine --csv --from --limit

pairs eleven 20 21 19 22 18 23 17 24 16 25 15
run "$compare" --from eleven
claim "eleven pairs make a ratio: the median, with the quartiles" has "$out" "20.00       10.00    2.00    1.75    2.25"
claim "and end with 0" same "$status" 0

pairs outlier 20 20 20 20 20 20 20 20 20 20 2000
run "$compare" --from outlier
claim "one pair that is far off changes no median" has "$out" "2.00    2.00    2.00"

pairs ten 20 21 19 22 18 23 17 24 16 25
run "$compare" --from ten
claim "ten pairs make none" has "$out" "too few for a ratio: at least 11"
claim "and end with 1" same "$status" 1

pairs none
run "$compare" --from none
claim "no pairs end with 1" same "$status $out" "1 "

for words in "--pairs 0" "--pairs x" "--sizes 8,x" "--verify some" "--against ib_write_bw" "--list 32" "--hosts one" \
    "--nodes 3" "--seconds 0" "--from nowhere" "--csv nowhere/file" "--depth"; do
    # shellcheck disable=SC2086 # two words
    run "$compare" $words
    claim "$words ends with 2 and one line on stderr" same "$status $(wc -l <err) $out" "2 1 "
done
end_of_claims
