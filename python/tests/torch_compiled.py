"""torch.compile with Cermet as backend, with its graphs at hand."""

import torch

from cermet.torch.backend import compile_with
from cermet.torch.compiled import CompiledGraph
from cermet.torch.options import options_of


def compiled(model, made=None, dynamic=None, **options):
    """The model compiled; its graphs are appended to the list `made`."""

    def backend(module, inputs):
        def make(*args):
            graph = CompiledGraph(*args)
            if made is not None:
                made.append(graph)
            return graph

        return compile_with(module, inputs, options_of(options), make)

    return torch.compile(model, backend=backend, dynamic=dynamic)
