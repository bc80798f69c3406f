#!/usr/bin/env python3
"""Records what every candidate of some calls takes, so that searches and models are compared without a GPU (bench/tune_replay.cpp, tests/select).

  python3 bench/tune_tables.py --device cuda --output tables.json
  python3 bench/tune_tables.py --device cuda --numbers 0,17,5 --seconds 0.005 --output tables.json

The calls are those of bench/tune_bench.py with the same --seed, all or those of --numbers, in that order. Nothing is stored in a database. A table holds `candidates` rows of kernel, configuration, microseconds and half the distance of the quartiles, or of what became of it.
"""

import argparse
import json
import os
import sys
import tempfile
import time

from tune_bench import Cermet, random_calls


def row_of(tried):
    times = [round(1e6 * tried[key], 4) for key in ("seconds", "spread")] if tried["state"] == "measured" else [tried["state"]]
    return [tried["kernel"], tried["config"], *times]


def table_of(call, result):
    return {"op": call["op"], "shape": call["shape"], "region": result["region"], "candidates": result["candidates"], "ended": result["ended"],
            "seconds": round(result["tuning_seconds"], 2), "tried": [row_of(tried) for tried in result["tried"]]}


def text_of(record):
    """One line for each candidate: readable as a difference, and small."""
    head = {key: value for key, value in record.items() if key != "tables"}
    tables = []
    for table in record["tables"]:
        fields = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in table.items() if key != "tried")
        rows = ",\n".join(json.dumps(row) for row in table["tried"])
        tables.append(f'{{{fields}, "tried": [\n{rows}]}}')
    return json.dumps(head)[:-1] + ', "tables": [\n' + ",\n".join(tables) + "]}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/bin/cermet")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--numbers", default="", help="of calls, separated by commas; all by default")
    parser.add_argument("--together", type=int, default=4, help="calls of one run: what the first of them compile is ready sooner")
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.005, help="to measure a candidate")
    parser.add_argument("--limit", type=float, default=100, help="seconds for everything; what does not fit is left out")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    begin = time.monotonic()
    calls = random_calls(options.calls, options.seed, options.device != "cpu")
    record = {"command": "python3 " + " ".join(sys.argv), "tables": []}
    chosen = [calls[int(number)] for number in options.numbers.split(",")] if options.numbers else calls
    with tempfile.TemporaryDirectory() as folder:
        cermet = Cermet(options, folder, begin + options.limit)
        for first in range(0, len(chosen), options.together):
            part = chosen[first : first + options.together]
            left = begin + options.limit - time.monotonic()
            tuned = cermet.tune(part, "--dry", "--search", "exhaustive", "--seconds", str(options.seconds), "--budget", str(max(1, 0.8 * left)), tuning="off")
            if not tuned:
                continue
            record.update({key: tuned[key] for key in ("device", "versions")})
            tables = [table_of(part[result["job"]], result) for result in tuned["results"] if result["candidates"] > 1]
            record["tables"] += tables
            with open(options.output + ".part", "w", encoding="utf-8") as file:  # so that what was measured is there if this run is ended
                file.write(text_of(record))
            os.replace(options.output + ".part", options.output)
            for table in tables:
                least = min((row for row in table["tried"] if len(row) == 4), key=lambda row: row[2])
                print(f'{table["op"]} {table["shape"]}: {len(table["tried"])} of {table["candidates"]} in {table["seconds"]} s; untuned {table["tried"][0][:3]}, '
                      f'least {least[:3]}')
    return 0


if __name__ == "__main__":
    sys.exit(main())
