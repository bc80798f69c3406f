"""Python functions of operators, as source text made of their schemas: the functions of cermet.kernels are compiled from it, its stub is written of it."""

from __future__ import annotations

import builtins
import keyword
import textwrap

from . import _native
from .operators import Function
from .schemas import Attribute, Operand, Schema, schema_of

_WIDTH = 100

_TYPES = {"bool": "bool", "int": "int", "float": "float", "string": "str", "ints": "Sequence[int]", "floats": "Sequence[float]", "strings": "Sequence[str]"}

_STUB = '''"""Operators as functions. Written from the schemas of the library by cermet.functions when the package is built."""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

#: A tensor: numpy.ndarray, torch.Tensor or another with __dlpack__. Results are of the first operand's framework.
T = TypeVar("T")
#: An element type: "bf16", torch.bfloat16, a NumPy dtype or its name.
DType = Any
'''


def function_name(name: str) -> str:
    """An operator's or a parameter's name in Python."""
    return f"{name}_" if keyword.iskeyword(name) else name


def _type_of(attribute: Attribute) -> str:
    if attribute.is_dtype:
        return "DType"
    return f"Literal[{', '.join(map(repr, attribute.choices))}]" if attribute.choices else _TYPES[attribute.type]


def operand_parameters(schema: Schema) -> list[str]:
    """An optional operand has a default where no required one follows it."""
    last = max((i for i, operand in enumerate(schema.inputs) if not operand.optional), default=-1)
    parameters = []
    for i, operand in enumerate(schema.inputs):
        kind = "Sequence[T]" if operand.variadic else "T | None" if operand.optional else "T"
        parameters.append(f"{function_name(operand.name)}: {kind}" + (" = None" if i > last else ""))
    return parameters


def attribute_parameter(attribute: Attribute) -> str:
    """`eps: float = 1e-06`"""
    kind = _type_of(attribute)
    return f"{function_name(attribute.name)}: {kind if attribute.default is not None else kind + ' | None'} = {attribute.default!r}"


def _result_type(schema: Schema) -> str:
    """One result is a tensor, several are a tuple; Any where attributes and operands decide which."""
    if any(output.optional for output in schema.outputs):
        return "Any"
    if any(output.variadic for output in schema.outputs):
        return "tuple[T, ...]"
    return "T" if len(schema.outputs) == 1 else f"tuple[{', '.join(['T'] * len(schema.outputs))}]"


def signature(name: str, parameters: list[str], result: str) -> str:
    """In one line, or a parameter on each."""
    line = f"def {function_name(name)}({', '.join(parameters)}) -> {result}:"
    if len(line) <= _WIDTH:
        return line
    return f"def {function_name(name)}(\n" + "".join(f"    {parameter},\n" for parameter in parameters) + f") -> {result}:"


def header(schema: Schema) -> str:
    """`def rms_norm(x: T, weight: T | None = None, *, eps: float = 1e-06, out: .. = None, stream: .. = None) -> T:`"""
    result = _result_type(schema)
    parameters = [*operand_parameters(schema), "*", *map(attribute_parameter, schema.attributes)]
    parameters += [f"out: {result if result == 'Any' else result + ' | None'} = None", "stream: int | None = None"]
    return signature(schema.name, parameters, result)


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
        text += f"\n{header(schema)}\n{literal(docstring(schema), '    ')}    ...\n"
    return text
