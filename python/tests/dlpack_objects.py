"""Objects with `__dlpack__` as other frameworks have them, made with ctypes."""

import ctypes

import numpy

_DLTENSOR = [
    ("data", ctypes.c_void_p), ("device_type", ctypes.c_int), ("device_id", ctypes.c_int), ("ndim", ctypes.c_int), ("code", ctypes.c_uint8),
    ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
]  # fmt: skip


class DLTensor(ctypes.Structure):
    _fields_ = _DLTENSOR


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", _DELETER)]


_DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # the capsule has no references left
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR]


class Foreign:
    """f32 memory of a NumPy array, said to be on `device`, by the protocol of 2021: no max_version. Counts how often its memory was given back."""

    def __init__(self, array: numpy.ndarray, device=(1, 0), version=None):
        self.array, self.device_pair, self.freed, self.streams, self.version = array, device, 0, [], version
        self._kept = []

    def __dlpack_device__(self):
        return self.device_pair

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        shape = (ctypes.c_int64 * self.array.ndim)(*self.array.shape)
        strides = (ctypes.c_int64 * self.array.ndim)(*(s // self.array.itemsize for s in self.array.strides))
        addresses = ctypes.addressof(shape), ctypes.addressof(strides)
        tensor = DLTensor(self.array.ctypes.data, *self.device_pair, self.array.ndim, 2, 32, 1, *addresses, 0)
        managed = Managed(tensor, None, _DELETER())

        def destroy(capsule):
            self.freed += 1

        destructor = _DESTRUCTOR(destroy)
        self._kept.append((shape, strides, managed, destructor))
        return _new(ctypes.addressof(managed), b"dltensor", destructor)
