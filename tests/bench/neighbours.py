#!/usr/bin/env python3
"""Decode speed of settings beside busy neighbours, taking turns: neighbours.py MODEL [--busy 0,1,2] [--rounds R]
[--tokens N] [--run NAME=ARGUMENTS]...

Each --run is a column of its own: arguments for `brigade run`, and `brigade` itself may be preceded by other words, as in
    --run 'default=build/release/brigade' --run 'one CPU=taskset -c 1 build/release/brigade'
    --run 'all, nng=build/release/brigade -- --shards all --link nng'
Medians of tokens a second, and the share of the figure beside the first number of neighbours."""
import argparse
import re
import statistics
import subprocess
import sys

BUSY = [sys.executable, "-c", "while 1: pass"]


def measure(command, model, tokens):
    program, _, more = command.partition(" -- ")
    args = program.split() + ["run", model, "--raw", "-p", "Hello there", "-n", str(tokens), "--ignore-eos", "--temp", "0"]
    done = subprocess.run(args + more.split(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=600)
    found = re.search(r"generated at (\S+) tok/s", done.stderr)
    if done.returncode != 0 or found is None:
        sys.exit("%s: %s" % (command, done.stderr))
    return float(found.group(1))


def beside(n, command, model, tokens):
    neighbours = [subprocess.Popen(BUSY) for _ in range(n)]
    try:
        return measure(command, model, tokens)
    finally:
        for process in neighbours:
            process.kill()
            process.wait()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("--busy", default="0,1,2")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--tokens", type=int, default=128)
    p.add_argument("--run", action="append", default=[])
    a = p.parse_args()
    runs = [r.split("=", 1) for r in a.run or ["default=build/release/brigade"]]
    busy = [int(n) for n in a.busy.split(",")]
    got = {(name, n): [] for name, _ in runs for n in busy}
    for _ in range(a.rounds):
        for n in busy:
            for name, command in runs:
                got[name, n].append(beside(n, command, a.model, a.tokens))
    for name, _ in runs:
        quiet = statistics.median(got[name, busy[0]])
        print("%-24s" % name, "  ".join("%d busy: %6.1f tok/s (%3.0f %%, %.0f to %.0f)" % (
            n, statistics.median(v), 100 * statistics.median(v) / quiet, min(v), max(v))
            for n in busy for v in [got[name, n]]))


if __name__ == "__main__":
    main()
