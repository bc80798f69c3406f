"""Which nodes of a graph run in Cermet: those that a scratch graph takes. They form segments, none of which is left and
entered again; the other nodes stay in
PyTorch and run between segments."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from ..errors import Error, Unsupported
from .importer import add_node, is_pure
from .lowering import Lowering, is_tensor
from .symbols import dim_text

Node = torch.fx.Node
aten = torch.ops.aten

#: The reason of a write to an input at the end of a graph, which is no refusal.
STATE = "state"

#: Operators that are worth a call of a session by themselves.
_HEAVY = ("linear", "mm", "matmul", "conv", "attention", "softmax", "norm", "cermet")
#: Elements that an operator of a light segment must process to be worth a call.
_LIGHT = 1 << 15


@dataclasses.dataclass
class Partition:
    """Segments in the order in which they run, nodes that are constants of them, and the rest with its reasons."""

    segments: list[list[Node]]
    known: set[Node]
    reasons: dict[Node, str]
    levels: dict[Node, int]
    #: The graph that has all nodes, where there is one segment and no node stays in PyTorch.
    whole: Lowering | None


def is_host(node: Node) -> bool:
    """Whether a node gives sizes or checks them, which is no work of a device."""
    if node.op != "call_function":
        return False
    if node.target in (aten._assert_scalar.default, aten._assert_tensor_metadata.default):
        return True
    return not _tensors(node) and node.meta.get("val") is not None


def _tensors(node: Node) -> list[Any]:
    value = node.meta.get("val")
    return [part for part in (value if isinstance(value, (list, tuple)) else [value]) if is_tensor(part)]


def declare(lowering: Lowering, node: Node) -> None:
    """Makes a tensor that comes from outside an input of the graph."""
    fake = node.meta["val"]
    lowering.values[node] = lowering.graph.input(node.name, list(map(dim_text, lowering.shape(node))), fake.dtype)


def _try_declare(lowering: Lowering, node: Node) -> None:
    try:
        declare(lowering, node)
    except (TypeError, Error):
        pass  # a type or rank that the library does not have, or sizes that depend on elements: its readers are refused


def partition(graph: torch.fx.Graph, lowering: Lowering, threshold: bool = True) -> Partition:
    """`lowering` is the scratch graph; constants are known to it already."""
    reasons: dict[Node, str] = {}
    taken: list[Node] = []
    if not is_functional(graph):
        reasons = {
            node: "a graph that updates intermediate values"
            for node in graph.nodes
            if node.op == "call_function" and not is_host(node)
        }
        return Partition([], set(), reasons, {}, None)
    for node in graph.nodes:
        if node.op == "placeholder":
            if node not in lowering.known and is_tensor(node.meta.get("val")):
                _try_declare(lowering, node)
        elif node.op == "call_function" and not is_host(node):
            refused = _refusal(lowering, node, reasons)
            if refused is None:
                if node not in lowering.known:
                    taken.append(node)
                continue
            reasons[node] = refused
            if is_tensor(node.meta.get("val")):
                _try_declare(lowering, node)
    if not reasons:
        return Partition([taken] if taken else [], set(lowering.known), {}, {}, lowering)
    levels = _levels(graph, set(taken), set(lowering.known))
    segments = [[node for node in taken if levels[node] == level] for level in sorted({levels[node] for node in taken})]
    if threshold and any(reason != STATE for reason in reasons.values()):
        for segment in [segment for segment in segments if _is_light(segment)]:
            segments.remove(segment)
            reasons.update({node: "too little work for a session" for node in segment})
    return Partition(segments, set(lowering.known), reasons, levels, None)


def is_functional(graph: torch.fx.Graph) -> bool:
    """Whether nothing is updated but inputs, at the end."""
    written: set[Node] = set()
    for node in graph.nodes:
        if any(operand in written for operand in node.all_input_nodes) and node.op != "output":
            return False
        if node.target is aten.copy_.default:
            if node.args[0].op != "placeholder":
                return False
            written.add(node.args[0])
        elif (
            isinstance(node.target, torch._ops.OpOverload)
            and node.target.namespace == "aten"
            and node.target._schema.is_mutable
        ):
            return False
    return True


def _refusal(lowering: Lowering, node: Node, reasons: dict[Node, str]) -> str | None:
    """The reason for which a node stays in PyTorch, None for one that the graph has taken."""
    for operand in node.all_input_nodes:
        if operand in reasons and not is_tensor(operand.meta.get("val")):
            return "a result of an operator that stays in PyTorch"
        if is_tensor(operand.meta.get("val")) and operand.meta["val"].device.type != torch.device(lowering.device).type:
            return f"an operand on {operand.meta['val'].device}"
    if isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable:
        return STATE if node.target is aten.copy_.default else "an operator that updates operands"
    try:
        add_node(lowering, node)
    except Unsupported as error:
        return str(error)
    return None


def _levels(graph: torch.fx.Graph, taken: set[Node], known: set[Node]) -> dict[Node, int]:
    """The segment of a taken node, and of the others the segment behind which they run: a node of a segment is a level
    above operands that stay in PyTorch.
    """
    levels: dict[Node, int] = {}
    last_ordered = 0
    for node in graph.nodes:
        level = 0
        for operand in node.all_input_nodes:
            outside = operand not in taken and operand.op != "placeholder" and operand not in known
            level = max(level, levels.get(operand, 0) + (node in taken and outside))
        if node.op == "call_function" and node not in taken and not is_host(node) and not is_pure(node):
            level = last_ordered = max(level, last_ordered)  # random operators keep their order
        levels[node] = level
    return levels


def _is_light(segment: list[Node]) -> bool:
    """Whether a call costs more than what the segment computes."""
    work = 0
    for node in segment:
        if any(word in str(node.target) for word in _HEAVY):
            return False
        for tensor in _tensors(node):
            sizes = [size if isinstance(size, int) else 64 for size in tensor.shape]
            work += int(torch.Size(sizes).numel())
    return work < _LIGHT
