"""PyTorch's operator tests (OpInfo) through the importer: every sample of an entry as a graph of its own.

An entry is whole (every sample runs in one session and is right), part (some samples are refused), refused (all are) or
wrong. opinfo/TYPE.txt has the state
of each entry; where it is refused, with the first reason. To write them again:

    CERMET_APPROVE=1 CERMET_TEST_OPINFO=1 python -m pytest python/tests/test_torch_opinfo.py
"""

from __future__ import annotations

import re
import signal
import warnings
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

import cermet
from cermet.torch import compat
from cermet.torch.capture import decompositions, kept_composites
from cermet.torch.compiled import CompiledGraph
from cermet.torch.options import Options

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "i64": torch.int64, "bool": torch.bool}

#: Operators whose results are whatever the memory held, or that draw numbers in ways that their samples do not show.
UNDEFINED = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "empty_permuted")

#: Second results name one of several equal elements.
PLACES = ("topk", "kthvalue", "sort", "median", "nanmedian", "argsort", "msort", "mode")

#: Samples of an entry that are tried, and seconds for each.
SAMPLES, SECONDS = 8, 30

TOLERANCES = {"f32": (2e-4, 1e-4), "bf16": (2e-2, 2e-2), "f16": (4e-3, 4e-3), "i64": (0, 0), "bool": (0, 0)}


def name_of(entry: Any) -> str:
    return entry.name + (f".{entry.variant_test_name}" if entry.variant_test_name else "")


def entries(dtype: str) -> list[Any]:
    return [entry for entry in op_db if DTYPES[dtype] in entry.dtypes]


class TimeOut(Exception):
    pass


def _alarm(*_: object) -> None:
    raise TimeOut


def traced(entry: Any, sample: Any) -> tuple[Any, list[torch.Tensor], list[torch.Tensor], Any] | None:
    """(graph, operands, expected results, the function) of a sample; None where PyTorch does not trace it, or its
    results are no tensors.
    """
    flat, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, of in enumerate(flat) if isinstance(of, torch.Tensor)]
    operands = [flat[i].detach().clone() for i in places]

    def call(*tensors: torch.Tensor) -> Any:
        given = list(flat)
        for i, tensor in zip(places, tensors):
            given[i] = tensor
        first, args, keywords = pytree.tree_unflatten(given, spec)
        return entry.op(first, *args, **keywords)

    expected = pytree.tree_leaves(call(*[operand.clone() for operand in operands]))
    if not expected or not all(isinstance(result, torch.Tensor) for result in expected):
        return None
    function = torch.func.functionalize(call)
    with compat.composites_kept(kept_composites()), enable_python_dispatcher():
        graph = make_fx(function, decomposition_table=decompositions(), tracing_mode="fake")(
            *[operand.clone() for operand in operands]
        )
    return graph, operands, expected, call


def agree(found: torch.Tensor, expected: torch.Tensor, dtype: str) -> bool:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    if not expected.dtype.is_floating_point:
        return torch.equal(found, expected)
    relative, absolute = TOLERANCES[dtype] if dtype in ("bf16", "f16") else TOLERANCES["f32"]
    return torch.allclose(found.double(), expected.double(), rtol=relative, atol=absolute, equal_nan=True)


def state_of_sample(entry: Any, sample: Any, dtype: str) -> tuple[str, str]:
    """("whole", "refused", "wrong", "crash" or "none", its reason)."""
    try:
        made = traced(entry, sample)
    except TimeOut:
        raise
    except Exception:
        return "none", ""
    if made is None:
        return "none", ""
    graph, operands, expected, call = made
    try:
        results = CompiledGraph(graph, (), Options(fallback="error", rounding="strict", threads=1))(operands)
    except (cermet.Error, NotImplementedError) as error:
        return "refused", str(error)
    except TimeOut:
        raise
    except Exception as error:
        return "crash", f"{type(error).__name__}: {error}"
    found = [result for result in pytree.tree_leaves(results) if isinstance(result, torch.Tensor)]
    if entry.name in UNDEFINED:
        same = [(one.shape, one.dtype) for one in found] == [(one.shape, one.dtype) for one in expected]
    elif entry.name == "argsort" and len(found) == 1 and operands[0].dim():
        dim = sample.kwargs.get("dim", sample.args[0] if sample.args else -1)
        same = torch.equal(*(operands[0].gather(dim, places) for places in (found[0], expected[0])))
    elif entry.name in PLACES and len(found) == 2:
        same = agree(found[0], expected[0], dtype) and found[1].shape == expected[1].shape
    else:
        same = len(found) == len(expected) and all(agree(one, other, dtype) for one, other in zip(found, expected))
    if not same and dtype in ("bf16", "f16") and len(found) == len(expected):
        same = as_near(call, operands, found, expected)
    return ("whole", "") if same else ("wrong", "")


def as_near(call: Any, operands: list[torch.Tensor], found: list[torch.Tensor], expected: list[torch.Tensor]) -> bool:
    """Whether results of 16 bits are as near to those of float32 operands as PyTorch's are: sums of rounded terms may
    cancel.
    """
    try:
        exact = pytree.tree_leaves(
            call(*[operand.float() if operand.is_floating_point() else operand for operand in operands])
        )
    except Exception:
        return False
    for one, other, reference in zip(found, expected, exact):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        mine, theirs = ((of.double() - reference.double()).abs().nan_to_num().max() for of in (one, other))
        if mine > 1.5 * theirs:
            return False
    return True


def reason_of(message: str) -> str:
    """The first operator that stays in PyTorch and why, without sizes."""
    found = re.search(r"in PyTorch: (?:\d+ x )?([^;]*)", message)
    text = found[1] if found else message
    return re.sub(r" at [\w.]+:\d+$", "", re.sub(r"\s+", " ", text))[:160]


def state_of(entry: Any, dtype: str) -> tuple[str, str]:
    """An entry's state and the first reason for a refusal."""
    torch.manual_seed(0)
    states, reasons = set(), []
    signal.signal(signal.SIGALRM, _alarm)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            samples = [
                sample
                for _, sample in zip(range(SAMPLES), entry.sample_inputs("cpu", DTYPES[dtype], requires_grad=False))
            ]
        except Exception:
            return "none", ""
        for sample in samples:
            signal.alarm(SECONDS)
            try:
                state, message = state_of_sample(entry, sample, dtype)
            except TimeOut:
                state, message = "refused", "takes too long"
            finally:
                signal.alarm(0)
            states.add(state)
            if message:
                reasons.append(reason_of(message))
    reason = reasons[0] if reasons else ""
    for state in ("crash", "wrong"):
        if state in states:
            return state, reason
    if "refused" in states:
        return ("part" if "whole" in states else "refused"), reason
    return ("whole" if "whole" in states else "none"), ""
