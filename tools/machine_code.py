#!/usr/bin/env python3
"""Whether two builds compile the same machine code: `tools/machine_code.py BEFORE AFTER`.

BEFORE and AFTER are folders of images, which tests write that compile programs:
  CERMET_DUMP_IMAGES=/tmp/before build/bin/test_jit_long --gtest_filter='*sm_90*gemv*'
Images are paired by file name. Names of functions, addresses and control bits that depend on them are not compared.
"""
import argparse
import difflib
import pathlib
import re
import subprocess
import sys


def instructions(path):
    """The instructions of an image, one a line, without addresses and names."""
    text = subprocess.run(["cuobjdump", "-sass", str(path)], capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(.*?);", text, re.MULTILINE)
    return [re.sub(r"`\([^)]*\)", "`(label)", line).strip() for line in lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--diff", action="store_true", help="print the first lines of every difference")
    args = parser.parse_args()
    before, after = ({p.name: p for p in folder.glob("*.cubin")} for folder in (args.before, args.after))
    same = changed = 0
    for name in sorted(before.keys() & after.keys()):
        if before[name].read_bytes() == after[name].read_bytes():
            same += 1
            continue
        old, new = instructions(before[name]), instructions(after[name])
        if old == new:
            same += 1
            continue
        changed += 1
        moves = sum(1 for line in difflib.ndiff(old, new) if line[0] in "+-") if len(old) < 3000 else -1
        print(f"{name}: {len(old)} instructions before, {len(new)} after, {moves} lines differ")
        if args.diff:
            print("\n".join(list(difflib.unified_diff(old, new, lineterm="", n=1))[:40]))
    alone = sorted(before.keys() ^ after.keys())
    for name in alone:
        print(f"{name}: only in {'BEFORE' if name in before else 'AFTER'}")
    print(f"{same} images the same, {changed} changed, {len(alone)} without a partner")
    return 1 if changed or alone else 0


if __name__ == "__main__":
    sys.exit(main())
