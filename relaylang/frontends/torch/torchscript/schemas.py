"""The arguments of PyTorch's operators by overload, and the overload that a call means. scripts/torch_schemas.py writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from relaylang.frontends.common.complexes import Complex
from relaylang.frontends.torch.pt2 import DType
from relaylang.frontends.torch.torchscript.values import DTYPES, Tensor
from relaylang.ir import Expr

_FILE = Path(__file__).with_name("schemas.txt")


@dataclass(frozen=True)
class Argument:
    """An argument: its name, a letter for its type, and whether it may be None, be missing, or has its name only."""

    name: str
    letter: str
    optional: bool
    default: bool
    named: bool


@dataclass(frozen=True)
class Schema:
    """An overload. `results` is the number of results; "L" is a list."""

    operator: str
    overload: str
    arguments: tuple[Argument, ...]
    results: str

    def bind(self, args: Sequence[Any], named: dict[str, Any], strict: bool) -> dict[str, Any] | None:
        """The values by the names of arguments; None where they do not fit. `strict` looks at their types."""
        places = [a for a in self.arguments if not a.named]
        if len(args) > len(places):
            return None
        bound = dict(zip([a.name for a in places], args))
        if named.keys() & bound.keys() or named.keys() - {a.name for a in self.arguments}:
            return None
        bound.update(named)
        for a in self.arguments:
            if a.name not in bound:
                if not a.default:
                    return None
            elif strict and not _fits(a, bound[a.name]):
                return None
        return {a.name: _converted(a, bound[a.name]) for a in self.arguments if a.name in bound}


def _number(value: Any, *kinds: type) -> bool:
    return isinstance(value, Expr) or (isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)))


def _fits(a: Argument, value: Any) -> bool:
    """Whether a value has the type of an argument."""
    if value is None:
        return a.optional
    match a.letter:
        case "T":
            return isinstance(value, Tensor)
        case "L":
            return isinstance(value, (list, tuple)) and all(v is None or isinstance(v, Tensor) for v in value)
        case "i" | "D":
            return _number(value, int)
        case "f":
            return _number(value, float, int)
        case "s":
            return _number(value, float, int, bool)
        case "b":
            return _number(value, bool)
        case "t":
            return isinstance(value, str)
        case "I":
            return _number(value, int) or (isinstance(value, (list, tuple)) and all(_number(v, int) for v in value))
        case "F" | "S" | "B":
            return isinstance(value, (list, tuple)) and all(_number(v, float, int, bool) for v in value)
    return not isinstance(value, (Tensor, int, float, list))


#: What the letters of argument types stand for.
_TYPES = {
    "T": "a tensor",
    "L": "a list of tensors",
    "i": "a whole number",
    "D": "an element type",
    "f": "a number",
    "s": "a number",
    "b": "a truth value",
    "t": "a text",
    "I": "a list of whole numbers",
    "F": "a list of numbers",
    "S": "a list of numbers",
    "B": "a list of truth values",
}


def wrong_arguments(operator: str, overload: str, values: Mapping[str, Any]) -> str:
    """Which argument of an exported call is missing or of another type; "" for none, or an operator that is not known."""
    schema = next((s for s in _schemas().get(operator, ()) if s.overload == overload), None)
    for a in schema.arguments if schema is not None else ():
        if a.name not in values:
            if not a.default:
                return f"the argument {a.name} is missing; it is {_TYPES.get(a.letter, 'a value')}"
        elif not _fits_exported(a, values[a.name]):
            return f"the argument {a.name} is {_shown(values[a.name])}; it must be {_TYPES.get(a.letter, 'another value')}"
    return ""


#: The Python types of plain arguments.
_PLAIN: dict[str, tuple[type, ...]] = {"f": (bool, int, float), "t": (str,), "D": (DType, int)}


def _fits_exported(a: Argument, value: Any) -> bool:
    """As `_fits`, for a file that has numbers for tensors, and one number for lists."""
    if value is None:
        return a.optional or a.letter not in _TYPES
    numeric = isinstance(value, (Expr, Complex, bool, int, float, complex))
    match a.letter:
        case "T" | "s" | "b":
            return numeric
        case "i":
            return isinstance(value, (Expr, bool, int)) or (isinstance(value, float) and value.is_integer())
        case "L":
            return isinstance(value, list) and all(v is None or isinstance(v, (Expr, Complex)) for v in value)
        case "I":
            return _number(value, int) or (isinstance(value, list) and all(_number(v, int, bool) for v in value))
        case "F" | "S" | "B":
            return numeric or (isinstance(value, list) and all(_number(v, float, int, bool) for v in value))
    return isinstance(value, _PLAIN.get(a.letter, (object,)))


def _shown(value: Any) -> str:
    if isinstance(value, (Expr, Complex)):
        return "a tensor"
    return "missing" if value is None else "a list" if isinstance(value, (list, tuple)) else repr(value)[:40]


def _converted(a: Argument, value: Any) -> Any:
    if a.letter == "D" and isinstance(value, int):
        return DType(DTYPES.get(value, ""))
    return value


@cache
def _schemas() -> dict[str, tuple[Schema, ...]]:
    schemas: dict[str, list[Schema]] = {}
    for line in _FILE.read_text().splitlines():
        full, *words, _, results = line.split()
        operator, _, overload = full.partition(".")
        arguments, named = [], False
        for word in words:
            if word == "*":
                named = True
                continue
            kind, _, name = word.partition(":")
            arguments.append(Argument(name, kind[0], "?" in kind, "=" in kind, named))
        schemas.setdefault(operator, []).append(Schema(operator, overload or "default", tuple(arguments), results))
    return {name: tuple(schemas) for name, schemas in schemas.items()}


def overload_of(operator: str, args: Sequence[Any], named: dict[str, Any]) -> tuple[Schema, dict[str, Any]] | None:
    """The overload of an operator that a call means, and its arguments by name; None where none fits."""
    for strict in (True, False):
        for schema in _schemas().get(operator, ()):
            bound = schema.bind(args, named, strict)
            if bound is not None:
                return schema, bound
    return None


__all__ = ["Argument", "Schema", "overload_of", "wrong_arguments"]
