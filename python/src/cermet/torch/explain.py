"""cermet.torch.explain(model, *inputs): what of a model would run in Cermet."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import torch

from .backend import compile_with
from .compiled import CompiledGraph
from .options import Options, options_of
from .report import Report


@dataclasses.dataclass(frozen=True)
class Explanation:
    """A report for each graph that Dynamo made: more than one where the model has graph breaks."""

    graphs: tuple[Report, ...]

    def __str__(self) -> str:
        if len(self.graphs) == 1:
            return str(self.graphs[0])
        return "\n".join(f"graph {i}: {report}" for i, report in enumerate(self.graphs))

    def json(self) -> str:
        return json.dumps({"graphs": [report.as_dict() for report in self.graphs]})


class _Explained:
    """A graph that is compiled for its report, and run by PyTorch."""

    def __init__(self, reports: list[Report], module: torch.fx.GraphModule, static: tuple[int, ...], options: Options):
        self.reports, self.module = reports, module
        self.graph = CompiledGraph(module, static, options)

    def __call__(self, args: list[Any]) -> Any:
        self.reports.append(self.graph.program(args).report)
        return self.module(*args)


def explain(model: Callable, *inputs: Any, options: dict[str, Any] | None = None, **keywords: Any) -> Explanation:
    """Compiles a module or function for `inputs` and reports segments, reasons by operator with the user's line, and
    every launch. PyTorch runs it once, so that graphs
    after a graph break are seen, too.
    """
    reports: list[Report] = []
    parsed = dataclasses.replace(options_of(options), fallback="allow")

    def backend(module: torch.fx.GraphModule, given: list[Any]) -> Callable:
        return compile_with(module, given, parsed, lambda graph, static, of: _Explained(reports, graph, static, of))

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(model, backend=backend)(*inputs, **keywords)
    torch._dynamo.reset()
    return Explanation(tuple(reports))
