#!/usr/bin/env bash
# The tests, debug and release.
set -euo pipefail
# shellcheck source=.ci/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
temporary_folder

# Not the exact number, which would change with every test: low enough to live, high enough to notice a lost
# target.
readonly at_least=40

run_tests "$at_least" 600
debug=$tests_passed

# Another folder: the launcher of the benchmarks builds into .build for release, with its own products.
# The explorer's tests call its command.
swift build -c release --scratch-path .build-release-tests --product explore || fail "the explorer does not build."
run_tests "$at_least" 400 -c release --scratch-path .build-release-tests

echo "test: $debug tests passed in a debug build, and $tests_passed in a release build."
