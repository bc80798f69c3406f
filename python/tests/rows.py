"""What rms_norm computes."""

import numpy as np


def normalized(x, weight, eps=1e-6):
    x = x.astype(np.float64)
    return (x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight).astype(np.float32)
