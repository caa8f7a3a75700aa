#!/usr/bin/env bash
# The C core under each sanitizer, canaries first: they must be reported, otherwise the absence of reports means
# nothing. Then the whole suite, in a debug build under ThreadSanitizer, and in a release build under AddressSanitizer
# with its leak check: optimised code has time for all iterations.
set -euo pipefail
# shellcheck source=.ci/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
temporary_folder
# Includes reports of the children of exit tests, whose output is lost. They are shown whatever has failed: in full, and
# then abbreviated, for logs of which only the end is kept.
readonly reports=$temporary/report
show_reports() {
    compgen -G "$reports.*" >/dev/null || return 0
    cat "$reports".*
    echo "sanitize: in short:"
    cat "$reports".* | sed -nE '/^(WARNING|==[0-9]+==ERROR|SUMMARY|Direct|Indirect)/p; /^  [A-Z]/p; /^    #[0-7] /p' |
        sed -E 's/ \([^ ]*\+0x[^)]*\)//; s/ \(BuildId[^)]*\)//' | swift demangle --simplified | cut -c1-300 | tail -n 200
}
trap 'show_reports; rm -rf "$temporary"' EXIT

readonly at_least=40
# Iterations of the stress tests, as a fraction of their normal number: instrumented code is 5 to 15 times slower.
export STRESS_SCALE=${STRESS_SCALE:-0.1}
# Time limits of single tests: they wait for their turns among two thousand others that are equally slow.
export WATCHDOG_SCALE=${WATCHDOG_SCALE:-3}
# At exit a program waits for late race reports: by default a second each, for hundreds of exit tests.
export TSAN_OPTIONS=atexit_sleep_ms=20
export LSAN_OPTIONS=suppressions=$PWD/.ci/leaks.txt:print_suppressions=0

Scripts/sanitizers

export TSAN_OPTIONS+=:log_path=$reports LSAN_OPTIONS+=:log_path=$reports ASAN_OPTIONS=log_path=$reports

sanitize() { # sanitize <configuration> <at least>
    run_tests "$1" "$2" 900
    # In addition to the exit status: an exit test may expect that its process fails.
    if compgen -G "$reports.*" >/dev/null; then fail "something was reported ($1); it follows."; fi
}

sanitize thread "$at_least"
under_thread=$tests_passed
part=$STRESS_SCALE
grep -q SchedulingEcosystemTests "$temporary/events" || fail "the tests of the trait Ecosystem did not run."
sanitize verification-address 10
STRESS_SCALE=1 sanitize address "$at_least"

echo "sanitize: $under_thread tests passed under ThreadSanitizer, at $part of their iterations, and $tests_passed in a" \
    "release build under AddressSanitizer."
