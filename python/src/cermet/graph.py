"""Graphs of operators: built node by node or read from text, compiled for a device, and run on tensors of any framework."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import _native, onnx
from .bridge import dtype_name, finish
from .devices import handle_for
from .nodes import GraphOperators
from .operands import converted, dense
from .schemas import Schema, schema_of
from .types import Tensor


class Value:
    """A value of a graph: an input, a constant or a node's result."""

    __slots__ = ("graph", "id")

    def __init__(self, graph: Graph, id: int):
        self.graph, self.id = graph, id

    @property
    def name(self) -> str:
        return self.graph._native.describe(self.id)[0]

    @property
    def dtype(self) -> str:
        """The library's name of the element type: "bf16"."""
        return self.graph._native.describe(self.id)[1]

    @property
    def shape(self) -> tuple[int | str, ...]:
        """Numbers, and texts of sizes that runs give: ("T", 64)."""
        return self.graph._native.describe(self.id)[2]

    def __repr__(self) -> str:
        name, dtype, shape = self.graph._native.describe(self.id)
        return f"<cermet.graph.Value {name}: {dtype}[{', '.join(map(str, shape))}]>"


class Graph(GraphOperators):
    """A graph that is being built, with a method for each operator:

        with cermet.Graph("block") as graph:
            x = graph.input("x", ("T", 64), "bf16")          # T is a size that runs give
            graph.output("y", graph.rms_norm(x, weight))     # tensors become constants
            session = graph.compile({"T": 512})
        y = session(tensor)

    Operands are values, or tensors, which become constants and are kept; their memory must not change before compile().
    device: as of get_op(). Raises InvalidArgument naming the operand or attribute, what was expected and what was found.
    """

    def __init__(self, name: str = "graph", *, device: object = "cpu", threads: int = 0):
        self._open(name, None, device, threads)

    @classmethod
    def parse(cls, text: str, *, device: object = "cpu", threads: int = 0) -> Graph:
        """A graph from its text. Constants that it only declares get their values from set_constant()."""
        made = cls.__new__(cls)
        made._open("graph", text, device, threads)
        return made

    def _open(self, name: str, text: str | None, device: object, threads: int) -> None:
        handle = handle_for(device, threads)
        self._native = _native.create_graph(handle.native, *handle.memory, handle.computes, name, text)

    def symbol(self, name: str, least: int, greatest: int) -> None:
        """The range of a size that runs give, both ends included."""
        self._native.symbol(name, least, greatest)

    def input(self, name: str, shape: Sequence[int | str], dtype: object = "f32", *, order: Sequence[int] | None = None) -> Value:
        """Declares an input of a run. A dimension is a number, the name of a size that runs give, or an expression: "2*T+1".

        order: of the dimensions in memory, outermost first, in which tensors are dense: (0, 2, 3, 1) for images [N, C, H, W] with their channels last.
        """
        return Value(self, self._native.input(name, f"{dtype_name(dtype)}[{', '.join(map(str, shape))}]", _order(order, len(shape))))

    def constant(self, name: str, tensor: Tensor) -> Value:
        """A constant with the values of a tensor, which is kept; a copy of it where its memory is not dense."""
        tensor = dense(tensor)
        finish((tensor,))
        return Value(self, self._native.constant(name, tensor))

    def literal(self, name: str, tensor: Tensor) -> Value:
        """A constant whose values are copied into the graph and are part of its text: for small tensors."""
        tensor = dense(tensor)
        finish((tensor,))
        return Value(self, self._native.literal(name, tensor))

    def set_constant(self, name: str, tensor: Tensor) -> None:
        """The values of a constant that a graph's text only declares; also replaces those of another."""
        tensor = dense(tensor)
        finish((tensor,))
        self._native.set_constant(name, tensor)

    def output(self, name: str, value: Value, *, order: Sequence[int] | None = None) -> None:
        """Makes a value a result, under a name of its own. order: of its dimensions in memory, as input() has it."""
        id = self._id(value, name, f"output {name!r}")
        self._native.output(name, id, None if order is None else _order(order, len(Value(self, id).shape)))

    def update(self, input: Value, value: Value) -> None:
        """State: once a run has ended, the memory of an input holds a value of its type. Nodes that read the input read what it held before."""
        self._native.update(self._id(input, "input", "update: input"), self._id(value, "value", "update: value"))

    def apply(self, op: str, inputs: Sequence[object], attributes: Mapping[str, object] | None = None, *, names: object = None) -> tuple[Value, ...]:
        """Adds a node by its operator's name: every result. `names`: of the results; by default made of scope and operator."""
        return self._apply(schema_of(op), tuple(inputs), dict(attributes or {}), names)

    @contextlib.contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Names the part of a model that is built inside: `with graph.scope("layers.0"):`. Scopes nest."""
        self._native.scope_begin(name)
        try:
            yield
        finally:
            self._native.scope_end()

    @contextlib.contextmanager
    def super_kernel(self, name: str | None = None, options: str = "") -> Iterator[None]:
        """Nodes that are added inside belong to a super-kernel region, which becomes one launch where the device can and may be entered again:
        `with graph.super_kernel("sp1", "stream-fusion=1:strict-scope-check=abort"):`. Without a name they belong to none.
        """
        self._native.super_kernel_begin(name, options)
        try:
            yield
        finally:
            self._native.super_kernel_end()

    def find(self, name: str) -> Value | None:
        """A value by name."""
        found = self._native.find(name)
        return Value(self, found) if found >= 0 else None

    @property
    def text(self) -> str:
        """The graph as text, which parse() reads."""
        return self._native.text()

    def compile(
        self,
        maxima: Mapping[str, int] | None = None,
        *,
        fusion: str = "full",
        rounding: str = "strict",
        skip: Sequence[str] = (),
        capture: bool = True,
        super_kernel: str | None = None,
        super_kernel_options: str | None = None,
        weights: Weights | None = None,
    ) -> Session:
        """Rewrites, fuses, chooses kernels, packs constants and plans memory. The graph stays as it is and may be compiled again.

        maxima: the largest value of each size that runs give, where its range has no end; others may be lowered.
        fusion: "none", "pattern", "published" or "full". rounding: "strict" has the bits of single operators, "fast" float32 between operators of one kernel.
        skip: compile steps to leave out, as `cermet explain` names them. capture: on a GPU, replay a captured CUDA graph where sizes and addresses are the same.
        weights: a store that sessions share, where constants come from by name; those of the graph that it lacks are added to it.
        super_kernel: regions beside those that super_kernel() marks: "layer", "decode" or "NAME:PATTERN"; "none" takes all away.
        """
        rows = tuple((maxima or {}).items())
        store = None if weights is None else weights._native
        return Session(_native.compile_graph(self._native, rows, fusion, rounding, tuple(skip), capture, super_kernel, super_kernel_options, store))

    def close(self) -> None:
        """Frees it; sessions stay valid."""
        self._native.close()

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _id(self, operand: object, name: str, what: str) -> int:
        """A value's number; a tensor becomes a constant."""
        if operand is None:
            return -1
        if not isinstance(operand, Value):
            return self.constant(self._free(name), operand).id
        if operand.graph is not self:
            raise TypeError(f"{what}: expected a value of this graph, found one of another")
        return operand.id

    def _free(self, name: str) -> str:
        """The name, with a number where it is taken."""
        made, number = name, 1
        while self._native.find(made) >= 0:
            made, number = f"{name}.{number}", number + 1
        return made

    def _add(self, schema: Schema, inputs: tuple[Any, ...], attributes: dict[str, Any], names: Any) -> Any:
        made = self._apply(schema, inputs, attributes, names)
        return made[0] if len(made) == 1 and not any(output.variadic for output in schema.outputs) else made

    def _apply(self, schema: Schema, inputs: tuple[Any, ...], attributes: dict[str, Any], names: Any) -> tuple[Value, ...]:
        rows = schema.attribute_rows(attributes)
        ids = []
        for i, operand in enumerate(converted(schema.name, inputs)):
            spec = schema.inputs[min(i, len(schema.inputs) - 1)].name if schema.inputs else ""
            ids.append(self._id(operand, f"{schema.name}.{spec}", f"{schema.name}: input {i} ({spec})"))
        given = (names,) if isinstance(names, str) else None if names is None else tuple(names)
        return tuple(Value(self, made) for made in self._native.apply(schema.name, tuple(ids), rows, given))


