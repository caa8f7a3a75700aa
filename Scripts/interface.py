"""See Scripts/interface."""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GRAPHS = ROOT / ".build/documentation"
RECORD = ROOT / "docs/interface"
HEADERS = {
    "CScheduler": ["CScheduler/include/CScheduler.h", "CScheduler/include/cscheduler/*.h"],
    "CExplorer": ["Sources/CExplorer/include/explorer.h", "Sources/CExplorer/include/explorer/*.h"],
}

OPTIONAL = {"SchedulingEcosystem"}  # libraries that an optional trait enables

# A new declaration of these kinds breaks programs, too: a conforming type lacks the requirement, a switch the case.
BREAKING_IF_ADDED = ("requirement ", "case ")


def fail(sentence):
    sys.exit(f"interface: {sentence}")


# Conformances that the compiler derives from the others.
DERIVED = {"Swift.Copyable", "Swift.Escapable", "Swift.SendableMetatype", "Swift.BitwiseCopyable"}


def is_hidden(path):
    return any(part.startswith("_") for part in path)


def swift_interface(folder, module):
    """The declarations of a module and of its extensions of other modules."""
    lines = set()
    for file in sorted(folder.glob("*.symbols.json")):
        graph = json.loads(file.read_text())
        kept, names = {}, {}
        for symbol in graph["symbols"]:
            name = symbol["identifier"]["precise"]
            path = symbol["pathComponents"]
            names[name] = ".".join(path)
            # Members synthesized for a conformance follow from the conformance.
            if "::SYNTHESIZED::" not in name and not is_hidden(path):
                kept[name] = symbol
        required, answered = set(), set()
        for relation in graph["relationships"]:
            source, target = relation["source"], relation["target"]
            match relation["kind"]:
                case "requirementOf":
                    required.add(source)
                case "defaultImplementationOf":
                    answered.add(target)
                case "conformsTo" | "inheritsFrom" if source in kept:
                    to = names.get(target, relation.get("targetFallback", target))
                    if to not in DERIVED and not is_hidden(to.split(".")):
                        lines.add(f"{names[source]}: {to}")
        for name, symbol in kept.items():
            kind = symbol["kind"]["identifier"].removeprefix("swift.")
            if kind.endswith("extension"):
                continue
            if kind == "enum.case":
                kind = "case"
            elif name in required - answered:
                kind = "requirement"
            declaration = "".join(part["spelling"] for part in symbol.get("declarationFragments", []))
            words = " ".join(declaration.split())
            lines.add(f"{kind} {'.'.join(symbol['pathComponents'])}  {words}")
    if not lines:
        fail(f"{module} has no symbol graph in {folder.relative_to(ROOT)}; run Scripts/documentation first.")
    return lines


def c_interface(patterns):
    """The statements of C headers that declare names."""
    lines = set()
    for path in sorted(path for pattern in patterns for path in ROOT.glob(pattern)):
        text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", path.read_text(), flags=re.DOTALL)
        for macro in re.findall(r"^\s*#\s*define\s+([A-Za-z]\w*)", text, re.MULTILINE):
            if not macro.endswith("_H"):
                lines.add(f"#define {macro}")
        text = re.sub(r"^\s*#.*?(?<!\\)$", " ", text, flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"\b\w+_(ASSUME_NONNULL|EXTERN_C)_(BEGIN|END)\b", " ", text)
        for statement in re.split(r";|(?<=\{)|(?=\})", text):
            words = " ".join(statement.split()).strip("{}, ")
            constants = re.split(r", (?=[A-Z_0-9]+\b)", words) if re.match(r"[A-Z_0-9]+\b", words) else [words]
            lines.update(each for each in constants if re.search(r"\w{4}", each))
    return lines


def interfaces():
    """The lines of each library, by name."""
    if not GRAPHS.is_dir():
        fail("there are no symbol graphs; run Scripts/documentation first.")
    found = {
        folder.name: swift_interface(folder / "symbols", folder.name)
        for folder in sorted(GRAPHS.iterdir())
        if (folder / "symbols").is_dir() and folder.name not in OPTIONAL
    }
    return found | {name: c_interface(patterns) for name, patterns in HEADERS.items()}


def main(arguments):
    unknown = set(arguments) - {"--record", "--breaking"}
    if unknown:
        fail(f"unknown argument '{min(unknown)}'; there are --record and --breaking.")
    found = interfaces()
    recorded = {path.stem: set(path.read_text().splitlines()) for path in RECORD.glob("*.txt")}
    broken, added = [], []
    for name in sorted(found.keys() | recorded.keys()):
        now, before = found.get(name, set()), recorded.get(name, set())
        gone, new = sorted(before - now), sorted(now - before)
        broken += [f"{name}: - {line}" for line in gone]
        # In a type or a library that is new, nothing breaks.
        known = {line.split("  ")[0].split(" ")[-1] for line in before}
        for line in new:
            parent = line.split("  ")[0].split(" ")[-1].rpartition(".")[0]
            breaks = line.startswith(BREAKING_IF_ADDED) and parent in known
            (broken if breaks else added).append(f"{name}: + {line}")
    for line in broken + added:
        print(line)
    if "--record" in arguments:
        if broken and "--breaking" not in arguments:
            fail(f"differences that break programs: {len(broken)}; --breaking records them.")
        RECORD.mkdir(exist_ok=True)
        for name, lines in found.items():
            (RECORD / f"{name}.txt").write_text("".join(f"{line}\n" for line in sorted(lines)))
        for name in recorded.keys() - found.keys():
            (RECORD / f"{name}.txt").unlink()
    elif broken:
        fail(f"differences that break programs: {len(broken)}; they are listed above.")
    elif added:
        fail(f"new declarations: {len(added)}; Scripts/interface --record records them.")
    total = sum(len(lines) for lines in found.values())
    print(f"interface: {total} declarations of {len(found)} libraries are as recorded.")


main(sys.argv[1:])
