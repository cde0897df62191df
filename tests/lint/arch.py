#!/usr/bin/env python3
"""The include law: who may include whom, and nothing else. `make check-arch` runs it.

Inside proto: base < wire, model, stat, disk < link (which does without disk). shard -> proto. launcher -> proto. driver -> proto and the
launcher's one public header. Includes name the whole path from the top folder. Tests may include anything.
"""
import argparse
import os
import re
import sys
import tempfile

TOP = ("proto", "shard", "launcher", "driver")
PROTO = {  # room: rooms of proto that it may include, beside itself
    "base": (),
    "wire": ("base",),
    "model": ("base",),
    "stat": ("base",),
    "disk": ("base",),
    "link": ("base", "wire", "model", "stat"),
}
PUBLIC_LAUNCHER = "launcher/launcher.h"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)


def why_not(source, target):
    """None when the file `source` may include `target`, else the reason."""
    here, there = source.split("/"), target.split("/")
    if there[0] not in TOP or len(there) < 2:
        return "the path must be whole, from the top folder"
    if there[0] == "proto":
        if len(there) != 3 or there[1] not in PROTO:
            return "no such room"
        if here[0] == "proto" and there[1] != here[1] and there[1] not in PROTO.get(here[1], ()):
            return "proto/%s may not use proto/%s" % (here[1], there[1])
        return None
    if there[0] == here[0]:
        return None
    if here[0] == "driver" and target == PUBLIC_LAUNCHER:
        return None
    if here[0] == "driver" and there[0] == "launcher":
        return "a driver uses %s and nothing else of the launcher" % PUBLIC_LAUNCHER
    return "%s may not use %s" % (here[0], there[0])


def files(root):
    for top in TOP:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".def", ".inc")):
                    yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


def check(root):
    """(lines of complaint, number of files, number of includes)"""
    complaints, n_files, n_includes = [], 0, 0
    for path in files(root):
        n_files += 1
        with open(os.path.join(root, path), encoding="utf-8") as f:
            text = f.read()
        if path.startswith("proto/") and path.split("/")[1] not in PROTO:
            complaints.append("%s: proto has no such room" % path)
            continue
        for found in INCLUDE.finditer(text):
            n_includes += 1
            target = found.group(1)
            line = text.count("\n", 0, found.start()) + 1
            reason = why_not(path, target)
            if reason is None and not os.path.exists(os.path.join(root, target)):
                reason = "there is no such file"
            if reason is not None:
                complaints.append('%s:%d: "%s": %s' % (path, line, target, reason))
    return complaints, n_files, n_includes


CASES = [  # (file, what it includes, allowed)
    ("proto/base/a.c", "proto/base/b.h", True),
    ("proto/base/a.h", "proto/wire/w.h", False),
    ("proto/wire/a.c", "proto/model/m.h", False),
    ("proto/model/a.c", "proto/base/b.h", True),
    ("proto/model/a.c", "proto/stat/s.h", False),
    ("proto/stat/a.c", "proto/link/l.h", False),
    ("proto/disk/a.c", "proto/base/b.h", True),
    ("proto/disk/a.c", "proto/model/m.h", False),
    ("proto/link/a.c", "proto/disk/d.h", False),
    ("shard/weights/a.c", "proto/disk/d.h", True),
    ("proto/link/a.c", "proto/wire/w.h", True),
    ("proto/link/a.c", "shard/serve.h", False),
    ("shard/a.c", "proto/link/l.h", True),
    ("shard/block/a.c", "shard/serve.h", True),
    ("shard/a.c", "launcher/launcher.h", False),
    ("shard/a.c", "driver/run/r.h", False),
    ("launcher/a.c", "proto/model/m.h", True),
    ("launcher/a.c", "shard/serve.h", False),
    ("launcher/a.c", "driver/run/r.h", False),
    ("driver/run/a.c", "launcher/launcher.h", True),
    ("driver/run/a.c", "launcher/stage.h", False),
    ("driver/run/a.c", "shard/serve.h", False),
    ("driver/run/a.c", "driver/run/r.h", True),
    ("driver/run/a.c", "r.h", False),
    ("driver/run/a.c", "../run/r.h", False),
    ("driver/run/a.c", "proto/base/missing.h", False),
]
EXISTING = sorted({target for _, target, _ in CASES if "missing" not in target and target.count("/") >= 1
                   and not target.startswith("..")} | {"launcher/stage.h"})


def self_test():
    """Each case alone in a tree of its own: a law that finds nothing is no law."""
    for source, target, allowed in CASES:
        with tempfile.TemporaryDirectory() as root:
            for path in EXISTING:
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                open(os.path.join(root, path), "w").close()
            os.makedirs(os.path.join(root, os.path.dirname(source)), exist_ok=True)
            with open(os.path.join(root, source), "w") as f:
                f.write('#include <stdio.h>\n  #  include "%s"\n' % target)
            complaints, _, n_includes = check(root)
            if n_includes != 1 or (not complaints) != allowed:
                sys.exit("include law, self-test: %s including %s: wanted %s, got %s"
                         % (source, target, "allowed" if allowed else "refused", complaints))
    print("include law, self-test: %d cases as they should be" % len(CASES))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", default=".")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        self_test()
        return
    complaints, n_files, n_includes = check(args.root)
    if complaints:
        sys.exit("include law broken:\n" + "\n".join(complaints))
    if n_includes == 0:
        sys.exit("include law: no include line found in %s" % args.root)
    print("include law: %d includes in %d files, none breaks it" % (n_includes, n_files))


if __name__ == "__main__":
    main()
