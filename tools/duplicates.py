#!/usr/bin/env python3
"""Runs of lines that files repeat: `tools/duplicates.py [--lines 6] [--list] FOLDER..`.

Lines are compared without their indentation; blank ones, comments and includes do not count, nor do lines of braces alone. A run that
several files have is counted once for each file after the first, and overlapping runs of two files are one. Prints their number and
the lines that could be written once.
"""
import argparse
import collections
import pathlib
import re

SOURCES = {".cpp", ".hpp", ".cuh", ".h", ".inc"}
IGNORED = re.compile(r"(#\s*(include|pragma once|undef|define|endif|ifdef|ifndef|else|if )|//|[{}();,\s]*(//.*)?$|namespace |using namespace)")


def lines_of(path):
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        text = line.strip()
        if not IGNORED.match(text):
            yield number, text


def runs(paths, length):
    """(file, first line, file that has it, too, first line there, lines) for every repeated run, longest extent."""
    lines = {path: list(lines_of(path)) for path in paths}
    seen = {}
    for path in paths:
        texts = [text for _, text in lines[path]]
        at, own = 0, []
        while at + length <= len(texts):
            window = tuple(texts[at : at + length])
            if window not in seen:
                own.append((window, at))
                at += 1
                continue
            other, there = seen[window]
            extent = length
            others = [text for _, text in lines[other]]
            while at + extent < len(texts) and there + extent < len(others) and texts[at + extent] == others[there + extent]:
                extent += 1
            yield path, lines[path][at][0], other, lines[other][there][0], extent
            at += extent
        for window, first in own:  # only other files repeat them
            seen.setdefault(window, (path, first))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=6, help="the shortest run that counts")
    parser.add_argument("--list", action="store_true", help="where they are")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    paths = sorted(path for folder in args.folders for path in folder.rglob("*") if path.suffix in SOURCES)
    found = list(runs(paths, args.lines))
    if args.list:
        for path, line, other, there, extent in sorted(found, key=lambda run: -run[4]):
            print(f"{extent:4} lines: {path}:{line} and {other}:{there}")
    total = collections.Counter(path for path, *_ in found)
    print(f"{len(found)} runs of {args.lines} lines or more in {len(total)} files, {sum(run[4] for run in found)} lines, of {len(paths)} files")


if __name__ == "__main__":
    main()
