#!/usr/bin/env python3
"""Whole models through `cermet run` and onnxruntime, every result compared, within a bound that the model's longest way through products gives (rounding_steps
in runs.py; both sides round).

    tests/onnx/exports.py FILE.onnx|FOLDER.. [--size batch=2] [--size seq=17] [--cermet build/bin/cermet] [--device cpu] [--rounding strict]

Open dimensions take the sizes of --size, else 1; inputs are random, the same in every run. A model without results of onnxruntime (an opset that it lacks) may
have them in FILE.expected.npz beside it: arrays in:NAME and out:NAME.
"""

import argparse
import pathlib
import sys

import numpy as np
import onnx

import runs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--size", action="append", default=[], help="NAME=NUMBER, of a dimension that models leave open")
    parser.add_argument("--cermet", default=runs.CERMET)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounding", default="strict", choices=["strict", "fast"])
    options = parser.parse_args()
    sizes = {name: int(size) for name, size in (text.split("=") for text in options.size)}
    paths = [path for given in options.models for path in (sorted(given.glob("*.onnx")) if given.is_dir() else [given])]
    print(f"{'model':28} {'result':24} {'largest':>10} {'difference':>10} {'bound':>10}")
    failed = 0
    for path in paths:
        model = onnx.load(path)
        feeds = runs.random_feeds(model, sizes, np.random.default_rng(3))
        stored = path.with_suffix(".expected.npz")
        if stored.exists():
            arrays = np.load(stored)
            feeds = {name[3:]: arrays[name] for name in arrays if name.startswith("in:")}
            expected = {name[4:]: arrays[name] for name in arrays if name.startswith("out:")}
        else:
            try:
                expected = runs.run_onnxruntime(path, feeds)
            except Exception as error:  # its exceptions have no base of their own
                failed += 1
                print(f"FAILED {path.stem}: onnxruntime: {str(error)[:200]}", flush=True)
                continue
        try:
            found = runs.run_cermet(options.cermet, path, feeds, expected, options.device, arguments=["--rounding", options.rounding])
        except runs.Failed as error:
            failed += 1
            print(f"FAILED {path.stem}: {error}", flush=True)
            continue
        bound = 2 * 2.0**-24 * runs.rounding_steps(model)
        for name, array in expected.items():
            apart, largest = runs.difference(found.get(name), array)
            is_wrong = not apart <= bound * largest
            failed += is_wrong
            print(f"{path.stem:28} {name:24} {largest:10.3g} {apart:10.2e} {bound * largest:10.2e}{'  FAILED' if is_wrong else ''}", flush=True)
    print(f"{len(paths)} models, {failed} results failed")
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
