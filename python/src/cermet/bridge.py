"""What the native module asks of Python: exceptions, and what differs from one framework of tensors to another.

Frameworks are known by the module of a tensor's class, so that none is imported before its tensors are there.
"""

from __future__ import annotations

import functools
import sys

from .errors import BY_STATUS, Error

#: Names of element types that NumPy has of its own; the others come from ml_dtypes.
_NUMPY = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bool": "bool",
    "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8",
}  # fmt: skip
_ML_DTYPES = {
    "bf16": "bfloat16", "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2", "f8_e4m3fnuz": "float8_e4m3fnuz",
    "f8_e5m2fnuz": "float8_e5m2fnuz", "f8_e8m0": "float8_e8m0fnu",
}  # fmt: skip
_TORCH = {**_NUMPY, **_ML_DTYPES}
_OWN_NAMES = {other: own for own, other in _TORCH.items()}


def error_of(status: int, message: str) -> Error:
    """The exception for a cermet_status."""
    return BY_STATUS[status](message)


def framework_of(tensor: object) -> str:
    """The package that a tensor's class, or a base of it, is from: "numpy", "torch", "cupy"."""
    return _framework_of_class(type(tensor))


@functools.lru_cache(maxsize=256)
def _framework_of_class(of: type) -> str:
    packages = [base.__module__.partition(".")[0] for base in of.__mro__]
    return next((package for package in packages if package in ("numpy", "torch")), packages[0])


def dtype_name(dtype: object) -> str:
    """The library's name of an element type of any framework: "bf16" of torch.bfloat16, of a NumPy dtype or of its name; other strings are left alone."""
    if isinstance(dtype, str):
        return _OWN_NAMES.get(dtype, dtype)
    name = str(dtype).removeprefix("torch.") if framework_of(dtype) == "torch" else _numpy_dtype(dtype).name
    if name not in _OWN_NAMES:
        raise TypeError(f"element type: expected one that Cermet knows, found {dtype!r}")
    return _OWN_NAMES[name]


def _numpy_dtype(dtype: object):
    import numpy

    return numpy.dtype(dtype)


@functools.cache
def numpy_dtype(name: str):
    """The NumPy dtype of the library's name."""
    if name in _NUMPY:
        return _numpy_dtype(_NUMPY[name])
    try:
        import ml_dtypes
    except ImportError:
        raise BY_STATUS[3](f"element type {name}: expected the package ml_dtypes, which NumPy needs for it, found it missing") from None
    return _numpy_dtype(getattr(ml_dtypes, _ML_DTYPES[name]))


@functools.cache
def torch_dtype(name: str):
    """The PyTorch dtype of the library's name."""
    import torch

    found = getattr(torch, _TORCH[name], None)
    if found is None:
        raise BY_STATUS[3](f"element type {name}: expected a PyTorch that has torch.{_TORCH[name]}, found {torch.__version__}")
    return found


def as_bits(tensor: object, is_input: bool):
    """(the tensor as unsigned integers, the library's name of its element type), or None where that is not why it cannot be exported. An input may be a copy:
    NumPy exports no strides that are no multiples of the element's size, and before 2.1 no read-only arrays."""
    framework = framework_of(tensor)
    if framework == "numpy" and is_input and tensor.dtype.isnative and tensor.dtype.name in _NUMPY.values():
        if not tensor.flags.writeable or any(stride % tensor.itemsize for stride in tensor.strides):
            return tensor.copy(), _OWN_NAMES[tensor.dtype.name]
    if framework == "numpy" and str(getattr(tensor, "dtype", "")) in _ML_DTYPES.values():
        return tensor.view(f"uint{8 * tensor.dtype.itemsize}"), _OWN_NAMES[str(tensor.dtype)]
    if framework == "torch" and str(tensor.dtype).startswith("torch.float8"):
        import torch

        return tensor.view(torch.uint8), dtype_name(tensor.dtype)
    return None


@functools.cache
def _numpy_types(name: str):
    """numpy.empty, the type that is exported, and that of the caller where it is another."""
    import numpy

    dtype = numpy_dtype(name)
    return (numpy.empty, dtype, None) if name in _NUMPY else (numpy.empty, numpy.dtype(f"uint{8 * dtype.itemsize}"), dtype)


def _numpy_empty(shape: tuple, name: str):
    empty, exported, dtype = _numpy_types(name)
    made = empty(shape, exported)
    return made, made if dtype is None else made.view(dtype)


def _torch_empty(shape: tuple, name: str, device: object):
    import torch

    dtype = torch_dtype(name)
    if name.startswith("f8_"):
        bits = torch.empty(shape, dtype=torch.uint8, device=device)
        return bits, bits.view(dtype)
    made = torch.empty(shape, dtype=dtype, device=device)
    return made, made


def empty_like(sample: object, shape: tuple, name: str, place: tuple[int, int]):
    """New memory on a device (DLPack's type and index), by the framework of `sample`: (tensor that exports it, tensor for the caller)."""
    framework = framework_of(sample)
    if framework == "torch":
        return _torch_empty(shape, name, "cpu" if place[0] == 1 else f"cuda:{place[1]}")
    if place[0] == 1:
        return _numpy_empty(shape, name)
    raise BY_STATUS[1](f"results: expected memory of the caller, given as out=, for tensors of {framework} on a GPU, found none")


def empty_in_order(sample: object, shape: tuple, name: str, place: tuple[int, int], order: tuple):
    """The same with the dimensions in this order in memory."""
    back = [order.index(axis) for axis in range(len(order))]
    made = empty_like(sample, tuple(shape[axis] for axis in order), name, place)
    return tuple(tensor.permute(back) if hasattr(tensor, "permute") else tensor.transpose(back) for tensor in made)


def finish(tensors: tuple) -> None:
    """Waits until PyTorch has written those tensors that are on a GPU: for what the library reads on a stream of its own."""
    for tensor in tensors:
        if framework_of(tensor) == "torch" and tensor.is_cuda:
            sys.modules["torch"].cuda.current_stream(tensor.device).synchronize()


def gradients_are_recorded() -> bool:
    """Whether PyTorch records gradients now."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.is_grad_enabled()
