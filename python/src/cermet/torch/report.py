"""What became of a graph: operators in sessions, and those that stay in PyTorch with the reason and the user's line."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import torch

from .partition import STATE, Partition, is_host
from .scope import scope_of, source_line
from .segment import Segment

_LISTED = 8


@dataclasses.dataclass(frozen=True)
class Refusal:
    """An operator that stays in PyTorch."""

    operator: str
    reason: str
    line: str  #: "model.py:12", or nothing
    module: str  #: "layers.0.attention"

    def __str__(self) -> str:
        return f"{self.operator} ({self.reason}){f' at {self.line}' if self.line else ''}"


@dataclasses.dataclass(frozen=True)
class Report:
    """operators: of the graph, without sizes and constants. sessions: each has `steps` and `explain()`."""

    operators: int
    refusals: tuple[Refusal, ...]
    sessions: tuple[Any, ...]

    @property
    def in_sessions(self) -> int:
        return self.operators - len(self.refusals)

    @property
    def launches(self) -> int:
        return sum(session.steps for session in self.sessions)

    def summary(self) -> str:
        """One line."""
        count = len(self.sessions)
        text = f"{self.in_sessions:,} of {self.operators:,} operators in {count} session{'' if count == 1 else 's'}"
        if not self.refusals:
            return text
        grouped = collections.Counter(str(refusal) for refusal in self.refusals)
        rows = [f"{n} x {row}" if n > 1 else row for row, n in grouped.most_common(_LISTED)]
        more = "; .." if len(grouped) > _LISTED else ""
        stay = "stays" if len(self.refusals) == 1 else "stay"
        return f"{text}; {len(self.refusals)} {stay} in PyTorch: {'; '.join(rows)}{more}"

    def __str__(self) -> str:
        parts = [self.summary()]
        for i, session in enumerate(self.sessions):
            parts.append(f"session {i}: {session.steps} launches\n{session.explain()}")
        return "\n".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """The same as values for JSON."""
        return {
            "operators": self.operators,
            "in_sessions": self.in_sessions,
            "refused": [dataclasses.asdict(refusal) for refusal in self.refusals],
            "sessions": [{"launches": session.steps, "arena_bytes": session.arena_bytes} for session in self.sessions],
        }


def name_of(node: torch.fx.Node) -> str:
    """ "aten.nonzero"."""
    return node.target.name().replace("::", ".") if hasattr(node.target, "name") else str(node.target)


def describe(node: torch.fx.Node) -> str:
    """A node as messages name it: operator, module and the user's line."""
    line, module = source_line(node), scope_of(node)
    return f"{name_of(node)}{f' of {module}' if module else ''}{f' at {line}' if line else ''}"


def report_of(graph: torch.fx.Graph, made: Partition, segments: list[Segment]) -> Report:
    counted = [
        node
        for node in graph.nodes
        if node.op == "call_function" and not is_host(node) and node not in made.known and not _selects(node)
    ]
    rows = []
    for node in counted:
        reason = made.reasons.get(node)
        if reason is not None and reason != STATE:
            rows.append(Refusal(name_of(node), reason, source_line(node), scope_of(node)))
    counted = [node for node in counted if made.reasons.get(node) != STATE]
    return Report(len(counted), tuple(rows), tuple(segment.session for segment in segments))


def _selects(node: torch.fx.Node) -> bool:
    """Whether the node only names a result of another."""
    return not isinstance(node.target, torch._ops.OpOverload)
