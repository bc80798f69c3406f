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
text: str = str(cermet.Model("m").generate("p"))
"""

MISTAKES = {"rms_norm(x, epsilon=1)": "epsilon", "rms_norm()": "x", 'rms_norm(x, eps="1")': "eps", "cermet.rms_nrom(x)": "rms_nrom"}


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
        assert f'"{word}"' in found, found
    assert f"Found {len(MISTAKES)} errors" in found
