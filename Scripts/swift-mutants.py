"""See Scripts/swift-mutants. This file reads the list, builds the mutants and runs the tests."""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from swift_tests import Tests, events_of, is_balanced, is_name, tokens

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "Verification/Mutants/swift-by-hand.txt"
SCRATCH = ROOT / ".build-swift-mutants"
PACKAGE = SCRATCH / "package"
BUILD = SCRATCH / "build"
LOGS = SCRATCH / "logs"
PRODUCT = "CompositeOperationsPackageTests"
PROGRAM = "JournalCrash"  # tests expect it next to themselves
VARIABLE = "SWIFT_MUTANT"
SELECTOR = "Mutant.swift"
SUITE_TIMEOUT = 900  # seconds: a whole module's tests, without a mutant
IDLE = 20  # seconds with hardly any CPU time, beyond what the tests take without a mutant: then it hangs

# Public, because a function that is inlined into other modules may have a mutant. The number is read with C functions,
# because some tests count allocations.
SELECTOR_SOURCE = """\
private import Glibc

public enum Mutant {
    private static let active: Int32 = unsafe getenv("%s").map { unsafe atoi($0) } ?? 0

    public static func isActive(_ number: Int32) -> Bool { number == active }
}
""" % VARIABLE


def fail(sentence):
    sys.exit(f"swift-mutants: {sentence}")


def say(sentence):
    print(f"swift-mutants: {sentence}", flush=True)


# MARK: The list


@dataclass(eq=False)
class Mutant:
    name: str
    line: int
    file: str
    kind: str = "statement"  # or expression, or build
    old: str = ""
    new: str = ""
    kills: list = field(default_factory=list)  # as written: the texts after "kills:"
    equivalent: str = ""
    # Found while the list is checked.
    range: tuple = (0, 0)
    filters: list = field(default_factory=list)  # paths: of tests, and with a final None of suites
    modules: list = field(default_factory=list)  # whose tests are tried when those do not find it

    @property
    def number(self):
        """A hash of the name, so that a new entry does not change the rewritten sources of the others."""
        return zlib.crc32(self.name.encode()) & 0x7FFFFFFF or 1

    @property
    def target(self):
        return self.file.split("/")[0]


def entries_of(path):
    """The entries, and the errors in their syntax."""
    if not path.is_file():
        fail(f"{path.relative_to(ROOT)} is missing.")
    entries, block = [], []
    for number, line in enumerate(path.read_text().split("\n") + [""], 1):
        if line.startswith("#"):
            continue
        if line.strip():
            block.append((number, line))
        elif block:
            entries.append(block)
            block = []
    mutants, errors = [], []
    for block in entries:
        mutant, problem = mutant_of(block)
        if problem:
            errors.append(f"line {block[0][0]}: '{block[0][1]}': {problem}")
        else:
            mutants.append(mutant)
    return mutants, errors


def mutant_of(block):
    if len(block) < 3:
        return (
            None,
            "an entry is a name, a file, the text as it is, the text as it becomes, and what kills it.",
        )
    mutant = Mutant(name=block[0][1].strip(), line=block[0][0], file=block[1][1].strip())
    old, new = [], []
    for _, line in block[2:]:
        if line in ("expression", "build"):
            mutant.kind = line
        elif mutant.equivalent:
            mutant.equivalent += " " + line.strip()
        elif line.startswith("kills: "):
            mutant.kills.append(line.removeprefix("kills: ").strip())
        elif line.startswith("equivalent because "):
            mutant.equivalent = line.removeprefix("equivalent because ").strip()
        elif line[:2] in ("- ", "-") and not new:
            old.append(line[2:])
        elif line[:2] in ("+ ", "+"):
            new.append(line[2:])
        else:
            return None, f"'{line}' is not understood there."
    mutant.old, mutant.new = "\n".join(old), "\n".join(new)
    if not mutant.old.strip():
        return None, "there is no text as it is ('- ')."
    if mutant.old == mutant.new:
        return None, "the text becomes what it is."
    if mutant.kind == "expression" and not mutant.new.strip():
        return None, "an expression does not become nothing."
    if bool(mutant.kills) == bool(mutant.equivalent):
        return None, "it needs either 'kills: ' or 'equivalent because '."
    if mutant.kind != "build" and not (is_balanced(mutant.old) and is_balanced(mutant.new)):
        return (
            None,
            "a bracket is open at the end: take a whole statement, or mark it 'expression' or 'build'.",
        )
    return mutant, ""


