#!/usr/bin/env python3
"""Each header compiles alone: nobody has to know what to include before it. CC and CFLAGS come from make."""
import concurrent.futures
import glob
import os
import platform
import shlex
import subprocess
import sys

CC = os.environ.get("CC", "gcc")
CFLAGS = shlex.split(os.environ.get("CFLAGS", ""))


def arch_flags(path):
    """Headers of one instruction set are included by files built for it only."""
    if "avx512" in path:
        return "-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx2 -mfma -mf16c".split()
    if "avx2" in path:
        return "-mavx2 -mfma -mf16c".split()
    return []


def compiles(path):
    # A .c file of one line: a header given to the compiler itself would warn about things of main files only.
    command = [CC, *CFLAGS, *arch_flags(path), "-fsyntax-only", "-x", "c", "-"]
    done = subprocess.run(command, input='#include "%s"\nextern int unused;\n' % path, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    return path, done.returncode == 0, done.stdout


def main():
    headers = sorted(glob.glob("proto/*/*.h") + glob.glob("shard/**/*.h", recursive=True)
                     + glob.glob("launcher/*.h") + glob.glob("driver/**/*.h", recursive=True))
    if platform.machine() not in ("x86_64", "amd64"):
        headers = [h for h in headers if "avx" not in h]
    if not headers:
        sys.exit("headers: none found; run this from the top folder")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, ok, words in pool.map(compiles, headers):
            if not ok:
                failed += 1
                sys.stderr.write("%s does not compile alone:\n%s" % (path, words))
    if failed:
        sys.exit("headers: %d of %d do not stand alone" % (failed, len(headers)))
    print("headers: %d stand alone" % len(headers))


if __name__ == "__main__":
    main()
