"""Writes kernels.pyi with the extension that was just built. usage: write_stub.py NATIVE OUT"""

import importlib.util
import pathlib
import sys

native, out = sys.argv[1:]
spec = importlib.util.spec_from_file_location("cermet._native", native)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
sys.modules["cermet._native"] = module
sys.path.insert(0, str(pathlib.Path(__file__).parent / "src"))

from cermet import functions  # noqa: E402  (needs the extension)

pathlib.Path(out).write_text(functions.stub())
