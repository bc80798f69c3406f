#!/usr/bin/env python3
"""Whole ONNX models: this project and onnxruntime in turn, on the CPU, with the same threads. Time of a run (median) and peak memory of a process.

    bench/rivals/onnxruntime_models.py MODEL.onnx[:NAME=SIZE,..] ... [--cermet build/bin/cermet] [--modes full,pattern,none] [--threads 2] [--rounds 3] [--out FILE.json]

Each side, and each mode of fusion, runs in processes of its own, in turn; a process warms up twice and gives the median of `--repeat` runs. The first mode
is compared. The machine's limits are measured after the last round of each model. Needs onnxruntime and numpy.
"""

import argparse
import datetime
import json
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def rival(path, dims, threads, repeat):
    """In a process of its own: prints seconds and bytes as JSON."""
    import numpy as np
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    feeds = {}
    for value in session.get_inputs():
        shape = [size if isinstance(size, int) else dims.get(size, 1) for size in value.shape]
        if "int" in value.type:
            feeds[value.name] = np.ones(shape, value.type[len("tensor("):-1])
        else:
            feeds[value.name] = random.standard_normal(shape).astype({"tensor(float16)": np.float16}.get(value.type, np.float32))
    seconds = []
    for _ in range(repeat + 2):
        start = time.perf_counter()
        session.run(None, feeds)
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": statistics.median(seconds[2:]), "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                      "version": ort.__version__}))


def own(cermet, path, dims, threads, repeat, mode, limits):
    command = [cermet, "bench", "model", path, "--threads", str(threads), "--repeat", str(repeat), "--mode", mode, "--json"] + ["--limits"] * limits
    for name, size in dims.items():
        command += ["--dim", f"{name}={size}"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    if sys.argv[1:2] == ["--rival"]:
        return rival(sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--cermet", default=str(ROOT / "build/bin/cermet"))
    parser.add_argument("--modes", type=lambda text: text.split(","), default=["full"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    rows = []
    print(f"{'model':24} {'ours ms':>9} {'rival ms':>9} {'rival/ours':>10} {'ours MiB':>9} {'rival MiB':>9}")
    for argument in options.models:
        path, _, sizes = argument.partition(":")
        dims = {name: int(size) for name, size in (entry.split("=") for entry in sizes.split(",") if entry)}
        mine, theirs = {mode: [] for mode in options.modes}, []
        for turn in range(options.rounds):
            for mode in options.modes:
                last = turn + 1 == options.rounds and mode == options.modes[0]
                mine[mode].append(own(options.cermet, path, dims, options.threads, options.repeat, mode, last))
            command = [sys.executable, __file__, "--rival", path, json.dumps(dims), str(options.threads), str(options.repeat)]
            theirs.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        compared = mine[options.modes[0]]
        row = {"model": pathlib.Path(path).stem, "dims": dims}
        for name, list_of in (("ours", compared), ("rival", theirs)):
            row[f"{name}_seconds"] = statistics.median(r["seconds"] for r in list_of)
            row[f"{name}_bytes"] = max(r["peak_memory_bytes"] for r in list_of)
        row["ratio"] = statistics.median(t["seconds"] / m["seconds"] for m, t in zip(compared, theirs))
        row["modes"] = {mode: statistics.median(r["seconds"] for r in runs) for mode, runs in mine.items()}
        row["operations"], row["limits"] = compared[-1]["operations"], compared[-1]["limits"]
        row["rival_version"] = theirs[0]["version"]
        rows.append(row)
        print(f"{row['model']:24} {1e3 * row['ours_seconds']:9.2f} {1e3 * row['rival_seconds']:9.2f} {row['ratio']:10.2f} "
              f"{row['ours_bytes'] / 2**20:9.0f} {row['rival_bytes'] / 2**20:9.0f}  "
              + " ".join(f"{mode} {1e3 * seconds:.2f}" for mode, seconds in row["modes"].items()), flush=True)
    if options.out:
        cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.processor())
        options.out.write_text(json.dumps({"date": datetime.date.today().isoformat(), "machine": cpu, "threads": options.threads,
                                           "command": "bench/rivals/onnxruntime_models.py MODEL.onnx .. --modes " + ",".join(options.modes), "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
