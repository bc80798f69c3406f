#!/usr/bin/env python3
"""Models whose sizes are open, at several sizes: whether one compilation covers the ranges, and every result beside onnxruntime's.

    tests/onnx/lengths.py FILE.onnx|FOLDER.. --dim batch=1..4 --dim seq=1..128 [--at 1 2 7 64 127 128] [--cermet build/bin/cermet]

Each length of --at is taken for every dimension, as far as its range goes.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx

import runs


def covers(cermet, path, dims):
    """Why one compilation does not cover the ranges, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([cermet, "compile", str(path), "-o", f"{folder}/plan", *dims], capture_output=True, text=True)
        return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--dim", action="append", default=[], help="NAME=LEAST..MOST, of a dimension that models leave open")
    parser.add_argument("--at", nargs="+", type=int, default=[1, 2, 7, 64, 127, 128])
    parser.add_argument("--cermet", default=runs.CERMET)
    options = parser.parse_args()
    ranges = {name: tuple(int(end) for end in text.split("..")) for name, text in (dim.split("=") for dim in options.dim)}
    paths = [path for given in options.models for path in (sorted(given.glob("*.onnx")) if given.is_dir() else [given])]
    failed = 0
    for path in paths:
        model = onnx.load(path)
        names = {d.dim_param for value in model.graph.input for d in value.type.tensor_type.shape.dim}
        dims = [part for name, (least, most) in ranges.items() if name in names for part in ("--dim", f"{name}={least}..{most}")]
        reason = covers(options.cermet, path, dims)
        failed += bool(reason)
        print(f"{path.stem:28} {'FAILED: ' + reason if reason else 'compiled once'}", flush=True)
        bound = 2 * 2.0**-24 * runs.rounding_steps(model)
        for length in options.at:
            sizes = {name: min(max(length, least), most) for name, (least, most) in ranges.items()}
            feeds = runs.random_feeds(model, sizes, np.random.default_rng(length))
            expected = runs.run_onnxruntime(path, feeds)
            try:
                found = runs.run_cermet(options.cermet, path, feeds, expected, arguments=dims)
            except runs.Failed as error:
                failed += 1
                print(f"FAILED {path.stem} at {length}: {error}", flush=True)
                continue
            for name, array in expected.items():
                apart, largest = runs.difference(found.get(name), array)
                if not apart <= bound * largest:
                    failed += 1
                    print(f"FAILED {path.stem} at {length}, {name}: {apart:.2e} apart, expected at most {bound * largest:.2e}", flush=True)
    print(f"{len(paths)} models, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
