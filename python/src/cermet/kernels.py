"""Operators as functions: `from cermet.kernels import rms_norm`.

Each is made from its schema when it is first asked for; kernels.pyi, which is written when the package is built, has all signatures for editors and type
checkers. `help(cermet.kernels.rms_norm)` and `cermet ops rms_norm` say what it computes.
"""

from __future__ import annotations

import keyword

from . import _native, functions

__all__ = [f"{name}_" if keyword.iskeyword(name) else name for name in _native.op_names()]


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"cermet.kernels has no operator {name!r}")
    made = functions.make(name.removesuffix("_") if keyword.iskeyword(name.removesuffix("_")) else name)
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    return sorted(__all__)
