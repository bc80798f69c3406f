#!/usr/bin/env python3
"""How long source files are: `tools/file_lengths.py [--most 500] FOLDER..`.

Prints the number of files, the median and the largest of their line counts, and names every file with more lines than `--most`; those fail.
"""
import argparse
import pathlib
import statistics
import sys

from duplicates import SOURCES


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=500, help="lines that a file may have")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    paths = sorted(path for folder in args.folders for path in folder.rglob("*") if path.suffix in SOURCES)
    if not paths:
        sys.exit(f"{', '.join(map(str, args.folders))}: expected source files ({', '.join(sorted(SOURCES))}), found none")
    lengths = {path: len(path.read_bytes().splitlines()) for path in paths}
    print(f"{len(paths)} files, median {statistics.median(lengths.values()):g} lines, at most {max(lengths.values())}")
    long = [path for path in paths if lengths[path] > args.most]
    for path in long:
        print(f"{path}: {lengths[path]} lines, expected at most {args.most}")
    sys.exit(1 if long else 0)


if __name__ == "__main__":
    main()