def place(mutant, sources):
    """Finds the fragment in its file. Returns an error, or an empty string."""
    path = ROOT / "Sources" / mutant.file
    if mutant.file not in sources:
        sources[mutant.file] = path.read_text() if path.is_file() else None
    text = sources[mutant.file]
    if text is None:
        return f"there is no Sources/{mutant.file}."
    count = text.count(mutant.old)
    if count != 1:
        return f"its text occurs {count} times in Sources/{mutant.file}, and should once."
    start = text.index(mutant.old)
    mutant.range = (start, start + len(mutant.old))
    if mutant.kind == "statement":
        used = declared_by(mutant.old) & rest_of_scope(text[mutant.range[1] :])
        if used:
            return (
                f"its text declares '{min(used)}', which is used after it: mark it 'expression' or 'build'."
            )
    return ""


def declared_by(text):
    """The names that statements declare for what follows, not those in their braces or conditions."""
    names, depth, condition = set(), 0, False
    stream = list(tokens(text)) + ["", ""]
    for place, token in enumerate(stream):
        if token == "{" and depth == 0:
            condition = False
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token, 0)
        if depth == 0 and token in ("if", "while", "for", "switch"):
            condition = True
        elif depth == 0 and token in ("let", "var", "func") and not condition:
            following = stream[place + 1]
            names |= {following}
            if following == "(":
                names |= {each for each in stream[place + 2 : stream.index(")", place)] if is_name(each)}
    return names


def rest_of_scope(text):
    """The words up to the brace that closes the scope in which the text begins."""
    words, depth = set(), 0
    for token in tokens(text):
        depth += {"{": 1, "}": -1}.get(token, 0)
        if depth < 0:
            break
        if is_name(token):
            words.add(token)
    return words


def resolve(text, tests):
    """The tests and suites that a list names, or None. A name may have commas, so the longest is tried first."""
    parts = text.split(", ")
    for count in range(len(parts), 0, -1):
        name = ", ".join(parts[:count])
        named, suites = tests.named(name), tests.in_suite(name)
        if len(named) + len(suites) != 1:
            continue
        rest = resolve(", ".join(parts[count:]), tests) if count < len(parts) else []
        if rest is not None:
            return named + [[*suite, None] for suite in suites] + rest
    return None


def modules_of_tests(target, tests):
    """The target's own test target; if there is none, all that import the target, or one that exports it."""
    modules = sorted({path[0] for path in tests.paths})
    if target + "Tests" in modules:
        return [target + "Tests"]
    exports = re.compile(rf"^@_exported public import {target}$", re.M)
    names = {target} | {
        file.relative_to(ROOT / "Sources").parts[0]
        for file in (ROOT / "Sources").rglob("Exports.swift")
        if exports.search(file.read_text())
    }
    imports = re.compile(rf"^[^/\n]*\bimport ({'|'.join(sorted(names))})$", re.M)
    return [
        module
        for module in modules
        if any(imports.search(file.read_text()) for file in (ROOT / "Tests" / module).rglob("*.swift"))
    ]


def why_not(text, tests):
    candidates = tests.named(text) + tests.in_suite(text)
    if len(candidates) > 1:
        return f"'{text}' names several: {', '.join('/'.join(each) for each in candidates)}."
    return f"no test, no suite and no list of them in Tests is named '{text}'."


