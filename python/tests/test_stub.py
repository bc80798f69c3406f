"""The stub that editors read says what the functions are."""

import ast
import inspect
import pathlib
import subprocess
import sys

import cermet
from cermet import _native, functions, kernels, nodes

STUB = pathlib.Path(cermet.__file__).with_name("kernels.pyi")
NODES = STUB.with_name("nodes.pyi")


def test_the_stubs_are_those_of_this_library():
    assert STUB.read_text() == functions.stub()
    assert NODES.read_text() == nodes.stub()


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


PROGRAM = """
import numpy as np
import cermet
from cermet.kernels import rms_norm, topk_gating

x: np.ndarray = np.zeros((2, 4), np.float32)
y: np.ndarray = rms_norm(x, None, eps=1e-5)
z: np.ndarray = cermet.rms_norm(x)
op: cermet.Operator = cermet.get_op("rms_norm", (x,))
model = cermet.Model("m", device="cuda")
graph = cermet.Graph("g")
value = graph.rms_norm(graph.input("x", ("T", 4)), x, eps=1e-5, names="y")
graph.output("y", value)
session: cermet.Session = graph.compile({"T": 4})
text: str = model.generate("p", temperature=0.5).text
texts: list[str] = [made.text for made in model.generate(["p", "q"])]
with model.generate([1, 2], stream=True) as stream:
    for piece in stream:
        print(piece)
"""

MISTAKES = {
    "rms_norm(x, epsilon=1)": "epsilon",
    "rms_norm()": "x",
    'rms_norm(x, eps="1")': "eps",
    "cermet.rms_nrom(x)": "rms_nrom",
    "graph.rms_norm(value, epsilon=1)": "epsilon",
    "graph.rms_nrom(value)": "rms_nrom",
    'model.generate("p", temprature=1)': "temprature",
}


def run_mypy(folder: pathlib.Path, program: str) -> str:
    file = folder / "program.py"
    file.write_text(program)
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(folder / "cache"), str(file)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder).stdout


def test_a_type_checker_reads_it(tmp_path):
    assert "Success" in run_mypy(tmp_path, PROGRAM)
    lines = PROGRAM + "".join(f"{mistake}\n" for mistake in MISTAKES)
    found = run_mypy(tmp_path, lines)
    for word in MISTAKES.values():
        assert word in found, found
    wrong = {int(line.split(":")[1]) for line in found.splitlines() if " error: " in line}
    assert wrong == set(range(PROGRAM.count("\n") + 1, lines.count("\n") + 1)), found
