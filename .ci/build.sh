#!/usr/bin/env bash
# Builds the programs that the steps test, and tests nothing: the configurations of .ci/lib.sh. Each step builds what it
# needs; .ci/run builds it in advance.
#
#   .ci/build.sh CONFIGURATION...
set -euo pipefail
# shellcheck source=.ci/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

status=0
for configuration in "$@"; do (build "$configuration") || status=1; done
exit "$status"
