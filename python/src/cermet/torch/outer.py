"""The graph around segments: an FX graph that calls sessions and what stays in PyTorch in turn."""

from __future__ import annotations

from collections.abc import Callable
from operator import getitem
from typing import Any

import torch

from ..errors import Error
from .check import Checked
from .lowering import Lowering
from .options import Options
from .partition import STATE, Partition, is_host
from .segment import Segment, is_fatal, make_segment

Node = torch.fx.Node
aten = torch.ops.aten


def results_of(graph: torch.fx.Graph) -> tuple:
    """What the graph returns."""
    found = next(node for node in reversed(graph.nodes) if node.op == "output").args[0]
    return tuple(found) if isinstance(found, (list, tuple)) else (found,)


def outputs_of(graph: torch.fx.Graph, segment: list[Node]) -> list[Node]:
    """Nodes of a segment whose tensors are read outside of it."""
    inside = set(segment)
    found = []
    for node in segment:
        if isinstance(node.meta.get("val"), (list, tuple)):
            continue  # its parts are nodes
        if any(user not in inside and not is_dropped(user) for user in node.users):
            found.append(node)
    return found


def is_dropped(node: Node) -> bool:
    return node.target is aten._assert_tensor_metadata.default or (
        is_host(node) and not node.users and not node.is_impure()
    )


def compile_segments(graph: torch.fx.Graph, made: Partition, scratch: Lowering, options: Options) -> list[Any]:
    """Sessions of all segments. One that cannot compile stays in PyTorch, with the library's message as reason."""
    segments: list[Any] = []
    for nodes in list(made.segments):
        outputs = outputs_of(graph, nodes)
        if not outputs:
            continue
        try:
            if made.whole is not None:
                segments.append(Segment(made.whole, nodes, outputs, options))
            else:
                segments.append(make_segment(scratch, nodes, outputs, options))
        except Error as error:
            if is_fatal(error):
                raise
            made.segments.remove(nodes)
            made.reasons.update({node: f"its session cannot be compiled: {error}" for node in nodes})
    return [Checked(segment, scratch, options) for segment in segments] if options.check else segments


def direct_call(graph: torch.fx.Graph, segment: Any) -> Callable[[list[Any]], list[Any]] | None:
    """The graph as one call of its only session, where its results are the session's or None."""
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    results = results_of(graph)
    if any(isinstance(result, Node) and result not in segment.outputs for result in results):
        return None
    taken = [placeholders.index(node) for node in segment.inputs]
    places = [segment.outputs.index(result) if isinstance(result, Node) else result for result in results]
    given = [isinstance(result, Node) for result in results]

    def call(args: list[Any]) -> list[Any]:
        made = segment(*[args[i] for i in taken])
        return [made[place] if is_node else place for place, is_node in zip(places, given)]

    return call


def outer_call(
    graph: torch.fx.Graph, owner: torch.nn.Module, made: Partition, segments: list[Any]
) -> Callable[[list[Any]], Any]:
    """The graph as an FX module in which each segment is one node."""
    outer = torch.fx.Graph()
    copies: dict[Node, Node] = {}
    inside = {node: segment for segment in segments for node in segment.nodes}
    writes = [node for node in graph.nodes if made.reasons.get(node) == STATE]
    direct = {write.args[1]: write for write in writes if _may_write(graph, made, inside, write)}
    waiting = [node for node in graph.nodes if node.op != "output" and node not in inside and node not in writes]
    for step in _order(waiting, made, segments):
        if not isinstance(step, Node):
            _add_segment(outer, copies, step, direct)
        elif not is_dropped(step):
            copies[step] = outer.node_copy(step, lambda node: copies[node])
    for write in writes:
        if write not in direct.values():
            copies[write] = outer.node_copy(write, lambda operand: copies[operand])
    outer.output(torch.fx.node.map_arg(results_of(graph), lambda node: copies[node]))
    writers = [segment.into for segment in segments]
    outer.eliminate_dead_code(lambda node: node.op == "placeholder" or node.is_impure() or node.target in writers)
    outer.lint()
    module = torch.fx.GraphModule(owner, outer)
    return lambda args: module.forward(*args)


def _may_write(graph: torch.fx.Graph, made: Partition, inside: dict[Node, Any], write: Node) -> bool:
    """Whether a session may give its result in the memory of the input that it replaces: where nothing behind it reads
    the old value, and nothing else the result.
    """
    state, value = write.args[:2]
    if value not in inside or value.users.keys() - {write} - set(inside[value].nodes):
        return False
    old, new = state.meta["val"], value.meta["val"]
    if old.shape != new.shape or old.dtype != new.dtype or not old.is_contiguous():
        return False
    if (
        state in results_of(graph)
        or sum(
            node.op == "call_function" and node.target is aten.copy_.default and node.args[0] is state
            for node in graph.nodes
        )
        > 1
    ):
        return False
    readers = [user for user in state.users if user is not write]
    return all(inside.get(user) is inside[value] for user in readers)


def _order(waiting: list[Node], made: Partition, segments: list[Segment]) -> list[Any]:
    """Constants' nodes and sizes first where they can, then each segment and what stays in PyTorch behind it."""
    steps: list[tuple[int, int, int, Any]] = []
    first: set[Node] = set()
    for i, node in enumerate(waiting):
        early = node.op in ("placeholder", "get_attr") or (
            (node in made.known or is_host(node)) and all(operand in first for operand in node.all_input_nodes)
        )
        if early:
            first.add(node)
        steps.append((-1, 0, i, node) if early else (made.levels.get(node, 0), 1, i, node))
    for i, segment in enumerate(segments):
        steps.append((made.levels.get(segment.nodes[0], 0), 0, i, segment))
    return [step[-1] for step in sorted(steps, key=lambda step: step[:3])]


def _add_segment(outer: torch.fx.Graph, copies: dict[Node, Node], segment: Any, direct: dict[Node, Node]) -> None:
    """One call; results that replace an input are given its memory."""
    inputs = tuple(copies[node] for node in segment.inputs)
    places = {i: copies[direct[node].args[0]] for i, node in enumerate(segment.outputs) if node in direct}
    call = outer.call_function(segment.into, (inputs, places)) if places else outer.call_function(segment, inputs)
    for i, node in enumerate(segment.outputs):
        copies[node] = outer.call_function(getitem, (call, i))
