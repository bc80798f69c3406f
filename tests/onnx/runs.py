"""A model through `cermet run` and through onnxruntime: what the scripts here share."""

import math
import pathlib
import re
import subprocess
import tempfile

import numpy as np
import onnx

CERMET = str(pathlib.Path(__file__).resolve().parents[2] / "build/bin/cermet")


class Failed(Exception):
    """A run that gave no results, with its message."""


def file_name(name):
    return re.sub(r"[/\0]", "_", name) + ".npy"


def save(path, array):
    np.save(path, array.view("V1") if array.dtype.name.startswith("float8") else array)  # e5m2 would be saved as 'f1', which nothing reads


def run_cermet(cermet, model, feeds, outputs, device="cpu", timeout=None, arguments=()):
    """Results by name, of `outputs`; those that are not written are left out."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        command = [cermet, "run", str(model), "--device", device, "--output", str(folder / "out"), *arguments]
        for index, (name, array) in enumerate(feeds.items()):
            save(folder / f"{index}.npy", array)
            command += ["--input", f"{name}={folder / f'{index}.npy'}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Failed(f"no result within {timeout} s") from None
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines()
            raise Failed(lines[-1] if lines else f"exit status {done.returncode}")
        return {name: np.load(folder / "out" / file_name(name)) for name in outputs if (folder / "out" / file_name(name)).exists()}


def run_onnxruntime(model, feeds):
    import onnxruntime
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    return {output.name: array for output, array in zip(session.get_outputs(), session.run(None, feeds))}


def random_feeds(model, sizes, random):
    """Operands for the inputs of a loaded model: masks of ones, small indices, normal numbers; open dimensions have the size given for their name, else 1."""
    given = {tensor.name for tensor in model.graph.initializer}
    feeds = {}
    for value in model.graph.input:
        if value.name in given:
            continue
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = [d.dim_value if d.HasField("dim_value") else sizes.get(d.dim_param, 1) for d in value.type.tensor_type.shape.dim]
        if kind == np.bool_ or "mask" in value.name:
            feeds[value.name] = np.ones(shape, kind)
        elif np.issubdtype(kind, np.integer):
            feeds[value.name] = random.integers(0, 100, shape).astype(kind)
        else:
            feeds[value.name] = random.standard_normal(shape).astype(kind)
    return feeds


def rounding_steps(model):
    """Units of rounding on the longest way through a model's graph: sqrt(K) for a sum of K products, whose errors are as often up as down, and 1 for any other
    operator. Each unit is relative to the largest of an operator's results, so the sum times 2^-24 bounds what two float32 runs differ by, relative to the
    largest result, as long as no operator enlarges differences more than values."""
    try:
        model = onnx.shape_inference.infer_shapes(model)
    except Exception:  # larger than a protobuf message may be
        pass
    shapes = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    for value in [*model.graph.value_info, *model.graph.input]:
        shapes.setdefault(value.name, [d.dim_value if d.HasField("dim_value") else 0 for d in value.type.tensor_type.shape.dim])
    ways = {}
    for node in model.graph.node:
        length = 1.0
        shape = shapes.get(node.input[1], []) if len(node.input) > 1 else []
        if node.op_type in ("Conv", "ConvTranspose") and shape:
            length = math.sqrt(max(math.prod(shape[1:]), 1))
        elif node.op_type in ("MatMul", "Gemm", "Attention") and len(shape) > 1:
            length = math.sqrt(max(max(shape[-2:]), 1))
        elif node.op_type in ("MatMul", "Gemm", "Attention"):
            length = 32.0  # of activations whose sizes are open
        ways_in = [ways.get(name, 0.0) for name in node.input]
        for name in node.output:
            ways[name] = max(ways_in, default=0.0) + length
    return max((ways.get(value.name, 1.0) for value in model.graph.output), default=1.0)


def difference(found, expected):
    """Largest difference and largest expected value; infinity where types, dimensions, integers or what is not finite differ."""
    if found is None or found.shape != expected.shape or found.dtype != expected.dtype:
        return math.inf, 0.0
    if expected.dtype.kind not in "fV":
        return (0.0 if np.array_equal(found, expected) else math.inf), 0.0
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(found)) or not np.array_equal(found[~finite], expected[~finite], equal_nan=True):
        return math.inf, 0.0
    return float(np.max(np.abs(found - expected)[finite], initial=0.0)), float(np.max(np.abs(expected)[finite], initial=0.0))
