"""Convolutions of PyTorch, float16 with channels last and cuDNN's search on: "conv BATCH C SIZE M KERNEL STRIDE GROUPS"."""
import torch
import torch.nn.functional as F
from torch_timer import random


def conv(timer, *sizes):
    batch, channels, size, outputs, kernel, stride, groups = (int(n) for n in sizes)
    places = (size + 2 * (kernel // 2) - kernel) // stride + 1
    sets = timer.sets_for(2 * (batch * (channels * size**2 + outputs * places**2) + outputs * channels // groups * kernel**2))
    last = lambda t: t.to(memory_format=torch.channels_last)
    x = [last(random(batch, channels, size, size, dtype=torch.float16)) for _ in range(sets)]
    weight = [last(random(outputs, channels // groups, kernel, kernel, dtype=torch.float16)) for _ in range(sets)]
    bias = random(sets, outputs, dtype=torch.float16)
    torch.backends.cudnn.benchmark = True
    return timer.best([('cuDNN', lambda i: F.conv2d(x[i], weight[i], bias[i], stride, kernel // 2, groups=groups))], sets)
