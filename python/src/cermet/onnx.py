"""ONNX models."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import _native
from .bridge import finish
from .devices import handle_for
from .operands import dense, is_tensor
from .types import Tensor


@dataclass(frozen=True)
class Value:
    """An input or a result as the file declares it. `shape`: sizes; a name or None for one that the file leaves open; None where it does not say."""

    name: str
    dtype: str | None
    shape: tuple[int | str | None, ...] | None


class OnnxModel:
    """An ONNX file, compiled for a device when a call says what sizes it has.

    ranges: sizes of dimensions that the file names and leaves open, {"batch": (1, 8)} or {"batch": 4}: within them nothing is compiled again.
    Raises InvalidFile naming node and field, Unsupported naming the operator. Calls of several threads wait for one another.
    """

    def __init__(self, path: str | os.PathLike[str], *, device: object = "cpu", threads: int = 0, ranges: Mapping[str, int | tuple[int, int]] | None = None):
        rows = tuple((name, *(size if isinstance(size, (tuple, list)) else (size, size))) for name, size in (ranges or {}).items())
        self._native = _native.open_onnx(handle_for(device, threads).native, os.fspath(path), rows)
        self.inputs = tuple(Value(*value) for value in self._native.inputs())
        self.outputs = tuple(Value(*value) for value in self._native.outputs())

    def __call__(self, *tensors: Tensor, **named: Tensor) -> Any:
        """Runs it on tensors in the order of `inputs`, or by name (`**{"input.1": x}` where a name is none of Python's). A result, or a tuple of several, in
        memory of the host: PyTorch's tensors where the first input is one, else NumPy's. Inputs are on the CPU or on the model's device; those that are not dense are copied.
        """
        results = self._run(self._ordered(tensors, named))
        return results[0] if len(results) == 1 else results

    def run(self, inputs: Mapping[str, Tensor]) -> dict[str, Any]:
        """Runs it on tensors by name, and returns results by name."""
        return dict(zip((value.name for value in self.outputs), self._run(self._ordered((), inputs))))

    def _ordered(self, tensors: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        names = [value.name for value in self.inputs]
        rest = names[len(tensors) :]
        if len(tensors) > len(names) or set(named) != set(rest):
            raise TypeError(f"model: expected inputs {names}, found {len(tensors)} without a name and {sorted(named)}")
        return (*tensors, *(named[name] for name in rest))

    def _run(self, tensors: tuple[Any, ...]) -> tuple[Any, ...]:
        tensors = tuple(dense(tensor) if is_tensor(tensor) else tensor for tensor in tensors)
        finish(tensors)
        return self._native.run(tensors, tensors[0] if tensors else None)

    @property
    def compiled_count(self) -> int:
        """Graphs that calls have compiled so far; within ranges it stays at 1 where the file allows it."""
        return self._native.compiled_count()

    def close(self) -> None:
        """Frees its memory; later calls raise InvalidArgument."""
        self._native.close()

    def __enter__(self) -> OnnxModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
