"""The library's own description of its operators, parsed when it is asked for."""

from __future__ import annotations

import functools
import json
import operator
from dataclasses import dataclass
from typing import Any

from . import _native
from .bridge import dtype_name

#: cermet_attribute_kind by the name of a type.
KINDS = {"bool": 0, "int": 1, "float": 2, "string": 3, "ints": 4, "floats": 5, "strings": 6}


@dataclass(frozen=True)
class Operand:
    """An input or a result."""

    name: str
    dtypes: tuple
    shape: str
    doc: str
    optional: bool = False
    variadic: bool = False
    shares: str = ""  #: of a result: the input whose memory it is
    may_lie_transposed: bool = False  #: its matrices may lie by columns: strides (1, rows)
    is_elementwise: bool = False  #: a result's element reads one of its elements

    @property
    def is_mask(self) -> bool:
        """Whether it says only yes or no."""
        return "bool" in self.dtypes and set(self.dtypes) <= {"bool", "u8"}


@dataclass(frozen=True)
class Attribute:
    """A named value. `default` is None where JSON has no number for it (infinity)."""

    name: str
    type: str
    default: object
    doc: str
    choices: tuple = ()

    @property
    def is_dtype(self) -> bool:
        return self.type == "string" and "dtype" in self.name

    def value(self, given: object) -> object:
        """`given` in the type that the library takes. Raises TypeError naming the attribute."""
        try:
            return dtype_name(given) if self.is_dtype else _CONVERSIONS[self.type](given)
        except (TypeError, ValueError):
            raise TypeError(f"attribute '{self.name}': expected {self.type}, found {given!r}") from None


def _flag(given: object) -> int:
    if hasattr(given, "__len__"):  # a text or a list, which Python takes as true
        raise TypeError(given)
    return int(bool(given))


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise TypeError(given)
    return given


def _list_of(convert):
    def convert_list(given: object) -> tuple:
        if isinstance(given, str):
            raise TypeError(given)
        return tuple(map(convert, given))

    return convert_list


_CONVERSIONS = {
    "bool": _flag, "int": operator.index, "float": float, "string": _text,
    "ints": _list_of(operator.index), "floats": _list_of(float), "strings": _list_of(_text),
}  # fmt: skip


@dataclass(frozen=True)
class Schema:
    """An operator: cermet_op_schema as Python values."""

    name: str
    category: str
    summary: str
    semantics: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    attributes: tuple[Attribute, ...]
    example: str

    def _value(self, attribute: Attribute, given: object) -> object:
        try:
            return attribute.value(given)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None

    @property
    def takes_numbers(self) -> bool:
        """Whether Python's numbers may be operands: those of elementwise operators of several."""
        return len(self.inputs) > 1 and all(operand.is_elementwise and not operand.optional for operand in self.inputs)

    def operand(self, i: int) -> Operand:
        """Operand i of a call; the last one stands for all that a variadic operator has."""
        return self.inputs[min(i, len(self.inputs) - 1)]

    def attribute_rows(self, values: dict) -> tuple:
        """(name, kind, value) of every attribute but those that are None, which stands for the default. One that the operator does not have is left to the library,
        whose message names those that it has."""
        known = {attribute.name: attribute for attribute in self.attributes}
        rows = []
        for name, given in values.items():
            if given is None:
                continue
            attribute = known.get(name)
            if attribute is not None:
                rows.append((name, KINDS[attribute.type], self._value(attribute, given)))
            else:
                rows.append((name, KINDS["string"], str(given)))
        return tuple(rows)


@functools.cache
def schema_of(name: str) -> Schema:
    """An operator's schema. Raises InvalidArgument, with similar names, where there is none."""
    given = json.loads(_native.op_schema(name))
    texts = (given[key] for key in ("name", "category", "summary", "semantics"))
    return Schema(*texts, _operands(given["inputs"]), _operands(given["outputs"]), tuple(map(_attribute, given["attributes"])), given["example"])


def _operands(rows: list[dict[str, Any]]) -> tuple[Operand, ...]:
    return tuple(_operand(row) for row in rows)


def _operand(row: dict[str, Any]) -> Operand:
    own = (row["name"], tuple(row["dtypes"]), row["shape"], row["doc"], row["optional"], row["variadic"])
    return Operand(*own, row.get("shares_memory_of", ""), row.get("may_lie_transposed", False), row.get("mapping") == "One-to-One")


def _attribute(row: dict) -> Attribute:
    default = tuple(row["default"]) if isinstance(row["default"], list) else row["default"]
    return Attribute(row["name"], row["type"], default, row["doc"], tuple(row.get("choices", ())))
