"""cermet.compile(module, args): a model captured by torch.export, as a callable without guards."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..errors import InvalidArgument
from . import operators  # noqa: F401  (torch.ops.cermet)
from .capture import export_decompositions
from .compiled import CompiledGraph
from .options import options_of
from .report import Report


class CompiledModule:
    """What cermet.compile() returns: called as the module, with operands of the types, ranks and sizes that were
    exported. It reads the module's weights, which may
    change; results are new tensors.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        args: tuple,
        keywords: dict[str, Any],
        dynamic_shapes: Any,
        options: Mapping[str, Any],
    ):
        parsed = options_of(options)
        with torch.no_grad():
            exported = torch.export.export(module, args, keywords, dynamic_shapes=dynamic_shapes, strict=False)
            exported = exported.run_decompositions(export_decompositions())
        self.exported = exported
        signature = exported.graph_signature
        self._values = self._constants()
        nodes = [node for node in exported.graph_module.graph.nodes if node.op == "placeholder"]
        mutated = set(signature.buffers_to_mutate.values())
        targets = {
            **signature.inputs_to_parameters,
            **signature.inputs_to_buffers,
            **signature.inputs_to_lifted_tensor_constants,
        }
        self._names = [targets.get(node.name) for node in nodes]
        static = tuple(i for i, name in enumerate(self._names) if name is not None and name not in mutated)
        self.graph = CompiledGraph(
            exported.graph_module, static, parsed, {i: name for i, name in enumerate(self._names) if name is not None}
        )
        self._user = [i for i, name in enumerate(self._names) if name is None]
        self._expected = [nodes[i].meta.get("val") for i in self._user]
        self._updates = self._updated(signature)
        self._module = module

    def _constants(self) -> dict[str, Any]:
        """Weights, buffers and other tensors of the module by name: those of the module itself, so that changes are
        seen.
        """
        return {**self.exported.constants, **self.exported.state_dict}

    def _updated(self, signature: Any) -> list[tuple[int, str]]:
        """Results that are new values of buffers or operands: (place, name)."""
        found = []
        for i, spec in enumerate(signature.output_specs):
            if spec.kind.name in ("BUFFER_MUTATION", "PARAMETER_MUTATION", "USER_INPUT_MUTATION"):
                found.append((i, spec.target))
        return found

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        flat = self._flat(args, keywords)
        given: list[Any] = [None] * len(self._names)
        for i, value in zip(self._user, flat):
            given[i] = value
        for i, name in enumerate(self._names):
            if name is not None:
                given[i] = self._values[name]
        with torch.no_grad():
            results = list(self.graph(given))
        results = self._write_updates(results, flat)
        return pytree.tree_unflatten(results, self.exported.call_spec.out_spec)

    def _flat(self, args: tuple, keywords: dict[str, Any]) -> list[Any]:
        """Operands in the order of the graph. Raises InvalidArgument naming one that differs from the exported one."""
        flat, spec = pytree.tree_flatten((args, keywords))
        expected = self.exported.call_spec.in_spec
        if spec != expected:
            flat, spec = pytree.tree_flatten(
                (args, {name: keywords[name] for name in _keyword_order(expected) if name in keywords})
            )
        if spec != expected or len(flat) != len(self._user):
            raise InvalidArgument(f"operands: expected the structure {expected}, found {spec}")
        for i, (value, like) in enumerate(zip(flat, self._expected)):
            if isinstance(like, torch.Tensor):
                _check_operand(i, value, like)
        return flat

    def _write_updates(self, results: list[Any], flat: list[Any]) -> list[Any]:
        for place, name in self._updates:
            if name in self._values:
                self._values[name].detach().copy_(results[place])
            else:
                nodes = [node for node in self.exported.graph_module.graph.nodes if node.op == "placeholder"]
                flat[[nodes[i].name for i in self._user].index(name)].copy_(results[place])
        written = {place for place, _ in self._updates}
        return [result for i, result in enumerate(results) if i not in written]

    @property
    def report(self) -> Report | None:
        """What runs in Cermet; None before the first call."""
        return self.graph.report

    def explain(self) -> str:
        """The report, with every compile step and launch."""
        return "not compiled yet" if self.report is None else str(self.report)

    def explain_json(self) -> str:
        return "{}" if self.report is None else json.dumps(self.report.as_dict())

    def refresh(self) -> None:
        """Reads weights again that were written through NumPy or .data, which PyTorch does not count."""
        self.graph.refresh()


def _keyword_order(spec: Any) -> list[str]:
    return list(spec.children()[1].context or ()) if spec.num_children == 2 else []


def _check_operand(i: int, value: Any, like: torch.Tensor) -> None:
    if not isinstance(value, torch.Tensor):
        raise InvalidArgument(f"operand {i}: expected a tensor, found {type(value).__name__}")
    sizes = tuple(value.shape)
    fits = len(sizes) == like.dim() and all(
        not isinstance(want, int) or size == want for size, want in zip(sizes, like.shape)
    )
    if value.dtype != like.dtype or not fits:
        wanted = ", ".join(str(size) if isinstance(size, int) else "*" for size in like.shape)
        raise InvalidArgument(f"operand {i}: expected {like.dtype} [{wanted}], found {value.dtype} {list(sizes)}")


def compile(
    module: torch.nn.Module,
    args: tuple = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    **options: Any,
) -> CompiledModule:
    """A module compiled for operands like `args` and `kwargs`, as a callable with its signature.

    Unlike torch.compile it has no guards: operands must have the exported types and sizes, but for those that
    `dynamic_shapes` (as of torch.export) leaves open.
    options: as of torch.compile's backend: fallback, check, rounding, weights, fusion, threads.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module: expected a torch.nn.Module, found {type(module).__name__}")
    return CompiledModule(module, tuple(args), dict(kwargs or {}), dynamic_shapes, options)
