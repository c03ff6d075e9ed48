"""Random numbers, from a key that a layer's seed or name gives: the numbers of one program are the same at each run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.ir import Call, Expr
from relaylang.ops import get
from relaylang.ops.record import make_attrs

_FLOATS = ("float16", "bfloat16", "float32", "float64")


def key(name: str, seed: float | None = None) -> np.ndarray:
    """The key of the bits of a seed; without one, of a name."""
    bits = 1 << 32 | crc32(name.encode()) if seed is None else int(np.float32(seed).view(np.uint32))
    return np.array([bits, 0, 0, 0, 0, 0, 0, 0, 1 << 63, 0], np.uint64)


def draw(b: Builder, own: np.ndarray, name: str, operands: Sequence[Expr], **attrs: Any) -> Expr:
    """The numbers of a call of a random operator by a key. Constant operands do not make it a constant."""
    op = get(name)
    assert op.attrs is not None
    call = Call(op, (b.const(own), *operands), make_attrs(op.attrs, attrs), (), b.span)
    b.type_call(call)
    return b.field(call, 1)


def numbers(b: Builder, own: np.ndarray, name: str, shape: Sequence[int], dtype: str, first: float, second: float) -> Expr:
    """`random.uniform` or `random.normal` of two parameters; numbers of other element types are rounded from float32."""
    if dtype not in _FLOATS:
        raise Unsupported(f"it gives numbers of the type {dtype}")
    width = dtype if dtype == "float64" else "float32"
    pair = b.const(first, width), b.const(second, width)
    return b.cast(draw(b, own, name, pair, out_shape=list(shape), out_dtype=width), dtype)


def below(b: Builder, own: np.ndarray, chances: Expr) -> Expr:
    """Whether a number from 0 to 1 lies below each probability."""
    width = "float64" if b.dtype(chances) == "float64" else "float32"
    drawn = numbers(b, own, "random.uniform", b.static_shape(chances), width, 0.0, 1.0)
    return b.op("less", drawn, b.cast(chances, width))


__all__ = ["below", "draw", "key", "numbers"]
