"""Scaled dot product attention, in the forms in which it arrives: as composed, or as the backend that PyTorch chose."""

from __future__ import annotations

from typing import Any

import torch

from ...errors import Unsupported
from .products import LINEAR
from .rows import aten, packet, row

Node = torch.fx.Node


def _heads_and_tokens(lowering: Any, node: Node) -> tuple[Any, str]:
    """An operand of rank 4 and its layout: where a permutation of tokens and heads is in front, what it permutes."""
    args: Any = node.args
    swaps = node.target is aten.transpose.int and {axis % 4 for axis in args[1:]} == {1, 2}
    swaps = swaps or (node.target is aten.permute.default and list(args[1]) == [0, 2, 1, 3])
    if swaps and node.args[0] in lowering.values and node not in lowering.known:
        return lowering(node.args[0]), "bshd"
    return lowering(node), "bhsd"


def _batched(lowering: Any, value: Any) -> Any:
    """[heads, tokens, elements] and deeper batches as rank 4; without heads, one."""
    shape = list(lowering.dims(value))
    batch = 1
    for size in shape[:-3]:
        batch *= size
    return lowering.reshape(value, [batch, *([1] * (3 - len(shape))), *shape[-3:]])


class Mask:
    """A mask of attention as operand of the library: booleans, or numbers that are added to scores."""

    def __init__(self, lowering: Any, node: Node | None, shape: tuple[int, ...]):
        self.lowering, self.node, self.shape = lowering, node, shape
        self.is_bool = node is not None and lowering.dtype(node) == torch.bool
        self.is_causal = False
        if node is not None and lowering.is_known(node):
            self._simplify(lowering.known[node])

    def _simplify(self, known: torch.Tensor) -> None:
        """A known mask that hides nothing is none, one that is lower triangular is `causal`."""
        lowest = torch.finfo(known.dtype).min if known.is_floating_point() else None
        seen = known if self.is_bool else known == 0
        hidden = ~seen if self.is_bool else known <= lowest
        if bool(seen.all()):
            self.node = None
        elif known.shape[-2:] == self.shape[-2:] and known.shape[-1] == known.shape[-2] and bool((seen | hidden).all()):
            triangle = torch.ones(known.shape[-2:], dtype=torch.bool, device=known.device).tril()
            if bool((seen == triangle).all()):
                self.node, self.is_causal = None, True

    def value(self, dtype: torch.dtype) -> Any:
        """Of rank 4, each dimension 1 or that of the scores."""
        assert self.node is not None
        shape = self.lowering.shape(self.node)
        value = self.lowering(self.node)
        if len(shape) > 4:
            value = _batched(self.lowering, self.lowering.expand(value, [*self.shape[:-2], *shape[-2:]]))
        else:
            value = self.lowering.reshape(value, [1] * (4 - len(shape)) + list(shape))
        return value if self.is_bool else self.lowering.cast(value, dtype)

    def may_hide_all(self) -> bool:
        """Whether a query may see no key, for which PyTorch gives 0."""
        if self.node is None:
            return False
        if not self.lowering.is_known(self.node):
            return True
        known = self.lowering.known[self.node]
        return not bool((known if self.is_bool else known != float("-inf")).any(-1).all())

    def rows(self, value: Any) -> Any:
        """[B?, H?, S?, 1]: whether a query sees a key."""
        op = self.lowering.op
        if not self.is_bool:
            value = op("logical_not", op("is_inf", value, detect_positive=0.0))
        return op("reduce_max", value, axes=[3], keepdims=True)


