#!/usr/bin/env bash
# The package as its users see it: a package outside this repository that depends on it by path and by version, the
# examples, and a program in C. Nothing is written to the repository, or to the package manager's caches.
set -euo pipefail
# shellcheck source=.ci/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
temporary_folder
export TMPDIR=$temporary # the package manager leaves lock files there

repository=$PWD
readonly repository
readonly limit=60 # seconds, for a program that needs less than one
# Each module has a program in the README.
readonly modules=(Scheduling CompositeOperations Commands Transactions Actions)

# readme_block <module>: the first Swift block in the README that imports it, verbatim.
readme_block() {
    awk -v pattern="(^|\n)import $1\n" '
        /^```/ { if (code ~ pattern) exit; code = ""; inside = /^```swift/; next }
        inside { code = code $0 "\n" }
        END { printf "%s", code }' "$repository/README.md"
}

# write_example <folder> <the dependency, as a manifest writes it>
write_example() {
    local module
    mkdir -p "$1/Sources/example"
    cat >"$1/Package.swift" <<END
// swift-tools-version: 6.3
import PackageDescription

let readme: [Target] = [$(printf '"%s", ' "${modules[@]}")].map { module in
    .executableTarget(
        name: "readme-" + module, dependencies: [.product(name: module, package: "CompositeOperations")])
}

let package = Package(
    name: "example",
    dependencies: [$2],
    targets: [
        .executableTarget(
            name: "example",
            dependencies: [.product(name: "Scheduling", package: "CompositeOperations")]
        ),
    ] + readme,
    swiftLanguageModes: [.v6]
)
END
    for module in "${modules[@]}"; do
        mkdir "$1/Sources/readme-$module"
        readme_block "$module" >"$1/Sources/readme-$module/main.swift"
    done
    cat >"$1/Sources/example/Example.swift" <<'END'
import Scheduling
import Synchronization

@main
struct Example {
    static func main() async throws {
        try await withScheduler(.init(workers: 2, name: "example")) { scheduler in
            let sum = Sum()
            let counter = try CompletionCounter()
            for i in 1...1000 { try scheduler.submit(in: counter) { sum.add(i) } }
            try await counter.wait()
            print("closures:", sum.value)

            let squares = await withTaskExecutorPreference(scheduler) {
                await withTaskGroup(of: Int.self) { group in
                    // A child task that is not on a worker of the scheduler spoils the sum.
                    for i in 1...100 { group.addTask { Scheduler.current === scheduler ? i * i : -1 } }
                    var sum = 0
                    for await square in group { sum += square }
                    return sum
                }
            }
            print("task group:", squares)

            let account = Account(lane: try SerialLane(on: scheduler))
            await withTaskGroup(of: Void.self) { group in
                for _ in 1...100 { group.addTask { await account.deposit(1) } }
            }
            print("actor on a lane:", await account.balance)
        }
    }
}

final class Sum: Sendable {
    private let total = Atomic(0)
    var value: Int { total.load(ordering: .relaxed) }
    func add(_ number: Int) { total.add(number, ordering: .relaxed) }
}

actor Account {
    private let lane: SerialLane
    private(set) var balance = 0

    init(lane: SerialLane) { self.lane = lane }
    nonisolated var unownedExecutor: UnownedSerialExecutor { lane.asUnownedSerialExecutor() }
    func deposit(_ amount: Int) { balance += amount }
}
END
}

# run_example <folder> <options of swift build...>
run_example() {
    local folder=$1 own=("--cache-path" "$temporary/cache" "--security-path" "$temporary/security") program
    shift
    swift build --package-path "$folder" "${own[@]}" "$@" ||
        fail "a package that depends on this one does not build."
    for program in example "${modules[@]/#/readme-}"; do
        timeout --kill-after=5 "$limit" \
            swift run --package-path "$folder" --skip-build "${own[@]}" "$@" "$program" >>"$folder/output" ||
            fail "the program '$program' failed, or did not end within $limit s."
    done
    diff - "$folder/output" <<'END' || fail "the programs printed (>) other than they should have (<)."
closures: 500500
task group: 338350
actor on a lane: 100
171700
70300
charged
refunded
OutOfStock()
Overdrawn() 0
false
5
END
}

