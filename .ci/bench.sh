#!/usr/bin/env bash
# Runs every benchmark once, at a small size, and checks that the results are right and that the run's output is
# readable. Speed does not matter. Then checks the laws, and runs the tests of the measuring program, on the same build.
set -euo pipefail
# shellcheck source=.ci/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
temporary_folder

readonly latest=.benchmarks/latest.json
readonly limit=900 # seconds, most of which the release build takes
readonly count_limit=600 # seconds; half a minute if nothing else is running

touch "$temporary/began"
status=0
timeout --signal=INT --kill-after=20 "$limit" swift run benchmarks --smoke || status=$?
[[ $status -ne 124 && $status -ne 137 ]] || fail "the benchmarks were stopped after $limit s."
[[ $status -eq 0 ]] || fail "the benchmarks ended with status $status."

[[ $latest -nt $temporary/began ]] || fail "the run did not write $latest."
summary=$(
    python3 - "$latest" <<'END'
import json, sys

run = json.load(open(sys.argv[1]))
assert run["schema"] == 1, "its schema is not 1"
assert run["results"], "it holds no result"
uncounted = [warning for warning in run["controls"]["warnings"] if "were not counted" in warning]
assert not uncounted, uncounted[0]
workloads = {result["workload"] for result in run["results"]}
peers = {result["peer"] for result in run["results"]}
print(f"{len(workloads)} workloads ran with {len(peers)} peers")
END
) || fail "$latest cannot be read; why is said above."

# What each operation of the layer allocates and keeps, and what remains: counts, which are independent of load.
swift run benchmarks check --counts || fail "a count has grown, or something is left; which is said above."

# What the operations of the hot paths execute, allocate, retain and lock: also counts. For all rows: 'swift run
# benchmarks counts', which takes minutes.
timeout --signal=INT --kill-after=20 "$count_limit" swift run benchmarks counts --hot-paths ||
    fail "the hot paths are not as recorded, or were not counted within $count_limit s; why is said above."

# The laws of scheduling, each first with its saboteur; for an hour: 'swift run verify run --subject ours --budget 1h'.
swift run verify run --subject ours --budget 15s ||
    fail "a law does not hold for a scheduler of ours, or would not notice; which, is said above."

# The tests save screenshots of the page next to their program, if a browser is installed.
readonly at_least=10
run_tests benchmarks "$at_least" 300

echo "bench: $summary, all results are right, $latest can be read, its counts and those of the hot paths are as" \
    "recorded, and $tests_passed tests of the program passed."
