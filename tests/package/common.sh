# What the tests of the package share. Sourced by them, not run.
# shellcheck shell=bash
set -uo pipefail
export LC_ALL=C
failures=0

# A claim that does not hold; the others are still looked at.
failed() {
    printf 'FAILED: %s\n' "$1" >&2
    failures=$((failures + 1))
}

# expect_equal WHAT EXPECTED FOUND
expect_equal() {
    [[ $2 == "$3" ]] || failed "$1: expected
$2
but found
$3"
}

# need COMMAND PACKAGE: goes on only if the command is there.
need() {
    PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null && return
    printf '%s is missing: install the package %s\n' "$1" "$2" >&2
    [[ ${RDMA_READ_REQUIRE_TOOLS:-} != 1 ]] || exit 1
    exit 77
}

# Ubuntu's images for containers put a stand-in in the place of man.
man() {
    if command -v man.REAL >/dev/null; then man.REAL "$@"; else command man "$@"; fi
}