# Exactly as many programs as the README contains.
[[ $(grep -c '^```swift' README.md) -eq $((${#modules[@]} + 1)) ]] || # one block is a part of a manifest
    fail "the README has programs that are not run: give their modules to .ci/embed.sh."

# By path. The folder's name is the package's identity for its dependents, and a clone's name may differ.
ln -s "$repository" "$temporary/CompositeOperations"
write_example "$temporary/by-path" '.package(path: "../CompositeOperations")'
run_example "$temporary/by-path"
[[ -z $(find "$temporary/by-path/.build/" -path '*/GRDB.build/*.o' -print -quit) ]] ||
    fail "a package that does not use the journal builds what that needs."

# By version, from a repository that contains what a commit of the working tree would contain. Versions have rules that
# paths do not have: for example, unsafe flags are refused.
published=$temporary/published/CompositeOperations
mkdir -p "$published"
git ls-files --cached --others --exclude-standard --deduplicate -z |
    tar --create --null --files-from=- --ignore-failed-read 2>/dev/null |
    tar --extract --directory="$published"
(
    cd "$published"
    git init --quiet --initial-branch=main
    git add --all
    git -c user.name=embed -c user.email=embed@localhost commit --quiet --no-verify --message="What is tested"
    git tag 0.0.1
)
write_example "$temporary/by-version" ".package(url: \"file://$published\", exact: \"0.0.1\", traits: [])"
# As if no system library were installed.
PKG_CONFIG_LIBDIR=$temporary/nowhere run_example "$temporary/by-version" -c release

# Without the trait Liburcu the grace periods are our own, and no library is required.
links_liburcu() { [[ $(ldd "$temporary/$1/example") == *liburcu* ]]; }
links_liburcu by-path/.build/debug || fail "the trait Liburcu is on, and the program does not use liburcu."
if links_liburcu by-version/.build/release; then
    fail "a program without traits needs liburcu."
fi

# The dependencies of the benchmarks must not reach users that embed the scheduler.
dependencies=$(grep -c '"identity"' "$temporary/by-version/Package.resolved")
[[ $dependencies -eq 1 ]] ||
    fail "a package that depends on this one gets $((dependencies - 1)) others with it."

# The examples, in the clone. The output of a program with an option is in a file with the option in its name.
programs=0
built=$temporary/built # one folder for all: their dependencies are compiled once
shared=(--scratch-path "$built" --cache-path "$temporary/cache" --security-path "$temporary/security")
for manifest in "$published"/Examples/*/Package.swift; do
    examples=$(dirname "$manifest")
    [[ $(basename "$examples") != server ]] || continue # it has its own packages and trait: .ci/ecosystem.sh
    folder=Examples/$(basename "$examples")
    swift build --package-path "$examples" "${shared[@]}" || fail "$folder does not build."
    for expected in "$examples"/Sources/*/expected*.txt; do
        [[ -e $expected ]] || continue # a program that serves requests: the benchmarks' tests run it
        program=$(basename "$(dirname "$expected")")
        option=$(basename "$expected" .txt)
        option=${option#expected}
        timeout --kill-after=5 "$limit" "$built/debug/$program" ${option:+"$option"} >"$temporary/output" ||
            fail "$folder: '$program $option' failed, or did not end within $limit s."
        diff "$expected" "$temporary/output" ||
            fail "$folder: '$program $option' printed other (>) than it should have (<)."
        programs=$((programs + 1))
    done
done
[[ $programs -ge 10 ]] || fail "the examples have only $programs outputs that were compared."

# C alone: with the Makefile, and with the command of the README, so that neither gets out of date.
cp -r "$repository/Examples" "$repository/CScheduler" "$repository/Sources" "$temporary/published/"
cd "$temporary/published/Examples/embed-c"
run_c() { # run_c <program>
    timeout --kill-after=5 "$limit" "$1" >output || fail "$1 failed, or did not end within $limit s."
    cat output
    diff - <(head -n 2 output) <<'END' || fail "$1 printed something else (>) than it should have (<)."
sum of the squares of 1 ... 10000: 333383335000
submitted 10000, executed 10000, cancelled 0
END
}
for compiler in gcc clang; do
    for grace in liburcu-bp ''; do
        make --quiet CC="$compiler" LIBURCU="$grace" BUILD=".build/$compiler-$grace" CFLAGS='-O2 -Wall -Wextra -Werror' ||
            fail "Examples/embed-c does not build with its Makefile ($compiler, LIBURCU=$grace)."
        run_c ".build/$compiler-$grace/embed-c"
    done
done
awk '/^```/ { inside = /^```sh/; next } inside && !/^\.\// { print }' README.md >readme-command.sh
bash -e readme-command.sh || fail "the command in Examples/embed-c/README.md does not build the program."
run_c ./embed-c

# The core with other compilers and for other systems, and as an installed library.
"$repository/Scripts/platforms" || fail "the C core does not run everywhere; where, is said above."

# The explorer, applied to third-party code: the defects are found, and without them every schedule holds.
cd "$temporary/published/Examples/explore-c"
explore_c() { # explore_c <folder> <defects> <status> <line>
    local status=0
    make --quiet BUILD=".build/$1" DEFECTS="$2" || fail "Examples/explore-c does not build with its Makefile."
    timeout --kill-after=5 "$limit" ".build/$1/explore-c" run --bound 2 >output || status=$?
    if [[ $status -ne $3 ]] || ! grep -q "$4" output; then
        fail "Examples/explore-c with '$2' ended with $status, not $3, or did not say '$4'."
    fi
}
explore_c plain "" 1 "node 1 was popped 2 times"
explore_c tagged "-DSTACK_TAGGED" 0 " 0 violations"
explore_c relaxed "-DSTACK_TAGGED -DRING_RELAXED" 1 "a data race"

echo "embed: packages that depend on this one run, by path (debug) and by version (release);" \
    "$programs examples print what they should, and a program in C runs."
