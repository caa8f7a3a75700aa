#!/usr/bin/env bash
# The trait Ecosystem, except for its tests, which sanitize.sh runs: its documentation, and the example server on
# loopback, scraped once and restarted under load.
set -euo pipefail
# shellcheck source=.ci/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

Scripts/documentation SchedulingEcosystem || fail "DocC objects to the documentation; to what, is said above."

timeout --signal=INT --kill-after=20 900 Scripts/server-restarts --restarts 20 ||
    fail "the example server lost a request, or could not be scraped; which, is said above."

echo "ecosystem: the example server lost no request in 20 restarts under load."
