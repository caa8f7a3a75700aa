#!/usr/bin/env python3
"""The JSON and HTML parts of Scripts/campaign.

campaign.py carry FOLDER EQUIVALENTS SWEEP GATE   passes the mutants that the sweep has settled to the gate
campaign.py page JSON HTML STATE...               writes the results, and the page, of state folders
campaign.py verdict JSON                          prints what failed and what is left; exits with 1 or 75 then
"""

import html
import json
import re
import sys
from pathlib import Path

STEPS = ["litmus", "explore", "models", "sanitizers", "stress", "trees", "mutants"]


def fail(sentence):
    sys.exit(f"campaign: {sentence}")


def read_json(path):
    return json.loads(path.read_text()) if path.is_file() else None


def lines_of_json(path):
    """The valid lines; an interruption may have truncated a line."""
    found = []
    for line in path.read_text().splitlines() if path.is_file() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            pass
    return found


def words(path):
    """The value of each word, from lines of a word and its value."""
    pairs = [line.partition(" ") for line in path.read_text().splitlines()]
    return {word: value for word, _, value in pairs}


def reasons(path):
    """The reason for each equivalent mutant. An entry is lines of mutants, then the lines from "because" on."""
    lines = [line for line in Path(path).read_text().splitlines() if not line.startswith("#")]
    entries = [entry.split("\n") for entry in "\n".join(lines).split("\n\n") if entry.strip()]
    found = {}
    for entry in entries:
        entry = [line for line in entry if line]
        because = next(place for place, line in enumerate(entry) if line.startswith("because "))
        reason = " ".join(entry[because:]).removeprefix("because ")
        found |= {mutant: reason for mutant in entry[:because]}
    return found


# MARK: Mutants


def effort(options):
    """The options of mutate as numbers: "--random 20 --limit 150" is {"random": 20, "limit": 150}."""
    words = options.split()
    return {name.removeprefix("--"): int(number) for name, number in zip(words[::2], words[1::2])}


def carry(folder, equivalents, sweep, gate):
    """Copies killed mutants and listed survivors to the gate, so that they are not searched a second time."""
    listed = reasons(equivalents)
    known = {line["key"] for line in lines_of_json(folder / "gate")}
    with open(folder / "gate", "a") as file:
        file.write("\n")
        for line in lines_of_json(folder / "sweep"):
            if not effort(sweep).items() <= line["effort"].items():
                fail(f"the sweep's effort is not what it was: {line['effort']}")
            line["effort"] |= effort(gate)
            outcome = line["outcome"]
            settled = outcome["verdict"] != "survived" or outcome["mutant"] in listed
            if settled and line["key"] not in known:
                file.write(json.dumps(line) + "\n")


# MARK: The numbers of each step


def last_run(folder, unit):
    """The lines that the unit printed in its last run."""
    log = folder / "logs" / f"{unit}.log"
    text = log.read_text(errors="replace") if log.is_file() else ""
    return text[text.rfind("\n+ ") + 1 :].splitlines()


def numbers_of_litmus(folder, unit):
    tests = [line for line in last_run(folder, unit) if line.split()[1:2] in (["allowed"], ["forbidden"])]
    return {"tests": len(tests), "as_expected": sum("as expected" in line for line in tests)}


def numbers_of_explore(folder, unit):
    report = (read_json(folder / "raw" / f"{unit}.json") or [None])[0]
    if report is None:
        return {}
    again = (read_json(folder / "raw" / f"{unit}.again.json") or [{}])[0]
    both = [report, again]
    searches = [each[kind] for each in both for kind in ("exhaustive", "random", "frozen") if kind in each]
    broken = [search for search in searches if "violation" in search or "signal" in search]
    return {
        "scenario": report["scenario"],
        "sentence": report["sentence"],
        "properties": report["properties"],
        "holds": not broken,
        "schedules": report["exhaustive"]["schedules"],
        "complete": report["exhaustive"]["complete"],
        "again_schedules": again.get("exhaustive", {}).get("schedules"),
        "again_complete": again.get("exhaustive", {}).get("complete"),
        "random": report.get("random", {}).get("schedules", 0),
        "frozen": report.get("frozen", {}).get("schedules", 0),
        "frozen_complete": report.get("frozen", {}).get("complete"),
        "steps": sum(search["steps"] for search in searches),
        "all_schedules": sum(search["schedules"] for search in searches),
        "violation": broken[0].get("violation", f"signal {broken[0].get('signal')}") if broken else None,
        "schedule": broken[0].get("schedule") if broken else None,
    }


