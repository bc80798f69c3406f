"""options={"check": n}: the first runs of each session are compared with the same nodes in PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import InternalError
from .lowering import Lowering
from .options import Options
from .report import describe
from .segment import Segment, make_segment

Node = torch.fx.Node

#: Largest difference, of the largest element that is expected.
_TOLERANCES = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}


class Checked:
    """A segment whose first runs are compared. Raises InternalError naming the first node that differs."""

    __name__ = "checked_session"

    def __init__(self, segment: Segment, scratch: Lowering, options: Options):
        self.segment, self.scratch, self.options = segment, scratch, options
        self.left = options.check
        self.nodes, self.inputs, self.outputs, self.session = (
            segment.nodes,
            segment.inputs,
            segment.outputs,
            segment.session,
        )

    def __call__(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if self.left == 0:
            return self.segment(*tensors)
        self.left -= 1
        expected = self._expected(tensors)
        made = self.segment(*tensors)
        for node, found in zip(self.segment.outputs, made):
            if not agrees(found, expected[node]):
                self._raise(tensors, expected, node)
        return made

    def into(self, tensors: tuple[torch.Tensor, ...], places: dict[int, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        if self.left == 0:
            return self.segment.into(tensors, places)
        made = list(self(*tensors))
        for i, place in places.items():
            made[i] = place.copy_(made[i])
        return tuple(made)

    def _expected(self, tensors: tuple[torch.Tensor, ...]) -> dict[Node, Any]:
        """What PyTorch computes for every node."""
        made: dict[Node, Any] = {**self.scratch.known, **dict(zip(self.segment.inputs, tensors))}
        for node in self.segment.nodes:
            args, keywords = torch.fx.node.map_arg(self.scratch.bindings.arguments(node), lambda operand: made[operand])
            made[node] = node.target(*args, **keywords)  # type: ignore[operator]
        return made

    def _raise(self, tensors: tuple[torch.Tensor, ...], expected: dict[Node, Any], wrong: Node) -> None:
        """Halves the segment: between a node that agrees and one that does not."""
        nodes = [node for node in self.segment.nodes if isinstance(expected[node], torch.Tensor)]
        low, high = -1, nodes.index(wrong)
        while high - low > 1:
            middle = (low + high) // 2
            if self._node_agrees(nodes[middle], tensors, expected):
                low = middle
            else:
                high = middle
        raise InternalError(f"check: expected what PyTorch computes, found a difference in {describe(nodes[high])}")

    def _node_agrees(self, node: Node, tensors: tuple[torch.Tensor, ...], expected: dict[Node, Any]) -> bool:
        until = self.segment.nodes[: self.segment.nodes.index(node) + 1]
        part = make_segment(self.scratch, until, [node], self.options)
        given = dict(zip(self.segment.inputs, tensors))
        return agrees(part(*[given[operand] for operand in part.inputs])[0], expected[node])


def agrees(found: torch.Tensor, expected: torch.Tensor) -> bool:
    if expected.dtype not in _TOLERANCES:
        return torch.equal(found, expected)
    there = expected.isfinite()
    if not torch.equal(found.isfinite(), there):
        return False
    if not bool(there.any()):
        return True
    difference = (found.double() - expected.double())[there].abs().max()
    return bool(difference <= _TOLERANCES[expected.dtype] * expected[there].double().abs().max().clamp(min=1e-30))
