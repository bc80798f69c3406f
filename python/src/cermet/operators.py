"""Operators by name, for tensors of any framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from . import _native
from .bridge import finish
from .devices import Handle, device_of, handle_for
from .operands import constant, converted, inputs_of, is_tensor
from .schemas import Schema, schema_of
from .types import Tensor

#: An operator with the kernels that it chose for the types and shapes that it met; what get_op() returns.
Operator = _native.Operator


class weight:  # noqa: N801  (named as in C++)
    """Marks a constant operand of get_op(): it is packed once in the layout that the kernels prefer, and calls leave it out (or pass None in its place).

    Its memory must not change while the operator is used; the operator keeps the tensor.
    """

    def __init__(self, value: Tensor):
        self.value = value


#: An operand as get_op() and explain() take it: a tensor, a constant, None for one that is not given, a number, or (dtype, shape).
Input: TypeAlias = "Tensor | weight | tuple[str, Sequence[int]] | float | None"
Inputs: TypeAlias = "Input | Sequence[Input]"


def get_op(
    name: str,
    inputs: Inputs,
    attributes: Mapping[str, Any] | None = None,
    *,
    kernel: Any = None,
    config: str | None = None,
    device: Any = None,
    threads: int = 0,
    **more: Any,
) -> Operator:
    """An operator for tensors like `inputs`: `matmul = get_op("matmul", (a, b)); y = matmul(a, b)`.

    It validates them against the operator's schema and chooses a kernel, which on a GPU compiles it. Calls take tensors of any types and shapes that the
    operator takes; what was chosen is kept by type and shape, numbers of rows by ranges. `out=` gives the memory of the result (a tuple for several);
    otherwise it is new, of the framework of the first tensor. PyTorch's tensors on a GPU run on its current stream, others on the default stream, unless
    `stream=` (an integer) names one.

    inputs: tensors in the schema's order, or one by itself; None for an optional one that is not given; weight(w) for a constant; or (dtype, shape) for a tensor
        like it.
    attributes, more: the operator's attributes; element types may be those of the framework. (`kernel` that is no text is the attribute of that name.)
    kernel, config: a kernel as `cermet ops NAME` lists them, and fields of its configuration ("tile_m=64"); by default the cheapest for each shape.
    device: "cpu", "cuda:1", "null:sm_90" or a Handle; by default where the first tensor is.
    Raises InvalidArgument naming the operand or attribute, what was expected and what was found; Unsupported where no kernel takes them.
    """
    schema = schema_of(name)
    values = {**(attributes or {}), **more}
    if kernel is not None and not isinstance(kernel, str):
        values["kernel"], kernel = kernel, None
    operands = inputs_of(name, inputs)
    given = converted(name, tuple(i.value if isinstance(i, weight) else i for i in operands))
    given = tuple(constant(name, i, value) if isinstance(operands[i], weight) and is_tensor(value) else value for i, value in enumerate(given))
    constants = sum(1 << i for i, operand in enumerate(operands) if isinstance(operand, weight))
    finish(tuple(value for i, value in enumerate(given) if isinstance(operands[i], weight)))
    handle = handle_for(device_of(given) if device is None else device, threads)
    return make_operator(schema, handle, given, schema.attribute_rows(values), constants, kernel, config)


def make_operator(schema: Schema, handle: Handle, inputs: tuple, rows: tuple, constants: int = 0, kernel: str | None = None, config: str | None = None) -> Operator:
    """get_op() with its arguments resolved."""
    several = any(output.variadic for output in schema.outputs)
    marks = (_bits(schema, {output.shares for output in schema.outputs}), _bits(schema, {o.name for o in schema.inputs if o.may_lie_transposed}))
    return _native.get_op(handle.native, *handle.memory, handle.computes, schema.name, inputs, rows, constants, kernel, config, several, *marks)


def _bits(schema: Schema, names: set[str]) -> int:
    return sum(1 << i for i, operand in enumerate(schema.inputs) if operand.name in names)


class Function:
    """One operator as a function: an Operator for each device and set of attributes, of which the last few are kept."""

    kept = 128

    def __init__(self, schema: Schema):
        self.schema = schema
        self._operators: dict = {}
        self._names = tuple(attribute.name for attribute in schema.attributes)
        self._has_floats = any(attribute.type in ("float", "floats") for attribute in schema.attributes)

    def __call__(self, inputs: tuple, values: tuple, out: object, stream: object) -> object:
        """`values`: every attribute in the schema's order; None for the default."""
        place = getattr(inputs[0], "device", None) if inputs else None
        key = (_device_of_first(inputs) if place is None else place, tuple(map(_exact, values)) if self._has_floats else values)
        try:
            operator = self._operators[key]
        except KeyError:
            operator = self._operators[key] = self._make(inputs, values)
        except TypeError:  # a value that cannot be looked up: a list, or something that is refused
            if any(isinstance(value, list) for value in values):
                return self(inputs, tuple(tuple(value) if isinstance(value, list) else value for value in values), out, stream)
            operator = self._make(inputs, values)
        if out is None and stream is None:
            return operator(*inputs)
        return operator(*inputs, out=out, stream=stream)

    def _make(self, inputs: tuple, values: tuple) -> Operator:
        while len(self._operators) >= self.kept:
            self._operators.pop(next(iter(self._operators)), None)
        rows = self.schema.attribute_rows(dict(zip(self._names, values)))
        given = converted(self.schema.name, inputs)
        return make_operator(self.schema, handle_for(device_of(given)), given, rows)


def _device_of_first(inputs: tuple) -> object:
    """Where the first operand is that is anywhere."""
    for operand in inputs:
        if operand is not None and hasattr(operand, "device"):
            return operand.device
    return None


def _exact(value: object) -> object:
    """Equal for equal bits alone: 0.0 and -0.0 are different attributes, NaN is one."""
    if value.__class__ is float:
        return value if value > 0 or value < 0 else repr(value)
    return tuple(map(_exact, value)) if value.__class__ is tuple else value


__all__ = ["Operator", "get_op", "weight"]