def numbers_of_models(folder, unit):
    searches = read_json(folder / "raw" / f"{unit}.json") or []
    mutants = [search for search in searches if search["mutant"]]
    return {
        "model": unit.removeprefix("models-"),
        "searches": len(searches) - len(mutants),
        "hold": sum(search["expected"] for search in searches if not search["mutant"]),
        "mutants": len(mutants),
        "fall": sum(search["expected"] for search in mutants),
        "states": sum(search["states"] for search in searches),
        "unexpected": [
            f"{search['model']}, {search['name']}, {search['check']}: {search['verdict']}"
            for search in searches
            if not search["expected"]
        ],
    }


def numbers_of_stress(folder, unit):
    latest = {line["configuration"]: line for line in lines_of_json(folder / "raw" / f"{unit}.json")}
    configurations = list(latest.values())
    numbers = {
        name: sum(line.get(name, 0) for line in configurations)
        for name in ("lost", "duplicated", "stale", "disordered", "wrong")
    }
    apart = ("memory", "reclaim")  # their operations are not part of the mixed load
    return numbers | {
        "operations": sum(
            line["operations"] for line in configurations if not line["configuration"].startswith(apart)
        ),
        "configurations": configurations,
    }


def numbers_of_sanitizers(folder, unit):
    lines = last_run(folder, unit)
    loads = [line for line in lines if ": 0 reports in " in line]
    return {
        "canaries": sum("was reported, as it has to be" in line for line in lines),
        "silent": len(loads),
        "by_sanitizer": {
            sanitizer: sum(line.startswith(f"sanitizers: {sanitizer},") for line in loads)
            for sanitizer in ("thread", "address", "undefined")
        },
    }


def numbers_of_trees(folder, unit):
    """The final counts of the tests, which print them repeatedly."""
    found = re.findall(r"^trees: (\d+) trees, (\d+) commands, (\d+) blocks", "\n".join(last_run(folder, unit)), re.M)
    trees, commands, blocks = max(([int(number) for number in line] for line in found), default=(0, 0, 0))
    return {"trees": trees, "commands": commands, "blocks": blocks}


def numbers_of_mutants(folder, unit):
    outcomes = read_json(folder / "raw" / f"{unit}.json") or []
    listed = reasons(Path(__file__).parent.parent / "Verification/Mutants/equivalents.txt")
    survived = [outcome["mutant"] for outcome in outcomes if outcome["verdict"] == "survived"]
    finds = {}
    for outcome in outcomes:
        for kill in outcome["kills"]:
            finds[kill["scenario"]] = finds.get(kill["scenario"], 0) + 1
    return {
        "mutants": len(outcomes),
        "killed": sum(outcome["verdict"] == "killed" for outcome in outcomes),
        "equivalent": sum(mutant in listed for mutant in survived),
        "survived": [mutant for mutant in survived if mutant not in listed],
        "finds": finds,
        "objections": [
            line.removeprefix("mutate: ") for line in last_run(folder, unit) if line.startswith("mutate: ")
        ],
    }


NUMBERS = {
    "litmus": numbers_of_litmus,
    "explore": numbers_of_explore,
    "models": numbers_of_models,
    "sanitizers": numbers_of_sanitizers,
    "stress": numbers_of_stress,
    "trees": numbers_of_trees,
    "mutants": numbers_of_mutants,
}


def units_of(folder):
    about = words(folder / "about.txt")
    for line in (folder / "plan.txt").read_text().splitlines():
        if not line:
            continue
        unit, step = line.split()[:2]
        record = folder / "units" / unit
        ended = words(record) if record.is_file() else {"verdict": "left"}
        yield {
            "unit": unit,
            "step": step,
            "shard": about["shard"],
            "verdict": ended["verdict"],
            "seconds": int(ended.get("seconds", 0)),
            "reproduce": ended.get("reproduce") or None,
            "last_line": (last_run(folder, unit) or [""])[-1],
            "log": str(folder / "logs" / f"{unit}.log"),
            "numbers": NUMBERS[step](folder, unit) if ended["verdict"] != "left" else {},
        }


# MARK: The claim


