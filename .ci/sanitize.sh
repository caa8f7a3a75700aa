#!/usr/bin/env bash
# The C core under each sanitizer, canaries first: they must be reported, or no report means nothing. Then the
# whole suite under ThreadSanitizer, and under AddressSanitizer with its search for leaks.
set -euo pipefail
# shellcheck source=.ci/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
temporary_folder

readonly at_least=40
# Iterations of the stress tests, as a part of their normal number: instrumented code is 5 to 15 times slower.
export STRESS_SCALE=${STRESS_SCALE:-0.15}
# At its end a program waits for the races of others' last words: a second each, for hundreds of the explorer's.
export TSAN_OPTIONS=atexit_sleep_ms=20
export LSAN_OPTIONS=suppressions=$PWD/.ci/leaks.txt:print_suppressions=0

Scripts/sanitizers

sanitize() { # sanitize <sanitizer> <name in the output>
    run_tests "$1" "$at_least" 900
    # Beside the exit status: a report in the child process of an exit test would go unnoticed.
    if grep -q "$2: " "$temporary/log"; then fail "$2 reported something; it is above."; fi
}

sanitize thread ThreadSanitizer
under_thread=$tests_passed
sanitize address AddressSanitizer

echo "sanitize: $under_thread tests passed under ThreadSanitizer, and $tests_passed under AddressSanitizer," \
    "at $STRESS_SCALE of their iterations."
