"""Types of results for tensors without memory, also of symbolic sizes.

The library infers results of sizes that are numbers. A symbolic size of a result is found as a linear form of the operands' sizes: inference at the sizes' hints
and with each of them raised gives its coefficients, and one more inference checks it. Where that fails the sizes are what they are now, and PyTorch compiles
again for others.
"""

from __future__ import annotations

from .bridge import dtype_name
from .devices import handle_for
from .operators import make_operator
from .schemas import Schema


def result_shapes(schema: Schema, operands: tuple, values: tuple) -> tuple:
    """((dtype, shape, index of the operand whose memory it is, or -1), ..)."""
    names = (attribute.name for attribute in schema.attributes)
    rows = schema.attribute_rows({name: _number(value) for name, value in zip(names, values)})
    dtypes = tuple(None if tensor is None else dtype_name(tensor.dtype) for tensor in operands)
    shapes = tuple(None if tensor is None else tuple(tensor.shape) for tensor in operands)

    def infer(shapes: tuple) -> tuple:
        described = tuple(None if shape is None else (dtype, shape) for dtype, shape in zip(dtypes, shapes))
        return make_operator(schema, handle_for("null", 1), described, rows).infer(*described)

    symbols = _symbols(shapes)
    if symbols:
        found = _symbolic(infer, shapes, symbols)
        if found is not None:
            return found
    return infer(tuple(None if shape is None else tuple(map(int, shape)) for shape in shapes))


def _number(value: object) -> object:
    """PyTorch's symbolic attributes as what they are now."""
    if type(value).__name__ in ("SymInt", "SymFloat", "SymBool"):
        return value.node.guard_int("", 0) if type(value).__name__ == "SymInt" else value.node.guard_float("", 0)
    return tuple(map(_number, value)) if isinstance(value, (list, tuple)) else value


def _symbols(shapes: tuple) -> dict:
    """Symbolic sizes by the text of their expression."""
    return {str(size): size for shape in shapes if shape is not None for size in shape if not isinstance(size, int)}


def _symbolic(infer, shapes: tuple, symbols: dict) -> tuple | None:
    hints = {text: size.node.hint for text, size in symbols.items()}
    if not all(isinstance(hint, int) for hint in hints.values()):
        return None

    def at(raised: dict) -> tuple:
        sizes = {text: hint + raised.get(text, 0) for text, hint in hints.items()}
        return infer(tuple(None if shape is None else tuple(size if isinstance(size, int) else sizes[str(size)] for size in shape) for shape in shapes))

    try:
        base, check = at({}), at({text: 3 + 2 * i for i, text in enumerate(hints)})
        alone = {text: at({text: 1}) for text in hints}
    except ValueError:  # sizes that must agree do, but not as single symbols
        return None
    results = []
    for r, (dtype, shape, shared) in enumerate(base):
        if any(len(other[r][1]) != len(shape) for other in (check, *alone.values())):
            return None
        sizes = []
        for d, size in enumerate(shape):
            steps = {text: alone[text][r][1][d] - size for text in hints}
            if check[r][1][d] != size + sum(step * (3 + 2 * i) for i, step in enumerate(steps.values())):
                return None
            form = size - sum(step * hints[text] for text, step in steps.items())
            for text, step in steps.items():
                form = form + step * symbols[text] if step else form
            sizes.append(form)
        results.append((dtype, tuple(sizes), shared))
    return tuple(results)
