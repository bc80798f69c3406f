"""Operands as kernels read them: numbers become tensors, float64 the type that is computed in, and memory that kernels cannot read a copy.

The rules are in docs/guide/python.md. The native module asks for this where a call has such an operand; other calls pay nothing for it.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Sequence
from typing import Any

from .bridge import dtype_name, framework_of, numpy_dtype, torch_dtype
from .errors import Error, InvalidArgument
from .schemas import Schema, schema_of

_REAL = ("f32", "f16", "bf16")
_INTEGERS = {f"{sign}{bits}": (-(2 ** (bits - 1)) if sign == "i" else 0, 2 ** (bits - (sign == "i")) - 1) for sign in "iu" for bits in (8, 16, 32, 64)}


def is_tensor(value: object) -> bool:
    return hasattr(value, "__dlpack__")


def inputs_of(name: str, inputs: Any) -> tuple[Any, ...]:
    """The operands that get_op() was given: a tuple or list of them, or one tensor by itself."""
    if isinstance(inputs, (tuple, list)):
        is_one = len(inputs) == 2 and isinstance(inputs[0], str) and isinstance(inputs[1], (tuple, list))
        return (tuple(inputs),) if is_one else tuple(inputs)
    if is_tensor(inputs) or hasattr(inputs, "value"):  # a weight
        return (inputs,)
    names = ", ".join(operand.name for operand in schema_of(name).inputs)
    raise TypeError(f"{name}: inputs: expected its operands as a tuple, ({names},), found {type(inputs).__name__}")


def _type_name(operand: Any) -> str | None:
    """The library's name of an operand's element type; None for what is no tensor, or has a type that the library has not."""
    if isinstance(operand, tuple):
        return operand[0] if operand and isinstance(operand[0], str) else None
    try:
        return None if operand is None else dtype_name(operand.dtype)
    except (AttributeError, TypeError):
        return None


def _place(schema: Schema, i: int) -> str:
    return f"{schema.name}: operand {i} ({schema.operand(i).name})"


def converted(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands of a call with numbers as tensors and float64 as what the operator computes in. Raises TypeError naming an operand that is no tensor, and
    InvalidArgument naming a number that the type has not."""
    schema = schema_of(name)
    made = list(args)
    numbers = []
    for i, operand in enumerate(args):
        if framework_of(operand) == "numpy" and not is_tensor(operand):  # a NumPy scalar has a type of its own
            import numpy

            made[i] = numpy.asarray(operand)
        elif isinstance(operand, (int, float)) and schema.takes_numbers:
            numbers.append(i)
        elif not (operand is None or isinstance(operand, tuple) or is_tensor(operand) or hasattr(operand, "dtype")):
            raise TypeError(_not_a_tensor(schema, i, operand))
    _convert_float64(schema, made)
    return _with_numbers(schema, made, numbers) if numbers else tuple(made)


def _not_a_tensor(schema: Schema, i: int, operand: object) -> str:
    hint = "; np.asarray makes one of it" if isinstance(operand, (list, int, float)) else ""
    return f"{_place(schema, i)}: expected a tensor (NumPy, PyTorch or another with __dlpack__), found {type(operand).__name__}{hint}"


def _convert_float64(schema: Schema, made: list[Any]) -> None:
    """float64 stays where all floating operands have it and the operator takes it; else it is rounded to the type of the first other one, or to float32."""
    types = [_type_name(operand) for operand in made]
    real = [i for i, of in enumerate(types) if of in (*_REAL, "f64")]
    wide = [i for i in real if types[i] == "f64"]
    if not wide or (len(wide) == len(real) and all("f64" in schema.operand(i).dtypes for i in wide)):
        return
    like = next((of for of in types if of in _REAL), None)
    state = {output.shares for output in schema.outputs}
    for i in wide:
        operand = schema.operand(i)
        target = next((of for of in (like, "f32") if of in operand.dtypes), None)
        if target is not None and operand.name not in state:
            made[i] = _cast(made[i], target)


def _cast(tensor: Any, dtype: str) -> Any:
    if isinstance(tensor, tuple):
        return (dtype, *tensor[1:])
    framework = framework_of(tensor)
    if framework == "numpy":
        return tensor.astype(numpy_dtype(dtype))
    return tensor.to(torch_dtype(dtype)) if framework == "torch" else tensor


def _with_numbers(schema: Schema, made: list[Any], numbers: list[int]) -> tuple[Any, ...]:
    """Numbers as tensors of no dimensions, of the type of the first tensor that the number's operand could be, as NumPy has it for Python's numbers."""
    tensors = [i for i, operand in enumerate(made) if i not in numbers and _type_name(operand) is not None]
    if not tensors:
        raise TypeError(_not_a_tensor(schema, numbers[0], made[numbers[0]]))
    for i in numbers:
        taken = schema.operand(i).dtypes
        own = schema.operand(i).is_mask
        like = next((t for t in tensors if _type_name(made[t]) in taken and schema.operand(t).is_mask == own), None)
        if like is None:  # where() with a mask and two numbers
            kinds = {type(made[j]) for j in numbers}
            dtype = "f32" if float in kinds else "i64" if int in kinds else "bool"
        else:
            dtype = str(_type_name(made[like]))
            _check_number(schema, i, made[i], dtype, like)
        made[i] = _tensor_of(made[i], dtype, made[tensors[0] if like is None else like])
    return tuple(made)


