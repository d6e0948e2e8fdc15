#!/bin/bash
# Claims about the options of the measure of many readers, without measuring.
# shellcheck source=SCRIPTDIR/../scripts/claims.sh
source "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/../scripts/claims.sh"
scale=$here/../bench/scale_bench

claim_options "$scale" --build --parts --ranks --options --connections --processes --reads --runs --machine --csv --limit
for words in "--parts some" "--ranks 1" "--ranks 2,x" "--connections 0" "--processes 0" "--reads 0" "--runs 0" "--csv nowhere/file" \
    "--limit"; do
    # shellcheck disable=SC2086 # two words
    run "$scale" $words
    claim "$words ends with 2 and one line on stderr" same "$status $(wc -l <err) $out" "2 1 "
done
end_of_claims