def claim_of(about, units):
    """The sentences of the claim, with the numbers of this run: exactly what was shown."""
    explored = [unit for unit in units if unit["step"] == "explore"]
    held = [unit["numbers"] for unit in explored if unit["verdict"] == "passed"]
    whole = [numbers for numbers in held if numbers["complete"]]
    smaller = [numbers for numbers in held if numbers["complete"] or numbers["again_complete"]]
    random = sum(numbers["random"] for numbers in held)
    together = sum(numbers["all_schedules"] for numbers in held)
    limit = int(about["limit"])
    stale, bound, again = about["stale"], about["bound"], about["again"]
    sentences = []
    if held:
        sentences.append(
            f"Every schedule with at most k = {bound} preemptions and s = {stale} stale reads of "
            f"{len(whole)} of {len(explored)} scenarios, and with k = {again} and s = {stale} of "
            f"{len(smaller)}, satisfies the properties that are named beside them, under a C++20-like "
            "model without load buffering and without store reordering."
        )
        sentences.append(
            f"Of the other {len(held) - len(whole)} the first {limit:,} schedules within k = {bound} were "
            f"run, and {random:,} random schedules of all: {together:,} schedules together."
        )
    if len(held) < len(explored):
        failed = sum(unit["verdict"] == "failed" for unit in explored)
        sentences.append(
            f"{failed} scenarios do not satisfy theirs, and {len(explored) - len(held) - failed} were not "
            "run: nothing is claimed of them."
        )
    grown = [unit["numbers"] for unit in units if unit["step"] == "trees" and unit["verdict"] == "passed"]
    if grown:
        trees, commands = (sum(numbers[key] for numbers in grown) for key in ("trees", "commands"))
        sentences.append(
            f"{trees:,} random trees of operations, half of them in virtual time, ended as the model says; "
            f"{commands:,} commands came from outside."
        )
    matrix = matrix_of(units)
    if matrix is not None:
        numbers = matrix["numbers"]
        finding = [each["numbers"]["scenario"] for each in explored if each["numbers"]]
        idle = [name for name in finding if name not in numbers["finds"]]
        sentences.append(
            f"Of {numbers['mutants']} injected bugs {numbers['killed']} were found, "
            f"{numbers['equivalent']} are listed as equivalent with a reason, and "
            f"{len(numbers['survived'])} survived. "
            f"{len(finding) - len(idle)} of {len(finding)} scenarios found one"
            + (f"; none was found by {', '.join(idle)}." if idle else ".")
        )
    else:
        sentences.append("That each check fails on an injected bug is not shown here: there is no matrix.")
    sentences.append(
        "This is not a proof of correctness. A known blind spot: a publishing read-modify-write that is made "
        "relaxed, which is a bug on arm64, is found by none of these means."
    )
    return sentences


def matrix_of(units):
    """The unit that covers all mutants, or the only unit with mutants; else None."""
    found = [unit for unit in units if unit["step"] == "mutants" and unit["numbers"].get("mutants")]
    whole = [unit for unit in found if unit["shard"] in ("0/1", "merged")]
    return whole[-1] if whole else found[0] if len(found) == 1 else None


