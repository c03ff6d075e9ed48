"""Types in MLIR's text: `tensor<2x?xf32>`, `!vhlo.tensor_v1<2x!vhlo.f32_v1>`, `tuple<...>`, `!quant.uniform<...>`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from relaylang.frontends.stablehlo.names import DTYPES
from relaylang.frontends.stablehlo.program import Other, Quantised, Several, Tensor

#: Element types by MLIR's names.
ELEMENTS = {**{name: dtype for dtype, name in DTYPES.items()}, "index": "int64"}
_EXTENTS = re.compile(r"(?:(?:\?|\d{1,18})x)*")
_VHLO = re.compile(r"!vhlo\.(\w+?)(?:_v\d+)?(?![\w])")
#: A tensor has at most so many axes.
_RANK = 64


class WrongType(ValueError):
    """A text is no type, or one of numbers that have no form in Relay."""


@lru_cache(maxsize=1 << 12)
def read_type(text: str) -> Any:
    """The type that a text states. Raises `WrongType`, whose text says why."""
    text = _VHLO.sub(_plain, text.strip()) if "!vhlo." in text else text.strip()
    if text.startswith("tensor<") and text.endswith(">"):
        return _tensor(text[7:-1])
    if text.startswith("tuple<") and text.endswith(">"):
        return Several(tuple([read_type(part) for part in split(text[6:-1])]))
    if text.startswith("ranked_tensor<") and text.endswith(">"):
        return _tensor(text[14:-1])
    if text in ELEMENTS:
        return Tensor((), ELEMENTS[text])
    return Other(text[:60])


def _plain(match: re.Match[str]) -> str:
    name = match[1]
    integer = re.fullmatch(r"(ui|i)(\d+)", name)
    if name == "bool":
        return "i1"
    return {"si": "i"}.get(name, name) if integer is None else name


def _tensor(inner: str) -> Tensor:
    front = _EXTENTS.match(inner)
    assert front is not None
    extents = tuple([None if d == "?" else int(d) for d in front[0].split("x")[:-1]])
    element = split(inner[front.end() :])
    if not element:
        raise WrongType("a tensor has no element type")
    if len(extents) > _RANK:
        raise WrongType(f"a tensor has {len(extents)} axes")
    name = element[0].strip()
    if name.startswith("*"):
        raise WrongType("a tensor has an unknown number of axes")
    if name in ELEMENTS:
        return Tensor(extents, ELEMENTS[name])
    if name.startswith("complex<") and name[8:-1] in ("f32", "f64"):
        return Tensor(extents, ELEMENTS[name[8:-1]], is_complex=True)
    if name.startswith(("!quant.uniform<", "quant.uniform<")) and name.endswith(">"):
        held = _quantised(name[name.index("<") + 1 : -1])
        return Tensor(extents, held.dtype, quantised=held)
    raise WrongType(f"Relay has no element type {name[:60]}")


def _quantised(text: str) -> Quantised:
    """Of `i8:f32, 0.5:3`, or of `i8:f32:1, {0.5:3, 0.25}`, where 1 is the axis."""
    kinds, _, pairs = text.partition(",")
    storage, *rest = [part.strip() for part in kinds.split(":") if "<" not in kinds] or _bounded(kinds)
    if storage not in ELEMENTS or not rest or len(rest) > 2:
        raise WrongType(f"Relay has no quantised type of {kinds[:60]}")
    try:
        axis = int(rest[1]) if len(rest) == 2 else None
        each = [part.partition(":") for part in pairs.strip().strip("{}").split(",")]
        scales = tuple([float(scale) for scale, _, _ in each])
        zeros = tuple([int(zero or "0") for _, _, zero in each])
    except ValueError:
        raise WrongType(f"the scales {pairs[:40]} of a quantised type are no numbers") from None
    if axis is None and len(scales) != 1:
        raise WrongType("a quantised type has several scales and no axis")
    return Quantised(ELEMENTS[storage], scales, zeros, axis)


def _bounded(kinds: str) -> list[str]:
    """The parts of `i8<-127:127>:f32:1`, without the bounds."""
    return [part.strip() for part in re.sub(r"<[^<>]*>", "", kinds).split(":")]


def split(text: str) -> list[str]:
    """The parts between commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        if letter in "<({[":
            depth += 1
        elif letter in ">)}]":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]] if text else []


__all__ = ["ELEMENTS", "WrongType", "read_type", "split"]
