"""Products, convolutions, windows, reductions, normalisations and Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from relaylang.frontends.common import Builder, Malformed, Rule, hlo, hlo_windows
from relaylang.frontends.common import linear as la
from relaylang.frontends.common.complexes import Complex, as_complex, fourier, half, product, real_inverse
from relaylang.frontends.common.einsum import einsum
from relaylang.frontends.common.hlo_joins import need_one, reduce_axes
from relaylang.frontends.stablehlo.bodies import region_function, region_join
from relaylang.frontends.stablehlo.node import Node
from relaylang.ir import Expr


def _dot(n: Node, batching: Sequence[Sequence[int]], contracting: Sequence[Sequence[int]]) -> Any:
    """Products are computed in the result's element type."""
    b, dtype = n.b, n.out().dtype

    def times(x: Expr, y: Expr) -> Expr:
        return hlo.dot_general(b, b.cast(x, dtype), b.cast(y, dtype), batching, contracting)

    x, y = n.any(0), n.any(1)
    if isinstance(x, Complex) or isinstance(y, Complex):
        like = x.real if isinstance(x, Complex) else y.real
        return product(b, as_complex(b, x, like), as_complex(b, y, like), times)
    return times(n.x(0), n.x(1))


def dot_general(n: Node) -> Any:
    sides = [[n.ints(f"{side}_{kind}_dimensions", default=[]) for side in ("lhs", "rhs")] for kind in ("batching", "contracting")]
    return _dot(n, *sides)


def dot(n: Node) -> Any:
    x = n.any(0)
    rank = n.b.rank(x.real if isinstance(x, Complex) else x)
    return _dot(n, [[], []], [[rank - 1], [0]])


def equation(n: Node) -> Any:
    return einsum(n.b, n.word("einsum_config"), n.xs())


_SIDES = (("input", "batch", "feature"), ("kernel", "output_feature", "input_feature"), ("output", "batch", "feature"))


def convolution(n: Node) -> Any:
    """The padding is an attribute, or the third operand of dynamic_conv."""
    b = n.b
    orders = {
        side: [n.int(f"{side}_{i}_dimension"), n.int(f"{side}_{j}_dimension"), *n.ints(f"{side}_spatial_dimensions", default=[])]
        for side, i, j in _SIDES
    }
    rank, dtype = len(orders["input"]) - 2, n.out().dtype
    turned: Any = n.attributes.get("window_reversal")
    turned = turned.reshape(-1).tolist() if hasattr(turned, "reshape") else turned or [False] * rank
    if not isinstance(turned, list):
        turned = [False] * rank
    flat = b.need_ints(n.x(2), "the padding") if n.op.name == "stablehlo.dynamic_conv" else None
    pads = n.pairs("padding", rank) if flat is None else list(zip(flat[::2], flat[1::2]))
    strides, inner, gaps = (n.ints(name, rank, 1) for name in ("window_strides", "lhs_dilation", "rhs_dilation"))
    groups = n.int("feature_group_count", 1), n.int("batch_group_count", 1)
    x, weights = b.cast(n.x(0), dtype), b.cast(n.x(1), dtype)
    return hlo_windows.convolution(b, x, weights, orders, strides, pads, inner, gaps, [bool(t) for t in turned], *groups)


# ---- reductions


def reduce_(n: Node) -> Any:
    """Operands: data, then the first values."""
    count = len(n) // 2
    xs, first = n.xs(0, count), n.xs(count)
    need_one(xs, first)
    return reduce_axes(n.b, xs, first, n.ints("dimensions"), region_join(n))


def reduce_window(n: Node) -> Any:
    count = len(n) // 2
    xs, first = n.xs(0, count), n.xs(count)
    need_one(xs, first)
    rank = int(n.b.rank(xs[0]))
    size = n.ints("window_dimensions", rank)
    strides, gaps, inner = (n.ints(name, rank, 1) for name in ("window_strides", "window_dilations", "base_dilations"))
    return hlo_windows.reduce_window(n.b, xs, first, size, strides, gaps, inner, n.pairs("padding", rank), region_join(n))


def select_and_scatter(n: Node) -> Any:
    rank = int(n.b.rank(n.x(0)))
    each = region_function(n, n.region(0))
    size, strides, pads = n.ints("window_dimensions", rank, 1), n.ints("window_strides", rank, 1), n.pairs("padding", rank)

    def select(x: Expr, y: Expr) -> Expr:
        keeps: Expr = each([x, y])[0]
        return keeps

    return hlo_windows.select_and_scatter(n.b, n.x(0), n.x(1), n.x(2), size, strides, pads, select, region_join(n, 1))


def map_(n: Node) -> Any:
    """A region of scalars applied to each element."""
    return region_function(n, n.region(0))(n.xs())


# ---- normalisations


def _epsilon(n: Node) -> float:
    value = n.float("epsilon")
    if not math.isfinite(value):
        raise Malformed(f"its attribute epsilon is {value}")
    return value


def _axis(n: Node) -> int:
    axis = n.int("feature_index")
    if not 0 <= axis < n.b.rank(n.x(0)):
        raise Malformed(f"its attribute feature_index is {axis} of {n.b.rank(n.x(0))} axes")
    return axis


def _along(b: Builder, vector: Expr, axis: int, rank: int) -> Expr:
    return hlo.placed(b, vector, [axis], rank)


def _moments(b: Builder, x: Expr, axis: int) -> tuple[Expr, Expr]:
    axes = [a for a in range(b.rank(x)) if a != axis]
    mean = b.op("mean", x, axis=axes)
    apart = b.op("subtract", x, _along(b, mean, axis, b.rank(x)))
    return mean, b.op("mean", b.op("multiply", apart, apart), axis=axes)


