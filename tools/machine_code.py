#!/usr/bin/env python3
"""Whether two builds compile the same machine code: `tools/machine_code.py BEFORE AFTER`.

BEFORE and AFTER are folders of images, which tests write that compile programs:
  CERMET_DUMP_IMAGES=/tmp/before build/bin/test_jit_long --gtest_filter='*sm_90*gemv*'
Images are paired by file name, and their code sections are compared byte for byte. Names of functions do not count.
"""
import argparse
import pathlib
import struct
import sys


def code(path):
    """The code sections of an image, in order."""
    elf = path.read_bytes()
    if not elf.startswith(b"\x7fELF"):  # PTX, for devices that are compiled for when it is loaded
        return [b"".join(line for line in elf.splitlines() if not line.startswith(b"//"))]
    table = struct.unpack_from("<Q", elf, 0x28)[0]
    size, count, names_at = struct.unpack_from("<HHH", elf, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, table + i * size) for i in range(count)]
    names = elf[sections[names_at][4]:][:sections[names_at][5]]
    is_code = lambda section: names[section[0]:].startswith(b".text")
    return [elf[section[4]:section[4] + section[5]] for section in sections if is_code(section)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    args = parser.parse_args()
    before, after = ({path.name: path for path in folder.glob("*.cubin")} for folder in (args.before, args.after))
    if not before or not after:
        sys.exit(f"expected images in both folders, found {len(before)} and {len(after)}")
    same = changed = 0
    for name in sorted(before.keys() & after.keys()):
        old, new = code(before[name]), code(after[name])
        if old == new:
            same += 1
            continue
        changed += 1
        words = sum(a[i:i + 16] != b[i:i + 16] for a, b in zip(old, new) for i in range(0, min(len(a), len(b)), 16))
        print(f"{name}: {sum(map(len, old)) // 16} instructions before, {sum(map(len, new)) // 16} after; "
              f"{words} differ in place")
    alone = sorted(before.keys() ^ after.keys())
    for name in alone:
        print(f"{name}: only in {'BEFORE' if name in before else 'AFTER'}")
    print(f"{same} images the same, {changed} changed, {len(alone)} without a partner")
    return 1 if changed or alone else 0


if __name__ == "__main__":
    sys.exit(main())
