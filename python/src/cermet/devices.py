"""Devices: a handle of the library for each, made at the first use and kept."""

from __future__ import annotations

import threading
from collections.abc import Callable

from . import _native

_handles: dict[tuple[str, int], Handle] = {}
_lock = threading.Lock()


class Handle:
    """A device and its threads.

    device: "cpu", "cuda", "cuda:1" (the second GPU), or "null" and "null:sm_90", which check, select and compile as a CPU or such a GPU does and compute
    nothing. threads: 0 is one for each core.
    """

    def __init__(self, device: str = "cpu", threads: int = 0):
        self.native = _native.create_handle(device, threads)
        self.spec = device
        self.description, self.threads, self.computes = self.native.describe()
        #: Type and index of its memory, as DLPack counts them.
        self.memory = (2, int(device[5:]) if device.startswith("cuda:") else 0) if device.startswith(("cuda", "null:")) else (1, 0)

    def set_allocator(self, allocate: Callable[[int], int | None] | None, release: Callable[[int, int], None] | None) -> None:
        """Memory for graphs from the caller: allocate(bytes) returns an address on the device, aligned to 64 bytes, or None; release(address, bytes) gets it
        back when no run uses it. None for both: the library's own. Holds for sessions and weights that are made afterwards.
        """
        if (allocate is None) != (release is None):
            raise TypeError("set_allocator: expected two functions, or None for both")
        self.native.set_allocator(allocate, release)

    def __repr__(self) -> str:
        return f"<cermet.Handle {self.description}>"


def handle_for(device: object = "cpu", threads: int = 0) -> Handle:
    """The handle of a device, which is shared: a Handle itself, a name, or a torch.device."""
    if isinstance(device, Handle):
        return device
    key = (str(device), threads)
    with _lock:
        if key not in _handles:
            _handles[key] = Handle(*key)
        return _handles[key]


def device_of(tensors: object) -> str:
    """The device of the first tensor: "cpu" or "cuda:0"."""
    for tensor in tensors:
        place = getattr(tensor, "__dlpack_device__", None)
        if place is None:
            continue
        kind, index = place()
        if kind == 2:
            return f"cuda:{index}"
        break
    return "cpu"
