"""A captured graph that compiles itself when it is first called, for the sizes and weights of the call."""

from __future__ import annotations

import collections
import warnings
from collections.abc import Callable
from typing import Any

import torch

from ..errors import Error, Unsupported
from . import compat
from .lowering import Lowering, is_tensor
from .options import Options
from .outer import compile_segments, direct_call, outer_call
from .partition import STATE, partition
from .report import Report, report_of
from .scope import mark_nodes, refuse_broken_regions
from .state import Weights
from .symbols import Bindings, range_end, ranged, symbols_of

#: Programs for different sizes, or ranges of them, that a graph keeps.
_KEPT = 8


class Program:
    """A graph for one set of sizes: its call and its report."""

    def __init__(self, call: Callable[[list[Any]], Any], report: Report):
        self.call, self.report = call, report


class CompiledGraph:
    """An FX graph of ATen operators. static: which inputs are weights."""

    def __init__(
        self,
        module: torch.fx.GraphModule,
        static: tuple[int, ...],
        options: Options,
        names: dict[int, str] | None = None,
    ):
        self.module, self.options, self.names = module, options, names or {}
        mark_nodes(module.graph)
        self.placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        self.static = () if options.weights == "inputs" else tuple(static)
        self.weights = Weights(self.static)
        self._programs: collections.OrderedDict[tuple, Program] = collections.OrderedDict()
        self._symbols = symbols_of(self.placeholders)
        self._takes_ranges = True
        self._current: Program | None = None

    @property
    def report(self) -> Report | None:
        """Of the last program that was compiled."""
        return None if self._current is None else self._current.report

    def __call__(self, args: list[Any]) -> Any:
        if self.options.weights != "frozen" and not self.weights.are_same(args):
            self._programs.clear()
        return self.program(args).call(args)

    def program(self, args: list[Any]) -> Program:
        """The program for the sizes of a call, compiled if there is none: for a range of sizes, or for these alone."""
        sizes = tuple(args[i] if axis is None else args[i].shape[axis] for _, i, axis in self._symbols)
        key = self._key(sizes)
        found = self._programs.get(key)
        if found is None:
            found = self._current = self._compile(args)
            self._programs[self._key(sizes)] = found
            self.weights.note(args)
            while len(self._programs) > _KEPT:
                self._programs.popitem(last=False)
        elif sizes:
            self._programs.move_to_end(key)
        return found

    def _key(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(map(range_end, sizes)) if self._takes_ranges else sizes

    def refresh(self) -> None:
        """Reads weights again in the next call."""
        self._programs.clear()

    def _compile(self, args: list[Any]) -> Program:
        with compat.unset_fake_temporarily(), torch.no_grad():
            bindings = Bindings({symbol: _size(args[i], axis) for symbol, i, axis in self._symbols})
            if bindings.symbols and self._takes_ranges:
                try:
                    return self._compile_for(args, ranged(bindings))
                except (Error, TypeError, ValueError):
                    self._takes_ranges = False  # a row needs numbers, or something stays in PyTorch
            return self._compile_for(args, bindings)

    def _compile_for(self, args: list[Any], bindings: Bindings) -> Program:
        graph = self.module.graph
        scratch = self._scratch(args, bindings)
        made = partition(graph, scratch, threshold=self.options.fallback != "error")
        if bindings.ranges and made.reasons.keys() - {node for node, reason in made.reasons.items() if reason == STATE}:
            raise Unsupported("a graph of which a part stays in PyTorch")
        segments = compile_segments(graph, made, scratch, self.options)
        if bindings.ranges and len(segments) != 1:
            raise Unsupported("a graph that is not one session")
        refuse_broken_regions(made.reasons)
        report = report_of(graph, made, segments)
        self._complain(report)
        call = None
        if made.whole is not None and len(segments) == 1:
            call = direct_call(graph, segments[0])
        return Program(call or outer_call(graph, self.module, made, segments), report)

    def _scratch(self, args: list[Any], bindings: Bindings) -> Lowering:
        """A graph that knows the weights."""
        graph = self.module.graph
        threads = self.options.threads or torch.get_num_threads()
        scratch = Lowering("graph", _device_of(graph), threads, bindings)
        for i in self.static:
            if is_tensor(args[i]):
                scratch.known[self.placeholders[i]] = args[i].detach()
                scratch.names[self.placeholders[i]] = self.names.get(i, self.placeholders[i].name)
        for node in graph.nodes:
            if node.op == "get_attr":
                node.meta.setdefault("val", getattr(self.module, node.target))
                scratch.known[node] = getattr(self.module, node.target)
        return scratch

    def _complain(self, report: Report) -> None:
        if not report.refusals or self.options.fallback == "allow":
            return
        if self.options.fallback == "error":
            raise Unsupported(report.summary())
        warnings.warn(f"cermet: {report.summary()}", stacklevel=2)


def _size(given: Any, axis: int | None) -> int:
    return given if axis is None else given.shape[axis]


def _device_of(graph: torch.fx.Graph) -> str:
    """The first device that is no CPU, else the CPU."""
    devices = [node.meta["val"].device for node in graph.nodes if is_tensor(node.meta.get("val"))]
    for device in devices:
        if device.type == "cuda":
            return f"cuda:{device.index or 0}"
    return "cpu"
