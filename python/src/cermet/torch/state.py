"""Weights of a compiled graph: whether they are still what was packed."""

from __future__ import annotations

from typing import Any

import torch

from .compat import version_of


class Weights:
    """Inputs of a graph that are constants of its sessions. A write through PyTorch raises a tensor's version, and
    `param.data = ..` changes its address. Writes
    through `.data` in place or through NumPy change neither."""

    def __init__(self, places: tuple[int, ...]):
        self.places = places
        self._noted: list[Any] | None = None
        self._tensors: list[Any] = []

    def note(self, args: list[Any]) -> None:
        """What they are now."""
        self._tensors = [args[i] for i in self.places]  # so that no other tensor gets their addresses
        self._noted = self._now(args)

    def are_same(self, args: list[Any]) -> bool:
        return self._noted is None or self._noted == self._now(args)

    def _now(self, args: list[Any]) -> list[Any]:
        return [_mark(args[i]) for i in self.places]


def _mark(tensor: Any) -> Any:
    return (tensor.data_ptr(), version_of(tensor)) if isinstance(tensor, torch.Tensor) else tensor
