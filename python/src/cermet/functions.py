"""Python functions of operators, as source text made of their schemas: the functions of cermet.kernels are compiled from it, its stub is written of it."""

from __future__ import annotations

import builtins
import keyword
import textwrap
from collections.abc import Callable

from . import _native
from .operators import Function
from .schemas import Attribute, Operand, Schema, schema_of

_WIDTH = 100

_TYPES = {"bool": "bool", "int": "int", "float": "float", "string": "str", "ints": "Sequence[int]", "floats": "Sequence[float]", "strings": "Sequence[str]"}

_STUB = '''"""Operators as functions. Written from the schemas of the library by cermet.functions when the package is built."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from .types import DType, Tensor

#: A tensor: torch.Tensor or another with __dlpack__. Results are of the first operand's framework.
T = TypeVar("T", bound=Tensor)
#: The element type of a NumPy array.
S = TypeVar("S", bound=np.generic)
#: What takes the element type of the tensor beside it; NumPy's own keep theirs.
Number: TypeAlias = float | np.generic
'''

#: NumPy's class of element types that it has of its own.
_NUMPY_CLASSES = {
    "f64": "np.float64", "f32": "np.float32", "f16": "np.float16", "bool": "np.bool_",
    "i64": "np.int64", "i32": "np.int32", "i16": "np.int16", "i8": "np.int8", "u64": "np.uint64", "u32": "np.uint32", "u16": "np.uint16", "u8": "np.uint8",
}  # fmt: skip


def function_name(name: str) -> str:
    """An operator's or a parameter's name in Python."""
    return f"{name}_" if keyword.iskeyword(name) else name


def _type_of(attribute: Attribute) -> str:
    if attribute.is_dtype:
        return "DType"
    return f"Literal[{', '.join(map(repr, attribute.choices))}]" if attribute.choices else _TYPES[attribute.type]


def operand_parameters(schema: Schema, tensor: str = "T", first: int = 0, numbers: bool = False) -> list[str]:
    """An optional operand has a default where no required one follows it. `tensor`: the type of one. `numbers`: of those that may be numbers, the first `first`
    are, and the ones after the next may be."""
    last = max((i for i, operand in enumerate(schema.inputs) if not operand.optional), default=-1)
    parameters = []
    for i, operand in enumerate(schema.inputs):
        one = tensor
        if numbers and may_be_number(schema, i):
            one = "Number" if i < first else tensor if i == first else f"{tensor} | Number"
        kind = f"Sequence[{one}]" if operand.variadic else f"{one} | None" if operand.optional else one
        parameters.append(f"{function_name(operand.name)}: {kind}" + (" = None" if i > last else ""))
    return parameters


def may_be_number(schema: Schema, i: int) -> bool:
    """Whether operand i may be a number of Python's, beside a tensor."""
    operand = schema.inputs[i]
    return schema.takes_numbers and len(schema.inputs) > 1 and (not operand.is_mask or all(other.is_mask for other in schema.inputs))


def attribute_parameter(attribute: Attribute) -> str:
    """`eps: float = 1e-06`"""
    kind = _type_of(attribute)
    return f"{function_name(attribute.name)}: {kind if attribute.default is not None else kind + ' | None'} = {attribute.default!r}"


def _result_type(schema: Schema, one: Callable[[Operand], str] = lambda output: "T") -> str:
    """One result is a tensor, several are a tuple; Any where attributes and operands decide which. `one`: the type of a result."""
    if any(output.optional for output in schema.outputs):
        return "Any"
    if any(output.variadic for output in schema.outputs):
        return f"tuple[{one(schema.outputs[-1])}, ...]"
    return one(schema.outputs[0]) if len(schema.outputs) == 1 else f"tuple[{', '.join(map(one, schema.outputs))}]"


def _keeps_type(schema: Schema, output: Operand) -> bool:
    """Whether a result that may have any of the first operand's types has the one that it has."""
    is_given = any(attribute.is_dtype and attribute.name in ("dtype", "out_dtype") for attribute in schema.attributes)
    return len(schema.inputs) == 1 and output.dtypes == schema.inputs[0].dtypes and not is_given


def _numpy_operands(schema: Schema) -> list[tuple[str, str]]:
    """Types of NumPy's operands, with that of results that keep it: float64 becomes float32 where the operator does not compute in it."""
    if not any(_keeps_type(schema, output) for output in schema.outputs):
        return [("NDArray[Any]", "")]
    narrowed = [] if "f64" in schema.inputs[0].dtypes or "f32" not in schema.inputs[0].dtypes else [("NDArray[np.float64]", "NDArray[np.float32]")]
    return [*narrowed, ("NDArray[S]", "NDArray[S]")]