def _check_number(schema: Schema, i: int, number: Any, dtype: str, like: int) -> None:
    other = f"{dtype} ({schema.operand(like).name})"
    if dtype == "bool" and not isinstance(number, bool):
        raise InvalidArgument(f"{_place(schema, i)}: expected True or False beside {other}, found {number!r}")
    if dtype in _INTEGERS:
        least, greatest = _INTEGERS[dtype]
        if not isinstance(number, int):
            raise InvalidArgument(f"{_place(schema, i)}: expected a whole number beside {other}, found {number!r}; cast the tensor to a floating type")
        if not least <= number <= greatest:
            raise InvalidArgument(f"{_place(schema, i)}: expected a number from {least} to {greatest} beside {other}, found {number}")


def _tensor_of(number: Any, dtype: str, like: Any) -> Any:
    if isinstance(like, tuple):
        return (dtype, ())
    if framework_of(like) == "torch":
        import torch

        return torch.full((), number, dtype=torch_dtype(dtype), device=like.device)
    import numpy

    return numpy.asarray(number).astype(numpy_dtype(dtype))


@contextlib.contextmanager
def _on_stream(tensor: Any, stream: int):
    """PyTorch's copies are enqueued on the stream of the call where it is not the current one."""
    if stream <= 0 or not getattr(tensor, "is_cuda", False):
        yield
        return
    torch = sys.modules["torch"]
    used = torch.cuda.default_stream(tensor.device) if stream == 1 else torch.cuda.ExternalStream(stream, device=tensor.device)
    with torch.cuda.stream(used):
        yield


def copied(args: tuple[Any, ...], mask: int, stream: int) -> tuple[Any, ...]:
    """Dense copies of the operands whose bits are set; others, and those of frameworks that are not known, as they are."""
    return tuple(_copy(operand, stream) if mask >> i & 1 else operand for i, operand in enumerate(args))


def _copy(tensor: Any, stream: int = -1) -> Any:
    framework = framework_of(tensor)
    if framework == "numpy":
        import numpy

        return numpy.array(tensor, order="C")
    if framework == "torch":
        with _on_stream(tensor, stream):
            return tensor.clone(memory_format=sys.modules["torch"].contiguous_format)
    return tensor


def dense(tensor: Any) -> Any:
    """The tensor, or a dense copy where it is not dense itself."""
    framework = framework_of(tensor)
    is_dense = framework == "numpy" and tensor.flags.c_contiguous and tensor.flags.aligned or framework == "torch" and tensor.is_contiguous()
    return tensor if is_dense else _copy(tensor)


def constant(name: str, i: int, value: Any) -> Any:
    """The value of a constant, of which kernels make a copy of their own: dense, or transposed where the operator takes it so."""
    if schema_of(name).operand(i).may_lie_transposed:
        turned = value.swapaxes(-1, -2) if value.ndim >= 2 else value
        if dense(turned) is turned:
            return value
    return dense(value)


def put(target: Any, made: Any, stream: int) -> None:
    """Copies a result into the caller's memory, which kernels could not write."""
    if framework_of(target) == "torch":
        with _on_stream(target, stream):
            target.copy_(made)
    else:
        target[...] = made


def place_of(of: str, kind: str, index: int) -> str:
    """ " (weight)" for an operand or a result of an operator, else ""."""
    try:
        schema = schema_of(of)
        operands: Sequence[Any] = schema.outputs if kind == "output" else schema.inputs
        return f" ({operands[min(index, len(operands) - 1)].name})"
    except (Error, IndexError):
        return ""


def refusal(place: str, tensor: Any, error: BaseException) -> Exception:
    """What is raised for a tensor that its framework does not export."""
    dtype = getattr(tensor, "dtype", None)
    if framework_of(tensor) == "numpy" and dtype is not None:
        found, remedy = _numpy_fault(dtype)
        if found:
            return InvalidArgument(f"{place}: expected an array of numbers that kernels read, found {found}; {remedy}")
    return InvalidArgument(f"{place}: expected a tensor that can be exported by DLPack, found {type(tensor).__name__}: {error}")


def _numpy_fault(dtype: Any) -> tuple[str, str]:
    if not dtype.isnative:
        return f"one of other byte order ({dtype.str})", "astype(dtype.newbyteorder('=')) makes a native one"
    kinds = {"O": "objects", "U": "strings", "S": "strings", "M": "dates", "m": "time differences", "V": "records"}
    if dtype.kind in kinds:
        return f"one of {kinds[dtype.kind]} ({dtype})", "astype(np.float32) makes numbers of what are some"
    return (f"{dtype}", "astype(np.float32) rounds it") if dtype.kind in "fc" and dtype.itemsize > 8 else ("", "")


_FAULT = re.compile(r"(?:input|operand) (\d+) \((\w+)\): expected (.*), found (.*)$")
_TYPE = re.compile(r"^(bool|[iuf]\d+(?:_e\w+)?|bf16)\b")


def remedied(message: str, args: tuple[Any, ...]) -> str:
    """A refusal with what helps, where Python has a word for it."""
    match = _FAULT.search(message)
    if match is None or int(match[1]) >= len(args):
        return message
    tensor, name, expected, found = args[int(match[1])], match[2], match[3], match[4]
    is_torch = framework_of(tensor) == "torch"
    if "contiguous" in expected or "negative stride" in expected or "aligned" in expected:
        return f"{message} ({f'{name}.contiguous()' if is_torch else f'np.ascontiguousarray({name})'} copies it)"
    wanted = _TYPE.match(expected.removeprefix("one of "))
    if wanted and _TYPE.fullmatch(found) and wanted[1] != found and is_tensor(tensor):
        cast = f"{name}.to(torch.{str(torch_dtype(wanted[1])).removeprefix('torch.')})" if is_torch else f"{name}.astype('{numpy_dtype(wanted[1])}')"
        return f"{message} ({cast} casts it)"
    return message
