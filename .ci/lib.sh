# shellcheck shell=bash
# What the steps share. Sourced by each of them, after `set -euo pipefail`; leaves the caller in the
# repository.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

# A crash ends with its message and its signal; the symbolised backtrace takes a minute, and exit tests crash
# on purpose.
export SWIFT_BACKTRACE=enable=no

export LC_ALL=C.UTF-8 # columns are characters, not bytes

step=$(basename "$0" .sh)
readonly step

fail() { # fail <sentence>
    echo "$step: $1" >&2
    exit 1
}

# temporary_folder: sets `temporary` to a new folder that goes with the script.
temporary_folder() {
    temporary=$(mktemp -d)
    trap 'rm -rf "$temporary"' EXIT
}

# run_tests <at least> <seconds> [<options of swift build>] [-- <options of swift test>]
#
# Builds, then runs the tests with a time limit, and fails unless at least so many tests ran and all passed: a
# filter that matches nothing, or a target that dropped out of the manifest, must not look like success. Needs
# `temporary`, and leaves Swift Testing's events there, in the file `events`, until the next call.
run_tests() {
    local minimum=$1 seconds=$2 build=() only=() everything=(--build-tests) status=0 count
    shift 2
    while [[ $# -gt 0 && $1 != -- ]]; do build+=("$1") && shift; done
    if [[ $# -gt 0 ]]; then shift && only=("$@"); fi
    # Without options it is the command of the README, which builds everything. Other builds leave the
    # benchmarks out.
    if [[ ${#build[@]} -gt 0 && ${build[*]} != *--package-path* ]]; then
        everything=(--product CompositeOperationsPackageTests)
        only+=(--test-product CompositeOperationsPackageTests)
    fi

    # The linker has one warning for each of AddressSanitizer's hundreds of helpers.
    swift build "${everything[@]}" "${build[@]}" 2>&1 | sed '/Cannot export local symbol/d' ||
        fail "the tests do not build (${build[*]:-debug})."

    # The interrupt reaches the test process through swift test, which a termination signal would leave
    # behind. The events say which tests hang: what swift test itself prints is lost then.
    : >"$temporary/events"
    timeout --signal=INT --kill-after=20 "$seconds" \
        swift test --disable-xctest "${build[@]}" "${only[@]}" \
        --event-stream-output-path "$temporary/events" --event-stream-version 0 2>&1 |
        tee "$temporary/log" || status=$?
    if [[ $status -eq 124 || $status -eq 137 ]]; then
        fail "stopped after $seconds s; these had not ended: $(unfinished_tests "$temporary/events")."
    fi
    [[ $status -eq 0 ]] || fail "a test failed or crashed (${build[*]:-debug}); its output is above."

    count=$(sed -nE 's/.*Test run with ([0-9]+) tests? .*passed.*/\1/p' "$temporary/log" | tail -n 1)
    [[ -n $count ]] || fail "the tests ended without the line that says how many passed."
    [[ $count -ge $minimum ]] || fail "only $count tests ran, and at least $minimum should have."
    # shellcheck disable=SC2034 # the steps read it
    tests_passed=$count
}

unfinished_tests() { # of a file of Swift Testing's events, one JSON object a line
    local kind
    for kind in testStarted testEnded; do
        sed -nE "s|.*\"kind\":\"$kind\".*\"testID\":\"(.*)\\\\/[^\"]*\".*|\1|p" "$1" | sort -u >"$1.$kind"
    done
    comm -23 "$1.testStarted" "$1.testEnded" | paste -sd ' ' | sed 's/^$/none that had begun/'
}
