#!/usr/bin/env python3
"""Run unit test programs, two at a time, each with a deadline; print what each says last and whole output of those
that fail.

    run.py [--timeout S] PROGRAM...
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import time

# A leak is a bug; the first thing that the sanitizers find ends a program.
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0", "UBSAN_OPTIONS": "print_stacktrace=1",
              "LSAN_OPTIONS": "print_suppressions=0:suppressions=tests/lsan.supp"}


def run(program, timeout):
    """(program, passed, tests that passed, output, seconds)"""
    began = time.monotonic()
    try:
        done = subprocess.run([program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=timeout, env={**os.environ, **SANITIZERS})
        output = done.stdout.decode("utf-8", "replace")
        passed, how = done.returncode == 0, "exit code %d" % done.returncode
    except subprocess.TimeoutExpired as late:
        output = (late.stdout or b"").decode("utf-8", "replace")
        passed, how = False, "still running after %d s" % timeout
    counts = re.findall(r"\[  PASSED  \] (\d+) test", output)
    n = sum(int(c) for c in counts)
    if passed and n == 0 and "skipped" not in output.lower():
        passed, how = False, "ran no test"
    return program, passed, n, output if passed else output + "\n%s: %s\n" % (program, how), time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--timeout", type=int, default=120)
    parser.add_argument("programs", nargs="*")
    args = parser.parse_args()
    if not args.programs:
        sys.exit("unit tests: there is none to run")
    failed, total = [], 0
    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for program, passed, n, output, seconds in pool.map(lambda p: run(p, args.timeout), args.programs):
            name = os.path.basename(program)
            total += n
            if passed:
                print("%-32s %3d passed, %.1f s" % (name, n, seconds))
                for line in output.splitlines():
                    if "skip" in line.lower():
                        print("    " + line.strip())
            else:
                failed.append(name)
                print("%s FAILED\n%s" % (name, output))
    print("[  PASSED  ] %d test(s) in %d programs." % (total, len(args.programs) - len(failed)))
    if failed:
        sys.exit("[  FAILED  ] %d programs: %s" % (len(failed), ", ".join(failed)))


if __name__ == "__main__":
    main()