def _numpy_result(schema: Schema, output: Operand, kept: str) -> str:
    if len(output.dtypes) == 1:
        return f"NDArray[{_NUMPY_CLASSES.get(output.dtypes[0], 'Any')}]"
    if set(output.dtypes) <= {"i8", "i16", "i32", "i64"}:
        return "NDArray[np.signedinteger[Any]]"
    return kept if _keeps_type(schema, output) else "NDArray[Any]"


def signature(name: str, parameters: list[str], result: str) -> str:
    """In one line, or a parameter on each."""
    line = f"def {function_name(name)}({', '.join(parameters)}) -> {result}:"
    if len(line) <= _WIDTH:
        return line
    return f"def {function_name(name)}(\n" + "".join(f"    {parameter},\n" for parameter in parameters) + f") -> {result}:"


def _call(schema: Schema, operands: list[str], result: str) -> str:
    parameters = [*operands, "*", *map(attribute_parameter, schema.attributes)]
    parameters += [f"out: {result if result == 'Any' else result + ' | None'} = None", "stream: int | None = None"]
    return signature(schema.name, parameters, result)


def header(schema: Schema) -> str:
    """`def rms_norm(x: T, weight: T | None = None, *, eps: float = 1e-06, out: .. = None, stream: .. = None) -> T:`"""
    return _call(schema, operand_parameters(schema), _result_type(schema))


def overloads(schema: Schema) -> list[str]:
    """Headers for type checkers: NumPy's arrays, whose classes have the element type, and other tensors. Where operands may be numbers, one for each operand
    that may be the first tensor."""
    numeric = [i for i in range(len(schema.inputs)) if may_be_number(schema, i)]
    firsts = range(len(schema.inputs)) if len(numeric) == len(schema.inputs) > 0 else [-1]
    made = []
    for tensor, kept in [*_numpy_operands(schema), ("T", "T")]:
        result = _result_type(schema, lambda output: "T" if tensor == "T" else _numpy_result(schema, output, kept))  # noqa: B023
        made += [_call(schema, operand_parameters(schema, tensor, first, bool(numeric)), result) for first in firsts]
    return made


def _row(operand: Operand | Attribute, what: str) -> str:
    return textwrap.fill(f"{function_name(operand.name)}: {what}", _WIDTH - 4, initial_indent="    ", subsequent_indent="        ")


#: Parameters that every function has.
_CALL = {"out": "memory for the result, or for the results as a tuple", "stream": "of a GPU, as an integer; by default PyTorch's current one"}


def docstring(schema: Schema, more: dict[str, str] = _CALL) -> str:
    """Summary, semantics, operands, attributes, further parameters and results, in lines of 100 columns."""
    lines = [schema.summary, ""]
    if schema.semantics:
        lines += [textwrap.fill(schema.semantics, _WIDTH - 4), ""]
    lines.append("Args:")
    for operand in schema.inputs:
        kind = " (optional)" if operand.optional else " (one or more)" if operand.variadic else ""
        lines.append(_row(operand, f"{operand.doc}{kind}; {operand.shape}, {', '.join(operand.dtypes)}"))
    for attribute in schema.attributes:
        choices = f": {', '.join(attribute.choices)}" if attribute.choices else ""
        lines.append(_row(attribute, f"{attribute.doc}{choices}"))
    lines += [f"    {name}: {what}" for name, what in more.items()]
    lines += ["", "Returns:"]
    for output in schema.outputs:
        kind = (" (optional)" if output.optional else "") + (f", in the memory of {output.shares}" if output.shares else "")
        lines.append(_row(output, f"{output.doc}{kind}; {output.shape}, {', '.join(output.dtypes)}"))
    return "\n".join(line.rstrip() for line in lines)


def literal(text: str, indent: str) -> str:
    """A docstring as source."""
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'{indent}"""' + textwrap.indent(escaped, indent).lstrip() + f'\n{indent}"""\n'


def _source(schema: Schema) -> str:
    """The function: what it does is Function's."""
    operands = ", ".join(("*" if operand.variadic else "") + function_name(operand.name) for operand in schema.inputs)
    values = "".join(f"{function_name(attribute.name)}, " for attribute in schema.attributes)
    return f"from __future__ import annotations\n{header(schema)}\n{literal(docstring(schema), '    ')}    return _run(({operands},), ({values}), out, stream)\n"


def make(name: str):
    """The function of an operator."""
    schema = schema_of(name)
    scope = {"_run": Function(schema), "__name__": "cermet.kernels", "__builtins__": builtins}
    exec(compile(_source(schema), f"<cermet.kernels.{name}>", "exec"), scope)  # noqa: S102  (text of the library's own schemas, as namedtuple does)
    return scope[function_name(name)]


def stub() -> str:
    """The text of kernels.pyi."""
    names = _native.op_names()
    text = _STUB + f"\n__all__ = {[function_name(name) for name in names]!r}\n"
    for name in names:
        schema = schema_of(name)
        for head in overloads(schema):
            text += f"\n@overload\n{head}\n{literal(docstring(schema), '    ')}    ...\n"
    return text
