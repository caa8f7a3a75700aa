#!/usr/bin/env bash
# The tests in a debug build, including those of each guarantee; then, one at a time, those of operations, commands,
# actions and transactions, which must leave nothing behind; and the documentation and the interface of the libraries.
# The tests of a release build run under AddressSanitizer (sanitize.sh).
set -euo pipefail
# shellcheck source=.ci/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
temporary_folder

# Not the exact number, which would change with every test: low enough to survive changes, high enough to notice a lost
# target.
readonly at_least=40

run_tests debug "$at_least" 900

Scripts/guarantees --events "$temporary/events" ||
    fail "a guarantee of docs/guarantees*.md has no test that passed; which, is said above."
Scripts/documentation || fail "DocC objects to the documentation; to what, is said above."
Scripts/interface || fail "the public interface is not as recorded in docs/interface; the difference is said above."

Scripts/census || fail "a test left something behind; which, is said above."

echo "test: $tests_passed tests passed in a debug build; each guarantee has tests that passed, no test left anything," \
    "the documentation has no warning, and the interface is as recorded."
