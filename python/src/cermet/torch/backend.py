"""torch.compile(model, backend="cermet"): the entry point that PyTorch finds by its name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch

from . import compat, operators  # noqa: F401  (operators: torch.ops.cermet)
from .capture import decompositions, kept_composites
from .compiled import CompiledGraph
from .options import Options, options_of


def compile_graph(
    module: torch.fx.GraphModule,
    inputs: list[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable:
    """A graph of Dynamo as a callable. `mode` changes nothing: sessions on a GPU capture graphs in every mode."""
    return compile_with(module, inputs, options_of(options), CompiledGraph)


def compile_with(
    module: torch.fx.GraphModule, inputs: list[Any], options: Options, make: Callable[..., Any]
) -> Callable:
    """`make(module, static inputs, options)` gives what is called for each inference graph."""
    if torch.is_grad_enabled() and any(isinstance(of, torch.Tensor) and of.requires_grad for of in inputs):
        warnings.warn(
            "cermet: a graph that needs gradients runs in PyTorch; torch.no_grad() is for inference", stacklevel=2
        )
        return module

    def compile_inference(graph_module: torch.fx.GraphModule, _: list[Any]) -> Callable:
        compiled = make(graph_module, compat.static_inputs(), options)

        def call(args: list[Any]) -> Any:
            made = compiled(args)
            args.clear()
            return made

        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    compiler = compat.aot_autograd(
        fw_compiler=compile_inference,
        inference_compiler=compile_inference,
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
    )
    with compat.composites_kept(kept_composites()):
        return compiler(module, inputs)
