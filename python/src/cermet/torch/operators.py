"""Operators as PyTorch's own, which torch.compile traces through: after `import cermet.torch`, torch.ops.cermet.rms_norm(x, weight, eps=1e-5).

Every operator of the library is there, with the schema's operands, then its attributes as keywords. An operand that the operator updates is updated in place and
is no result. Where attributes decide how many results there are, they are a list. There are no gradients: a backward pass through an operator raises
NotImplementedError.
"""

from __future__ import annotations

import torch

from .. import _native
from ..bridge import torch_dtype
from ..devices import handle_for
from ..fakes import result_shapes
from ..operators import Function
from ..schemas import Schema, schema_of

_TYPES = {"bool": "bool", "int": "int", "float": "float", "string": "str", "ints": "int[]", "floats": "float[]", "strings": "str[]"}

#: PyTorch keeps operators as long as their library.
_library = torch.library.Library("cermet", "DEF")


def _default(value: object) -> str:
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(_default, value)) + "]"
    if isinstance(value, str):
        return f'"{value}"'
    return str(value)


def signature(schema: Schema) -> str:
    """The operator in PyTorch's schema language: rms_norm(Tensor x, Tensor? weight, *, float eps=1e-06) -> Tensor."""
    shared = {output.shares for output in schema.outputs} - {""}
    parameters = []
    required = True
    for i, operand in reversed(list(enumerate(schema.inputs))):
        kind = "Tensor[]" if operand.variadic else "Tensor"
        if operand.name in shared:
            kind = f"Tensor({chr(ord('a') + i)}!)"
        required = required and operand.optional
        parameters.insert(0, f"{kind}{'?' if operand.optional else ''} {operand.name}{'=None' if required else ''}")
    if schema.attributes:
        parameters.append("*")
    for attribute in schema.attributes:
        kind = _TYPES[attribute.type]
        has_default = attribute.default is not None and attribute.type != "strings"  # of which PyTorch knows no lists as defaults
        parameters.append(f"{kind} {attribute.name}={_default(attribute.default)}" if has_default else f"{kind}? {attribute.name}=None")
    results = _own_results(schema)
    if _gives_list(schema):
        returned = "Tensor[]"
    else:
        returned = "Tensor" if len(results) == 1 else f"({', '.join(['Tensor'] * len(results))})"
    return f"{schema.name}({', '.join(parameters)}) -> {returned}"


def _own_results(schema: Schema) -> list[int]:
    """Results that are new memory."""
    return [i for i, output in enumerate(schema.outputs) if not output.shares]


def _gives_list(schema: Schema) -> bool:
    """Whether the number of results depends on operands or attributes, which PyTorch's signatures have no other word for."""
    return any(schema.outputs[i].variadic or schema.outputs[i].optional for i in _own_results(schema))


class _Operator:
    """What PyTorch calls: for tensors, and for fake ones that have no memory."""

    def __init__(self, schema: Schema):
        self.schema = schema
        self.function = Function(schema)
        self.own = _own_results(schema)

    def _operands(self, args: tuple) -> tuple:
        """The operands without the lists that PyTorch has them in."""
        args += (None,) * (len(self.schema.inputs) - len(args))
        return tuple(tensor for given in args for tensor in (given if isinstance(given, (list, tuple)) else (given,)))

    def _values(self, words: dict) -> tuple:
        return tuple(words.get(attribute.name, attribute.default) for attribute in self.schema.attributes)

    def _results(self, results: tuple):
        if _gives_list(self.schema):
            return list(results)
        own = tuple(results[i] for i in self.own)
        return own[0] if len(own) == 1 else own or None

    def run(self, *args, **words):
        operands = tuple(tensor.detach() if tensor is not None and tensor.requires_grad else tensor for tensor in self._operands(args))
        results = self.function(operands, self._values(words), None, None)
        return self._results(results if isinstance(results, tuple) else (results,))

    def fake(self, *args, **words):
        operands = self._operands(args)
        device = next(tensor for tensor in operands if tensor is not None).device
        made = []
        for dtype, shape, shared in result_shapes(self.schema, operands, self._values(words)):
            made.append(operands[shared] if shared >= 0 else torch.empty(shape, dtype=torch_dtype(dtype), device=device))
        return self._results(tuple(made))


def _without_gradient(name: str):
    def backward(ctx, *gradients):
        raise NotImplementedError(f"{name}: expected no backward pass through an operator of Cermet, which has no gradients, found one")

    return backward


def _register() -> None:
    for name in _native.op_names():
        schema = schema_of(name)
        operator = _Operator(schema)
        _library.define(signature(schema), tags=(torch.Tag.pt2_compliant_tag,))
        for backend in ("CPU", "CUDA"):
            _library.impl(name, operator.run, backend)
        torch.library.register_fake(f"cermet::{name}", operator.fake, lib=_library)
        if not any(output.shares for output in schema.outputs):  # PyTorch takes none of operators that update operands
            torch.library.register_autograd(f"cermet::{name}", _without_gradient(name), lib=_library)


handle_for("cpu")  # an error of the library is reported here and not inside PyTorch
_register()
