"""See Scripts/mechanisms."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FACES = (
    "CompositeOperations",
    "CompositeOperationsFoundation",
    "Commands",
    "CommandJournal",
    "Actions",
    "ActionTesting",
    "Transactions",
)


def rules():
    """Each rule: its name, the permitted number of lines, the pattern, and the reason."""
    for number, line in enumerate((ROOT / "Scripts/mechanisms.txt").read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split(";", 3)]
        if len(fields) != 4 or not fields[1].isdigit():
            sys.exit(f"mechanisms: line {number} of Scripts/mechanisms.txt is not 'name; number; pattern; reason'.")
        name, most, pattern, reason = fields
        yield name, int(most), re.compile(pattern), reason


def code():
    """The lines of the faces that are not comments, with their places."""
    for face in FACES:
        for path in sorted((ROOT / "Sources" / face).rglob("*.swift")):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if not line.lstrip().startswith("//"):
                    yield f"{path.relative_to(ROOT)}:{number}", line.split(" // ")[0]


def main():
    if sys.argv[1:] not in ([], ["--lines"]):
        sys.exit(f"mechanisms: '{' '.join(sys.argv[1:])}' is not understood; the only option is --lines.")
    lines, wrong = list(code()), 0
    for name, most, pattern, reason in rules():
        found = [(place, line) for place, line in lines if pattern.search(line)]
        verdict = "" if len(found) == most else f", and Scripts/mechanisms.txt says {most}"
        wrong += len(found) != most
        print(f"{name:32} {len(found):4}{verdict}" + (f"  {reason}" if found and not verdict else ""))
        if len(found) > most or sys.argv[1:]:
            for place, line in found:
                print(f"    {place}: {line.strip()}")
    if wrong:
        sys.exit(f"mechanisms: {wrong} of the numbers are not as they were.")


main()
