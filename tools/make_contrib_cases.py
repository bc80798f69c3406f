#!/usr/bin/env python3
"""Single operators of the domains com.microsoft and ai.onnx.ml in many forms, with the results of onnxruntime.

usage: make_contrib_cases.py --write            # tests/onnx/cases/contrib/FAMILY.onnx, which tests/onnx/contrib_test.cpp runs
       make_contrib_cases.py --add FOLDER...    # reported.onnx there, of folders with model.onnx, case.json, input_I.npy and expected_I.npy
       make_contrib_cases.py --compare CERMET  # runs every case with a `cermet` and prints those that differ

Needs numpy, onnx and onnxruntime (1.32). A file is a model whose nodes are cases: attributes `graph`, `inputs` and `expected` (in the graph's order), `tolerance`
(absolute, and relative to the largest of the expected values), `units` (how far integers may be apart) and `opset`.
"""

import argparse
import json
import pathlib
import sys
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import contrib_cases  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[1]


def opsets_of(case):
    return [helper.make_opsetid("", case.opset), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("ai.onnx.ml", case.ml)]


def graph_of(case):
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(case.inputs)]
    outputs = [f"y{i}" if kept else "" for i, kept in enumerate(case.outputs)]
    node = helper.make_node(case.op, names, outputs, domain=case.domain, **case.attributes)
    given = [(n, x) for i, (n, x) in enumerate(zip(names, case.inputs)) if n and i not in case.constant]
    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given]
    held = [onnx.numpy_helper.from_array(x, n) for i, (n, x) in enumerate(zip(names, case.inputs)) if n and i in case.constant]
    results = [helper.make_empty_tensor_value_info(o) for o in outputs if o]
    for value, kind in zip(results, case.types or []):
        value.type.tensor_type.elem_type = kind
    return helper.make_graph([node], case.name, inputs, results, initializer=held), {n: x for n, x in given}


def onnxruntime_results(case):
    """Of the case itself, or of the one that stands for it where onnxruntime has no kernel on the CPU."""
    asked = case.like or case
    graph, feeds = graph_of(asked)
    model = helper.make_model(graph, opset_imports=opsets_of(asked), ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    results = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feeds)
    return [case.changed(y) for y in results] if case.changed else results


def difference(case, got, wanted):
    """What is wrong with a result; nothing where it is near enough."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"{got.dtype}{list(got.shape)}, not {wanted.dtype}{list(wanted.shape)}"
    if wanted.size == 0:
        return ""
    if wanted.dtype.kind in "iub":
        apart = np.abs(got.astype(np.int64) - wanted.astype(np.int64)).max()
        return f"{apart} apart" if apart > case.units else ""
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return "NaN"
    apart = np.nanmax(np.abs(a - b)) if not np.isnan(b).all() else 0
    return f"{apart:.2e} apart" if apart > case.tolerance * max(1, np.nanmax(np.abs(b))) else ""


def compare(cases, cermet, only):
    sys.path.insert(0, str(ROOT / "tests/onnx"))
    import tempfile
    import runs
    bad = 0
    for family, case in cases:
        if only and only not in family + "/" + case.name:
            continue
        try:
            wanted = onnxruntime_results(case)
        except Exception as error:
            print(f"NOT RUN {family}/{case.name}: {str(error)[:300]}")
            bad += 1
            continue
        graph, feeds = graph_of(case)
        names = [o.name for o in graph.output]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "case.onnx"
            onnx.save(helper.make_model(graph, opset_imports=opsets_of(case), ir_version=10), path)
            try:
                got = runs.run_cermet(cermet, path, feeds, names)
                why = "; ".join(f"{n}: {d}" for n, w in zip(names, wanted) if (d := difference(case, got[n], w)))
            except (runs.Failed, KeyError) as error:
                why = str(error)
        bad += bool(why)
        if why:
            print(f"DIFFERS {family}/{case.name}: {why}")
    print(f"{bad} of {len(cases)} differ")
    return bad


def case_node(name, **attributes):
    node = helper.make_node("Case", [], [], name=name)
    for key, value in attributes.items():
        if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            value = [onnx.numpy_helper.from_array(np.ascontiguousarray(v).reshape(v.shape)) for v in value]
        if value != []:
            node.attribute.append(helper.make_attribute(key, value))
    return node


def write_pack(family, nodes):
    folder = ROOT / "tests/onnx/cases/contrib"
    folder.mkdir(parents=True, exist_ok=True)
    data = helper.make_model(helper.make_graph(nodes, family, [], []), opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
    (folder / f"{family}.onnx").write_bytes(data)
    print(f"{family}: {len(nodes)} cases, {len(data)} bytes")


def write(cases):
    packs = {}
    for family, case in cases:
        if len(case.name) > 24 and zlib.crc32(case.name.encode()) % 2:  # of long lists, half is enough between comparisons
            continue
        graph, feeds = graph_of(case)
        packs.setdefault(family, []).append(case_node(case.name, graph=graph, inputs=list(feeds.values()), expected=onnxruntime_results(case),
                                                      tolerance=float(case.tolerance), units=case.units, opset=[case.opset, case.ml]))
    for family, nodes in packs.items():
        write_pack(family, nodes)


def add(folders):
    nodes = []
    for folder in map(pathlib.Path, folders):
        model, about = onnx.load(folder / "model.onnx"), json.loads((folder / "case.json").read_text())
        arrays = lambda kind, names: [np.load(folder / f"{kind}_{i}.npy") for i in range(len(names))]  # noqa: B023, E731
        versions = {opset.domain: opset.version for opset in model.opset_import}
        nodes.append(case_node(folder.name, graph=model.graph, inputs=arrays("input", about["inputs"]), expected=arrays("expected", about["results"]),
                               tolerance=float(about["tolerance"]), units=0, opset=[versions[""], versions.get("ai.onnx.ml", 3)]))
    write_pack("reported", nodes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--add", nargs="+", metavar="FOLDER", default=[])
    parser.add_argument("--compare", metavar="CERMET")
    parser.add_argument("--only", default="", help="part of FAMILY/NAME")
    arguments = parser.parse_args()
    cases = contrib_cases.all_cases()
    if arguments.write:
        write(cases)
    if arguments.add:
        add(arguments.add)
    if arguments.compare:
        sys.exit(compare(cases, arguments.compare, arguments.only) > 0)


if __name__ == "__main__":
    main()
