"""Types for annotations."""

from __future__ import annotations

from typing import Any, Protocol


class Tensor(Protocol):
    """What operators take: numpy.ndarray, torch.Tensor or another with DLPack's methods."""

    def __dlpack__(self, *args: Any, **words: Any) -> Any: ...
    def __dlpack_device__(self) -> Any: ...


#: An element type: "bf16", torch.bfloat16, a NumPy dtype or its name.
DType = Any