def _order(order: Sequence[int] | None, rank: int) -> tuple[int, ...] | None:
    if order is not None and len(order) != rank:
        raise ValueError(f"order: expected an entry for each of {rank} dimensions, found {len(order)}")
    return None if order is None else tuple(order)


class Weights:
    """Tensors by name that sessions share: what is packed or computed of them exists once. Used by one thread at a time, as are all sessions that share it.

    weights = cermet.Weights()
    weights.set("w", tensor)                     # or the graph's constants, which compile() adds
    session = graph.compile(weights=weights)
    weights.set("w", other)                      # sessions take the new one at their next run
    """

    def __init__(self, *, device: object = "cpu", threads: int = 0):
        handle = handle_for(device, threads)
        self._native = _native.create_weights(handle.native, *handle.memory)

    def set(self, name: str, tensor: Tensor) -> None:
        """Gives a tensor, or replaces the one of this name, of the same type. It is kept: dense memory that kernels take as it is is read where it is, so a
        change of its elements needs another set(). No run may be in progress."""
        tensor = dense(tensor)
        finish((tensor,))
        self._native.set(name, tensor)

    @property
    def bytes(self) -> int:
        """Memory of what was packed, computed or copied."""
        return self._native.bytes()


class Session:
    """A compiled graph; what Graph.compile() returns. Calls of several threads wait for one another."""

    def __init__(self, native: Any):
        self._native = native
        self.inputs = tuple(onnx.Value(*value) for value in native.inputs())
        self.outputs = tuple(onnx.Value(*value) for value in native.outputs())

    def __call__(self, *tensors: Tensor, out: Any = None, stream: int | None = None, **named: Tensor) -> Any:
        """Runs on tensors in the order of `inputs`, or by name. A result, or a tuple of several, in new memory of the first tensor's framework and on the
        session's device, or in `out` (a tuple for several; None in it leaves a result out). A result that is an input's memory is that tensor. `stream` is as
        of the operators of get_op().
        """
        names = [value.name for value in self.inputs]
        rest = names[len(tensors) :]
        if len(tensors) > len(names) or set(named) != set(rest):
            raise TypeError(f"session: expected inputs {names}, found {len(tensors)} without a name and {sorted(named)}")
        given = (*tensors, *(named[name] for name in rest))
        places = out if out is None or isinstance(out, tuple) else (out,)
        results = self._native.run(given, given[0] if given else _numpy_sample(), places, stream)
        return results[0] if len(results) == 1 else results

    def run(self, inputs: Mapping[str, Tensor]) -> dict[str, Any]:
        """Runs on tensors by name, and returns results by name."""
        results = self(**inputs)
        return dict(zip((value.name for value in self.outputs), results if len(self.outputs) > 1 else (results,)))

    def output_alias(self, index: int) -> int:
        """Index of the input whose memory a result is, or -1."""
        return self._native.output_alias(index)

    def explain(self) -> str:
        """Every compile step with its result, then one line for each launch."""
        return self._native.explain()

    @property
    def steps(self) -> int:
        """Kernels that a run launches."""
        return self._native.sizes()[0]

    @property
    def arena_bytes(self) -> int:
        """Memory of intermediate values."""
        return self._native.sizes()[1]

    @property
    def constant_bytes(self) -> int:
        """Memory of constants."""
        return self._native.sizes()[2]

    def close(self) -> None:
        """Frees its memory; later calls raise InvalidArgument."""
        self._native.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _numpy_sample() -> Any:
    import numpy

    return numpy.empty(0, numpy.float32)
