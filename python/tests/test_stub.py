"""The stub that editors read says what the functions are."""

import ast
import inspect
import pathlib
import subprocess
import sys

import cermet
from cermet import _native, functions, kernels

STUB = pathlib.Path(cermet.__file__).with_name("kernels.pyi")


def test_the_stub_is_that_of_this_library():
    assert STUB.read_text() == functions.stub()


def test_every_operator_has_a_function_with_the_signature_of_the_stub():
    declared = {node.name: node for node in ast.parse(STUB.read_text()).body if isinstance(node, ast.FunctionDef)}
    assert list(declared) == kernels.__all__ and len(declared) == len(_native.op_names())
    for name, node in declared.items():
        function = getattr(kernels, name)
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