def batch_norm_training(n: Node) -> Any:
    """The normalised data, and the mean and the variance of each channel."""
    b, x, axis = n.b, n.x(0), _axis(n)
    mean, variance = _moments(b, x, axis)
    normalised = b.op("nn.batch_norm", x, n.x(1), n.x(2), mean, variance, axis=axis, epsilon=_epsilon(n))
    return [b.fields(normalised)[0], mean, variance]


def batch_norm_grad(n: Node) -> Any:
    """Operands: data, scale, mean, variance, the gradient of the result."""
    b, axis = n.b, _axis(n)
    x, scale, mean, variance, slope = n.xs(0, 5)
    rank = b.rank(x)
    axes = [a for a in range(rank) if a != axis]
    apart = b.op("subtract", x, _along(b, mean, axis, rank))
    inverse = b.op("rsqrt", b.op("add", variance, _epsilon(n)))
    offset = b.op("sum", slope, axis=axes)
    inner = b.op("sum", b.op("multiply", slope, apart), axis=axes)
    count = math.prod(b.static_shape(x)[a] for a in axes)
    spread = b.op("divide", b.op("multiply", inner, b.op("multiply", inverse, inverse)), float(count))
    left = b.op("subtract", slope, _along(b, b.op("divide", offset, float(count)), axis, rank))
    left = b.op("subtract", left, b.op("multiply", apart, _along(b, spread, axis, rank)))
    gradient = b.op("multiply", left, _along(b, b.op("multiply", scale, inverse), axis, rank))
    return [gradient, b.op("multiply", inner, inverse), offset]


# ---- spectra


def fft(n: Node) -> Any:
    """Along the last axes, as many as there are lengths."""
    b, kind, lengths = n.b, n.word("fft_type"), n.ints("fft_length")
    x = n.any(0)
    real = x.real if isinstance(x, Complex) else n.x(0)
    rank, count = b.rank(real), len(lengths)
    if not 1 <= count <= rank:
        raise Malformed(f"its attribute fft_length has {count} numbers for {rank} axes")
    axes = list(range(rank - count, rank))
    wanted = [*lengths[:-1], lengths[-1] // 2 + 1] if kind == "IRFFT" else lengths
    have = [b.extent(real, a) for a in axes]
    if have != wanted:
        raise Malformed(f"its attribute fft_length is {lengths}, and the operand has the extents {have}")
    if isinstance(x, Complex) == (kind == "RFFT"):
        raise Malformed(f"its operand does not fit the type {kind[:20]}")
    if kind == "RFFT":
        x = half(b, fourier(b, as_complex(b, real, real), axes[-1]), axes[-1])
        axes = axes[:-1]
    elif kind not in ("FFT", "IFFT", "IRFFT"):
        raise Malformed(f"its attribute fft_type is {kind[:20]}; it must be FFT, IFFT, RFFT or IRFFT")
    for axis in reversed(axes[:-1] if kind == "IRFFT" else axes):
        x = fourier(b, x, axis, inverse=kind in ("IFFT", "IRFFT"))
    return real_inverse(b, x, axes[-1], lengths[-1]) if kind == "IRFFT" else x


# ---- matrices


def cholesky(n: Node) -> Any:
    """The lower factor, or the upper one of the upper triangle."""
    b, x = n.b, n.x(0)
    lower = bool(n.int("lower", 0))
    m = la.Matrices(b, x if lower else la.turned(b, x))
    m.square()
    factor = m.back(la.cholesky(b, m.x))
    return factor if lower else la.turned(b, factor)


def triangular_solve(n: Node) -> Any:
    """`x` of `op(a) x = b`, or of `x op(a) = b`, where `op` may transpose."""
    b, (a, y) = n.b, n.of(2)
    word, left, lower = n.word("transpose_a", "NO_TRANSPOSE"), bool(n.int("left_side", 1)), bool(n.int("lower", 0))
    if word not in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"):
        raise Malformed(f"its attribute transpose_a is {word[:20]}; it must be NO_TRANSPOSE, TRANSPOSE or ADJOINT")
    turn = (word != "NO_TRANSPOSE") != (not left)
    m, right = la.Matrices(b, la.turned(b, a) if turn else a), la.Matrices(b, y if left else la.turned(b, y))
    if m.square() != right.rows or b.shape(a)[:-2] != b.shape(y)[:-2]:
        raise Malformed("its operands have other extents")
    x = right.back(la.solve_triangular(b, m.x, right.x, lower == turn, bool(n.int("unit_diagonal", 0))))
    return x if left else la.turned(b, x)


RULES = tuple(
    [
        Rule(f"stablehlo.{name}", function)
        for name, function in (
            ("batch_norm_grad", batch_norm_grad),
            (
                "batch_norm_inference",
                lambda n: n.b.fields(n.b.op("nn.batch_norm", *n.xs(0, 5), axis=_axis(n), epsilon=_epsilon(n)))[0],
            ),
            ("batch_norm_training", batch_norm_training),
            ("cholesky", cholesky),
            ("convolution", convolution),
            ("dot", dot),
            ("dot_general", dot_general),
            ("dynamic_conv", convolution),
            ("einsum", equation),
            ("fft", fft),
            ("map", map_),
            ("reduce", reduce_),
            ("reduce_window", reduce_window),
            ("select_and_scatter", select_and_scatter),
            ("triangular_solve", triangular_solve),
            ("unary_einsum", equation),
        )
    ]
)
