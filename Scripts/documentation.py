"""See Scripts/documentation."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlparse

ROOT = Path(__file__).resolve().parent.parent
# Not a SwiftPM plugin: users of the package would have to fetch it, too.
FOLDER = ROOT / ".build/documentation"

# Libraries that are empty without a trait, and the options that enable it: those of .ci/sanitize.sh, which builds them.
WITH_TRAITS = {
    "SchedulingEcosystem": ("--traits", "default,Ecosystem", "--sanitize=thread", "--scratch-path", ".build-tsan")}

# A parameter whose name is self-explanatory needs no documentation here.
ACCEPTED = re.compile(r"^Parameter '\w+' is missing documentation$")


def fail(sentence):
    sys.exit(f"documentation: {sentence}")


def run(*command):
    """The output of a command. If the command fails, prints its output and exits."""
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")
    if result.returncode != 0:
        print(result.stdout + result.stderr, file=sys.stderr)
        fail(f"{' '.join(str(each) for each in command[:3])} failed; its output is above.")
    return result.stdout


def libraries():
    """The description of each Swift library that other packages can import, by name."""
    targets = json.loads(run("swift", "package", "describe", "--type", "json"))["targets"]
    return {
        target["name"]: target
        for target in targets
        if target["type"] == "library"
        and target["module_type"] == "SwiftTarget"
        and target["name"] in target.get("product_memberships", [])
    }


def with_dependencies(names, known):
    """The libraries and their dependencies; dependencies come first."""
    ordered = []

    def add(name):
        if name not in ordered:
            for dependency in known[name].get("target_dependencies", []):
                if dependency in known:
                    add(dependency)
            ordered.append(name)

    for name in names:
        add(name)
    return ordered


def docc():
    """The docc that belongs to the compiler, or the one on PATH."""
    beside = Path(shutil.which("swift") or fail("swift is missing.")).resolve().parent / "docc"
    return (
        beside if beside.is_file() else shutil.which("docc") or fail("docc is missing; toolchains have it.")
    )


class Builder:
    def __init__(self):
        self.triple = json.loads(run("swift", "-print-target-info"))["target"]["triple"]
        self.maps = [ROOT / name for name in run("git", "ls-files", "*/module.modulemap").split("\n") if name]
        self.docc = docc()

    def includes(self, scratch):
        """Options for the folders of C modules, ours and those of the packages in a scratch folder. A module is
        loaded with everything that it imports; each module must be found once."""
        maps = self.maps + sorted(scratch.glob("checkouts/*/Sources/**/module.modulemap"))
        return [word for path in maps for word in ("-Xcc", f"-I{path.parent}")]

    def symbols(self, name):
        """The folder with the symbol graphs of a target. Takes a second if the target is built already."""
        folder = FOLDER / name / "symbols"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        options = WITH_TRAITS.get(name, ())
        run("swift", "build", "--target", name, *options)
        products = Path(run("swift", "build", "--show-bin-path", *options).strip())
        scratch = products.parents[1]
        modules = products / "Modules"
        run(
            *("swift", "symbolgraph-extract", "-module-name", name, "-target", self.triple),
            *("-I", modules, *self.includes(scratch), "-minimum-access-level", "public"),
            # The faces re-export the module Runs: its symbols are among theirs.
            *("-experimental-allowed-reexported-modules=Runs",),
            *("-emit-extension-block-symbols", "-output-dir", folder),
        )
        return folder

    def convert(self, target, dependencies):
        """Converts a target, and returns the warnings and errors of DocC."""
        name = target["name"]
        catalogue = ROOT / target["path"] / f"{name}.docc"
        archive, diagnostics = archive_of(name), FOLDER / name / "diagnostics.json"
        shutil.rmtree(archive, ignore_errors=True)
        diagnostics.unlink(missing_ok=True)
        command = [self.docc, "convert"]
        command += [catalogue] if catalogue.is_dir() else []
        command += ["--additional-symbol-graph-dir", self.symbols(name), "--output-path", archive]
        command += ["--fallback-display-name", name, "--fallback-bundle-identifier", name]
        command += ["--enable-experimental-external-link-support", "--diagnostics-file", diagnostics]
        for dependency in dependencies:
            command += ["--dependency", archive_of(dependency)]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")
        found = json.loads(diagnostics.read_text())["diagnostics"] if diagnostics.is_file() else []
        found = [each for each in found if each["severity"] in ("warning", "error")]
        if result.returncode != 0 and not found:
            print(result.stdout + result.stderr, file=sys.stderr)
            fail(f"docc convert failed for {name}; its output is above.")
        return [each for each in found if not ACCEPTED.match(each["summary"])]


def examples_without_test(target):
    """The Swift blocks, and the "you write" columns of tables, in the articles of a target that are missing from
    the test file that runs its examples. Ignores indentation."""
    name = target["name"]
    tests = ROOT / f"Tests/{name}Tests/DocumentationExamples.swift"

    def plain(text):
        return "\n".join(line.strip() for line in text.strip().split("\n"))

    known, found = plain(tests.read_text()) if tests.is_file() else "", []
    for article in sorted((ROOT / target["path"]).glob("*.docc/**/*.md")):
        text = article.read_text()
        wanted = re.findall(r"^```swift\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        for rows in re.findall(r"^\|[^\n]*\| you write \|\n((?:\|.*\n)*)", text, re.MULTILINE):
            for row in rows.split("\n")[1:]:
                wanted += re.findall(r"`([^`]+)`", "|".join(row.split("|")[2:]))
        for code in wanted:
            if plain(code) not in known:
                first = code.strip().split("\n")[0]
                found.append(f"{article.relative_to(ROOT)}: not in {tests.relative_to(ROOT)}: {first}")
    return found


def archive_of(name):
    return FOLDER / name / f"{name}.doccarchive"


def sentence_of(diagnostic):
    """A diagnostic in the format of a compiler, with the proposals of DocC."""
    where = ""
    if diagnostic.get("source"):
        path = Path(unquote(urlparse(diagnostic["source"]).path))
        where = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
        if diagnostic.get("range"):
            start = diagnostic["range"]["start"]
            where += f":{start['line']}:{start['column']}"
        where += ": "
    proposals = "".join(f"\n    {each['summary']}" for each in diagnostic.get("solutions", []))
    return f"{where}{diagnostic['severity']}: {diagnostic['summary']}{proposals}"


def main(arguments):
    known = libraries()
    for name in arguments:
        if name not in known:
            fail(f"'{name}' is no library of Swift; there are {', '.join(sorted(known))}.")
    wanted = arguments or sorted(known.keys() - WITH_TRAITS.keys())
    untested = [each for name in wanted for each in examples_without_test(known[name])]
    for each in untested:
        print(each, file=sys.stderr)
    if untested:
        fail(f"examples that are not run: {len(untested)}.")
    builder, made, wrong = Builder(), [], 0
    for name in with_dependencies(wanted, known):
        found = builder.convert(known[name], made)
        if name in wanted:
            wrong += len(found)
            for diagnostic in found:
                print(sentence_of(diagnostic), file=sys.stderr)
        if archive_of(name).is_dir():
            made.append(name)
    if wrong:
        fail(f"warnings: {wrong}.")
    print(f"documentation: {', '.join(wanted)}: no warning, no dead link.")


main(sys.argv[1:])
