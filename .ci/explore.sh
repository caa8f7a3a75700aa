#!/usr/bin/env bash
# The core under the explorer, within small bounds, and SPIN's models of its protocols. Deeper: Scripts/campaign.
set -euo pipefail
# shellcheck source=.ci/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Into a folder that another step has used: nothing is built twice.
swift build -c release --product explore --scratch-path .build-release-tests || fail "the explorer does not build."
explore=.build-release-tests/release/explore
readonly explore

"$explore" litmus || fail "the memory model is not what it should be; the test is named above."
"$explore" run --bound 1 --random 300 ||
    fail "a scenario does not hold; what it violates, and how to replay it, is said above."

Scripts/models --quick
