# shellcheck shell=bash
# Shared by the steps. Sourced by each of them, after `set -euo pipefail`; changes the caller's directory to the
# repository.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

# A crash ends with its message and its signal; the symbolised backtrace takes a minute, and exit tests crash on
# purpose.
export SWIFT_BACKTRACE=enable=no

export LC_ALL=C.UTF-8 # columns are characters, not bytes

step=$(basename "$0" .sh)
readonly step

fail() { # fail <sentence>
    echo "$step: $1" >&2
    exit 1
}

# temporary_folder: sets `temporary` to a new folder that is removed when the script exits.
temporary_folder() {
    temporary=$(mktemp -d)
    trap 'rm -rf "$temporary"' EXIT
}

# configure <configuration>: sets `options`, those of swift build and of swift test, and `products`, the products of
# that configuration that the steps use. Each configuration has its own folder, so that none undoes another's build.
configure() {
    products=(JournalCrash CompositeOperationsPackageTests) # tests call the command
    case $1 in
    debug) # without options, as in the README: builds everything
        options=()
        products=()
        ;;
    thread) # with the tests of all traits
        options=(--sanitize=thread --traits 'default,Ecosystem' --scratch-path .build-tsan)
        ;;
    address) # a release build, as swift test makes it; without liburcu: with the core's own grace periods
        options=(-c release --sanitize=address --traits Journal --scratch-path .build-asan -Xswiftc -enable-testing)
        ;;
    benchmarks) # as their launcher builds them, and with their tests
        options=(-c release --package-path Benchmarks --scratch-path .build/benchmarks)
        products=()
        ;;
    verification) # the explorer, and its tests, which call the command
        options=(-c release --package-path Verification --scratch-path .build-verification -Xswiftc -enable-testing)
        products=()
        ;;
    verification-address)
        options=(--package-path Verification --scratch-path .build-verification-asan --sanitize=address)
        products=()
        ;;
    *) fail "there is no configuration '$1'." ;;
    esac
}

# build <configuration> [<products>]: does nothing if .ci/run has already built it; waits if that build is not finished
# yet.
build() {
    local options products product
    configure "$1"
    [[ $# -eq 1 ]] || products=("${@:2}")
    if [[ ${#products[@]} -eq 0 ]]; then
        swift build --build-tests "${options[@]}" || fail "the tests do not build ($1)."
    fi
    for product in "${products[@]}"; do
        # The linker prints a warning for each of AddressSanitizer's hundreds of helpers.
        swift build --product "$product" "${options[@]}" 2>&1 | sed '/Cannot export local symbol/d' ||
            fail "$product does not build ($1)."
    done
}

# run_tests <configuration> <at least> <seconds>
#
# Builds, then runs the tests with a time limit, and fails unless at least this many tests ran and all passed: a target
# that dropped out of the manifest must not look like success. Needs `temporary`, and leaves Swift Testing's events
# there, in the file `events`, until the next call.
run_tests() {
    local minimum=$2 seconds=$3 options products only=() status=0 count
    build "$1"
    configure "$1"
    if [[ ${#products[@]} -gt 0 ]]; then only=(--test-product CompositeOperationsPackageTests); fi

    # The interrupt reaches the test process through swift test, which would leave the process behind on a termination
    # signal. The events show which tests hang: swift test's own output is lost then.
    : >"$temporary/events"
    timeout --signal=INT --kill-after=20 "$seconds" \
        swift test --skip-build --disable-xctest "${options[@]}" "${only[@]}" \
        --event-stream-output-path "$temporary/events" --event-stream-version 0 2>&1 |
        tee "$temporary/log" || status=$?
    if [[ $status -eq 124 || $status -eq 137 ]]; then
        echo >&2 # the tests were stopped in the middle of a line
        fail "stopped after $seconds s; these had not ended: $(unfinished_tests "$temporary/events")."
    fi
    [[ $status -eq 0 ]] || fail "a test failed or crashed ($1); its output is above."

    count=$(sed -nE 's/.*Test run with ([0-9]+) tests? .*passed.*/\1/p' "$temporary/log" | tail -n 1)
    [[ -n $count ]] || fail "the tests ended without the line that says how many passed."
    [[ $count -ge $minimum ]] || fail "only $count tests ran, and at least $minimum should have."
    # shellcheck disable=SC2034 # the steps read it
    tests_passed=$count
}

unfinished_tests() { # for a file of Swift Testing's events, one JSON object a line
    local kind
    for kind in testStarted testEnded; do
        sed -nE "s|.*\"kind\":\"$kind\".*\"testID\":\"(.*)\\\\/[^\"]*\".*|\1|p" "$1" | sort -u >"$1.$kind"
    done
    comm -23 "$1.testStarted" "$1.testEnded" | paste -sd ' ' | sed 's/^$/none that had begun/'
}
