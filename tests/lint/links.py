#!/usr/bin/env python3
"""Links from one page of the repository to another lead somewhere."""
import os
import re
import subprocess
import sys


def main():
    pages = subprocess.run(["git", "ls-files", "*.md"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    broken, n = [], 0
    for page in pages:
        with open(page, encoding="utf-8") as f:
            text = f.read()
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:|#", target):
                continue
            n += 1
            if not os.path.exists(os.path.join(os.path.dirname(page), target.split("#")[0])):
                broken.append("%s: %s is not there" % (page, target))
    if broken:
        sys.exit("\n".join(broken))
    print("pages: %d links between %d pages lead somewhere" % (n, len(pages)))


if __name__ == "__main__":
    main()
