"""The stub that editors read says what the functions are."""

import ast
import inspect
import pathlib
import subprocess
import sys

import pytest

import cermet
from cermet import _native, functions, kernels, nodes, options, schemas

STUB = pathlib.Path(cermet.__file__).with_name("kernels.pyi")
NODES = STUB.with_name("nodes.pyi")
OPTIONS = STUB.with_name("options.pyi")


def test_the_stubs_are_those_of_this_library():
    assert STUB.read_text() == functions.stub()
    assert NODES.read_text() == nodes.stub()
    assert OPTIONS.read_text() == options.stub()


def functions_of(body):
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def test_every_operator_has_a_function_and_a_method_with_the_signature_of_the_stub():
    declared = functions_of(ast.parse(STUB.read_text()).body)
    methods = functions_of(next(node for node in ast.parse(NODES.read_text()).body if isinstance(node, ast.ClassDef)).body)
    assert list(declared) == list(methods) == kernels.__all__ and len(declared) == len(_native.op_names())
    pairs = [(name, node, getattr(kernels, name)) for name, node in declared.items()]
    pairs += [(name, node, nodes.make(op)) for (name, node), op in zip(methods.items(), _native.op_names())]
    for name, node, function in pairs:
        parameters = inspect.signature(function).parameters
        assert list(parameters) == [a.arg for a in [*node.args.args, *node.args.kwonlyargs]], name
        defaults = [ast.unparse(d) for d in [*node.args.defaults, *node.args.kw_defaults]]
        assert defaults == [repr(p.default) for p in parameters.values() if p.default is not p.empty], name
        assert inspect.getdoc(function) == ast.get_docstring(node), name


PROGRAM = """# pyright: strict
import numpy as np
import cermet
from cermet.kernels import rms_norm

x: np.ndarray = np.zeros((2, 4), np.float32)
y: np.ndarray = rms_norm(x, None, eps=1e-5)
z: np.ndarray = cermet.rms_norm(x)
op: cermet.Operator = cermet.get_op("rms_norm", (x,))
ops = [cermet.get_op("softmax", x), cermet.get_op("linear", (x, cermet.weight(x), None)), cermet.get_op("softmax", [("f32", (2, 4))], device="null:sm_90")]
values, ids = cermet.topk(np.zeros((2, 4), np.float32), k=1)
sums = (cermet.add(x, 1.0), cermet.add(1, x), cermet.where(x > 0, x, 0.0), cermet.add(x, np.float32(1)))
print(cermet.OnnxModel("x.onnx"), cermet.__version__.split("."), ops, values, ids, sums)
print(cermet.quantize(x, np.ones((), np.float32)), cermet.quantize_model("m", "q", calibration="c"), cermet.explain("linear", (x, cermet.weight(x))))
model = cermet.Model("m", device="cuda", weights="i8", max_context=64, rope_frequencies="stored")
graph = cermet.Graph("g")
value = graph.rms_norm(graph.input("x", ("T", 4)), x, eps=1e-5, names="y")
graph.output("y", graph.add(value, 1.0))
session: cermet.Session = graph.compile({"T": 4})
text: str = model.generate("p", temperature=0.5).text
texts: list[str] = [made.text for made in model.generate(["p", "q"])]
with model.generate([1, 2], stream=True) as stream:
    for piece in stream:
        print(piece)
"""

MISTAKES = {
    "cermet.softmax([1, 2])": "softmax",
    "cermet.add(1.0, 2.0)": "add",
    "number: str = values": "float",
    "floats: np.ndarray[tuple[int], np.dtype[np.float32]] = ids": "signedinteger",
    "rms_norm(x, epsilon=1)": "rms_norm",
    "rms_norm()": "rms_norm",
    'rms_norm(x, eps="1")': "rms_norm",
    "cermet.rms_nrom(x)": "rms_nrom",
    "graph.rms_norm(value, epsilon=1)": "epsilon",
    "graph.rms_nrom(value)": "rms_nrom",
    'model.generate("p", temprature=1)': "generate",
    'model.generate("p", temperature="hot")': "generate",
    'cermet.Model("m", wieghts="i8")': "wieghts",
    'cermet.Model("m", max_context="4")': "max_context",
}


def checked(command: list[str], folder: pathlib.Path, program: str) -> str:
    """What a type checker, a module of Python, prints of a program."""
    file = folder / "program.py"
    file.write_text(program)
    return subprocess.run([sys.executable, "-m", *command, str(file)], capture_output=True, text=True, cwd=folder).stdout


def mypy(folder: pathlib.Path) -> list[str]:
    return ["mypy", "--strict", "--cache-dir", str(folder / "cache")]


#: Pyright as a package that brings its own interpreter of JavaScript; editors run the same checks.
PYRIGHT = ["basedpyright", "--level", "error", "--pythonpath", sys.executable]


@pytest.mark.parametrize("name", ["mypy", "pyright"])
def test_a_type_checker_reads_it(tmp_path, name):
    command = mypy(tmp_path) if name == "mypy" else PYRIGHT
    found = checked(command, tmp_path, PROGRAM)
    assert "Success" in found or "0 errors" in found, found
    lines = PROGRAM + "".join(f"{mistake}\n" for mistake in MISTAKES)
    found = checked(command, tmp_path, lines)
    for word in MISTAKES.values():
        assert word in found, found
    wrong = {int(line.split(":")[1]) for line in found.splitlines() if ": error: " in line or " - error: " in line}
    assert wrong == set(range(PROGRAM.count("\n") + 1, lines.count("\n") + 1)), found


def test_type_checkers_accept_the_stubs(tmp_path):
    for stub in (STUB, NODES, OPTIONS):
        found = subprocess.run([sys.executable, "-m", *PYRIGHT, str(stub)], capture_output=True, text=True, cwd=tmp_path).stdout
        assert "0 errors" in found, found
    modules = [word for module in ("kernels", "nodes") for word in ("-m", f"cermet.{module}")]
    found = subprocess.run([sys.executable, "-m", *mypy(tmp_path), *modules], capture_output=True, text=True, cwd=tmp_path)
    assert [line for line in found.stdout.splitlines() if "kernels.pyi" in line or "nodes.pyi" in line] == [], found.stdout


def test_results_have_the_types_that_the_stub_says():
    """Of operators of one operand, whose results keep its type."""
    tried = 0
    for name in _native.op_names():
        schema = schemas.schema_of(name)
        kept = [i for i, output in enumerate(schema.outputs) if functions._keeps_type(schema, output)]
        for dtype in schema.inputs[0].dtypes if kept else ():
            try:
                results = cermet.get_op(name, [(dtype, (2, 4))], device="null").infer((dtype, (2, 4)))
            except cermet.Error:
                continue  # of other dimensions or attributes
            tried += 1
            assert all(results[i][0] == dtype for i in kept), (name, results)
    assert tried > 100
