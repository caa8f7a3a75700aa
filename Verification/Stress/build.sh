# shellcheck shell=bash
# Builds the stress program: the core's sources and its own, with the C compiler, without Swift's package
# manager. Sourced by Scripts/stress and Scripts/sanitizers, which define `fail`.
#
# A build is a folder of objects: core/ for the scheduler, program/ for the stress program.

stress_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly stress_root
stress_warnings=(-Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Werror)

# The sources of the program; the canaries are a separate program.
stress_sources=(main.c options.c ledger.c hogs.c watchdog.c load.c disturber.c shots.c shots_lane.c
    shots_counter.c shots_life.c mixed.c memory.c age_pipe.c)

# The implementation of grace periods: liburcu, or the core's own epochs.
stress_grace=liburcu

# grace_options <option of pkg-config>: sets `grace`, the options for the scheme.
grace_options() {
    grace=()
    [[ $stress_grace == liburcu ]] || return 0
    pkg-config --exists liburcu-bp || fail "pkg-config does not find liburcu-bp; ./bootstrap installs it."
    read -ra grace <<<"$(pkg-config "$1" liburcu-bp)"
    [[ $1 != --cflags ]] || grace+=(-DCSCHED_LIBURCU)
}

# The options that select the yielding port.
stress_port=(-I"$stress_root/Verification/Stress" '-DCSCHED_PORT="port_yielding.h"')

# The compiler that builds the package, if there is one: clang, which comes with Swift.
stress_compiler() {
    local candidate
    for candidate in "${CC:-}" clang cc; do
        if [[ -n $candidate ]] && command -v "$candidate" >/dev/null; then
            echo "$candidate"
            return
        fi
    done
    fail "there is no C compiler: neither clang nor cc is on the PATH."
}

# stress_compile <folder of the objects> <compiler> <sources, in one word> <options...>: sources from the
# repository's root, or with absolute paths
stress_compile() {
    local folder=$1 compiler=$2 sources=() names=() name grace
    read -ra names <<<"$3"
    for name in "${names[@]}"; do
        [[ $name == /* ]] || name=$stress_root/$name
        sources+=("$name")
    done
    shift 3
    mkdir -p "$folder"
    grace_options --cflags
    (
        cd "$folder"
        "$compiler" -std=gnu17 -D_GNU_SOURCE -O2 -g -pthread "${stress_warnings[@]}" \
            -I"$stress_root/CScheduler/include" -I"$stress_root/Verification/Stress" "${grace[@]}" "$@" -c \
            "${sources[@]}"
    ) || fail "the stress program does not compile (${*:-plain})."
}

stress_core() { # stress_core <build> <compiler> <options...>
    local build=$1 compiler=$2 sources
    shift 2
    sources=$(cd "$stress_root" && echo CScheduler/src/*.c)
    stress_compile "$build/core" "$compiler" "$sources" "$@"
}

stress_program() { # stress_program <build> <compiler> <options...>
    local build=$1 compiler=$2
    shift 2
    stress_compile "$build/program" "$compiler" "${stress_sources[*]/#/Verification/Stress/}" "$@"
}

# stress_yielding <build> <build of the shipping port> <compiler> <options...>: the same program on the
# yielding port.
stress_yielding() {
    local build=$1 shipping=$2 compiler=$3
    shift 3
    cp -r "$shipping" "$build"
    stress_core "$build" "$compiler" "$@" "${stress_port[@]}"
    stress_compile "$build/program" "$compiler" Verification/Stress/main.c "$@" "${stress_port[@]}" # it prints which one it is
}

# stress_skipping <build> <build of the shipping port> <compiler> <options...>: the same program with a defect:
# grace periods are skipped.
stress_skipping() {
    local build=$1 shipping=$2 compiler=$3
    shift 3
    cp -r "$shipping" "$build"
    stress_compile "$build/program" "$compiler" Verification/Stress/age_pipe.c "$@" -DSTRESS_GRACE_SKIPPED
}

# stress_link <program> <compiler> <objects, in one word> <options...>
stress_link() {
    local program=$1 compiler=$2 objects=() grace
    read -ra objects <<<"$3"
    shift 3
    grace_options --libs
    # The linker prints a warning for each of AddressSanitizer's hundreds of helpers.
    "$compiler" -pthread "${objects[@]}" -o "$program" "$@" "${grace[@]}" -lm 2>&1 |
        sed '/Cannot export local symbol/d' >&2 || fail "$program does not link (${*:-plain})."
}

# The finished program, as <build>/stress.
stress_finish() { # stress_finish <build> <compiler> <options...>
    local build=$1 compiler=$2 objects
    shift 2
    objects=$(echo "$build"/core/*.o "$build"/program/*.o)
    stress_link "$build/stress" "$compiler" "$objects" "$@"
}
