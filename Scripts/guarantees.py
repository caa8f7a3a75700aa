"""See Scripts/guarantees.

Each module that makes promises has its own document, in which ids are unique.

A document's tables have the columns id and promise. A test that would detect a broken promise is marked with it:
`@Test(.promises("G14"))`.
"""

import re
import sys
from pathlib import Path

from swift_tests import Tests, events_of

# For each module: the document, and its sections by heading. Each section lists its promises: a letter, the first
# number and the last.
DOCUMENTS = {
    "CompositeOperations": ("docs/guarantees.md", {"Guarantees": [("G", 1, 44)], "Rules": [("R", 1, 60)]}),
    "Transactions": (
        "docs/guarantees-transactions.md",
        {"Guarantees": [("Q", 1, 16)], "Features": [("X", 1, 19)], "Edge cases": [("E", 1, 38)]},
    ),
    "Commands": (
        "docs/guarantees-commands.md",
        {
            "Guarantees": [("P", 1, 11), ("S", 1, 10)],
            "Features": [("T", 1, 18), ("B", 1, 11)],
            "Traps": [("Y", 1, 9), ("K", 1, 6), ("C", 1, 20)],
            "Journal": [("J", 1, 14)],
        },
    ),
    "Actions": (
        "docs/guarantees-actions.md",
        {"Guarantees": [("R", 1, 10)], "Features": [("A", 1, 26)], "Traps": [("Z", 1, 16)]},
    ),
}

# For each test target, the module whose promises its tests are marked with.
MODULES = {
    "ActionsTests": "Actions",
    "CommandJournalTests": "Commands",
    "CommandsTests": "Commands",
    "CompositeOperationsFoundationTests": "CompositeOperations",
    "CompositeOperationsTests": "CompositeOperations",
    "TransactionsCompatibilityTests": "Transactions",
    "TransactionsTests": "Transactions",
}

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\s*\|\s*([A-Z]+\d+)\s*\|(.*)\|\s*$")
HEADING = re.compile(r"^(#+)\s+(.*?)\s*#*$")


def fail(sentence):
    sys.exit(f"guarantees: {sentence}")


def rows_of(text):
    """(line, enclosing sections, id, cells after the id) of each row."""
    rows, headings = [], []  # headings: (level, text), outer ones first
    for number, line in enumerate(text.split("\n"), 1):
        if heading := HEADING.match(line):
            level = len(heading[1])
            headings = [each for each in headings if each[0] < level] + [(level, heading[2])]
        elif row := ROW.match(line):
            cells = [cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", row[2])]
            rows.append((number, [each for _, each in headings], row[1], cells))
    return rows


def required(sections):
    """The section of each id."""
    return {
        f"{letter}{number}": section
        for section, ranges in sections.items()
        for letter, first, last in ranges
        for number in range(first, last + 1)
    }


def check_rows(rows, sections, tests):
    """The errors in the rows of a document; `tests` are the tests of each id."""
    errors, sections, first = [], required(sections), {}
    for line, around, name, cells in rows:
        where = f"line {line}: {name}"
        if name in first:
            errors.append(f"{where} has a row already, in line {first[name]}.")
            continue
        first[name] = line
        if name not in sections:
            errors.append(f"{where} is in no range; the head of Scripts/guarantees.py says which there are.")
        elif sections[name] not in around:
            errors.append(f"{where} belongs into the section '{sections[name]}'.")
        if len(cells) != 1 or not cells[0]:
            errors.append(f"{where} needs a promise, and has {len(cells)} cells after the id.")
        if name not in tests:
            errors.append(f"{where} has no test that is marked with it.")
    errors += [f"{name} has no row." for name in sections if name not in first]
    errors += [
        f"'{path}' is marked with {name}, which has no row."
        for name, paths in tests.items()
        if name not in first
        for path in paths
    ]
    return errors


def tests_by_promise(tests):
    """By module and id, the paths of the tests that are marked with the id."""
    found = {module: {} for module in DOCUMENTS}
    for path, names in tests.promises.items():
        target = path.split("/")[0]
        if target not in MODULES:
            fail(f"'{path}' is marked with a promise, and {target} is of no module that makes any.")
        for name in names:
            found[MODULES[target]].setdefault(name, []).append(path)
    return found


def check_events(files, named):
    """An error for each named test that did not run, or did not pass."""
    passed, failed = set(), {}
    for file in files:
        ended = False
        with open(file, encoding="utf-8", errors="replace") as lines:
            for kind, path, fails, is_test in events_of(lines):
                ended = ended or kind == "runEnded"
                name = "/".join(path) if path else None
                if fails and name:
                    failed.setdefault(name, file)
                elif kind == "testEnded" and is_test:
                    passed.add(name)
        if not ended:
            fail(f"{file} is not the events of a run that came to its end.")
    errors = []
    for name, ids in named.items():
        if name in failed:
            errors.append(f"{', '.join(ids)}: '{name}' failed, in {failed[name]}.")
        elif name not in passed:
            errors.append(f"{', '.join(ids)}: '{name}' did not run.")
    return errors


def main(arguments):
    if arguments and arguments != ["--tests"] and (arguments[0] != "--events" or len(arguments) < 2):
        fail("the options are --tests, and --events with files.")
    files = arguments[1:]
    for file in files:
        if not Path(file).is_file():
            fail(f"there is no file '{file}'.")
    found, errors, promises, all_named = tests_by_promise(Tests(ROOT)), [], 0, set()
    for module, (name, sections) in DOCUMENTS.items():
        if not (ROOT / name).is_file():
            fail(f"{name} is missing.")
        objections = check_rows(rows_of((ROOT / name).read_text()), sections, found[module])
        named = {}
        for promise, paths in found[module].items():
            for path in paths:
                named.setdefault(path, []).append(promise)
        if not objections and files:
            objections = check_events(files, named)
        errors += [f"{name}: {each}" for each in objections]
        promises += len(required(sections))
        all_named |= named.keys()
        if arguments == ["--tests"]:
            print(f"{module}")
            for promise in required(sections):
                print(f"  {promise}: " + "; ".join(path.split("/", 1)[1] for path in found[module].get(promise, [])))
    for error in errors:
        print(error, file=sys.stderr)
    if errors:
        fail(f"{len(errors)} objections.")
    print(f"guarantees: {promises} promises, {len(all_named)} tests" + (", all passed." if files else "."))


main(sys.argv[1:])
