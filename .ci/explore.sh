#!/usr/bin/env bash
# The core under the explorer, within small bounds; what has to be found there when a fence or a wake-up is missing; and
# the second opinions, short. Deeper: Scripts/campaign.
set -euo pipefail
# shellcheck source=.ci/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
temporary_folder

swift build -c release --product explore --scratch-path .build-release-tests || fail "the explorer does not build."
swift build --product mutate || fail "the mutants do not build."
explore=.build-release-tests/release/explore
readonly explore

"$explore" litmus || fail "the memory model is not what it should be; the test is named above."
"$explore" run --bound 1 --random 500 --json "$temporary/explored.json" ||
    fail "a scenario does not hold; what it violates and how to replay it is said above."

# Every fence and every wake-up has a scenario that misses it.
for kind in "no fence" "no wake"; do
    .build/debug/mutate run --only ": $kind:" || fail "a defect was not found; it is named above."
done

Scripts/models --quick
Scripts/relacy --quick --no-mutants