# MARK: The page

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72em; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: .6em 0 1.6em }
th, td { padding: .15em .8em .15em 0; text-align: left; vertical-align: top }
th { border-bottom: 1px solid #888; font-weight: 600 } td { border-bottom: 1px solid #e4e4e4 }
.n { text-align: right; font-variant-numeric: tabular-nums } .failed { color: #b00020; font-weight: 600 }
.left { color: #8a6d00 } code { font-size: 90%; overflow-wrap: anywhere } h2 { margin-top: 1.6em }
"""


def cell(value):
    if isinstance(value, bool):
        value = "yes" if value else "no"
    if value is None:
        return "<td></td>"
    if isinstance(value, int):
        return f'<td class="n">{value:,}</td>'
    text = html.escape(str(value))
    return f'<td class="{text}">{text}</td>' if value in ("failed", "left") else f"<td>{text}</td>"


def table(heads, rows):
    if not rows:
        return ""
    head = "".join(f"<th>{html.escape(each)}</th>" for each in heads)
    body = "\n".join("<tr>" + "".join(cell(value) for value in row) + "</tr>" for row in rows)
    return f"<table>\n<tr>{head}</tr>\n{body}\n</table>\n"


def ending(unit):
    return [unit["seconds"], unit["verdict"]]


def rest_of_name(unit):
    return [unit["unit"].removeprefix(unit["step"] + "-")]


def section_of_litmus(units):
    rows = [[u["numbers"].get("tests"), u["numbers"].get("as_expected"), *ending(u)] for u in units]
    return table(["tests", "as expected", "s", "verdict"], rows)


def bound_of(numbers, about):
    """The number of preemptions up to which every schedule was run."""
    if numbers["complete"]:
        return about["bound"]
    return about["again"] if numbers["again_complete"] else "none"


def section_of_explore(units, about):
    def row(unit):
        numbers = unit["numbers"]
        if not numbers:
            return [unit["unit"].removeprefix("explore-"), None, None, None, None, None, *ending(unit)]
        return [
            numbers["scenario"],
            numbers["properties"],
            numbers["schedules"],
            bound_of(numbers, about),
            numbers["random"],
            numbers["frozen"] or None,
            *ending(unit),
        ]

    heads = ["scenario", "properties", "schedules", "complete to bound", "random", "with a stopped thread"]
    return table(heads + ["s", "verdict"], [row(unit) for unit in units])


def section_of_models(units):
    keys = ["searches", "hold", "mutants", "fall", "states"]
    rows = [rest_of_name(u) + [u["numbers"].get(key) for key in keys] + ending(u) for u in units]
    return table(["model", "searches", "hold", "injected errors", "found", "states", "s", "verdict"], rows)


def section_of_sanitizers(units):
    rows = []
    for unit in units:
        by = unit["numbers"].get("by_sanitizer", {})
        rows.append(
            [unit["numbers"].get("canaries"), *[by.get(each) for each in ("thread", "address", "undefined")]]
            + [0 if unit["verdict"] == "passed" else None, *ending(unit)]
        )
    heads = ["canaries reported", "loads under TSan", "under ASan and LSan", "under UBSan", "reports"]
    return table(heads + ["s", "verdict"], rows)


def section_of_stress(units):
    keys = ["operations", "lost", "duplicated", "stale", "disordered", "wrong"]
    lines = {}
    for unit in units:
        for line in unit["numbers"].get("configurations", []):
            lines.setdefault(line["configuration"], []).append(line)
    rows = []
    for unit in units:
        numbers = unit["numbers"]
        rows.append([f"part {unit['shard']}", *[numbers.get(key) for key in keys], None, None, *ending(unit)])
    for configuration, each in lines.items():  # of all parts
        rising = max((line for line in each if "resident_errors" in line), key=rise_of, default=None)
        ages = [sum(line["ages"][2:]) for line in each if "ages" in line]
        verdicts = sorted({line["verdict"] for line in each})
        rows.append(
            [configuration, *[sum(line.get(key, 0) for line in each) for key in keys]]
            + [slope_of(rising) if rising else None, sum(ages) if ages else None, None, ", ".join(verdicts)]
        )
    heads = ["configuration", "operations", "lost", "duplicated", "stale", "disordered", "wrong"]
    return table(heads + ["memory", "ages beyond 1", "s", "verdict"], rows)


def rise_of(line):
    return line["resident_errors"]


def slope_of(line):
    return (
        f"{line['resident_bytes'] / 2**20:.1f} MiB, "
        f"{line['resident_slope_per_million']:+.0f} bytes a million operations "
        f"({line['resident_errors']:+.1f} standard errors)"
    )


def section_of_trees(units):
    keys = ["trees", "commands", "blocks"]
    rows = [[f"part {u['shard']}", *[u["numbers"].get(key) for key in keys], *ending(u)] for u in units]
    return table(["", "trees", "commands from outside", "blocks", "s", "verdict"], rows)


def section_of_mutants(units):
    rows = [
        [u["shard"], u["numbers"].get("mutants"), u["numbers"].get("killed"), u["numbers"].get("equivalent")]
        + [len(u["numbers"]["survived"]) if u["numbers"] else None, *ending(u)]
        for u in units
    ]
    text = table(["part", "mutants", "killed", "equivalent", "survived", "s", "verdict"], rows)
    matrix = matrix_of(units)
    if matrix is not None:
        finds = sorted(matrix["numbers"]["finds"].items(), key=lambda each: -each[1])
        text += table(["scenario", "mutants that it finds"], [list(each) for each in finds])
    return text


SECTIONS = {
    "litmus": ("The explorer's own tests", section_of_litmus),
    "explore": ("Scenarios of the core, in the explorer", section_of_explore),
    "models": ("Models, in SPIN", section_of_models),
    "sanitizers": ("Sanitizers", section_of_sanitizers),
    "stress": ("Stress on real threads", section_of_stress),
    "trees": ("Random trees of operations", section_of_trees),
    "mutants": ("Mutants of the core", section_of_mutants),
}


def details(unit):
    """The reasons for the failure of a unit, or the last line that it printed."""
    numbers = unit["numbers"]
    found = [numbers["violation"]] if numbers.get("violation") else []
    found += numbers.get("unexpected", []) + numbers.get("objections", [])
    return found or [unit["last_line"]]


def page_of(results):
    about, units = results["about"], results["units"]
    failed = [unit for unit in units if unit["verdict"] == "failed"]
    left = [unit for unit in units if unit["verdict"] == "left"]
    passed = len(units) - len(failed) - len(left)
    kind = "Campaign" if about["effort"] == "deep" else "Campaign, quick: it tries the campaign, not the core"
    text = f"<!doctype html>\n<html lang=en><meta charset=utf-8><title>{kind}</title><style>{STYLE}</style>\n"
    text += f"<h1>{kind}</h1>\n<p>{passed} units passed, "
    text += f'<span class="{"failed" if failed else ""}">{len(failed)} failed</span>, '
    text += f"{len(left)} were not run.</p>\n"
    if failed:
        text += "<h2>Failures</h2>\n"
        for unit in failed:
            text += f'<p><span class="failed">{html.escape(unit["unit"])}</span>'
            text += "".join(f"<br>{html.escape(each)}" for each in details(unit))
            text += f"<br>Reproduce with <code>{html.escape(unit['reproduce'] or '')}</code></p>\n"
    text += "<h2>Claim</h2>\n" + "".join(f"<p>{html.escape(each)}</p>\n" for each in results["claim"])
    text += "<h2>What was run</h2>\n"
    named = ["tree", "began", "parts", "seed", "cores", "processor", "kernel", "compiler", "swift"]
    text += table(["", ""], [[name, str(about.get(name, ""))] for name in named])
    for step, (title, section) in SECTIONS.items():
        of_step = [unit for unit in units if unit["step"] == step]
        if of_step:
            text += f"<h2>{title}</h2>\n"
            text += section(of_step, about) if step == "explore" else section(of_step)
    return text + "</html>\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def page(json_path, html_path, folders):
    abouts = [words(folder / "about.txt") for folder in folders]
    units = [unit for folder in folders for unit in units_of(folder)]
    if any(unit["step"] == "mutants" and unit["shard"] == "merged" for unit in units):
        units = [unit for unit in units if unit["step"] != "mutants" or unit["shard"] == "merged"]
    units.sort(key=lambda unit: STEPS.index(unit["step"]))
    about = dict(abouts[0])
    parts = [each["shard"] for each in abouts if each["shard"] != "merged"]
    about["parts"] = ", ".join(parts)
    about["seed"] = ", ".join(dict.fromkeys(each["seed"] for each in abouts))
    results = {"schema": 1, "about": about, "claim": claim_of(about, units), "units": units}
    write(json_path, json.dumps(results, indent=1) + "\n")
    write(html_path, page_of(results))


def verdict(json_path):
    units = json.loads(json_path.read_text())["units"]
    left = [f"{unit['unit']} of {unit['shard']}" for unit in units if unit["verdict"] == "left"]
    failed = [unit for unit in units if unit["verdict"] == "failed"]
    if left:
        print(f"campaign: {len(left)} units were not run: {', '.join(left)}.")
    for unit in failed:
        print(f"campaign: failed: {unit['unit']} of {unit['shard']}: {unit['reproduce']}", file=sys.stderr)
    if failed or left:
        sys.exit(1 if failed else 75)
    print(f"campaign: all {len(units)} units passed.")


def main(arguments):
    match arguments:
        case ["carry", folder, equivalents, sweep, gate]:
            carry(Path(folder), equivalents, sweep, gate)
        case ["page", json_path, html_path, *folders] if folders:
            page(Path(json_path), Path(html_path), [Path(folder) for folder in folders])
        case ["verdict", json_path]:
            verdict(Path(json_path))
        case _:
            fail(__doc__)


main(sys.argv[1:])
