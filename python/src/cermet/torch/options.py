"""Options of torch.compile(.., backend="cermet", options={..}) and of cermet.compile()."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..errors import InvalidArgument

_CHOICES = {
    "fallback": ("warn", "error", "allow"),
    "rounding": ("fast", "strict"),
    "weights": ("constants", "inputs", "frozen"),
    "fusion": ("full", "published", "pattern", "none"),
}


@dataclasses.dataclass(frozen=True)
class Options:
    """fallback: what happens where operators stay in PyTorch. check: how many first runs of each session are compared
    with PyTorch. rounding: "strict" rounds after
    every operator, as eager mode does. nonfinite: "exact" keeps a NaN of an image where it is. weights: "constants" are
    packed, and packed again when they change;
    "frozen" are never compared; "inputs" are read in every run. threads: 0 is as many as PyTorch has.
    """

    fallback: str = "warn"
    check: int = 0
    rounding: str = "fast"
    weights: str = "constants"
    fusion: str = "full"
    threads: int = 0

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise InvalidArgument(
                    f"option {name}: expected {', '.join(choices[:-1])} or {choices[-1]}, found {getattr(self, name)!r}"
                )
        for name in ("check", "threads"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InvalidArgument(f"option {name}: expected a number of at least 0, found {value!r}")


def options_of(given: Mapping[str, Any] | None) -> Options:
    """Options from what the user gave. Raises InvalidArgument for a name that is none."""
    names = [field.name for field in dataclasses.fields(Options)]
    for name in given or {}:
        if name not in names:
            raise InvalidArgument(f"option {name}: expected one of {', '.join(names)}")
    return Options(**(given or {}))
