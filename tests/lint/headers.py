#!/usr/bin/env python3
"""Each header compiles alone: nobody has to know what to include before it. CC and CFLAGS come from make."""
import concurrent.futures
import glob
import os
import platform
import shlex
import shutil
import subprocess
import sys

CC = os.environ.get("CC", "gcc")
CFLAGS = shlex.split(os.environ.get("CFLAGS", ""))


CROSS = "aarch64-linux-gnu-gcc"
X86 = {
    "avx512": "-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx2 -mfma -mf16c".split(),
    "avxvnni": "-mavx2 -mfma -mf16c -mavxvnni".split(),
    "avx2": "-mavx2 -mfma -mf16c".split(),
}
NEON = "-march=armv8.2-a+dotprod".split()
ON_X86 = platform.machine() in ("x86_64", "amd64")


def targets(path):
    """[(compiler, flags)]: headers of one instruction set are included by files built for it only, those that all
    of them share by each."""
    isas = [isa for isa in (*X86, "neon") if isa in path or (isa == "avxvnni" and "avx2" in path)]
    if not isas and not path.startswith("shard/kernels/vec/"):
        return [(CC, [])]
    built = [(CC, X86[isa]) for isa in isas or X86 if isa in X86 and ON_X86]
    if "neon" in isas or not isas:
        arm = shutil.which(CROSS) if ON_X86 else CC
        built += [(arm, NEON)] if arm else []
    return built


def compiles(path):
    # A .c file of one line: a header given to the compiler itself would warn about things of main files only.
    for compiler, flags in targets(path):
        command = [compiler, *CFLAGS, *flags, "-fsyntax-only", "-x", "c", "-"]
        done = subprocess.run(command, input='#include "%s"\nextern int unused;\n' % path, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        if done.returncode != 0:
            return path, False, done.stdout
    return path, True, ""


def main():
    headers = sorted(glob.glob("proto/*/*.h") + glob.glob("shard/**/*.h", recursive=True)
                     + glob.glob("launcher/*.h") + glob.glob("driver/**/*.h", recursive=True))
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
