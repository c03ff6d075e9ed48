"""Compositions that several importers need: activations, normalisations, matrix products, padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.report import Malformed
from relaylang.ir import ANY, Call, Expr, is_static
from relaylang.ir.types import Dim

# ---- logarithms and powers near one


def _log1p_unit(b: Builder, x: Expr) -> Expr:
    """`log(1 + x)` of numbers between -1/2 and 1. A sum with 1 would cut the digits of a small x."""
    return b.op("multiply", b.op("atanh", b.op("divide", x, b.op("add", x, 2.0))), 2.0)


def log1p(b: Builder, x: Expr) -> Expr:
    """`log(1 + x)`, of which a small x keeps its digits."""
    near = _log1p_unit(b, b.op("clip", x, a_min=-0.5, a_max=0.5))
    return b.op("where", b.op("less", b.op("abs", x), 0.5), near, b.op("log", b.op("add", x, 1.0)))


def log1p_exp(b: Builder, x: Expr) -> Expr:
    """`log(1 + exp(-|x|))`, of which small results keep their digits."""
    return _log1p_unit(b, b.op("exp", b.op("negative", b.op("abs", x))))


def _decay(b: Builder, x: Expr) -> Expr:
    """`1 - exp(-|x|)`, of which a small x keeps its digits."""
    half = b.op("tanh", b.op("multiply", b.op("abs", x), 0.5))
    return b.op("divide", b.op("multiply", half, 2.0), b.op("add", half, 1.0))


def expm1(b: Builder, x: Expr) -> Expr:
    """`exp(x) - 1`, of which a small x keeps its digits."""
    factor = b.op("where", b.op("less", x, 0.0), b.const(-1.0, b.dtype(x)), b.op("exp", x))
    return b.op("multiply", _decay(b, x), factor)


def angle(b: Builder, y: Expr, x: Expr) -> Expr:
    """The angle of the point (x, y), between -pi and pi."""
    zero = b.op("equal", x, 0.0)
    base = b.op("atan", b.op("divide", y, b.op("where", zero, b.op("ones_like", x), x)))
    half = b.op("multiply", b.op("sign", y), math.pi / 2)
    around = b.op("where", b.op("less", y, 0.0), b.op("subtract", base, math.pi), b.op("add", base, math.pi))
    return b.op("where", zero, half, b.op("where", b.op("less", x, 0.0), around, base))


# ---- activations


def clip(b: Builder, x: Expr, low: float | int | None, high: float | int | None) -> Expr:
    """Each element held between two numbers, each of which may be missing. Whole numbers stay exact."""
    if low is None and high is None:
        return x
    if "float" in b.dtype(x) and low is not None and high is not None:
        return b.op("clip", x, a_min=float(low), a_max=float(high))
    clipped = x if low is None else b.op("maximum", x, low)
    return clipped if high is None else b.op("minimum", clipped, high)


def hard_sigmoid(b: Builder, x: Expr, alpha: float = 1 / 6, beta: float = 0.5) -> Expr:
    """`clip(alpha * x + beta, 0, 1)`."""
    line = b.op("add", b.op("multiply", x, alpha), beta)
    return b.op("clip", line, a_min=0.0, a_max=1.0)


def hard_swish(b: Builder, x: Expr) -> Expr:
    """`x * clip(x + 3, 0, 6) / 6`."""
    return b.op("multiply", x, hard_sigmoid(b, x))


def swish(b: Builder, x: Expr, alpha: float = 1.0) -> Expr:
    """`x * sigmoid(alpha * x)`."""
    return b.op("multiply", x, b.op("sigmoid", x if alpha == 1.0 else b.op("multiply", x, alpha)))


def gelu(b: Builder, x: Expr, approximate: bool = False) -> Expr:
    """`x * Phi(x)`, with the error function, or with tanh where `approximate`."""
    if approximate:
        cube = b.op("multiply", b.op("multiply", x, x), x)
        inner = b.op("multiply", b.op("add", x, b.op("multiply", cube, 0.044715)), math.sqrt(2 / math.pi))
        bell = b.op("tanh", inner)
    else:
        bell = b.op("erf", b.op("multiply", x, math.sqrt(0.5)))
    return b.op("multiply", x, b.op("add", b.op("multiply", bell, 0.5), 0.5))


def softplus(b: Builder, x: Expr) -> Expr:
    """`log(1 + exp(x))`, without overflow."""
    return b.op("add", b.op("nn.relu", x), log1p_exp(b, x))


def softsign(b: Builder, x: Expr) -> Expr:
    """`x / (1 + |x|)`."""
    return b.op("divide", x, b.op("add", b.op("abs", x), 1.0))


def mish(b: Builder, x: Expr) -> Expr:
    """`x * tanh(softplus(x))`."""
    return b.op("multiply", x, b.op("tanh", softplus(b, x)))


def elu(b: Builder, x: Expr, alpha: float = 1.0, scale: float = 1.0, inner: float = 1.0) -> Expr:
    """`scale * x` where x is positive, else `scale * alpha * (exp(inner * x) - 1)`: ELU, SELU and CELU."""
    power = x if inner == 1.0 else b.op("multiply", x, inner)
    # Below zero, exp(x) - 1 is -(1 - exp(-|x|)).
    curve, factor = (_decay(b, power), -alpha) if inner > 0 else (expm1(b, power), alpha)
    below = b.op("multiply", curve, factor * scale)
    above = x if scale == 1.0 else b.op("multiply", x, scale)
    return b.op("where", b.op("greater", x, 0.0), above, below)


def selu(b: Builder, x: Expr, alpha: float = 1.6732632423543772, scale: float = 1.0507009873554805) -> Expr:
    """ELU with the constants that keep mean and variance."""
    return elu(b, x, alpha, scale)


def prelu(b: Builder, x: Expr, slope: Expr) -> Expr:
    """x where it is positive, else `slope * x`. The slope broadcasts to x."""
    return b.op("where", b.op("less", x, 0.0 if "float" in b.dtype(x) else 0), b.op("multiply", x, slope), x)


# ---- normalisation


def moments(b: Builder, x: Expr, axes: Sequence[int]) -> tuple[Expr, Expr]:
    """The data less its mean, and the variance; both means are along the axes, which stay with extent 1."""
    apart = b.op("subtract", x, b.op("mean", x, axis=list(axes), keepdims=True))
    return apart, b.op("mean", b.op("multiply", apart, apart), axis=list(axes), keepdims=True)


def normalise(b: Builder, x: Expr, axes: Sequence[int], epsilon: float) -> Expr:
    """Mean 0 and variance 1 along the axes."""
    apart, variance = moments(b, x, axes)
    return b.op("multiply", apart, b.op("rsqrt", b.op("add", variance, epsilon)))


def scale_and_shift(b: Builder, x: Expr, scale: Expr | None, shift: Expr | None) -> Expr:
    """`x * scale + shift`; each factor may be missing."""
    x = x if scale is None else b.op("multiply", x, scale)
    return x if shift is None else b.op("add", x, shift)


def layer_norm(b: Builder, x: Expr, axis: int, epsilon: float, gamma: Expr | None, beta: Expr | None) -> Expr:
    """Normalised along the axes from `axis` on; gamma and beta broadcast to these axes.

    One axis with vectors of its extent is `nn.layer_norm`, the rest is composed.
    """
    rank = b.rank(x)
    last = b.shape(x)[-1]
    vectors = [v for v in (gamma, beta) if v is not None]
    one = axis in (-1, rank - 1) and bool(vectors)
    if one and isinstance(last, int) and all(b.shape(v) == (last,) and b.dtype(v) == b.dtype(x) for v in vectors):
        ones = gamma if gamma is not None else b.const(b.arrays.ones(last), b.dtype(x))
        zeros = beta if beta is not None else b.const(b.arrays.zeros(last), b.dtype(x))
        return b.op("nn.layer_norm", x, ones, zeros, axis=-1, epsilon=epsilon)
    return scale_and_shift(b, normalise(b, x, list(range(axis % rank, rank)), epsilon), gamma, beta)


def rms_norm(b: Builder, x: Expr, axes: Sequence[int], epsilon: float, scale: Expr | None = None) -> Expr:
    """x divided by the root of its mean square along the axes."""
    square = b.op("mean", b.op("multiply", x, x), axis=list(axes), keepdims=True)
    normalised = b.op("multiply", x, b.op("rsqrt", b.op("add", square, epsilon)))
    return scale_and_shift(b, normalised, scale, None)


def log_sum_exp(b: Builder, x: Expr, axes: Sequence[int], keepdims: bool) -> Expr:
    """The logarithm of the sum of powers along the axes, without overflow."""
    top = b.op("max", x, axis=list(axes), keepdims=True)
    total = b.op("sum", b.op("exp", b.op("subtract", x, top)), axis=list(axes), keepdims=True)
    logarithm = b.op("add", b.op("log", total), top)
    return logarithm if keepdims else b.squeeze(logarithm, axes)


# ---- matrix products


def matmul(b: Builder, x: Expr, y: Expr, out_dtype: str | None = None) -> Expr:
    """The product with numpy's meaning for operands of every rank: vectors, matrices, and batches that broadcast.

    A product with one matrix is `nn.dense` where the matrix is a weight, else `nn.matmul`; batches are `nn.batch_matmul`.
    """
    ranks = b.rank(x), b.rank(y)
    if 0 in ranks:
        raise Unsupported("a matrix product takes no scalars")
    x = b.unsqueeze(x, [0]) if ranks[0] == 1 else x
    y = b.unsqueeze(y, [1]) if ranks[1] == 1 else y
    extra = {} if out_dtype is None else {"out_dtype": out_dtype}
    if b.rank(y) == 2:
        product = _by_matrix(b, x, y, extra)
    else:
        product = _by_batch(b, x, y, extra)
    gone = [-2] * (ranks[0] == 1) + [-1] * (ranks[1] == 1)
    return b.squeeze(product, gone)


def _by_matrix(b: Builder, x: Expr, y: Expr, extra: dict[str, Any]) -> Expr:
    """A product with one matrix, as `nn.dense` where it is a weight: what patterns of accelerators look for."""
    units = b.shape(y)[1]
    static_units = units if isinstance(units, int) else None
    turned = turned_weight(b, y)
    if turned is not None:
        return b.op("nn.dense", x, turned, units=static_units, **extra)
    return b.op("nn.matmul", x, y, units=static_units, **extra)


def turned_weight(b: Builder, y: Expr) -> Expr | None:
    """A matrix that is a weight, or a dequantised one, with its axes turned; None for a computed matrix."""
    if b.value(y) is not None:
        return b.transpose(y, [1, 0])
    if isinstance(y, Call) and getattr(y.op, "name", "") == "transpose":
        inner = y.args[0]  # of a matrix: its axes turned, if anything
        is_dequantized = (
            isinstance(inner, Call) and getattr(inner.op, "name", "") == "qnn.dequantize" and b.value(inner.args[0]) is not None
        )
        if is_dequantized and list(y.attrs.axes or (1, 0)) in ([1, 0], [-1, 0]):
            return inner
    if not isinstance(y, Call) or getattr(y.op, "name", "") != "qnn.dequantize" or b.value(y.args[0]) is None:
        return None
    scale, zero, axis = y.args[1], y.args[2], y.attrs.axis
    plain = not b.rank(scale) and not b.rank(zero)
    ints = b.transpose(y.args[0], [1, 0])
    return b.op("qnn.dequantize", ints, scale, zero, axis=axis if plain else 1 - axis % 2, out_dtype=y.attrs.out_dtype)


def _by_batch(b: Builder, x: Expr, y: Expr, extra: dict[str, Any]) -> Expr:
    before = b.shape(x)[:-2], b.shape(y)[:-2]
    if not before[0] and not extra and b.rank(y) == 3:
        x = b.unsqueeze(x, [0])
    if b.rank(x) == 3 and b.rank(y) == 3:
        return b.op("nn.batch_matmul", x, y, transpose_b=False, **extra)
    rank = max(b.rank(x), b.rank(y)) - 2
    x = b.unsqueeze(x, list(range(rank + 2 - b.rank(x))))
    y = b.unsqueeze(y, list(range(rank + 2 - b.rank(y))))
    x, y = _same_batches(b, x, y)
    product = b.op("nn.batch_matmul", flatten_front(b, x, rank), flatten_front(b, y, rank), transpose_b=False, **extra)
    x_is_larger = all(extent == 1 or own != 1 for own, extent in zip(b.shape(x)[:rank], b.shape(y)[:rank]))
    like = x if x_is_larger else y
    return unflatten_front(b, product, like, rank)


def _same_batches(b: Builder, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """Both with the same batch axes, or one of them with a batch of 1."""
    rank = b.rank(x) - 2
    ones = (1,) * rank
    have = b.shape(x)[:rank], b.shape(y)[:rank]
    if have[0] == have[1] or ones in have:
        return x, y  # unknown extents that stand at the same place are taken for equal
    is_open = not all(map(is_static, (*have[0], *have[1])))
    if is_open and all(d != 1 and e != 1 for d, e in zip(*have)):
        return x, y
    if is_open:
        one, other = front_of(b, x, rank), front_of(b, y, rank)
        wanted = b.op("where", b.op("equal", one, b.const(1, b.dtype(one))), other, one)
        return _broadcast_front(b, x, wanted), _broadcast_front(b, y, wanted)
    shape = [int(e if d == 1 else d) for d, e in zip(*have)]  # type: ignore[arg-type]
    spread = []
    for part in (x, y):
        ends = b.shape(part)[rank:]
        if b.shape(part)[:rank] == tuple(shape):
            spread.append(part)
        elif all(isinstance(d, int) for d in ends):
            spread.append(b.op("broadcast_to", part, shape=[*shape, *ends]))
        else:
            spread.append(_broadcast_front(b, part, b.const(np.array(shape, np.int64))))
    return spread[0], spread[1]


def front_of(b: Builder, x: Expr, rank: int) -> Expr:
    """The first extents as a vector."""
    return b.slice(b.shape_of(x), [0], [rank], [0])


def _broadcast_front(b: Builder, x: Expr, front: Expr) -> Expr:
    rank = b.extent(front, 0)
    shape = b.concat([front, b.slice(b.shape_of(x), [rank], [b.rank(x)], [0])], 0)
    return broadcast_to(b, x, shape)


def broadcast_to(b: Builder, x: Expr, shape: Expr) -> Expr:
    """Broadcast to a computed shape; static as far as its extents are known."""
    extents = b.elements(shape)
    if extents is not None and ANY not in extents:
        return x if list(b.shape(x)) == extents else b.op("broadcast_to", x, shape=extents)
    broadcasted = b.op("dyn.broadcast_to", x, shape)
    return b.refine(broadcasted, extents) if extents is not None else broadcasted


def flatten_front(b: Builder, x: Expr, count: int) -> Expr:
    """The first axes as one; the others stay, known or not."""
    shape = b.shape(x)
    if all(isinstance(d, int) for d in shape):
        front = math.prod(int(d) for d in shape[:count] if isinstance(d, int))
        return b.reshape_exactly(x, [front, *[int(d) for d in shape[count:] if isinstance(d, int)]])
    for _ in range(count - 1):
        x = b.op("reshape", x, newshape=[-3, -2])
    return x


def unflatten_front(b: Builder, x: Expr, like: Expr, count: int) -> Expr:
    """The first axis split into the first axes of another tensor."""
    front = b.shape(like)[:count]
    if all(isinstance(d, int) for d in front):
        known = [int(d) for d in front if isinstance(d, int)]
        rest = b.shape(x)[1:]
        if all(isinstance(d, int) for d in rest):
            return b.reshape_exactly(x, [*known, *[int(d) for d in rest if isinstance(d, int)]])
        for i in range(count - 1):
            x = b.op("reshape", x, newshape=[*[0] * i, -4, known[i], -1, -2])
        return x
    return b.op("reshape_like", x, like, lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=count)


# ---- windows


def broadcast_extents(b: Builder, tensors: Sequence[Expr]) -> tuple[int, ...]:
    """The extents that tensors of known extents broadcast to. Raises `Malformed` where they do not."""
    shapes = [tuple(b.static_shape(t)) for t in tensors]
    try:
        return tuple(np.broadcast_shapes(*shapes))
    except ValueError:
        raise Malformed(f"its operands have the shapes {', '.join(map(str, shapes))}, which do not broadcast") from None


def check_window(kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> None:
    """Raise `Malformed` for a window without elements, or one that does not move."""
    for name, values in (("the kernel", kernel), ("the strides", strides), ("the dilation", dilations)):
        if any(v < 1 for v in values):
            raise Malformed(f"{name} {list(values)} must be numbers from 1 on")


def same_padding(
    sizes: Sequence[Dim], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], *, lower: bool = False
) -> list[tuple[int, int]]:
    """Pairs of padding so that a window's result has `ceil(size / stride)` places. The odd one goes behind, or before
    where `lower`. Raises `Unsupported` where a stride makes it depend on an unknown extent.
    """
    check_window(kernel, strides, dilations)
    pairs = []
    for size, k, stride, dilation in zip(sizes, kernel, strides, dilations):
        reach = (k - 1) * dilation + 1
        if isinstance(size, int):
            total = max((-(-size // stride) - 1) * stride + reach - size, 0)
        elif stride == 1:
            total = reach - 1
        else:
            raise Unsupported("the padding SAME with a stride needs a known extent; --shape gives it")
        small, large = total // 2, total - total // 2
        pairs.append((large, small) if lower else (small, large))
    return pairs


def padding_of(pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Pairs of padding in Relay's order: all begins, then all ends."""
    return [p[0] for p in pairs] + [p[1] for p in pairs]


__all__ = [
    "angle",
    "broadcast_to",
    "clip",
    "elu",
    "flatten_front",
    "front_of",
    "gelu",
    "hard_sigmoid",
    "hard_swish",
    "layer_norm",
    "log_sum_exp",
    "matmul",
    "mish",
    "moments",
    "normalise",
    "padding_of",
    "prelu",
    "rms_norm",
    "same_padding",
    "scale_and_shift",
    "selu",
    "softplus",
    "softsign",
    "swish",
    "turned_weight",
    "unflatten_front",
]
