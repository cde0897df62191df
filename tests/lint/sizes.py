#!/usr/bin/env python3
"""No C file is longer than 800 lines, no function longer than 60, no line of text ends in blanks; fixtures stay
small. Tables (.def) are exempt."""
import os
import re
import subprocess
import sys

MAX_FILE, MAX_FUNCTION, MAX_FIXTURES_BYTES = 800, 60, 20 * 10**6
TEXT = (".c", ".h", ".def", ".py", ".sh", ".md", ".1", "Makefile")


def tracked():
    out = subprocess.run(["git", "ls-files", "-z"], check=True, stdout=subprocess.PIPE).stdout
    return [p for p in out.decode("utf-8").split("\0") if p and os.path.exists(p)]


def functions(lines):
    """(line of the opening brace, lines of the body) of each function: clang-format puts both braces of a
    function, and of nothing else that holds statements, in column 0."""
    begin = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            begin = number
        elif line == "}" and begin is not None:
            yield begin, number - begin - 1
            begin = None


def check(path, lines):
    if path.endswith((".c", ".h")):
        if len(lines) > MAX_FILE:
            yield "%s: %d lines, at most %d" % (path, len(lines), MAX_FILE)
        for at, n in functions(lines):
            if n > MAX_FUNCTION:
                yield "%s:%d: a function of %d lines, at most %d" % (path, at, n, MAX_FUNCTION)
    for number, line in enumerate(lines, 1):
        if re.search(r"[ \t]$", line):
            yield "%s:%d: blanks at the end of the line" % (path, number)


def main():
    complaints, n, fixtures = [], 0, 0
    for path in tracked():
        if path.startswith("tests/fixtures/"):
            fixtures += os.path.getsize(path)
            if not path.endswith((".py", ".md")):
                continue
        if path.endswith(TEXT):
            n += 1
            with open(path, encoding="utf-8") as f:
                complaints += check(path, f.read().split("\n"))
    if fixtures > MAX_FIXTURES_BYTES:
        complaints.append("tests/fixtures: %d bytes, at most %d" % (fixtures, MAX_FIXTURES_BYTES))
    if complaints:
        sys.exit("\n".join(complaints))
    print("sizes: %d files and %d bytes of fixtures within the limits" % (n, fixtures))


if __name__ == "__main__":
    main()
