"""Operators that move bytes, compiled by Inductor. Rows: "memory NAME TOKENS"."""
import torch
import torch.nn.functional as F
from torch_timer import random

EPS = 1e-6


def normalized(s, weight):
    f = s.float()
    return f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + EPS) * weight.float()


def quantized(v):
    scale = v.abs().amax(-1, keepdim=True) / 127
    return torch.round(v / scale).to(torch.int8), scale


def gated(x):
    gate, up = x.float().chunk(2, -1)
    return F.silu(gate) * up


def add_rms_norm(x, residual, weight):
    s = x + residual
    return normalized(s, weight).to(x.dtype), s


def rms_norm_quant(x, weight):
    return quantized(normalized(x, weight))


def add_rms_norm_quant(x, residual, weight):
    s = x + residual
    return (*quantized(normalized(s, weight)), s)


def silu_and_mul(x):
    return gated(x).to(x.dtype)


def silu_and_mul_quant(x):
    return quantized(gated(x))


def dynamic_quant(x):
    return quantized(x.float())


MEMORY_BOUND = {  # name: function, widths of its [T, width] operands, width of its weight
    'add_rms_norm': (add_rms_norm, (4096, 4096), 4096),
    'rms_norm_quant': (rms_norm_quant, (4096,), 4096),
    'add_rms_norm_quant': (add_rms_norm_quant, (4096, 4096), 4096),
    'silu_and_mul': (silu_and_mul, (28672,), 0),
    'silu_and_mul_quant': (silu_and_mul_quant, (28672,), 0),
    'dynamic_quant:4096': (dynamic_quant, (4096,), 0),
    'dynamic_quant:14336': (dynamic_quant, (14336,), 0),
}


def memory(timer, name, tokens):
    function, widths, weight_width = MEMORY_BOUND[name]
    tokens = int(tokens)
    compiled = timer.compiled(function)
    sets = timer.sets_for(2 * tokens * sum(widths))
    operands = [random(sets, tokens, width) for width in widths] + ([random(sets, weight_width)] if weight_width else [])
    unbound = list(zip(*[operand.unbind(0) for operand in operands]))
    return timer.best([('Inductor', lambda i: compiled(*unbound[i]))], sets)
