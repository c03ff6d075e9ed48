"""Scaled dot-product attention, and what models of all formats put around it: heads, masks, rotary positions."""

from __future__ import annotations

import math
from collections.abc import Callable

from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.nn import front_of, matmul
from relaylang.frontends.common.report import Malformed
from relaylang.ir import Expr

INFINITY = float("inf")


def split_heads(b: Builder, x: Expr, count: int) -> Expr:
    """(batch, steps, heads * size) as (batch, heads, steps, size)."""
    return b.transpose(b.op("reshape", x, newshape=[0, 0, count, -1]), [0, 2, 1, 3])


def join_heads(b: Builder, x: Expr) -> Expr:
    """(batch, heads, steps, size) as (batch, steps, heads * size)."""
    return b.op("reshape", b.transpose(x, [0, 2, 1, 3]), newshape=[0, 0, -1])


def repeat_heads(b: Builder, x: Expr, count: int) -> Expr:
    """Each head as often as it takes for so many heads."""
    own = b.extent(x, 1, "the number of heads")
    if not own or count % own:
        raise Malformed(f"its operands have {own} and {count} heads")
    return x if own == count else b.op("repeat", x, repeats=count // own, axis=1)


def positions(b: Builder, x: Expr, axis: int) -> Expr:
    """0, 1, ... along an axis of a tensor, as a vector of int64."""
    extent = b.shape(x)[axis]
    if isinstance(extent, int):
        return b.const(b.arrays.arange(extent, dtype="int64"))
    ones = b.op("dyn.ones", b.slice(b.shape_of(x), [axis], [axis + 1], [0]), dtype="int64")
    return b.op("cumsum", ones, axis=0, exclusive=True)


def extent_of(b: Builder, x: Expr, axis: int) -> Expr:
    """An extent as a scalar of int64."""
    return b.scalar(b.slice(front_of(b, x, axis + 1), [axis], [axis + 1], [0]))


def window(b: Builder, q: Expr, k: Expr, offset: Expr | int, before: int = -1, behind: int = -1) -> Expr | None:
    """Which keys a query may see: those from `before` places before its own to `behind` places behind it.

    -1 leaves a side open. `offset` is the place of the first query among the keys: a number, a scalar, or (batch, 1, 1, 1).
    The result is bool, broadcast to (batch, heads, queries, keys).
    """
    if before < 0 and behind < 0:
        return None
    row = b.unsqueeze(positions(b, q, 2), [1])
    row = row if isinstance(offset, int) and not offset else b.op("add", row, b.cast(_number(b, offset), "int64"))
    apart = b.op("subtract", row, positions(b, k, 2))
    seen = None
    if before >= 0:
        seen = b.op("less_equal", apart, b.const(before, "int64"))
    if behind >= 0:
        right = b.op("less_equal", b.op("negative", apart), b.const(behind, "int64"))
        seen = right if seen is None else b.op("logical_and", seen, right)
    return seen


def _number(b: Builder, value: Expr | int) -> Expr:
    """A number as a constant of int64; an expression as it is."""
    return b.const(value, "int64") if isinstance(value, int) else value


def shorter_than(b: Builder, k: Expr, lengths: Expr) -> Expr:
    """Which keys lie within the lengths (batch): bool (batch, 1, 1, keys)."""
    places = positions(b, k, 2)
    return b.op("less", places, b.unsqueeze(b.cast(lengths, "int64"), [1, 2, 3]))


def both(b: Builder, left: Expr | None, right: Expr | None) -> Expr | None:
    """The conjunction of two masks, each of which may be missing."""
    if left is None or right is None:
        return left if right is None else right
    return b.op("logical_and", left, right)


def as_bias(b: Builder, seen: Expr | None, dtype: str, low: float = -INFINITY) -> Expr | None:
    """0 where a mask is true, `low` elsewhere."""
    if seen is None:
        return None
    return b.op("where", seen, b.const(0, dtype), b.const(low, dtype))


def add(b: Builder, left: Expr | None, right: Expr | None) -> Expr | None:
    """The sum of two biases, each of which may be missing."""
    if left is None or right is None:
        return left if right is None else right
    return b.op("add", left, right)


def softmax(b: Builder, scores: Expr, bias: Expr | None, guard: bool = True) -> Expr:
    """Along the last axis. Rows whose bias is -inf everywhere are 0 where `guard`."""
    shares = b.op("nn.softmax", scores, axis=-1)
    if not guard or bias is None:
        return shares
    none = b.op("equal", b.op("max", bias, axis=[-1], keepdims=True), b.const(-INFINITY, b.dtype(bias)))
    value = b.value(none)
    if value is not None and not value.any():
        return shares
    return b.op("where", none, b.const(0, b.dtype(shares)), shares)


def scores(b: Builder, q: Expr, k: Expr, scale: float | None = None, split: bool = False) -> Expr:
    """`q k^T * scale`; the scale is `1 / sqrt(size)` by default. `split` multiplies both by its root."""
    factor = scale if scale else 1 / math.sqrt(b.extent(q, 3, "the size of heads"))
    turned = b.transpose(k, [0, 1, 3, 2])
    if split:
        root = math.sqrt(factor)
        return matmul(b, b.op("multiply", q, root), b.op("multiply", turned, root))
    return b.op("multiply", matmul(b, q, turned), factor)


def capped(b: Builder, x: Expr, cap: float) -> Expr:
    """`cap * tanh(x / cap)`; x itself for 0."""
    return x if not cap else b.op("multiply", b.op("tanh", b.op("divide", x, cap)), cap)


def attend(
    b: Builder,
    q: Expr,
    k: Expr,
    v: Expr,
    bias: Expr | None = None,
    scale: float | None = None,
    cap: float = 0.0,
    change: Callable[[Expr], Expr] = lambda x: x,
    guard: bool = True,
) -> Expr:
    """`softmax(q k^T * scale + bias) v` of (batch, heads, steps, size). `change` is applied to the biased scores."""
    heads = b.extent(q, 1, "the number of heads")
    k, v = repeat_heads(b, k, heads), repeat_heads(b, v, heads)
    biased = capped(b, scores(b, q, k, scale), cap)
    biased = change(biased if bias is None else b.op("add", biased, bias))
    return matmul(b, softmax(b, biased, bias, guard), v)


def rotate(b: Builder, x: Expr, cos: Expr, sin: Expr, size: int = 0, interleaved: bool = False) -> Expr:
    """Rotary positions of (batch, heads, steps, size): pairs are turned by angles whose cosines and sines are given.

    cos and sin broadcast to (batch, heads, steps, half). A `size` other than 0 turns the first elements alone.
    Pairs are halves of the last axis, or neighbours where `interleaved`.
    """
    extent = b.extent(x, 3, "the size of heads")
    size = size or extent
    turned = x if size == extent else b.slice(x, [0], [size], [3])
    if interleaved:
        left, right = (b.slice(turned, [i], [size], [3], [2]) for i in (0, 1))
    else:
        left, right = b.slice(turned, [0], [size // 2], [3]), b.slice(turned, [size // 2], [size], [3])
    real = b.op("subtract", b.op("multiply", left, cos), b.op("multiply", right, sin))
    imaginary = b.op("add", b.op("multiply", left, sin), b.op("multiply", right, cos))
    if interleaved:
        pairs = b.op("stack", b.tuple([real, imaginary]), axis=-1)
        rotated = b.op("reshape", pairs, newshape=[0, 0, 0, -3])
    else:
        rotated = b.concat([real, imaginary], 3)
    return rotated if size == extent else b.concat([rotated, b.slice(x, [size], [extent], [3])], 3)


__all__ = [
    "INFINITY",
    "add",
    "as_bias",
    "attend",
    "both",
    "capped",
    "extent_of",
    "join_heads",
    "positions",
    "repeat_heads",
    "rotate",
    "scores",
    "shorter_than",
    "softmax",
    "split_heads",
    "window",
]
