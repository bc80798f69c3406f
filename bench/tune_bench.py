#!/usr/bin/env python3
"""What tuning gains: random shapes within one budget, searches against each other and against the best of all, as JSON.

  python3 bench/tune_bench.py --binary build/bin/cermet --device cuda --output tune.json
  python3 bench/tune_bench.py --device cpu --calls 30 --budget 30

Gains are measured anew after tuning, with the tuned and the untuned choice in turn (A B B A, `cermet bench suite`), so that the times by which the tuner
chose are not those that are reported. Nothing is read or written but --output and a folder for this run's choices and compiled kernels.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time


def gpu_call(rng):
    op = rng.choice(["scaled_mm", "linear", "rms_norm", "softmax", "decode", "grouped"])
    rows = rng.choice([1, 2, 8, 16, 33, 64, 100, 128, 256, 500, 512, 1024, 2048, 4096])
    wide = [1024, 1536, 2048, 2560, 3072, 4096, 5120, 6144, 8192, 14336]
    if op == "scaled_mm":
        n, k, dtype = rng.choice(wide), rng.choice(wide), rng.choice(["i8", "f8_e4m3"])
        return "scaled_mm", f"{dtype}[{rows},{k}] {dtype}[{n},{k}] f32[{rows}] f32[{n}] out_dtype=bf16"
    if op == "linear":
        n, k = rng.choice(wide), rng.choice(wide)
        return "linear", f"x=bf16[{rows},{k}] w=bf16[{n},{k}]"
    if op == "rms_norm":
        k = rng.choice(wide)
        return "rms_norm", f"bf16[{rows},{k}] bf16[{k}]"
    if op == "softmax":
        return "softmax", f"f32[{rows},{rng.choice([512, 1000, 2048, 4096, 8192, 16384])}]"
    if op == "decode":
        sequences, kv_heads, group = rng.choice([1, 2, 4, 8, 16, 32, 64]), rng.choice([4, 8]), rng.choice([1, 4, 8])
        head, pages = rng.choice([64, 128]), rng.choice([16, 64, 256])
        cache = f"bf16[{sequences * pages},{kv_heads},16,{head}]"
        return "incre_flash_attention", f"bf16[{sequences},{kv_heads * group},{head}] {cache} {cache} i32[{sequences},{pages}] i32[{sequences}]"
    experts, n, k = rng.choice([8, 16, 64]), rng.choice([768, 1536, 2048]), rng.choice([1024, 2048])
    return "grouped_linear", f"x=bf16[{rng.choice([8, 32, 64, 256, 1024, 4096])},{k}] w=bf16[{experts},{n},{k}] offsets=i32[{experts + 1}]"


def cpu_call(rng):
    op, rows = rng.choice(["linear", "rms_norm", "softmax"]), rng.choice([1, 2, 5, 16, 40, 64, 100, 128, 256])
    columns = rng.choice([128, 256, 384, 512, 768, 1024, 1536, 2048])
    if op == "linear":
        k, dtype = rng.choice([128, 256, 512, 1024]), rng.choice(["f32", "bf16"])
        return "linear", f"x=f32[{rows},{k}] w={dtype}[{columns},{k}]"
    return op, f"f32[{rows},{columns}]" + (f" f32[{columns}]" if op == "rms_norm" else "")


def random_calls(count, seed, on_gpu):
    rng, calls, seen = random.Random(seed), [], set()
    while len(calls) < count:
        call = (gpu_call if on_gpu else cpu_call)(rng)
        if call not in seen:
            seen.add(call)
            calls.append({"name": f"{len(calls)}", "op": call[0], "shape": call[1]})
    return calls


class Cermet:
    def __init__(self, options, folder, deadline):
        self.options, self.folder, self.deadline = options, folder, deadline
        self.environment = dict(os.environ, CERMET_CACHE_DIR=os.path.join(folder, "cache"))

    def run(self, *arguments, tuning="off", timeout=600):
        """Values that the command prints, one for each line or one in all; nothing, with a note, where it fails or runs past its time."""
        command = [self.options.binary, *arguments, "--json", "--device", self.options.device]
        left = self.deadline - time.monotonic()
        if left < 5:
            print(f"no time left for: {' '.join(arguments[:3])}", file=sys.stderr)
            return None
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=min(timeout, left), env=dict(self.environment, CERMET_TUNING=tuning))
        except subprocess.TimeoutExpired as late:
            print(f"past its time: {' '.join(arguments[:3])}", file=sys.stderr)
            lines = (late.stdout or b"").decode(errors="replace").split("\n")[:-1]  # those that are whole
            return [json.loads(line) for line in lines if line.startswith("{")] or None
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        try:
            values = [json.loads(line) for line in lines] if len(lines) > 1 else [json.loads(done.stdout)]
        except ValueError:
            values = []
        if done.returncode != 0 or not values:
            print(f"{' '.join(arguments[:3])}: {done.stderr.strip()[-400:] or done.stdout.strip()[-400:]}", file=sys.stderr)
        return values or None

    def tune(self, calls, *arguments, tuning, timeout=600):
        path = os.path.join(self.folder, "calls.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(calls, file)
        values = self.run("tune", "suite", path, *arguments, tuning=tuning, timeout=timeout)
        return values[0] if values and "results" in values[0] else None


def gains(cermet, calls, results):
    """Untuned over tuned time of each call whose choice changed, from runs in turn: A B B A."""
    entries, changed = [], [i for i, result in enumerate(results) if result["kernel"] != result["untuned"]["kernel"] or result["config"] != result["untuned"]["config"]]
    for i in changed:
        untuned = dict(calls[i], kernel=results[i]["untuned"]["kernel"], config=results[i]["untuned"]["config"])
        tuned = dict(calls[i], kernel=results[i]["kernel"], config=results[i]["config"])
        for turn, entry in enumerate([untuned, tuned, tuned, untuned]):
            entries.append(dict(entry, name=f"{i} {turn}"))
    measured = {}
    if entries:
        path = os.path.join(cermet.folder, "gains.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(entries, file)
        for line in cermet.run("bench", "suite", path, "--cold", "--seconds", "0.05") or []:
            if "median_seconds" in line:
                measured[line["name"]] = line["median_seconds"]
            elif "error" in line:
                print(f"call {line['name']}: {line['error']}", file=sys.stderr)
    values = []
    for i in range(len(results)):
        if i not in changed:
            values.append(1.0)
        elif all(f"{i} {turn}" in measured for turn in range(4)):
            values.append(math.sqrt(measured[f"{i} 0"] * measured[f"{i} 3"] / (measured[f"{i} 1"] * measured[f"{i} 2"])))
        else:
            values.append(None)
    return values


def agreement(first, second):
    """Whether two tunings chose alike: the same, or times that differ by no more than what either recorded as its noise, and than clocks drift by (1 %)."""
    others = {result["job"]: result for result in second}
    both = [(result, others[result["job"]]) for result in first if result["job"] in others]
    differing = []
    for a, b in both:
        if (a["kernel"], a["config"]) != (b["kernel"], b["config"]):
            noise = max(0.01, a["spread"] / a["seconds"], b["spread"] / b["seconds"])
            differing.append({"job": a["job"], "difference": abs(a["seconds"] / b["seconds"] - 1), "noise": noise,
                              "chosen": [[r["kernel"], r["config"], r["seconds"], len(r["tried"])] for r in (a, b)]})
    beyond = [one for one in differing if one["difference"] > one["noise"]]
    return {"calls": len(both), "same": len(both) - len(differing), "within_noise": len(differing) - len(beyond), "beyond": beyond}


def untuned_near(runs):
    """Calls whose untuned choice took less than 1.05 of the least that was measured for them, and how far the others were off."""
    least, untuned = {}, {}
    for result in (result for run in runs for result in run):
        measured = [tried["seconds"] for tried in result["tried"] if tried["state"] == "measured"] + [result["seconds"]]
        least[result["job"]] = min([least.get(result["job"], math.inf)] + measured)
        untuned[result["job"]] = min(untuned.get(result["job"], math.inf), result["untuned"]["seconds"])
    off = {job: untuned[job] / least[job] for job in least if untuned[job] >= 1.05 * least[job]}
    return {"calls": len(least), "near": len(least) - len(off), "off": off}


def geometric_mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values)) if values else None


def by_operator(calls, values):
    groups = {}
    for call, value in zip(calls, values):
        if value is not None:
            groups.setdefault(call["op"], []).append(value)
    return {op: {"calls": len(list_), "mean_gain": geometric_mean(list_), "least": min(list_), "most": max(list_)} for op, list_ in sorted(groups.items())}


def curve(result):
    """Least time after each candidate that was tried."""
    best, times = math.inf, []
    for tried in result["tried"]:
        if tried["state"] == "measured":
            best = min(best, tried["seconds"])
        times.append(best)
    return times


def compare_searches(cermet, call, options):
    """The best of all candidates, as far as the time allows, and how near the searches come with few. Kernels are in the cache after the first run."""
    path = ["--dry", "--seconds", str(options.seconds)]
    whole = cermet.tune([call], *path, "--search", "exhaustive", "--budget", str(options.exhaustive), tuning="off", timeout=options.exhaustive + 60)
    if not whole or not whole["results"]:
        return None
    result = whole["results"][0]
    record = {"call": call, "candidates": result["candidates"], "tried": len(result["tried"]), "ended": result["ended"], "curves": {}}
    record["untuned_seconds"] = result["untuned"]["seconds"]
    for search in ["bayes", "random"]:
        record["curves"][search] = []
        for seed in range(options.seeds):
            run = cermet.tune([call], *path, "--search", search, "--candidates", str(options.candidates), "--seed", str(seed), "--budget",
                              str(options.exhaustive), tuning="off", timeout=options.exhaustive + 60)
            if run and run["results"]:
                record["curves"][search].append(curve(run["results"][0]))
    # Where the machine is noisy another search may see less than the exhaustive one.
    record["exhaustive_seconds"] = curve(result)[-1]
    record["least_seconds"] = min([curve(result)[-1]] + [one[-1] for curves in record["curves"].values() for one in curves])
    for curves in record["curves"].values():
        curves[:] = [[seconds / record["least_seconds"] for seconds in one] for one in curves]
    return record


def mean_curve(records, search, length):
    """Geometric mean over calls and seeds of time / least time, by candidates tried."""
    curves = [one for record in records for one in record["curves"][search] if one]
    return [geometric_mean([one[min(i, len(one) - 1)] for one in curves]) for i in range(length)] if curves else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/bin/cermet")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--budget", type=float, default=60, help="seconds for all calls")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.01, help="to measure a candidate")
    parser.add_argument("--again", action="store_true", help="tune a second time, with another seed and what the first compiled, and say where both agree")
    parser.add_argument("--searches", type=int, default=4, help="calls of which searches are compared")
    parser.add_argument("--exhaustive", type=float, default=30, help="seconds to measure all candidates of one of those")
    parser.add_argument("--candidates", type=int, default=32, help="of a search that is compared")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=450, help="seconds for everything; what does not fit is left out")
    parser.add_argument("--output")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        cermet = Cermet(options, folder, begin + options.limit)
        calls = random_calls(options.calls, options.seed, options.device != "cpu")
        table = os.path.join(folder, "choices.db")
        tuned = cermet.tune(calls, "--budget", str(options.budget), "--seed", str(options.seed), "--seconds", str(options.seconds), tuning=table,
                            timeout=options.budget * 2 + 120)
        if tuned is None:
            return 1
        results = tuned["results"]
        again = None
        if options.again:
            again = cermet.tune(calls, "--budget", str(options.budget), "--seed", str(options.seed + 1), "--seconds", str(options.seconds),
                                tuning=os.path.join(folder, "again.db"), timeout=options.budget * 2 + 120)
        calls = [calls[result["job"]] for result in results]  # those that the budget sufficed for
        values = gains(cermet, calls, results)
        known = [value for value in values if value is not None]
        record = {"device": tuned["device"], "versions": tuned["versions"], "calls": options.calls, "tuned": tuned["tuned"], "budget": options.budget,
                  "seconds": tuned["seconds"], "seed": options.seed, "mean_gain": geometric_mean(known), "least_gain": min(known, default=None),
                  "changed": sum(1 for result in results if result["gain"] != 1), "by_operator": by_operator(calls, values)}
        record["untuned_near"] = untuned_near([results] + ([again["results"]] if again else []))
        if again:
            record["again"] = {"seconds": again["seconds"], **agreement(results, again["results"])}
        record["wrong"] = [dict(call=call, **tried) for call, result in zip(calls, results) for tried in result["tried"] if tried["state"] in ("wrong", "failed")]
        record["results"] = [{"op": call["op"], "shape": call["shape"], "gain": value, "tuner_gain": result["gain"], "tried": len(result["tried"]),
                              "candidates": result["candidates"], "kernel": result["kernel"], "config": result["config"], "seconds": result["seconds"],
                              "untuned": result["untuned"]} for call, result, value in zip(calls, results, values)]
        # One call of each operator, first those whose candidates are many and yet can all be measured.
        picked, operators = [], set()
        for result, call in sorted(zip(results, calls), key=lambda pair: abs(math.log(pair[0]["candidates"] / 80))):
            if call["op"] not in operators or options.device == "cpu":
                operators.add(call["op"])
                picked.append(call)
        comparisons = []
        for call in picked[: options.searches]:
            if (compared := compare_searches(cermet, call, options)) is not None:
                comparisons.append(compared)
        record["searches"] = {search: mean_curve(comparisons, search, options.candidates) for search in ["bayes", "random"]}
        record["compared"] = comparisons
        record["wall_seconds"] = time.monotonic() - begin
    text = json.dumps(record, indent=1)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    summary = {key: record[key] for key in ["device", "calls", "tuned", "seconds", "mean_gain", "least_gain", "changed", "by_operator", "wall_seconds"]}
    summary["wrong"] = len(record["wrong"])
    summary["untuned_near"] = record["untuned_near"]
    summary["again"] = record.get("again")
    summary["searches"] = {search: [round(values[i], 3) for i in (0, 3, 7, 15, 31) if i < len(values)] for search, values in record["searches"].items()}
    print(json.dumps(summary, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
