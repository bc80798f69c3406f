"""Writes kernels.pyi, nodes.pyi and options.pyi with the extension that was just built. usage: write_stub.py NATIVE KERNELS NODES OPTIONS"""

import importlib.util
import pathlib
import sys

native, kernels_out, nodes_out, options_out = sys.argv[1:]
spec = importlib.util.spec_from_file_location("cermet._native", native)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
sys.modules["cermet._native"] = module
sys.path.insert(0, str(pathlib.Path(__file__).parent / "src"))

from cermet import functions, nodes, options  # noqa: E402  (need the extension)

pathlib.Path(kernels_out).write_text(functions.stub())
pathlib.Path(nodes_out).write_text(nodes.stub())
pathlib.Path(options_out).write_text(options.stub())
