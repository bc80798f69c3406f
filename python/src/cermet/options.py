"""Options of models and of generation: the library's own tables of them, which say what keywords there are."""

from __future__ import annotations

import difflib
import functools
import json
import operator
from collections.abc import Mapping
from dataclasses import dataclass

from . import _native
from .bridge import dtype_name
from .errors import InvalidArgument

_TYPES = {"bool": "bool", "int": "int", "float": "float", "dtype": "DType | None", "text": "str | None"}


@dataclass(frozen=True)
class Row:
    """An option. `type`: bool, int, float, dtype, name or text; `names`: those that a name may be; `values`: what it takes, for readers."""

    name: str
    type: str
    names: tuple[str, ...]
    least: int
    values: str
    default: str
    help: str

    @property
    def annotation(self) -> str:
        """Its type for type checkers."""
        return f"Literal[{', '.join(map(repr, self.names))}]" if self.type == "name" else _TYPES[self.type]

    @property
    def line(self) -> str:
        """What it is, for readers."""
        values = {"bool": "True or False", "text": ""}.get(self.type, self.values)
        default = {"0": "False", "1": "True"}[self.default] if self.type == "bool" else self.default
        return f"{self.name}: {self.help}" + (f" ({values})" if values else "") + (f"; default: {default}" if default else "")

    def text(self, given: object) -> str:
        """A value as the library takes it; "" for the default. Raises TypeError for one of another type."""
        if self.type == "bool":
            return "1" if given else "0"
        if self.type == "int":
            number = operator.index(given)  # type: ignore[arg-type]
            return "" if number == 0 < self.least else str(number)
        if self.type == "float":
            return repr(float(given))  # type: ignore[arg-type]
        text = dtype_name(given) if self.type == "dtype" else given
        if not isinstance(text, str):
            raise TypeError(given)
        if ";" in text:
            raise InvalidArgument(f"{self.name}: expected no semicolon, found {text!r}")
        return text


@functools.cache
def rows(table: str) -> dict[str, Row]:
    """The options of "model" or "generate" by name."""
    keys = ("name", "type", "least", "values", "default", "help")
    return {row["name"]: Row(names=tuple(row["names"]), **{key: row[key] for key in keys}) for row in json.loads(_native.option_rows())[table]}


def to_text(function: str, table: str, given: Mapping[str, object]) -> str:
    """Keywords as "name=value;name=value"; None stands for the default. Raises TypeError as `function` does for keywords and types."""
    parts = []
    for name, value in given.items():
        row = rows(table).get(name)
        if row is None:
            similar = difflib.get_close_matches(name, rows(table))
            hint = f"; similar: {', '.join(similar)}" if similar else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")
        if value is None:
            continue
        try:
            parts.append(f"{name}={row.text(value)}")
        except (TypeError, ValueError) as error:
            if isinstance(error, InvalidArgument):
                raise
            raise TypeError(f"{function}: {name}: expected {row.type}, found {value!r}") from None
    return ";".join(parts)


def documentation(table: str, indent: str) -> str:
    """A line for each option."""
    return "".join(f"{indent}{row.line}\n" for row in rows(table).values())


def stub() -> str:
    """The text of options.pyi."""
    text = '"""Keywords of cermet.Model and of its generate(). Written from the tables of the library by cermet.options when the package is built."""\n\n'
    text += "from collections.abc import Mapping\nfrom typing import Literal, TypedDict\n\nfrom .types import DType\n"
    for name, table in (("ModelOptions", "model"), ("GenerateOptions", "generate")):
        text += f"\nclass {name}(TypedDict, total=False):\n"
        text += "".join(f"    {row.name}: {row.annotation}\n    {json.dumps(row.line)}\n" for row in rows(table).values())
    return text + "\ndef to_text(function: str, table: str, given: Mapping[str, object]) -> str: ...\ndef documentation(table: str, indent: str) -> str: ...\n"