def read_list():
    mutants, errors = entries_of(LIST)
    tests, sources, names, numbers = Tests(ROOT), {}, {}, {}
    for mutant in mutants:
        where = f"line {mutant.line}: '{mutant.name}': "
        problem = place(mutant, sources)
        if problem:
            errors.append(where + problem)
        for text in mutant.kills:
            found = resolve(text, tests)
            if found is None:
                errors.append(where + why_not(text, tests))
            else:
                mutant.filters += found
        mutant.modules = modules_of_tests(mutant.target, tests)
        if not mutant.modules:
            errors.append(where + f"no tests in Tests import {mutant.target}.")
        if mutant.name in names:
            errors.append(where + f"line {names[mutant.name]} has the same name.")
        elif mutant.number in numbers:
            errors.append(where + f"'{numbers[mutant.number]}' gets the same number: change a word.")
        names[mutant.name], numbers[mutant.number] = mutant.line, mutant.name
    if errors:
        for error in errors:
            print(f"{LIST.relative_to(ROOT)}: {error}", file=sys.stderr)
        fail(f"{len(errors)} of the {max(len(mutants), 1)} entries do not fit to the sources or the tests.")
    # Of two overlapping mutants, the later one is built separately.
    for place_in_list, mutant in enumerate(mutants):
        before = [other for other in mutants[:place_in_list] if other.kind != "build"]
        if mutant.kind != "build" and any(cross(mutant, other) for other in before):
            mutant.kind = "build"
    return mutants, sources


def cross(one, other):
    """Whether two mutants overlap, and neither can be inside the text that the other leaves unchanged."""
    if one.file != other.file:
        return False
    (a, b), (c, d) = one.range, other.range
    if b <= c or d <= a:
        return False
    if (a, b) == (c, d):
        return one.kind != other.kind
    outer, inner = (one, other) if a <= c and d <= b else (other, one)
    nests = outer.range[0] <= inner.range[0] and inner.range[1] <= outer.range[1]
    return not nests or (outer.kind == "expression" and inner.kind == "statement")


# MARK: The sources with all mutants


def with_mutants(text, mutants):
    """The text with all mutants in it, and their spans: (start, end, mutant, whether it is the mutant's own text)."""
    groups = {}
    for mutant in mutants:
        groups.setdefault(mutant.range, []).append(mutant)
    ranges = sorted(groups, key=lambda each: (each[0], -each[1]))
    pieces, spans, length = [], [], 0

    def put(piece):
        nonlocal length
        pieces.append(piece)
        length += len(piece)

    def put_between(start, end, inside):
        at = start
        while inside:
            outer = inside.pop(0)
            within = []
            while inside and inside[0][1] <= outer[1]:
                within.append(inside.pop(0))
            put(text[at : outer[0]])
            put_group(outer, within)
            at = outer[1]
        put(text[at:end])

    def put_group(range_, within):
        group = groups[range_]
        began = length
        if group[0].kind == "expression":
            for mutant in group:
                put(f"(Mutant.isActive({mutant.number}) ? (")
                put_own(mutant)
                put(") : ")
            put("(")
            put_between(*range_, within)
            put(")" * (len(group) + 1))
        else:
            for mutant in group:
                put(f"if Mutant.isActive({mutant.number}) {{\n")
                put_own(mutant)
                put("\n} else ")
            put("{\n")
            put_between(*range_, within)
            put("\n}")
        spans.extend((began, length, mutant, False) for mutant in group)

    def put_own(mutant):
        began = length
        put(mutant.new)
        spans.append((began, length, mutant, True))

    put_between(0, len(text), ranges)
    return "".join(pieces), spans


