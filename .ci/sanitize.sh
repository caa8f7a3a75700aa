#!/usr/bin/env bash
# The C core under each sanitizer, canaries first: they must be reported, or no report means nothing. Then the
# scheduler's tests under ThreadSanitizer, and under AddressSanitizer with its search for leaks.
set -euo pipefail
# shellcheck source=.ci/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
temporary_folder

readonly at_least=20
# Iterations of the stress tests, as a part of their normal number: instrumented code is 5 to 15 times slower.
export STRESS_SCALE=${STRESS_SCALE:-0.2}

Scripts/sanitizers

sanitize() { # sanitize <sanitizer> <scratch path> <name in the output>
    run_tests "$at_least" 400 --sanitize="$1" --scratch-path "$2" -- --filter SchedulingTests
    # Beside the exit status: a report in the child process of an exit test would go unnoticed.
    if grep -q "$3: " "$temporary/log"; then fail "$3 reported something; it is above."; fi
}

sanitize thread .build-tsan ThreadSanitizer
under_thread=$tests_passed
sanitize address .build-asan AddressSanitizer

echo "sanitize: $under_thread tests passed under ThreadSanitizer, and $tests_passed under AddressSanitizer," \
    "at $STRESS_SCALE of their iterations."
