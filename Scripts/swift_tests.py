"""Finds the Swift tests: the part of Swift's syntax that Scripts/swift-mutants and Scripts/guarantees need.

A test is named by its path: module, suites and function, joined by slashes, raw identifiers without their
backticks: "SchedulingTests/Stress/Join/branches run at the same time". Any end of a path names the test, if no
other test has that end.
"""

import json
import re

BACKTICKED = re.compile(r"`([^`\n]+)`")
WORD = re.compile(r"[^\W\d]\w*")
SPACES = re.compile(r"\s+")


def tokens(source):
    """Words, raw identifiers (with their backticks), strings (with their quotes) and single characters; no comments."""
    index, end = 0, len(source)
    while index < end:
        if match := SPACES.match(source, index):
            index = match.end()
        elif source.startswith("//", index):
            index = end_of_line(source, index)
        elif source.startswith("/*", index):
            index = end_of_comment(source, index)
        elif opening := re.compile(r'(#*)("""|")').match(source, index):
            closing = end_of_string(source, opening)
            yield source[index:closing]
            index = closing
        elif match := BACKTICKED.match(source, index) or WORD.match(source, index):
            yield match.group()
            index = match.end()
        else:
            yield source[index]
            index += 1


def end_of_line(source, index):
    found = source.find("\n", index)
    return len(source) if found < 0 else found


def end_of_comment(source, index):
    depth = 0
    for match in re.compile(r"/\*|\*/").finditer(source, index):
        depth += 1 if match.group() == "/*" else -1
        if depth == 0:
            return match.end()
    return len(source)


def end_of_string(source, opening):
    hashes, quotes = opening.groups()
    closing, escape = quotes + hashes, "\\" + hashes
    index = opening.end()
    while index < len(source):
        if source.startswith(closing, index):
            return index + len(closing)
        if source.startswith(escape + "(", index):
            index = end_of_interpolation(source, index + len(escape) + 1)
        elif source.startswith(escape, index):
            index += len(escape) + 1
        elif source[index] == "\n" and quotes == '"':
            return index  # not a string after all
        else:
            index += 1
    return index


def end_of_interpolation(source, index):
    depth = 1
    while index < len(source):
        if opening := re.compile(r'(#*)("""|")').match(source, index):
            index = end_of_string(source, opening)
            continue
        depth += {"(": 1, ")": -1}.get(source[index], 0)
        index += 1
        if depth == 0:
            break
    return index


def is_name(token):
    return token[0] == "`" or WORD.match(token) is not None


def is_balanced(text):
    """Whether every opened bracket is closed, and no other bracket is."""
    pairs, opened = {")": "(", "]": "[", "}": "{"}, []
    for token in tokens(text):
        if token in pairs.values():
            opened.append(token)
        elif token in pairs and (not opened or opened.pop() != pairs[token]):
            return False
    return not opened


def tests_of(source):
    """The tests in a file: the path of each, from the outermost suite, and the promises that it is marked with."""
    found, scopes, pending, is_test, promises = [], [], [], False, []
    stream = list(tokens(source)) + [""]
    for place, token in enumerate(stream[:-1]):
        following = stream[place + 1]
        if token == "{":
            scopes.append(pending)
            pending = []
        elif token == "}":
            if scopes:
                scopes.pop()
        elif token in ("struct", "class", "enum", "actor", "extension") and following and is_name(following):
            if following != "func" and (place == 0 or stream[place - 1] != "."):
                pending = name_at(stream, place + 1)
        elif token == "@" and following == "Test":
            is_test, promises = True, []
        elif token == "promises" and is_test and following == "(":
            end = stream.index(")", place)
            promises += [each.strip('"') for each in stream[place + 2 : end] if each[0] == '"']
        elif token == "func" and is_test:
            is_test = False
            path = [name for scope in scopes for name in scope] + [following.strip("`")]
            found.append((path, promises))
    return found


def name_at(stream, place):
    """`A.B` as two names."""
    names = [stream[place].strip("`")]
    while stream[place + 1] == "." and is_name(stream[place + 2]):
        place += 2
        names.append(stream[place].strip("`"))
    return names


class Tests:
    """The tests in the sources of all test targets."""

    def __init__(self, root):
        self.paths = []  # each a list of names, the module first
        self.promises = {}  # by path, with slashes: the marks of the test
        for file in sorted((root / "Tests").rglob("*.swift")):
            module = file.relative_to(root / "Tests").parts[0]
            for path, promises in tests_of(file.read_text()):
                self.paths.append([module, *path])
                if promises:
                    self.promises["/".join([module, *path])] = promises

    def named(self, name):
        """The paths of the tests with this end."""
        return [path for path in self.paths if ("/" + "/".join(path)).endswith("/" + name)]

    def in_suite(self, name):
        """The paths of the suites with this end. A module is a suite."""
        suites = {tuple(path[:count]) for path in self.paths for count in range(1, len(path))}
        return [list(suite) for suite in sorted(suites) if ("/" + "/".join(suite)).endswith("/" + name)]


def path_of_id(text):
    """The path of a test, from an id such as "Module.Suite/`a test`(argument:)/File.swift:1:2", or of a suite."""
    text = re.sub(r"/[^/`]+\.swift:\d+:\d+$", "", text)
    module, _, rest = text.partition(".")
    names = re.findall(r"(?:`[^`]*`|[^/`])+", rest)
    if names:
        names[-1] = re.sub(r"^(`[^`]*`|[^`(]*)\(.*\)$", r"\1", names[-1])
    return [module, *[name.strip("`") for name in names]]


def events_of(lines):
    """Swift Testing's events: (kind, path or None, whether it is a failure, whether it belongs to a test function)."""
    functions = set()
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue  # truncated where the process ended
        payload = record.get("payload", {})
        if record.get("kind") == "test" and payload.get("kind") == "function":
            functions.add(payload["id"])
        if record.get("kind") != "event":
            continue
        test = payload.get("testID")
        fails = any(message.get("symbol") == "fail" for message in payload.get("messages", [])[:1])
        yield payload["kind"], path_of_id(test) if test else None, fails, test in functions
