"""A Cermet graph that is being made of FX nodes, and what rows use to make it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .. import graph as graphs
from ..bridge import dtype_name
from ..errors import Unsupported
from ..schemas import schema_of
from .symbols import Bindings, dim_text

Node = torch.fx.Node


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


class Lowering:
    """A Cermet graph that is being made of FX nodes. Called with a node it gives the node's value in the graph."""

    def __init__(self, name: str, device: str, threads: int, bindings: Bindings):
        self.graph = graphs.Graph(name, device=device, threads=threads)
        self.graph_name, self.device, self.threads = name, device, threads
        self.bindings = bindings
        for name, (least, greatest) in bindings.ranges.items():
            self.graph.symbol(name, least, greatest)
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

    def shape(self, of: Any) -> tuple[Any, ...]:
        """Dimensions of a node or a fake tensor: numbers, or expressions of symbols."""
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

    def dims(self, value: graphs.Value) -> tuple[Any, ...]:
        """A value's dimensions: numbers, or expressions of symbols."""
        return tuple(size if isinstance(size, int) else self.bindings.parsed(size) for size in value.shape)

    def reshape(self, value: graphs.Value, shape: Sequence[Any]) -> graphs.Value:
        if self.dims(value) == tuple(shape):
            return value
        return (
            self.op("reshape", value, dims=list(map(dim_text, shape))) if shape else self.op("reshape", value, shape=[])
        )

    def transpose(self, value: graphs.Value, permutation: Sequence[int]) -> graphs.Value:
        order = [axis % len(permutation) for axis in permutation]
        return value if order == list(range(len(order))) else self.op("transpose", value, permutation=order)

    def expand(self, value: graphs.Value, shape: Sequence[Any]) -> graphs.Value:
        if self.dims(value) == tuple(shape):
            return value
        if not shape:
            return self.reshape(value, [])
        return self.op("expand", value, dims=list(map(dim_text, shape)))

    def slice(self, value: graphs.Value, axis: int, start: Any, end: Any, step: int = 1) -> graphs.Value:
        size = self.dims(value)[axis]
        if (
            start == 0
            and step == 1
            and (end == size or (isinstance(end, int) and isinstance(size, int) and end > size))
        ):
            return value
        if not isinstance(end, int) or not isinstance(size, int):
            if step != 1 or not isinstance(start, int):
                raise Unsupported("a slice from a symbolic place")
            return self.op("slice", value, starts=[start], counts=[dim_text(end - start)], axes=[axis])
        return self.op("slice", value, starts=[start], ends=[end], axes=[axis], steps=[step])

    def axis_last(self, value: graphs.Value, axis: int) -> tuple[graphs.Value, list[int]]:
        """The value with an axis moved to the end, and the permutation that moves it back."""
        rank = len(value.shape)
        order = [i for i in range(rank) if i != axis % rank] + [axis % rank]
        return self.transpose(value, order), [order.index(i) for i in range(rank)]
