#!/usr/bin/env python3
"""Runs the node tests of the onnx package through `cermet run`, and compares with their expected results as the package's own runner does.

    tests/onnx/node_tests.py --cermet build/bin/cermet [--device cuda] [--filter REGEX] [--jobs 2] [--light]

Tests that fail are listed with the reason in expected_failures.txt; the run fails where a test outside the list fails, or one of the list passes.
"""

import argparse
import collections
import concurrent.futures
import pathlib
import re
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnx.backend.test.case.test_case
import onnx.numpy_helper

import runs

HERE = pathlib.Path(__file__).resolve().parent
T = onnx.TensorProto
ELEMENTS = {T.BOOL, T.UINT8, T.INT8, T.UINT16, T.INT16, T.UINT32, T.INT32, T.UINT64, T.INT64, T.FLOAT16, T.BFLOAT16, T.FLOAT, T.DOUBLE, T.FLOAT8E4M3FN,
            T.FLOAT8E5M2, T.FLOAT8E4M3FNUZ, T.FLOAT8E5M2FNUZ, T.FLOAT8E8M0}
RANDOM = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"}


def load_cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases
        return sorted(collect_testcases(None), key=lambda case: case.name)


def graphs_of(graph):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from graphs_of(attribute.g)


def value_problem(value):
    kind = value.type.WhichOneof("value")
    if kind is None:
        return None
    if kind != "tensor_type":
        return kind.removesuffix("_type")
    element = value.type.tensor_type.elem_type
    return None if element in ELEMENTS or element == T.UNDEFINED else T.DataType.Name(element).lower()


def why_skipped(case):
    """A kind of test that the import leaves out, by its types and domains; None for the others."""
    for graph in graphs_of(case.model.graph):
        for value in [*graph.input, *graph.output]:
            if problem := value_problem(value):
                return f"type {problem}"
        for node in graph.node:
            if node.domain not in ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview"):
                return f"domain {node.domain}"
            if node.op_type in RANDOM:
                return "random numbers"
            if node.op_type.startswith(("Sequence", "Optional", "SplitToSequence", "ConcatFromSequence")):
                return "type sequence"
    if "training" in case.name and not case.name.endswith("zero_ratio") and "zero_ratio_mask" not in case.name:
        return "training"
    return None


def operator_of(case, by_name):
    base = by_name.get(re.sub(r"_expanded.*$", "", case.name), case)
    nodes = [node for node in base.model.graph.node if node.op_type != "Constant"]
    return nodes[0].op_type if nodes else "Constant"


def array_of(value):
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def compare(found, expected, rtol, atol, name):
    expected = array_of(expected)
    if found.dtype != expected.dtype and found.dtype.kind == "V" and found.dtype.itemsize == expected.dtype.itemsize:
        found = found.view(expected.dtype)  # bf16 and fp8 have no name in .npy files
    if found.shape != expected.shape:
        return f"{name}: expected shape {list(expected.shape)}, found {list(found.shape)}"
    if found.dtype != expected.dtype:
        return f"{name}: expected {expected.dtype}, found {found.dtype}"
    if found.dtype.name == "bfloat16" or found.dtype.name.startswith("float8"):
        if found.dtype.name == "bfloat16":
            rtol = max(rtol, 2**-6)
        found, expected = found.astype(np.float32), expected.astype(np.float32)
    try:
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
    except AssertionError as error:
        lines = [line for line in str(error).splitlines() if "ismatch" in line or "ifference" in line]
        return f"{name}: " + "; ".join(line.strip() for line in lines[:3])
    return None


