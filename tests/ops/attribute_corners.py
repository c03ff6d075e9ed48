"""Calls of every operator with one number of its attributes out of the ordinary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from relaylang.ir.types import ANY
from relaylang.ops import OPS
from tests.conformance.seeds import LEFT_OUT, Seed, seeds

NUMBERS = (-1_000_000_000_000_000_000, -(2**31), -99, -2, -1, 0, 1, 99, 1_000_000_000, 2**31, 2**62)
REALS = (float("nan"), float("inf"), -1.0, 0.0, 1e300)
STRINGS = ("", "rubbish", "NCHW", "0")


def corners(kind: str, value: Any) -> Iterator[Any]:
    """Other values of an attribute of this kind."""
    if kind == "int":
        yield from NUMBERS
    elif kind == "float":
        yield from REALS
    elif kind == "str":
        yield from STRINGS
    elif kind in ("Ints", "AnyAttr", "NestedInts", "Floats"):
        yield []
        if isinstance(value, list) and value:
            yield value[:-1]
            yield [*value, value[-1]]
            for i, part in enumerate(value):
                inner = "NestedInts" if isinstance(part, list) else "float" if isinstance(part, float) else "int"
                for other in corners(inner, part):
                    yield [*value[:i], other, *value[i + 1 :]]
        else:
            for other in NUMBERS:
                yield other
                yield [other]


def calls() -> Iterator[tuple[str, list[str], dict[str, Any], str]]:
    """An operator, its arguments' types, its attributes, and which of these is the odd one."""
    for op, found in seeds().items():
        if op in LEFT_OUT:
            continue
        seen = set()
        for args, attrs in shortest(found):
            for name, field in OPS[op].schema.items():
                value = attrs.get(name, field.default)
                value = list(value) if isinstance(value, tuple) else value
                for other in corners(field.kind, value):
                    key = name, repr(other)
                    if key not in seen:
                        seen.add(key)
                        yield op, args, {**attrs, name: other}, name


def with_unknown_numbers() -> Iterator[tuple[str, list[str], dict[str, Any], str]]:
    """As `calls`, with `?` for numbers of a list: for one, for all, in another length, or instead."""
    for op, found in seeds().items():
        if op in LEFT_OUT:
            continue
        args, attrs = found[0]
        for name, field in OPS[op].schema.items():
            if field.kind not in ("Ints", "NestedInts", "Bounds", "AnyAttr"):
                continue
            value = attrs.get(name, field.default)
            value = list(value) if isinstance(value, (list, tuple)) else []
            odd: list[Any] = [ANY, [ANY], [*value, ANY], [[ANY, ANY]], [ANY] * (len(value) + 1)]
            for i, part in enumerate(value):
                odd.append([*value[:i], [ANY] * len(part) if isinstance(part, (list, tuple)) else ANY, *value[i + 1 :]])
            for other in odd:
                yield op, args, {**attrs, name: other}, name


def shortest(found: list[Seed]) -> list[Seed]:
    """A few calls that between them give every attribute that any of them gives."""
    chosen: list[Seed] = []
    known: set[str] = set()
    for args, attrs in found:
        if not chosen or not set(attrs) <= known:
            chosen.append((args, attrs))
            known |= set(attrs)
    return chosen
