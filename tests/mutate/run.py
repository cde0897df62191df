#!/usr/bin/env python3
"""Prove that the gate can fail: each fault of mutations.py is put into a copy of the tree, built, and must be seen.

    run.py [TEXT...]     only those whose file or reason has one of the texts
    run.py --check       only that each still applies: its old text stands in its file exactly once

Prints a line for each and ends with 1 when one survives or does not apply. The copy lies in build/mutate.
"""
import pathlib
import re
import subprocess
import sys
import time

from mutations import MUTATIONS

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutate"
BUILD_S, TEST_S = 600, 600


def rows():
    for row in MUTATIONS:
        yield (*row, "parity")[:5]


def check():
    bad = [(path, old) for path, old, *_ in rows() if (ROOT / path).read_text().count(old) != 1]
    for path, old in bad:
        print("%s: does not hold this text exactly once: %s" % (path, old), file=sys.stderr)
    if not bad:
        print("mutations: all %d apply" % len(MUTATIONS))
    return bool(bad)


def copy():
    """The tracked files as they are here; what has not changed keeps its time, so that make builds little."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        source, target = ROOT / name, COPY / name
        data = source.read_bytes()
        if not target.exists() or target.read_bytes() != data:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    kept = {str(COPY / name) for name in names.split("\0")}
    for path in COPY.rglob("*"):  # what is no longer in the tree would be built too
        if path.is_file() and str(path) not in kept and path.relative_to(COPY).parts[0] != "build":
            path.unlink()


def run(args, timeout):
    """(exit code, output) of a command in the copy; too long is -1."""
    try:
        r = subprocess.run(args, cwd=COPY, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=timeout)
    except subprocess.TimeoutExpired as e:
        return -1, (e.stdout or b"").decode("utf-8", "replace") + "\ntoo long"
    return r.returncode, r.stdout.decode("utf-8", "replace")


def build(seen_by):
    kind, _, what = seen_by.partition(" ")
    goals = {"parity": ["all"], "arm": ["VARIANT=arm", "build/arm/hashes"]}.get(kind, ["all", "build/release/unit/" + what])
    return run(["make", "-s", *goals, "EXTRA_CFLAGS=-Wno-error"], BUILD_S)


def test(seen_by):
    """pytest's 1 is a test that failed; 5, for one, would be that none was chosen."""
    kind, _, what = seen_by.partition(" ")
    if kind == "parity":
        return run([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header",
                    "-k", what or "not type and not gptq and not awq", "tests/e2e/test_parity.py"], TEST_S)
    if kind == "arm":
        return run(["make", "-s", "arm"], TEST_S)
    return run(["build/release/unit/" + what], TEST_S)


def first_red(output):
    found = re.search(r"^FAILED \S+::(\S+)", output, re.M) or re.search(r"\[  FAILED  \] (?!\d)(\S+)", output) \
        or re.search(r"machines differ\n(.+?):", output)
    return found.group(1).rstrip(" -") if found else "no test is named"


def try_one(path, old, new, seen_by):
    """What became of it: (seen, words)."""
    file = COPY / path
    good = file.read_text()
    if good.count(old) != 1:
        return False, "DOES NOT APPLY"
    file.write_text(good.replace(old, new))
    try:
        code, output = build(seen_by)
        if code != 0:
            return False, "DOES NOT BUILD: " + output.strip().splitlines()[-1]
        code, output = test(seen_by)
        if code in (0, 5):
            return False, "SURVIVES" if code == 0 else "NO TEST IS CHOSEN"
        return True, first_red(output)
    finally:
        file.write_text(good)


def sound(chosen):
    """Without a fault all tests pass: asked before, and after, that no red came from what was left behind."""
    for seen_by in sorted({"parity" if r[4].startswith("parity") else r[4] for r in chosen}):
        code, output = build(seen_by)
        if code == 0:
            code, output = test(seen_by)
        if code != 0:
            print("without a fault %s must pass:\n%s" % (seen_by, output[-2000:]), file=sys.stderr)
            return False
    return True


def main(wanted):
    copy()
    chosen = [r for r in rows() if not wanted or any(w in r[0] or w in r[3] for w in wanted)]
    if not sound(chosen):
        return 1
    lost = 0
    for path, old, new, why, seen_by in chosen:
        began = time.monotonic()
        seen, words = try_one(path, old, new, seen_by)
        lost += not seen
        print("%-4s %5.1f s  %-58s %s" % ("red" if seen else "****", time.monotonic() - began, why, words), flush=True)
    print("%d faults, %d of them seen" % (len(chosen), len(chosen) - lost))
    return 1 if lost or not sound(chosen) else 0


if __name__ == "__main__":
    sys.exit(check() if sys.argv[1:] == ["--check"] else main(sys.argv[1:]))
