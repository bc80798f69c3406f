"""The library's own description of its operators, parsed when it is asked for."""

from __future__ import annotations

import functools
import json
import operator
from dataclasses import dataclass

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
            if self.type == "bool":
                return int(operator.index(given) != 0)
            if self.type == "int":
                return operator.index(given)
            if self.type == "float":
                return float(given)
            if self.type == "ints":
                return tuple(map(operator.index, given))
            if self.type == "floats":
                return tuple(map(float, given))
            if self.type == "strings":
                return tuple(map(str, given)) if not isinstance(given, str) else _refuse(given)
            return dtype_name(given) if self.is_dtype else given if isinstance(given, str) else _refuse(given)
        except (TypeError, ValueError):
            raise TypeError(f"{self.name}: expected {self.type}, found {given!r}") from None


def _refuse(given: object):
    raise TypeError(given)


@dataclass(frozen=True)
class Schema:
    """An operator: cermet_op_schema as Python values."""

    name: str
    category: str
    summary: str
    semantics: str
    inputs: tuple
    outputs: tuple
    attributes: tuple
    example: str

    def attribute_rows(self, values: dict) -> tuple:
        """(name, kind, value) of every attribute that is given. One that the operator does not have is left to the library, whose message names those that it has."""
        known = {attribute.name: attribute for attribute in self.attributes}
        rows = []
        for name, given in values.items():
            attribute = known.get(name)
            if attribute is not None:
                rows.append((name, KINDS[attribute.type], attribute.value(given)))
            else:
                rows.append((name, KINDS["string"], str(given)))
        return tuple(rows)


@functools.cache
def schema_of(name: str) -> Schema:
    """An operator's schema. Raises InvalidArgument, with similar names, where there is none."""
    json_of = json.loads(_native.op_schema(name))
    operands = lambda rows: tuple(  # noqa: E731
        Operand(r["name"], tuple(r["dtypes"]), r["shape"], r["doc"], r.get("optional", False), r.get("variadic", False), r.get("shares_memory_of", "")) for r in rows
    )
    attributes = tuple(
        Attribute(r["name"], r["type"], tuple(r["default"]) if isinstance(r["default"], list) else r["default"], r["doc"], tuple(r.get("choices", ())))
        for r in json_of["attributes"]
    )
    texts = (json_of[key] for key in ("name", "category", "summary", "semantics"))
    return Schema(*texts, operands(json_of["inputs"]), operands(json_of["outputs"]), attributes, json_of["example"])
