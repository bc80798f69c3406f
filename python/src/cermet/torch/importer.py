"""FX graphs of ATen operators as Cermet graphs: the loop over nodes, constants, and the check of every result against what PyTorch expects."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterable, Sequence
from operator import getitem
from typing import Any

import torch

from .. import graph as graphs
from ..bridge import dtype_name
from ..errors import Error, Unsupported
from ..schemas import schema_of
from .lower import NAMED, ROWS
from .scope import region_of, scope_of
from .symbols import Bindings

Node = torch.fx.Node

#: Results of operators on constants that have at most so many elements more than their operands are computed while importing.
_FOLDED_GROWTH = 1 << 16

_MAX_RANK = 8


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


class Lowering:
    """A Cermet graph that is being made of FX nodes. Called with a node it gives the node's value in the graph."""

    def __init__(self, name: str, device: str, threads: int, bindings: Bindings):
        self.graph = graphs.Graph(name, device=device, threads=threads)
        self.graph_name, self.device, self.threads = name, device, threads
        self.bindings = bindings
        #: Values by node: of the graph, or lists of them.
        self.values: dict[Node, Any] = {}
        #: Tensors by node whose elements are known now: weights, and what is computed of them.
        self.known: dict[Node, torch.Tensor] = {}
        self.names: dict[Node, str] = {}
        self._constants: dict[tuple, graphs.Value] = {}
        self._held: list[torch.Tensor] = []  # so that addresses in _constants stay theirs

    def __call__(self, node: Node) -> graphs.Value:
        if node not in self.values:
            self.values[node] = self.constant(self.known[node], self.names.get(node, node.name))
        return self.values[node]

    def op(self, kind: str, *inputs: Any, **attributes: Any) -> graphs.Value:
        """Adds a node of the library's operator and gives its first result."""
        return self.ops(kind, *inputs, **attributes)[0]

    def ops(self, kind: str, *inputs: Any, **attributes: Any) -> tuple[graphs.Value, ...]:
        return self.graph.apply(kind, inputs, attributes)

    def has(self, kind: str, attribute: str) -> bool:
        """Whether the library's operator has an attribute: some are younger than this package."""
        return any(known.name == attribute for known in schema_of(kind).attributes)

    def fake(self, node: Node) -> torch.Tensor:
        return node.meta["val"]

    def shape(self, of: Any) -> tuple[int, ...]:
        """Dimensions of a node, a fake tensor or a value."""
        tensor = of.meta["val"] if isinstance(of, Node) else of
        return tuple(self.bindings.size(size) for size in tensor.shape)

    def dtype(self, node: Node) -> torch.dtype:
        return node.meta["val"].dtype

    def rank(self, node: Node) -> int:
        return node.meta["val"].dim()

    def is_known(self, node: Any) -> bool:
        return isinstance(node, Node) and node in self.known

    def used(self, node: Node) -> set[int]:
        """Which of a node's results are read."""
        return {user.args[1] for user in node.users}  # type: ignore[misc]

    def constant(self, tensor: torch.Tensor, name: str = "constant") -> graphs.Value:
        """A constant with the values of a tensor: one for each memory, so that tied weights are one."""
        key = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype)
        if key not in self._constants or not tensor.numel():
            made = tensor.detach()
            made = made.contiguous() if made.is_contiguous() or made.numel() else made.clone()
            add = self.graph.literal if tensor.numel() == 1 else self.graph.constant
            self._constants[key] = add(self._free(name), made.clone() if tensor.numel() <= 1 else made)
            self._held.append(tensor)
        return self._constants[key]

    def number(self, value: bool | int | float, dtype: torch.dtype) -> graphs.Value:
        """A number as a constant without dimensions."""
        key = (repr(value), dtype)
        if key not in self._constants:
            try:
                tensor = torch.tensor(value, dtype=dtype)
            except (RuntimeError, TypeError, ValueError) as error:
                raise Unsupported(f"the number {value} as {dtype}: {error}") from None
            self._constants[key] = self.graph.literal(self._free("number"), tensor)
        return self._constants[key]

    def _free(self, name: str) -> str:
        made, count = name, 1
        while self.graph.find(made) is not None:
            made, count = f"{name}.{count}", count + 1
        return made

    def operand(self, of: Any, dtype: torch.dtype) -> graphs.Value:
        """An operand, a node or a number, in an element type."""
        return self.cast(self(of), dtype) if isinstance(of, Node) else self.number(of, dtype)

    def cast(self, value: graphs.Value, dtype: torch.dtype) -> graphs.Value:
        name = dtype_name(dtype)
        return value if value.dtype == name else self.op("cast", value, out_dtype=name)

    def reshape(self, value: graphs.Value, shape: Sequence[int]) -> graphs.Value:
        shape = [int(size) for size in shape]
        if list(value.shape) == shape:
            return value
        return self.op("reshape", value, dims=[str(size) for size in shape]) if shape else self.op("reshape", value, shape=[])

    def transpose(self, value: graphs.Value, permutation: Sequence[int]) -> graphs.Value:
        order = [axis % len(permutation) for axis in permutation]
        return value if order == list(range(len(order))) else self.op("transpose", value, permutation=order)

    def expand(self, value: graphs.Value, shape: Sequence[int]) -> graphs.Value:
        shape = [int(size) for size in shape]
        if list(value.shape) == shape:
            return value
        if not shape:
            return self.reshape(value, [])
        return self.op("expand", value, dims=[str(size) for size in shape])

    def slice(self, value: graphs.Value, axis: int, start: int, end: int, step: int = 1) -> graphs.Value:
        if start == 0 and end >= int(value.shape[axis]) and step == 1:
            return value
        return self.op("slice", value, starts=[start], ends=[end], axes=[axis], steps=[step])

    def axis_last(self, value: graphs.Value, axis: int) -> tuple[graphs.Value, list[int]]:
        """The value with an axis moved to the end, and the permutation that moves it back."""
        rank = len(value.shape)
        order = [i for i in range(rank) if i != axis % rank] + [axis % rank]
        return self.transpose(value, order), [order.index(i) for i in range(rank)]

    def close(self) -> None:
        self.graph.close()

    def node(self, node: Node) -> None:
        """Adds an FX node to the graph. Raises Unsupported with the reason where it cannot."""
        region, scope = region_of(node), scope_of(node)
        with contextlib.ExitStack() as stack:
            if scope:
                stack.enter_context(self.graph.scope(scope))
            if region is not None:
                stack.enter_context(self.graph.super_kernel(*region))
            self._node(node)

    def _node(self, node: Node) -> None:
        if self._fold(node):
            return
        refuse_results(node)
        found = ROWS.get(node.target) or _named_row(node.target)
        if found is None:
            is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
            raise Unsupported("random numbers" if is_random else "no row for the operator")
        function, signature = found
        args, keywords = self.bindings.arguments(node)
        for operand in node.all_input_nodes:
            if is_tensor(operand.meta.get("val")) and operand not in self.values and operand not in self.known:
                raise Unsupported("an operand that the library has no type for")
        try:
            signature.bind(self, node, *args, **keywords)
        except TypeError as error:
            raise Unsupported(f"arguments that the row does not know: {error}") from None
        try:
            made = function(self, node, *args, **keywords)
        except Unsupported:
            raise
        except Error as error:
            raise Unsupported(str(error)) from None
        except TypeError as error:
            if "element type" not in str(error):
                raise
            raise Unsupported(str(error)) from None
        self._check(node, made)
        self.values[node] = made

    def _fold(self, node: Node) -> bool:
        """Computes a node whose operands are all known, unless its result is much larger than they are."""
        tensors = (torch.Tensor, list, tuple)
        if any(operand not in self.known for operand in node.all_input_nodes if isinstance(operand.meta.get("val"), tensors)):
            return False
        made = node.meta.get("val")
        if not is_tensor(made) or not is_pure(node) or made.is_sparse or made.is_quantized:
            return False
        operands = [self.known[operand] for operand in node.all_input_nodes if operand in self.known]
        if sum(operand.numel() for operand in operands) + _FOLDED_GROWTH < _product(self.shape(node)):
            return False
        args, keywords = self.bindings.arguments(node)
        known = torch.fx.node.map_arg((args, keywords), lambda operand: self.known[operand])
        with torch.no_grad():
            self.known[node] = node.target(*known[0], **known[1])  # type: ignore[operator]
        return True

    def _check(self, node: Node, made: Any) -> None:
        """Compares types and dimensions of results with what PyTorch expects."""
        expected = node.meta.get("val")
        several = isinstance(expected, (list, tuple))
        if several != isinstance(made, (list, tuple)) or (several and len(made) != len(expected)):
            raise Unsupported(f"internal error: made {made}, expected results like {expected}")
        for want, value in zip(expected if several else [expected], made if several else [made]):
            if value is None or not is_tensor(want):
                continue
            found, dims = (value.dtype, tuple(value.shape)), self.shape(want)
            if found != (dtype_name(want.dtype), dims):
                raise Unsupported(f"internal error: made {found[0]}{list(found[1])}, expected {dtype_name(want.dtype)}{list(dims)}")


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
    return torch.Tag.nondeterministic_seeded not in target.tags and not target._schema.is_mutable and not node.is_impure()


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

