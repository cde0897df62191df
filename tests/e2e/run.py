#!/usr/bin/env python3
"""Run the e2e tests: those that may share the machine by two pytest processes at once, which take turns at the list of
tests, then by one process those that must be alone (marked so: they measure time, or what memory and page cache hold).

    run.py [--jobs N] [ARGUMENT OF PYTEST]...

The first process writes to the terminal as it goes; what another says is printed when all have ended.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
NO_TESTS = 5  # exit code of pytest when none was chosen


def start(part, claims, arguments, stdout=None):
    env = {**os.environ, "BRIGADE_E2E_PART": part}
    if claims is not None:
        env["BRIGADE_E2E_CLAIMS"] = str(claims)
    return subprocess.Popen([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o",
                             "console_output_style=classic", str(FOLDER), *arguments], env=env, stdout=stdout,
                            stderr=subprocess.STDOUT if stdout is not None else None)


def together(jobs, arguments):
    """Exit codes of the processes that share the list."""
    with tempfile.TemporaryDirectory(prefix="brigade-e2e-") as folder:
        said = [open(pathlib.Path(folder) / ("said-%d" % i), "w+b") for i in range(1, jobs)]
        processes = [start("together", folder, arguments, out) for out in (None, *said)]
        try:
            codes = [p.wait() for p in processes]
        except KeyboardInterrupt:  # the terminal has told them too
            codes = [p.wait() for p in processes]
        for i, out in enumerate(said, 1):
            out.seek(0)
            print("-- process %d of %d" % (i + 1, jobs))
            sys.stdout.flush()
            sys.stdout.buffer.write(out.read())
            out.close()
    return codes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    args, rest = parser.parse_known_args()
    began = time.monotonic()
    codes = together(max(args.jobs, 1), rest)
    if all(code in (0, NO_TESTS) for code in codes):
        print("-- alone")
        sys.stdout.flush()
        codes.append(start("alone", None, rest).wait())
    print("e2e: %.0f s" % (time.monotonic() - began))
    bad = [code for code in codes if code not in (0, NO_TESTS)]
    if bad:
        sys.exit(bad[0] if bad[0] > 0 else 1)
    if all(code == NO_TESTS for code in codes):
        sys.exit(NO_TESTS)


if __name__ == "__main__":
    main()