def write_if_new(path, content, mode=0o644):
    """Writes only what has changed: an unchanged file keeps its time, and is not compiled again."""
    if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def copy_package(rewritten):
    """Copies the package, except for the files in `rewritten`, which it writes."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    wanted = {name for name in listing.split("\0") if name and (ROOT / name).is_file()}
    for name in wanted - set(rewritten):
        write_if_new(PACKAGE / name, (ROOT / name).read_bytes(), (ROOT / name).stat().st_mode & 0o777)
    for name, text in rewritten.items():
        write_if_new(PACKAGE / name, text.encode())
    for path in [path for path in PACKAGE.rglob("*") if path.is_file() or path.is_symlink()]:
        if str(path.relative_to(PACKAGE)) not in wanted | set(rewritten):
            path.unlink()


def rewrite(mutants, sources):
    """The files with mutants, and the spans of the mutants in each file."""
    rewritten, spans = {}, {}
    for file in sorted({mutant.file for mutant in mutants}):
        here = [mutant for mutant in mutants if mutant.file == file and mutant.kind != "build"]
        rewritten[f"Sources/{file}"], spans[file] = with_mutants(sources[file], here)
        rewritten[f"Sources/{file.split('/')[0]}/{SELECTOR}"] = SELECTOR_SOURCE
    return rewritten, spans


# MARK: The build


def build():
    """The output of the compiler if it fails, else an empty string."""
    for product in (PROGRAM, PRODUCT):
        result = subprocess.run(
            ["swift", "build", "--product", product, "--package-path", PACKAGE, "--scratch-path", BUILD],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if result.returncode != 0:
            return result.stdout
    return ""


ERROR = re.compile(r"^(?P<file>/.*?\.swift):(?P<line>\d+):(?P<column>\d+): error: (?P<text>.*)$", re.M)


def mutants_of_errors(output, rewritten, spans):
    """The first error in the text of each mutant that has any, and the errors that are in no mutant."""
    found, others = {}, []
    for error in dict.fromkeys(match.groups() for match in ERROR.finditer(output)):
        path, line, column, sentence = error
        try:
            file = str(Path(path).resolve().relative_to(PACKAGE / "Sources"))
        except ValueError:
            file = path
        around, at = [], 0
        if file in spans:
            lines = rewritten[f"Sources/{file}"].split("\n")[: int(line) - 1]
            bytes_before = rewritten[f"Sources/{file}"].split("\n")[int(line) - 1].encode()[: int(column) - 1]
            at = sum(len(each) + 1 for each in lines) + len(bytes_before.decode(errors="replace"))
            around = [span for span in spans[file] if span[0] <= at <= span[1]]
            around.sort(key=lambda span: (not span[3], span[1] - span[0]))
        if around:
            # An error in a mutant's own text belongs to that mutant; otherwise to all mutants that share the innermost
            # fragment.
            innermost = [span for span in around if span[:2] == around[0][:2]]
            for span in innermost:
                found.setdefault(span[2], sentence)
        else:
            before = [span for span in spans.get(file, []) if span[1] < at and span[2].kind == "statement"]
            nearest = max(before, key=lambda span: span[1])[2].name if before else ""
            others.append(f"{file}: {sentence}" + (f" (after '{nearest}')" if nearest else ""))
    return found, others


def build_all(mutants, sources):
    """Builds all mutants at once. Leaves out the mutants that do not build, and returns them with the reasons."""
    left_out = {}
    while True:
        remaining = [mutant for mutant in mutants if mutant not in left_out]
        rewritten, spans = rewrite(remaining, sources)
        copy_package(rewritten)
        output = build()
        if not output:
            return left_out
        found, others = mutants_of_errors(output, rewritten, spans)
        if not found:
            print(output[-6000:])
            for other in others:
                say(other)
            fail(
                "the build with all mutants fails, and not in a mutant's own text. Where an entry's text"
                " declares what is used after it, mark it 'build', or take less of it as 'expression'."
            )
        for mutant, sentence in found.items():
            say(f"does not build: {mutant.name}: {sentence}")
        left_out |= found


# MARK: Running


@dataclass
class Outcome:
    """How a run ended: it passed, or what ended it."""

    passed: bool
    what: str
    seconds: float


processes, processes_lock = set(), threading.Lock()
interrupted = threading.Event()


def regex_of(filters):
    """The argument of --filter for paths of tests and of suites (whose last name is None)."""
    alternatives = []
    for path in filters:
        names = [re.sub(r"([][\\.^$|?*+(){}])", r"\\\1", name) for name in path if name]
        module, rest = names[0], ["`?" + name + "`?" for name in names[1:]]
        if path[-1] is None:
            alternatives.append(module + r"\." + "".join(each + "/" for each in rest))
        else:
            alternatives.append(module + r"\." + "/".join(rest) + r"\(")
    return "^(" + "|".join(sorted(set(alternatives))) + ")"


def regex_of_modules(mutant):
    return regex_of([[module, None] for module in mutant.modules])


def processor_time(group):
    """The CPU time, in seconds, of all processes of a group and of their children that have ended."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(fields[2]) == group:
            ticks += sum(int(each) for each in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def run_tests(executable, regex, mutant, timeout, idle=SUITE_TIMEOUT):
    """Runs tests up to the first failure."""
    number = str(mutant.number) if mutant else "0"
    environment = os.environ | {VARIABLE: number, "SWIFT_BACKTRACE": "enable=no"}
    label = number if mutant else "baseline"
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, open(LOGS / f"{label}.log", "ab") as log:
        events = Path(folder) / "events"
        events.touch()
        log.write(f"--filter {regex}\n".encode())
        log.flush()
        # One test at a time, so that a crash or a hang has one name. The process leads a group, with its exit tests.
        process = subprocess.Popen(
            [
                executable,
                "--testing-library",
                "swift-testing",
                "--no-parallel",
                "--filter",
                regex,
                "--event-stream-output-path",
                events,
                "--event-stream-version",
                "0",
            ],
            env=environment,
            cwd=PACKAGE,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        with processes_lock:
            processes.add(process)
        try:
            what = watch(process, events, began + timeout, idle)
        finally:
            end(process)
            with processes_lock:
                processes.discard(process)
    return Outcome(what is None, what or "", time.monotonic() - began)


def watch(process, path, deadline, idle):
    """None if everything passed, else the first failure."""
    running, rest = [], ""
    looked = busy = time.monotonic()
    used = 0
    with open(path, encoding="utf-8", errors="replace") as file:
        while True:
            ended = process.poll() is not None
            rest += file.read()
            *lines, rest = rest.split("\n")
            for kind, test, fails, is_function in events_of(lines):
                if test and kind == "testStarted":
                    running.append("/".join(test[1:]))
                elif fails and kind in ("issueRecorded", "testEnded"):
                    return "/".join(test[1:]) if test else "an issue outside of the tests"
                elif test and kind == "testEnded" and "/".join(test[1:]) in running:
                    running.remove("/".join(test[1:]))
            # A suite is also running while its test is.
            at = running[-1] if running else "no test"
            if ended and process.returncode == 0:
                return None
            if ended and process.returncode == 69:
                return "no test: the filter matches none"
            if ended:
                return f"{at} ({ending(process.returncode)})"
            if interrupted.is_set():
                return "an interruption"
            now = time.monotonic()
            if now > looked + 1:
                looked, using = now, processor_time(process.pid)
                if using > used + 0.1:  # a process that polls now and then is idle, too
                    used, busy = using, now
            if now > deadline or now > busy + idle:
                return f"{at} (hangs)"
            time.sleep(0.02)


def ending(status):
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def end(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def end_all():
    interrupted.set()
    with processes_lock:
        for process in processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


# MARK: The verdicts


@dataclass
class Verdict:
    mutant: Mutant
    kind: str  # killed, survived, equivalent, listed, unbuilt or baseline
    by: str = ""
    seconds: float = 0
    surprise: bool = False


class Campaign:
    def __init__(self, jobs, timeout):
        self.jobs, self.timeout = jobs, timeout
        self.executable = None
        self.baselines, self.locks, self.lock = {}, {}, threading.Lock()

    def baseline(self, regex):
        """The outcome of the tests without a mutant. Runs them once for each filter."""
        with self.lock:
            lock = self.locks.setdefault(regex, threading.Lock())
        with lock:
            if regex not in self.baselines:
                self.baselines[regex] = run_tests(self.executable, regex, None, SUITE_TIMEOUT)
        return self.baselines[regex]

    def limit(self, baseline):
        """The seconds after which a run counts as hanging; longer for tests that take long without a mutant."""
        return max(self.timeout, 4 * baseline.seconds + 10)

    def try_mutant(self, mutant, executable):
        seconds = 0
        regexes = [regex_of(mutant.filters)] if mutant.filters else []
        for regex in regexes + [regex_of_modules(mutant)]:
            baseline = self.baseline(regex)
            if not baseline.passed:
                return Verdict(mutant, "baseline", baseline.what, baseline.seconds)
            outcome = run_tests(executable, regex, mutant, self.limit(baseline), IDLE + baseline.seconds)
            seconds += outcome.seconds
            if not outcome.passed:
                if mutant.equivalent:
                    return Verdict(mutant, "listed", outcome.what, seconds)
                # By chance, a test may find the mutant only the second time.
                named = regex in regexes or any(kill.split("/")[-1] in outcome.what for kill in mutant.kills)
                return Verdict(mutant, "killed", outcome.what, seconds, surprise=not named)
        return Verdict(mutant, "equivalent" if mutant.equivalent else "survived", "", seconds)

    def tell(self, verdict):
        name, by = verdict.mutant.name, verdict.by
        sentence = {
            "killed": f"killed in {verdict.seconds:.1f} s: {name}: by {by}",
            "survived": f"survived: {name} ({VARIABLE}={verdict.mutant.number})",
            "equivalent": f"equivalent: {name}",
            "listed": f"is listed as equivalent, and is killed by {by}: {name}",
            "unbuilt": f"does not build: {name}: {by}",
            "baseline": f"not tried: {name}: without a mutant, {by} fails",
        }[verdict.kind]
        if not interrupted.is_set():
            say(sentence + (", which is not named" if verdict.surprise else ""))
        return verdict

    def run_together(self, mutants):
        with ThreadPoolExecutor(self.jobs) as pool:
            try:
                return list(pool.map(lambda each: self.tell(self.try_mutant(each, self.executable)), mutants))
            except KeyboardInterrupt:
                end_all()
                raise

    def run_alone(self, mutant, sources, rewritten):
        """Tries a mutant in a separate build, which has another executable."""
        start, stop = mutant.range
        text = sources[mutant.file]
        with_it = rewritten | {f"Sources/{mutant.file}": text[:start] + mutant.new + text[stop:]}
        copy_package(with_it)
        output = build()
        if output:
            first = ERROR.search(output)
            return self.tell(Verdict(mutant, "unbuilt", first["text"] if first else output.strip()[-300:]))
        return self.tell(self.try_mutant(mutant, built_executable()))


def built_executable():
    return BUILD / "debug" / f"{PRODUCT}.xctest"


def cell(text):
    return text.replace("|", "\\|")


def table_of(verdicts, total):
    lines = ["| mutant | file | killed by | s |", "|---|---|---|--:|"]
    for verdict in verdicts:
        by = {
            "killed": verdict.by + (" (not named)" if verdict.surprise else ""),
            "survived": "**survived**",
            "equivalent": f"equivalent: {verdict.mutant.equivalent}",
            "listed": f"**listed as equivalent**, {verdict.by}",
            "unbuilt": "**does not build**",
            "baseline": f"**not tried**: {verdict.by} fails without it",
        }[verdict.kind]
        seconds = f"{verdict.seconds:.1f}" if verdict.seconds else ""
        lines.append(f"| {cell(verdict.mutant.name)} | `{verdict.mutant.file}` | {cell(by)} | {seconds} |")
    return "# Mutants of the Swift layers\n\n" + total + ".\n\n" + "\n".join(lines) + "\n"


def total_of(verdicts):
    def count(*kinds):
        return sum(verdict.kind in kinds for verdict in verdicts)

    text = (
        f"{len(verdicts)} mutants: {count('killed')} killed, {count('equivalent', 'listed')} equivalent, "
        f"{count('survived')} survived"
    )
    more = [
        (count("listed"), "of the equivalent ones were killed"),
        (count("unbuilt"), "did not build"),
        (count("baseline"), "were not tried, because tests fail without them"),
        (sum(verdict.surprise for verdict in verdicts), "killed only by tests that are not named"),
    ]
    return text + "".join(f"; {number} {what}" for number, what in more if number)


def number_from(least):
    def parse(text):
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is no number from {least}")
        return int(text)

    return parse


def options_of(arguments):
    parser = argparse.ArgumentParser(
        prog="swift-mutants", description="The head of Scripts/swift-mutants says more."
    )
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--jobs", type=number_from(1), default=os.cpu_count(), metavar="N")
    parser.add_argument("--timeout", type=number_from(1), default=60, metavar="SECONDS")
    parser.add_argument("--equivalents", action="store_true")
    parser.add_argument("--table", type=Path, metavar="FILE")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args(arguments)


def run(options, mutants, sources):
    chosen = [mutant for mutant in mutants if options.only in mutant.name or options.only in mutant.file]
    if not chosen:
        fail(f"no mutant has '{options.only}' in its name or file.")
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    (SCRATCH / "tested").mkdir(exist_ok=True)
    began = time.monotonic()
    left_out = build_all(mutants, sources)
    say(f"{len(mutants) - len(left_out)} mutants, built in {time.monotonic() - began:.0f} s.")

    campaign = Campaign(options.jobs, options.timeout)
    # The builds of single mutants replace the first build, to which the baselines belong.
    campaign.executable = SCRATCH / "tested" / f"{PRODUCT}.xctest"
    shutil.copy2(built_executable(), campaign.executable)
    shutil.copy2(BUILD / "debug" / PROGRAM, SCRATCH / "tested" / PROGRAM)
    done = {mutant: Verdict(mutant, "unbuilt", why) for mutant, why in left_out.items() if mutant in chosen}
    for mutant in chosen:
        if mutant.equivalent and not options.equivalents and mutant not in done:
            done[mutant] = Verdict(mutant, "equivalent")
    together = [mutant for mutant in chosen if mutant not in done and mutant.kind != "build"]
    alone = [mutant for mutant in chosen if mutant not in done and mutant.kind == "build"]
    for verdict in campaign.run_together(together):
        done[verdict.mutant] = verdict
    if alone:
        rewritten, _ = rewrite([mutant for mutant in mutants if mutant not in left_out], sources)
        for mutant in alone:
            done[mutant] = campaign.run_alone(mutant, sources, rewritten)
        copy_package(rewritten)

    verdicts = [done[mutant] for mutant in chosen]
    total = total_of(verdicts)
    if options.table:
        options.table.parent.mkdir(parents=True, exist_ok=True)
        options.table.write_text(table_of(verdicts, total))
    wrong = [verdict for verdict in verdicts if verdict.kind not in ("killed", "equivalent")]
    if wrong:
        say(f"what the runs printed is in {LOGS.relative_to(ROOT)}, by number.")
    print(total)
    return 1 if wrong else 0


def main():
    options = options_of(sys.argv[1:])
    mutants, sources = read_list()
    if options.check:
        say(f"{len(mutants)} mutants: each text occurs once, and each test that is named exists.")
        return 0
    if options.list:
        for mutant in mutants:
            print(f"{mutant.number:>10} {mutant.file}: {mutant.name} ({mutant.kind})")
        return 0
    try:
        return run(options, mutants, sources)
    except KeyboardInterrupt:
        print("swift-mutants: interrupted.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
