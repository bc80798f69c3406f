"""Super-kernel regions and names of scopes in models: `with cermet.super_kernel("sp1", "stream-fusion=1"):` inside
forward().

In eager mode a scope does nothing. While torch.compile or torch.export trace, it puts a marker before and behind the
operators inside; markers take no tensor and
are kept by PyTorch because they have a side effect. The importer removes them.
"""

from __future__ import annotations

import functools
import os
import re
import traceback
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..errors import InvalidArgument
from ..graph import Graph

_library = torch.library.Library("cermet", "FRAGMENT")


def _define_markers() -> None:
    for signature in (
        "super_kernel_begin(str? name, str options) -> ()",
        "super_kernel_end() -> ()",
        "scope_begin(str name) -> ()",
        "scope_end() -> ()",
    ):
        name = signature.partition("(")[0]
        _library.define(signature, tags=(torch.Tag.pt2_compliant_tag,))
        _library.impl(name, lambda *_: None, "CompositeExplicitAutograd")
        torch.fx.node.has_side_effect(getattr(torch.ops.cermet, name).default)


_define_markers()
_SUPER_BEGIN = torch.ops.cermet.super_kernel_begin.default
_SUPER_END = torch.ops.cermet.super_kernel_end.default
_SCOPE_BEGIN = torch.ops.cermet.scope_begin.default
_SCOPE_END = torch.ops.cermet.scope_end.default
_BEGINS = {_SUPER_BEGIN: _SUPER_END, _SCOPE_BEGIN: _SCOPE_END}
_MARKERS = (*_BEGINS, *_BEGINS.values())


@functools.lru_cache(maxsize=256)
def _check_options(name: str | None, options: str) -> None:
    """Raises what the library says about a name and options."""
    with Graph("options") as graph, graph.super_kernel(name, options):
        pass


class super_kernel:  # noqa: N801  (a context manager and decorator, named as one)
    """The operators inside become one launch where the device can, as with cermet.Graph.super_kernel(). A name may be
    entered again; None keeps operators out of every
    region. Also a decorator of functions. Raises InvalidArgument for options that the library does not have.
    """

    def __init__(self, name: str | None = None, options: str = ""):
        if not torch.compiler.is_compiling():
            _check_options(name, options)
        self.name, self.options = name, options

    def __enter__(self) -> None:
        if torch.compiler.is_compiling():
            torch.ops.cermet.super_kernel_begin(self.name, self.options)

    def __exit__(self, *_: object) -> None:
        if torch.compiler.is_compiling():
            torch.ops.cermet.super_kernel_end()

    def __call__(self, function: Callable) -> Callable:
        return _decorated(self, function)


class scope:  # noqa: N801
    """Names the operators inside in messages and reports: `with cermet.scope("router"):`. Also a decorator."""

    def __init__(self, name: str):
        self.name = name

    def __enter__(self) -> None:
        if torch.compiler.is_compiling():
            torch.ops.cermet.scope_begin(self.name)

    def __exit__(self, *_: object) -> None:
        if torch.compiler.is_compiling():
            torch.ops.cermet.scope_end()

    def __call__(self, function: Callable) -> Callable:
        return _decorated(self, function)


def _decorated(manager: Any, function: Callable) -> Callable:
    @functools.wraps(function)
    def inside(*args: Any, **keywords: Any) -> Any:
        with manager:
            return function(*args, **keywords)

    return inside


def source_line(node: torch.fx.Node) -> str:
    """ "model.py:12" of the user's line that made a node, or nothing."""
    found = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    users = [(file, line) for file, line in found if os.path.dirname(file) != os.path.dirname(__file__)]
    return f"{os.path.basename(users[-1][0])}:{users[-1][1]}" if users else ""


def _calling_line() -> str:
    """Where the innermost frame is that is neither PyTorch's nor this package's: of a graph that Dynamo made of a
    marker's own function, which knows no other.
    """
    own = (
        os.path.dirname(torch.__file__),
        os.path.dirname(os.path.dirname(__file__)),
        os.path.dirname(os.__file__) + os.sep,
    )
    frames = [frame for frame in traceback.extract_stack() if not frame.filename.startswith((*own, "<"))]
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""


def region_of(node: torch.fx.Node) -> tuple[str | None, str] | None:
    """The super-kernel that a node is in: (name, options)."""
    return node.meta.get("cermet_region")


def scope_of(node: torch.fx.Node) -> str:
    """The node's name for reports: the module that it is in, and the scopes inside it."""
    modules = node.meta.get("nn_module_stack") or {}
    path = next(reversed(modules.values()))[0] if modules else ""
    path = re.sub(r"\['?(\w+)'?\]", r".\1", path.removeprefix("L['self'].").replace("_modules", "").replace("..", "."))
    names = [part for part in (re.sub(r"[^\w.]", "", path).strip("."), *node.meta.get("cermet_scopes", ())) if part]
    return ".".join(names)


def mark_nodes(graph: torch.fx.Graph) -> None:
    """Notes regions and scopes in the nodes between markers, and removes the markers. Where a graph break has parted
    markers, raises InvalidArgument if a region's
    options say strict-scope-check=abort, and warns otherwise."""
    opened: list[torch.fx.Node] = []
    for node in list(graph.nodes):
        if node.target in _MARKERS:
            if node.target in _BEGINS:
                opened.append(node)
            elif opened and _BEGINS[opened[-1].target] is node.target:  # type: ignore[index]
                opened.pop()  # an end alone belongs to a begin in another graph, which is reported there
            continue
        regions = [begin.args for begin in opened if begin.target is _SUPER_BEGIN]
        if regions:
            node.meta["cermet_region"] = (regions[-1][0], regions[-1][1])
        scopes = tuple(begin.args[0] for begin in opened if begin.target is _SCOPE_BEGIN)
        if scopes:
            node.meta["cermet_scopes"] = scopes
    for begin in opened:
        _report_unbalanced(begin)
    for node in list(graph.nodes):
        if node.target in _MARKERS:
            graph.erase_node(node)


def refuse_broken_regions(reasons: Mapping[torch.fx.Node, str]) -> None:
    """Raises InvalidArgument where an operator of a region with strict-scope-check=abort stays in PyTorch."""
    for node, reason in reasons.items():
        region = region_of(node)
        if region is not None and region[0] is not None and "strict-scope-check=abort" in region[1]:
            line = source_line(node)
            raise InvalidArgument(
                f"super_kernel {region[0]!r}: expected all its operators in a session, "
                f"found {node.target} in PyTorch ({reason})"
                f"{f' at {line}' if line else ''}"
            )


def _report_unbalanced(begin: torch.fx.Node) -> None:
    named = f"super_kernel {begin.args[0]!r}" if begin.target is _SUPER_BEGIN else f"scope {begin.args[0]!r}"
    line = source_line(begin) or _calling_line()
    message = (
        f"{named}: expected its begin and end in one graph, found a graph break inside{f' at {line}' if line else ''}"
    )
    if begin.target is _SUPER_BEGIN and "strict-scope-check=abort" in str(begin.args[1]):
        raise InvalidArgument(message)
    warnings.warn(message, stacklevel=2)
