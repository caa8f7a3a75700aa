#!/usr/bin/env bash
# The format of Swift, C and shell, and the rules of the project that can be checked by searching.
set -euo pipefail
# shellcheck source=.ci/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Tracked, or new and not ignored.
files() {
    local file
    git ls-files --cached --others --exclude-standard --deduplicate -- "$@" | while read -r file; do
        if [[ -f $file ]]; then echo "$file"; fi # a file that was just deleted is still tracked
    done
}

clang_format() {
    local candidate
    for candidate in clang-format .build-tools/clang_format/data/bin/clang-format; do
        if "$candidate" --version 2>/dev/null | grep -qF 'version 18.1.8'; then
            "$candidate" "$@"
            return
        fi
    done
    fail "clang-format 18.1.8 is missing; ./bootstrap --ci installs it."
}

# forbid <sentence> <extended regular expression> <paths...>: matching lines are printed, and counted as one error.
errors=0
forbid() {
    local sentence=$1 pattern=$2 status=0
    shift 2
    git grep --untracked -nE -e "$pattern" -- "$@" || status=$?
    case $status in
    0) echo "lint: $sentence" >&2 && errors=$((errors + 1)) ;;
    1) ;; # nothing matches
    *) fail "git grep failed; it needs a clone of the repository." ;;
    esac
}
check() { # check <sentence> <command...>
    local sentence=$1
    shift
    "$@" || { echo "lint: $sentence" >&2 && errors=$((errors + 1)); }
}

swift_roots=()
for folder in Package.swift Sources Benchmarks Verification Tests Examples; do
    [[ ! -e $folder ]] || swift_roots+=("$folder")
done
mapfile -t c_files < <(files 'CScheduler/**.[ch]' 'Sources/**.[ch]' 'Benchmarks/**.[ch]' 'Benchmarks/**.cpp' \
    'Benchmarks/**.hpp' 'Examples/**.[ch]' 'Examples/**.cpp' 'Tests/**.[ch]' 'Verification/**.[ch]' 'Verification/**.cpp')
mapfile -t shell_files < <(files bootstrap '.ci/*' 'Scripts/*' 'Verification/**.sh' ':!*.py' ':!*.txt')

check "the Swift above is not formatted; swift format -i corrects most of it." \
    swift format lint --strict --parallel -r "${swift_roots[@]}"
check "the C above is not formatted; clang-format -i corrects it." \
    clang_format --dry-run -Werror "${c_files[@]}"
# clang-format does not break comments here (see .clang-format), so it does not check their length.
forbid "a line of C has more than 110 columns." '^.{111}' '*.c' '*.h' '*.cpp' '*.hpp'
check "shellcheck objects to the above." shellcheck "${shell_files[@]}"
check "the list of Swift mutants is out of date." Scripts/swift-mutants --check
check "a mechanism is there more often than Scripts/mechanisms.txt says, or less often." Scripts/mechanisms

forbid "unsafeFlags keeps other packages from depending on this one by version." 'unsafeFlags' '*.swift' ':!Verification/Package.swift'
forbid "only CScheduler/src/port*.h name atomics." \
    'stdatomic\.h|(^|[^[:alnum:]_])(_Atomic|__atomic_|__sync_|atomic_[a-z_]+[[:space:]]*\()' \
    'CScheduler/*.[ch]' ':!CScheduler/src/port*.h'
forbid "only CScheduler/src/grace_liburcu.c includes liburcu." \
    '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]urcu' \
    '*.[ch]' '*.cpp' '*.hpp' ':!CScheduler/src/grace_liburcu.c'
forbid "Sources/Scheduling, Runs, CompositeOperations, Commands, Actions and Admission do not import Foundation." \
    '^[^/"]*import[[:space:]]+([a-z]+[[:space:]]+)?Foundation' \
    'Sources/Scheduling/*.swift' 'Sources/Runs/*.swift' 'Sources/CompositeOperations/*.swift' \
    'Sources/Commands/*.swift' 'Sources/Actions/*.swift' 'Sources/Admission/*.swift'

# The first line of a comment names its subject: "The ...", "A ...", "Returns ...".
begins_badly() {
    awk 'FNR == 1 { inside = 0 }
        !inside && /^[[:space:]]*\/\/[\/!]? *(What|Who|Whoever|Whatever|Those|These|It)[ ,]/ {
            print FILENAME ":" FNR ": " $0
            found = 1
        }
        { inside = /^[[:space:]]*\/\// }
        END { exit found }' "$@"
}
mapfile -t commented < <(files '*.swift' '*.[ch]' '*.cpp' '*.hpp')
check "the comments above begin with a word that stands for their subject; name the subject." begins_badly "${commented[@]}"
named_badly() { ! grep -nE 'func `([A-Z]+[0-9.]+: )?(who|what|whoever|whatever|those|these|it|they)[ ,]' "$@"; }
check "the names of tests above begin with a word that stands for their subject; name the subject." named_badly "${commented[@]}"

mapfile -t tracked < <(git ls-files '.build*' '*/.build*' 'Package.resolved' '*/Package.resolved')
if [[ ${#tracked[@]} -gt 0 ]]; then
    printf '%s\n' "${tracked[@]}"
    echo "lint: what a build makes is tracked." >&2
    errors=$((errors + 1))
fi

# Git reports the line endings of each file, in the index and on disk; -text marks a binary file. The screenshots of
# articles are binary, and are not checked.
mapfile -t binaries < <(git ls-files --cached --others --exclude-standard --eol -- . ':!Sources/*.docc/*.png' |
    sed -nE 's/^i\/(-text +|  +w\/-text +).*\t//p')
if [[ ${#binaries[@]} -gt 0 ]]; then
    printf '%s\n' "${binaries[@]}"
    echo "lint: these are no text; the repository holds nothing else, but the screenshots of articles." >&2
    errors=$((errors + 1))
fi

[[ $errors -eq 0 ]] || fail "$errors of the checks failed."
echo "lint: Swift, ${#c_files[@]} files of C and ${#shell_files[@]} of shell keep to format and rules."