def run_case(case, options):
    """None where the test passes, else what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "model.onnx"
        model.write_bytes(case.model.SerializeToString())
        for inputs, outputs in case.data_sets:
            feeds = {value.name: array_of(array) for value, array in zip(case.model.graph.input, inputs)}
            expected = {value.name: array for value, array in zip(case.model.graph.output, outputs)}
            try:
                found = runs.run_cermet(options.cermet, model, feeds, expected, options.device, options.timeout)
            except runs.Failed as error:
                return str(error)
            for name, array in expected.items():
                if name not in found:
                    return f"{name}: no result"
                if problem := compare(found[name], array, case.rtol, case.atol, name):
                    return problem
    return None


def light_cases():
    """Whole networks of the package, whose weights are all alike, with the first result and the operands that its own runner makes."""
    folder = pathlib.Path(onnx.__file__).parent / "backend/test/data/light"
    for path in sorted(folder.glob("*.onnx")):
        model = onnx.load(path)
        given = {tensor.name for tensor in model.graph.initializer}
        inputs = []
        for value in model.graph.input:
            if value.name not in given:
                shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
                inputs.append((np.arange(np.prod(shape)).reshape(shape) / np.prod(shape)).astype(np.float32))
        model.graph.input.sort(key=lambda value: value.name in given)  # those that have operands first
        result = onnx.TensorProto.FromString(path.with_name(path.stem + "_output_0.pb").read_bytes())
        yield onnx.backend.test.case.test_case.TestCase(name=path.stem, model_name=path.stem, url=None, model_dir=None, model=model, data_sets=[(inputs, [result])],
                                                        kind="real", rtol=1e-3, atol=1e-7)


def read_expected(path):
    """TEST  # REASON, one a line."""
    expected = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        name, _, reason = line.partition("#")
        if name.strip():
            expected[name.strip()] = reason.strip()
    return expected


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cermet", default=runs.CERMET)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--filter", default="", help="regular expression that is searched in the tests' names")
    parser.add_argument("--light", action="store_true", help="the package's whole networks instead")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one test")
    parser.add_argument("--expected", type=pathlib.Path, default=HERE / "expected_failures.txt")
    parser.add_argument("--write-expected", action="store_true", help="list what fails now; reasons of tests that were listed stay")
    parser.add_argument("--operators", action="store_true", help="counts by operator for all of them, not only those with failures")
    options = parser.parse_args()

    cases = list(light_cases()) if options.light else load_cases()
    by_name = {case.name: case for case in cases}
    chosen = [case for case in cases if re.search(options.filter, case.name)]
    skipped = {case.name: reason for case in chosen if (reason := why_skipped(case))}
    to_run = [case for case in chosen if case.name not in skipped]
    expected = read_expected(options.expected)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        problems = dict(zip([case.name for case in to_run], pool.map(lambda case: run_case(case, options), to_run)))
    failed = {name: problem for name, problem in problems.items() if problem}

    counts = collections.defaultdict(lambda: [0, 0])
    for case in to_run:
        counts[operator_of(case, by_name)][case.name in failed] += 1
    for operator, (passed, missed) in sorted(counts.items()):
        if missed or options.operators:
            print(f"{operator:28} {passed:4} passed {missed:4} failed")
    for reason, count in sorted(collections.Counter(skipped.values()).items()):
        print(f"skipped: {reason:24} {count:4}")
    for name, problem in failed.items():
        print(f"{'expected' if name in expected else 'FAILED'}: {name}: {problem}")
    wrong = [name for name in failed if name not in expected]
    passed_now = [name for name in problems if name in expected and name not in failed]
    for name in passed_now:
        print(f"PASSED, though listed in {options.expected.name}: {name}")
    print(f"{len(problems) - len(failed)} of {len(problems)} tests passed, {len(failed) - len(wrong)} failed as expected, {len(wrong)} otherwise; "
          f"{len(skipped)} skipped")
    if options.write_expected:
        kept = {name: reason for name, reason in expected.items() if name not in problems or name in failed}
        kept |= {name: problem for name, problem in failed.items() if name not in kept}
        options.expected.write_text("".join(f"{name}  # {reason}\n" for name, reason in sorted(kept.items())))
        return 0
    return 1 if wrong or passed_now or not problems else 0


if __name__ == "__main__":
    sys.exit(main())
