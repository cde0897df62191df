#!/usr/bin/env python3
"""compare.py KERNEL FILE...: outputs of tests/arm/hashes.c from several machines. Each thing computed must have one
hash, whoever computed it, and KERNEL ("neon") must be among those who computed each; anything else ends with 1."""
import collections
import sys


def read(paths):
    """what -> {hash: [who, ...]}"""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in paths:
        lines = open(path, encoding="utf-8").read().splitlines()
        if not lines:
            sys.exit("compare: %s is empty" % path)
        for line in lines:
            who, what, value = line.split("\t")
            found[what][value].append("%s of %s" % (who, path))
    return found


def main():
    kernel, paths = sys.argv[1], sys.argv[2:]
    complaints = []
    found = read(paths)
    for what, hashes in found.items():
        makers = [who for people in hashes.values() for who in people]
        if len(hashes) > 1:
            complaints.append("%s: %s" % (what, "; ".join("%s by %s" % (h, ", ".join(p)) for h, p in hashes.items())))
        if len(makers) < 2 * len(paths) and not all(who.startswith("common ") for who in makers):
            complaints.append("%s: only by %s" % (what, ", ".join(makers)))
        if len(makers) < len(paths):
            complaints.append("%s: not on every machine" % what)
        if not any(who.startswith((kernel + " ", "common ")) for who in makers):
            complaints.append("%s: %s did not do it" % (what, kernel))
    if complaints:
        sys.exit("compare: the machines differ\n" + "\n".join(complaints))
    names = sorted({who.split(" of ")[0] for h in found.values() for p in h.values() for who in p} - {"common"})
    print("arm: %d things computed, the same bits from %s on %d machines" % (len(found), ", ".join(names), len(paths)))


if __name__ == "__main__":
    main()
