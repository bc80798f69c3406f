"""The library's own operators, torch.ops.cermet, and operators that only check."""

from __future__ import annotations

from typing import Any

import torch

from ... import _native
from ...errors import Unsupported
from ...schemas import schema_of
from .rows import add_row, aten, row


def own_operator(lowering: Any, node: torch.fx.Node, *args: Any, **keywords: Any) -> Any:
    """One row for all of them, from the schema: operands in its order, then attributes by keyword."""
    schema = schema_of(node.target._opname)  # type: ignore[union-attr]
    if any(output.shares for output in schema.outputs):
        raise Unsupported("an operator that updates operands")
    names = [operand.name for operand in schema.inputs]
    given = [*args, *[None] * (len(names) - len(args))]
    for i, name in enumerate(names):
        given[i] = keywords.pop(name, given[i])
    flat = [tensor for operand in given for tensor in (operand if isinstance(operand, (list, tuple)) else [operand])]
    while flat and flat[-1] is None:
        flat.pop()
    attributes = {name: value for name, value in keywords.items() if value is not None}
    made = lowering.ops(schema.name, *(None if of is None else lowering(of) for of in flat), **attributes)
    return list(made) if isinstance(node.meta["val"], (list, tuple)) else made[0]


def register_own() -> None:
    for name in _native.op_names():
        add_row(getattr(torch.ops.cermet, name).default, own_operator)


@row(
    aten._assert_tensor_metadata.default,
    aten._assert_scalar.default,
    aten._assert_async.msg,
    aten.sym_constrain_range.default,
)
def check(lowering, node, *operands, **keywords):
    raise Unsupported("a check, which PyTorch makes")


register_own()
