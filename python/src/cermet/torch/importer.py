"""FX graphs of ATen operators as Cermet graphs: one node at a time, by its row. Constants are computed here, and every
result is compared with what
PyTorch expects."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterable, Sequence
from operator import getitem
from typing import Any

import torch

from ..bridge import dtype_name
from ..errors import Error, Unsupported
from .lower import NAMED, ROWS
from .lowering import Lowering, is_tensor
from .scope import region_of, scope_of
from .symbols import is_symbolic

Node = torch.fx.Node

#: Results of operators on constants that have at most so many elements more than their operands are computed while
#: importing.
_FOLDED_GROWTH = 1 << 16

_MAX_RANK = 8


def add_node(lowering: Lowering, node: Node) -> None:
    """Adds an FX node to the graph. Raises Unsupported with the reason where it cannot."""
    region, scope = region_of(node), scope_of(node)
    with contextlib.ExitStack() as stack:
        if scope:
            stack.enter_context(lowering.graph.scope(scope))
        if region is not None:
            stack.enter_context(lowering.graph.super_kernel(*region))
        _add(lowering, node)


def _add(lowering: Lowering, node: Node) -> None:
    if _fold(lowering, node):
        return
    refuse_results(node)
    found = ROWS.get(node.target) or _named_row(node.target)
    if found is None:
        is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        raise Unsupported("random numbers" if is_random else "no row for the operator")
    function, signature = found
    args, keywords = lowering.bindings.arguments(node)
    for operand in node.all_input_nodes:
        if is_tensor(operand.meta.get("val")) and operand not in lowering.values and operand not in lowering.known:
            raise Unsupported("an operand that the library has no type for")
    try:
        signature.bind(lowering, node, *args, **keywords)
    except TypeError as error:
        raise Unsupported(f"arguments that the row does not know: {error}") from None
    try:
        made = function(lowering, node, *args, **keywords)
    except Unsupported:
        raise
    except Error as error:
        raise Unsupported(str(error)) from None
    except TypeError as error:
        if "element type" not in str(error) and not lowering.bindings.ranges:
            raise
        raise Unsupported(str(error)) from None
    except (RuntimeError, ValueError) as error:
        if not lowering.bindings.ranges:
            raise
        raise Unsupported(f"a row that needs sizes as numbers: {error}") from None
    _check(lowering, node, made)
    lowering.values[node] = made


def _fold(lowering: Lowering, node: Node) -> bool:
    """Computes a node whose operands are all known, unless its result is much larger than they are."""
    tensors = (torch.Tensor, list, tuple)
    if any(
        operand not in lowering.known
        for operand in node.all_input_nodes
        if isinstance(operand.meta.get("val"), tensors)
    ):
        return False
    made = node.meta.get("val")
    if not is_tensor(made) or not is_pure(node) or made.is_sparse or made.is_quantized:
        return False
    operands = [lowering.known[operand] for operand in node.all_input_nodes if operand in lowering.known]
    args, keywords = lowering.bindings.arguments(node)
    if not all(isinstance(size, int) for size in lowering.shape(node)) or is_symbolic((args, keywords)):
        return False
    if sum(operand.numel() for operand in operands) + _FOLDED_GROWTH < _product(lowering.shape(node)):
        return False
    known = torch.fx.node.map_arg((args, keywords), lambda operand: lowering.known[operand])
    with torch.no_grad():
        lowering.known[node] = node.target(*known[0], **known[1])  # type: ignore[operator]
    return True


def _check(lowering: Lowering, node: Node, made: Any) -> None:
    """Compares types and dimensions of results with what PyTorch expects."""
    expected = node.meta.get("val")
    several = isinstance(expected, (list, tuple))
    if several != isinstance(made, (list, tuple)) or (several and len(made) != len(expected)):
        raise Unsupported(f"internal error: made {made}, expected results like {expected}")
    for want, value in zip(expected if several else [expected], made if several else [made]):
        if value is None or not is_tensor(want):
            continue
        found, dims = (value.dtype, lowering.dims(value)), lowering.shape(want)
        if found != (dtype_name(want.dtype), dims):
            raise Unsupported(
                f"internal error: made {found[0]}{list(found[1])}, expected {dtype_name(want.dtype)}{list(dims)}"
            )


def _named_row(target: Any) -> Any:
    function = NAMED.get(str(target))
    return None if function is None else (function, inspect.signature(function))


def is_pure(node: Node) -> bool:
    """Whether the node gives the same results for the same operands, and changes nothing."""
    if node.op != "call_function":
        return False
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return target is getitem
    return (
        torch.Tag.nondeterministic_seeded not in target.tags and not target._schema.is_mutable and not node.is_impure()
    )


def refuse_results(node: Node) -> None:
    """Raises Unsupported for operands and results that no row takes."""
    results = node.meta.get("val")
    tensors: Iterable[Any] = results if isinstance(results, (list, tuple)) else [results]
    for tensor in [*tensors, *(operand.meta.get("val") for operand in node.all_input_nodes)]:
        if not is_tensor(tensor):
            continue
        if tensor.is_complex():
            raise Unsupported("complex numbers")
        if tensor.layout is not torch.strided:
            raise Unsupported("sparse tensors")
        if tensor.is_quantized:
            raise Unsupported("quantized tensors")
        if tensor.dim() > _MAX_RANK:
            raise Unsupported(f"rank {tensor.dim()}, of at most {_MAX_RANK}")


def _product(shape: Sequence[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