def attention(lowering: Any, q: Node, k: Node, v: Node, mask: Node | None, causal: bool, scale: float | None) -> Any:
    dtype = lowering.dtype(q)
    if dtype not in LINEAR or lowering.dtype(k) != dtype or lowering.dtype(v) != dtype:
        raise Unsupported(f"attention of {dtype}")
    rank = lowering.rank(q)
    queries, keys = lowering.shape(q)[-2], lowering.shape(k)[-2]
    if not lowering.fake(q).numel() or not keys or not lowering.shape(v)[-1]:
        raise Unsupported("attention of no elements")
    if rank == 4 and lowering.rank(k) == lowering.rank(v) == 4:
        operands = [_heads_and_tokens(lowering, node) for node in (q, k, v)]
    else:
        lead = torch.broadcast_shapes(*(lowering.shape(node)[:-2] for node in (q, k, v)))
        wide = [lowering.expand(lowering(node), [*lead, *lowering.shape(node)[-2:]]) for node in (q, k, v)]
        operands = [(_batched(lowering, value), "bhsd") for value in wide]
    batches = {lowering.dims(value)[0] for value, _ in operands}
    if len(batches) > 1:
        raise Unsupported("attention whose operands differ in their batch")
    given = Mask(lowering, mask, (*lowering.shape(q)[:-1], keys))
    triangle = None
    if causal and queries != keys:
        # PyTorch lines up the first query with the first key, the library the last with the last.
        triangle = lowering.constant(torch.ones(1, 1, queries, keys, dtype=torch.bool).tril(), "causal")
        causal = False
    layouts = dict(zip(("q_layout", "k_layout", "v_layout"), (layout for _, layout in operands)))
    inputs, rows = [value for value, _ in operands], None
    if given.node is not None or triangle is not None:
        value = triangle if given.node is None else given.value(dtype)
        rows = given.rows(value) if given.may_hide_all() else None
        if given.node is not None and triangle is not None:
            raise Unsupported("attention with a mask and is_causal")
        inputs += [None, None, None, None, *([None] if given.node is None or given.is_bool else []), value]
    of = {"causal": bool(causal or given.is_causal), "scale": float(scale or 0), "o_layout": "bhsd", **layouts}
    if scale == 0:
        raise Unsupported("attention with scale 0")
    zeroes = rows is not None and lowering.has("flash_attention", "empty_rows")
    if zeroes:
        of["empty_rows"] = "zero"
    made = lowering.op("flash_attention", *inputs, **of)
    if rows is not None and not zeroes:
        made = lowering.op("where", rows, made, lowering.number(0, dtype))
    return lowering.reshape(made, (*lowering.shape(q)[:-1], lowering.shape(v)[-1])) if rank != 4 else made


@row(aten.scaled_dot_product_attention.default)
def scaled_dot_product_attention(
    lowering, node, q, k, v, mask=None, dropout=0.0, causal=False, *, scale=None, enable_gqa=False
):
    _without_dropout(dropout)
    return attention(lowering, q, k, v, mask, causal, scale)


def _without_dropout(dropout: float) -> None:
    if dropout:
        raise Unsupported("random numbers")


def _backend(lowering: Any, node: Node, made: Any) -> list[Any]:
    """The results of a backend form, of which only the first is computed."""
    if lowering.used(node) - {0}:
        raise Unsupported("other results of attention than the first")
    return [made] + [None] * (len(node.meta["val"]) - 1)


if packet("_scaled_dot_product_flash_attention_for_cpu") is not None:

    @row(aten._scaled_dot_product_flash_attention_for_cpu.default)
    def flash_on_cpu(lowering, node, q, k, v, dropout=0.0, causal=False, *, attn_mask=None, scale=None):
        _without_dropout(dropout)
        return _backend(lowering, node, attention(lowering, q, k, v, attn_mask, causal, scale))


@row(aten._scaled_dot_product_flash_attention.default)
def flash(lowering, node, q, k, v, dropout=0.0, causal=False, debug=False, *, scale=None):
    _without_dropout(dropout)
    return _backend(lowering, node, attention(lowering, q, k, v, None, causal, scale))


@row(aten._scaled_dot_product_efficient_attention.default)
def efficient(lowering, node, q, k, v, mask, log_sum, dropout=0.0, causal=False, *, scale=None):
    _without_dropout(dropout)
    return _backend(lowering, node, attention(lowering, q, k, v, mask, causal, scale))


@row(aten._scaled_dot_product_cudnn_attention.default)
def cudnn(lowering, node, q, k, v, mask, log_sum, dropout=0.0, causal=False, debug=False, *, scale=None):
    _without_dropout(dropout)
    return _backend(lowering, node, attention(lowering, q, k, v, mask, causal, scale))


@row(aten._scaled_dot_product_attention_math.default)
def math(
    lowering, node, q, k, v, mask=None, dropout=0.0, causal=False, dropout_mask=None, *, scale=None, enable_gqa=False
):
    _without_dropout(dropout)
    return _backend(lowering, node, attention(lowering, q, k, v, mask, causal, scale))
