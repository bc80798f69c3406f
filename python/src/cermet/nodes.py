"""Methods of graphs: one for each operator, made of its schema when it is first used; nodes.pyi, written when the package is built, has them for editors."""

from __future__ import annotations

import builtins
import functools
import keyword

from . import _native
from .functions import attribute_parameter, docstring, function_name, literal, operand_parameters, signature
from .schemas import Schema, schema_of

_STUB = '''"""Methods of graphs. Written from the schemas of the library by cermet.nodes when the package is built."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from .graph import Value
from .types import DType, Tensor

#: An operand: a value of the graph, or a tensor, which becomes a constant.
T: TypeAlias = Value | Tensor
Number: TypeAlias = float | np.generic

class GraphOperators:
'''


def _result_type(schema: Schema) -> str:
    if any(output.optional for output in schema.outputs):
        return "Any"
    if any(output.variadic for output in schema.outputs):
        return "tuple[Value, ...]"
    return "Value" if len(schema.outputs) == 1 else f"tuple[{', '.join(['Value'] * len(schema.outputs))}]"


def header(schema: Schema) -> str:
    """`def rms_norm(self, x: T, weight: T | None = None, *, eps: float = 1e-06, names: .. = None) -> Value:`"""
    parameters = ["self", *operand_parameters(schema, first=-1, numbers=True), "*", *map(attribute_parameter, schema.attributes), "names: str | Sequence[str] | None = None"]
    return signature(schema.name, parameters, _result_type(schema))


def _documentation(schema: Schema) -> str:
    return docstring(schema, {"names": "of the results; by default made of scope and operator"})


@functools.cache
def make(name: str):
    """The method of an operator."""
    schema = schema_of(name)
    operands = ", ".join(("*" if operand.variadic else "") + function_name(operand.name) for operand in schema.inputs)
    values = "".join(f"{attribute.name!r}: {function_name(attribute.name)}, " for attribute in schema.attributes)
    source = f"from __future__ import annotations\n{header(schema)}\n{literal(_documentation(schema), '    ')}    return self._add(_schema, ({operands},), {{{values}}}, names)\n"
    scope = {"_schema": schema, "__name__": "cermet.nodes", "__builtins__": builtins}
    exec(compile(source, f"<cermet.Graph.{name}>", "exec"), scope)  # noqa: S102  (text of the library's own schemas, as namedtuple does)
    return scope[function_name(name)]


class GraphOperators:
    """What Graph has for operators: graph.rms_norm(x, weight, eps=1e-5)."""

    def __getattr__(self, name: str):
        operator = name.removesuffix("_") if keyword.iskeyword(name.removesuffix("_")) else name
        if operator not in _native.op_names():
            raise AttributeError(f"{type(self).__name__!r} object has no attribute or operator {name!r}")
        setattr(GraphOperators, name, make(operator))  # found without this function from now on
        return getattr(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *map(function_name, _native.op_names())})


def stub() -> str:
    """The text of nodes.pyi."""
    text = _STUB
    for name in _native.op_names():
        schema = schema_of(name)
        head = "".join(f"    {line}\n" for line in header(schema).split("\n"))
        text += f"{head}{literal(_documentation(schema), '        ')}        ...\n"
    return text
