#!/usr/bin/env bash
# The explorer's own tests; the core under it, within small bounds; every mutant of `mutate`, which has to be found; and
# SPIN's models of its protocols. Deeper: Scripts/campaign.
set -euo pipefail
# shellcheck source=.ci/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

temporary_folder

run_tests verification 10 300
explore=.build-verification/release/explore
mutate=.build-verification/release/mutate
readonly explore mutate

"$explore" litmus || fail "the memory model is not what it should be; the test is named above."
"$explore" run --bound 1 --random 100 ||
    fail "a scenario does not hold; what it violates, and how to replay it, is said above."

# Most are found at once, by the schedule that found them before (Verification/Mutants/kills.txt).
"$mutate" run --skip-listed || fail "a defect was not found; it is named above."

basename --multiple --suffix=.pml Verification/Models/*.pml |
    xargs --max-args=1 --max-procs="$(nproc)" Scripts/models --quick ||
    fail "a model does not hold, or an injected error was not found; it is named above."
