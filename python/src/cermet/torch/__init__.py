"""Cermet under PyTorch.

import cermet.torch                                # torch.ops.cermet.rms_norm(x, weight, eps=1e-5) ..
torch.compile(model, backend="cermet")             # needs no import
cermet.torch.explain(model, *inputs)               # what runs in Cermet, and what stays in PyTorch and why
"""

from . import operators as operators
from . import scope as scope
from .explain import Explanation as Explanation
from .explain import explain as explain
