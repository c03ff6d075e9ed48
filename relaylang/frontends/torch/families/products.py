"""Products of vectors and matrices under their many names, and distances between rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, nn
from relaylang.frontends.common.linear import Matrices, inverse
from relaylang.frontends.common.nn import broadcast_to, matmul
from relaylang.frontends.torch.families.elementwise import floating
from relaylang.frontends.torch.node import Node, on_axes
from relaylang.ir import Expr


def dot(n: Node) -> Any:
    b = n.b
    y = n.x("tensor") if "tensor" in n.call.args else n.x("other")
    return b.op("sum", b.op("multiply", n.x(), y))


def inner(n: Node) -> Any:
    """Over the last axes of both."""
    b, x, y = n.b, n.x(), n.x("other")
    if not b.rank(x) or not b.rank(y):
        return b.op("multiply", x, y)
    return _over(b, x, y, [b.rank(x) - 1], [b.rank(y) - 1])


def outer(n: Node) -> Any:
    b = n.b
    return b.op("multiply", b.unsqueeze(n.x(), [1]), b.unsqueeze(n.x("vec2"), [0]))


def tensordot(n: Node) -> Any:
    b, x, y = n.b, n.x(), n.x("other")
    axes = [[a % b.rank(t) for a in n.ints(name)] for t, name in ((x, "dims_self"), (y, "dims_other"))]
    for i, j in zip(*axes):  # an extent of 1 goes with any other
        if b.shape(x)[i] == 1 != b.shape(y)[j]:
            y = b.op("sum", y, axis=[j], keepdims=True)
        elif b.shape(y)[j] == 1 != b.shape(x)[i]:
            x = b.op("sum", x, axis=[i], keepdims=True)
    return _over(b, x, y, *axes)


def _over(b: Builder, x: Expr, y: Expr, left: list[int], right: list[int]) -> Expr:
    """The sum of products over axes of both."""
    rows = [a for a in range(b.rank(x)) if a not in left]
    columns = [a for a in range(b.rank(y)) if a not in right]
    heights, widths = [b.extent(x, a) for a in rows], [b.extent(y, a) for a in columns]
    depth = math.prod(b.extent(x, a) for a in left)
    one = b.reshape_exactly(b.transpose(x, [*rows, *left]), [math.prod(heights), depth])
    two = b.reshape_exactly(b.transpose(y, [*right, *columns]), [depth, math.prod(widths)])
    return b.reshape_exactly(matmul(b, one, two), [*heights, *widths])


def kron(n: Node) -> Any:
    """Each element of one times the other."""
    b, x, y = n.b, n.x(), n.x("other")
    rank = max(b.rank(x), b.rank(y))
    x, y = (b.unsqueeze(t, list(range(rank - b.rank(t)))) for t in (x, y))
    sizes = [b.extent(x, i) * b.extent(y, i) for i in range(rank)]
    product = b.op("multiply", b.unsqueeze(x, [2 * i + 1 for i in range(rank)]), b.unsqueeze(y, [2 * i for i in range(rank)]))
    return b.reshape_exactly(product, sizes)


def _scaled(n: Node, product: Expr) -> Any:
    """`beta * self + alpha * product`."""
    b, bias = n.b, n.x()
    alpha, beta = n.get("alpha", 1), n.get("beta", 1)
    if b.dtype(product) == "bool":
        bias, product = (t if factor else b.op("zeros_like", t) for t, factor in ((bias, beta), (product, alpha)))
        return b.op("logical_or", bias, product)
    product = product if alpha == 1 else b.op("multiply", product, b.const(alpha, b.dtype(product)))
    if beta == 0:  # what the other term holds has no effect, even NaN
        return product
    bias = bias if beta == 1 else b.op("multiply", bias, b.const(beta, b.dtype(bias)))
    return b.op("add", bias, product)


def chain(n: Node) -> Any:
    b = n.b
    matrices = n.get("tensors" if "tensors" in n.call.args else "matrices")
    if not matrices:
        raise Malformed("its list of matrices is empty")
    first, *rest = matrices
    for y in rest:
        first = matmul(b, first, y)
    return first


def matrix_power(n: Node) -> Any:
    """By repeated squares."""
    b, x, count = n.b, n.x(), n.int("n")
    if count == 0:
        return b.op("add", b.op("zeros_like", x), b.const(b.arrays.eye(b.extent(x, -1)), b.dtype(x)))
    if count < 0:
        matrices = Matrices(b, x)
        matrices.square()
        x, count = matrices.back(inverse(b, matrices.x)), -count
    power: Expr | None = None
    while count:
        if count & 1:
            power = x if power is None else matmul(b, power, x)
        count >>= 1
        x = matmul(b, x, x) if count else x
    return power


def bilinear(n: Node) -> Any:
    """`x1 W x2 + bias` for each unit."""
    b = n.b
    x, y, weight = n.x("input1"), n.x("input2"), n.x("weight")
    units, left, right = b.static_shape(weight, "the weights")
    rank = b.rank(x)
    rows, others = (nn.flatten_front(b, t, rank - 1) if rank > 1 else b.unsqueeze(t, [0]) for t in (x, y))
    flat = b.reshape_exactly(b.transpose(weight, [1, 0, 2]), [left, units * right])
    part = b.op("reshape", matmul(b, rows, flat), newshape=[0, units, right])
    products = b.op("sum", b.op("multiply", part, b.unsqueeze(others, [1])), axis=[2])
    products = nn.unflatten_front(b, products, x, rank - 1) if rank > 1 else b.squeeze(products, [0])
    return b.op("add", products, n.x("bias")) if n.has("bias") else products


def cross(n: Node) -> Any:
    """The cross product of vectors with three elements."""
    b, x, y = n.b, n.x(), n.x("other")
    rank = max(b.rank(x), b.rank(y))
    axis = n.get("dim", -1 if "linalg" in n.call.target else None)
    if axis is None:
        axis = next(i for i in range(rank) if b.shape(x)[i] == 3)
    axis %= rank

    def turned(t: Expr, by: int) -> Expr:
        own = axis - rank + b.rank(t)
        order = [(i + by) % 3 for i in range(3)]
        return b.op("take", t, b.const(np.array(order)), axis=own) if b.shape(t)[own] == 3 else t

    left = b.op("multiply", turned(x, 1), turned(y, 2))
    return b.op("subtract", left, b.op("multiply", turned(x, 2), turned(y, 1)))


def lengths(b: Builder, apart: Expr, p: float, axis: int, keep: bool = False) -> Expr:
    """The p-norm along an axis."""
    size = b.op("abs", apart)
    if p == 0:
        return b.op("sum", b.cast(b.op("not_equal", apart, 0.0), b.dtype(apart)), axis=[axis], keepdims=keep)
    if p == 1:
        return b.op("sum", size, axis=[axis], keepdims=keep)
    if p == math.inf:
        return b.op("max", size, axis=[axis], keepdims=keep)
    if p == 2:
        return b.op("sqrt", b.op("sum", b.op("multiply", apart, apart), axis=[axis], keepdims=keep))
    return b.op("power", b.op("sum", b.op("power", size, p), axis=[axis], keepdims=keep), 1 / p)


def distances(n: Node) -> Any:
    """Between each row of one and each row of the other."""
    b, x, y = n.b, floating(n, "x1"), floating(n, "x2")
    apart = b.op("subtract", b.unsqueeze(x, [-2]), b.unsqueeze(y, [-3]))
    return lengths(b, apart, float(n.get("p", 2.0)), b.rank(apart) - 1)


def own_distances(n: Node) -> Any:
    """Between each row and each one behind it."""
    b, x = n.b, n.x()
    first, second = np.triu_indices(b.extent(x, 0), 1)
    rows = [b.op("take", x, b.const(i.astype(np.int64)), axis=0) for i in (first, second)]
    return lengths(b, b.op("subtract", *rows), float(n.get("p", 2.0)), 1)


def pairwise_distance(n: Node) -> Any:
    b, x, y = n.b, floating(n, "x1"), floating(n, "x2")
    apart = b.op("add", b.op("subtract", x, y), float(n.get("eps", 1e-6)))
    return lengths(b, apart, float(n.get("p", 2.0)), b.rank(apart) - 1, bool(n.get("keepdim", False)))


def cosine_similarity(n: Node) -> Any:
    """Each length is at least `eps`."""
    b, x, y = n.b, n.x("x1"), n.x("x2")
    axis, eps = n.int("dim", 1), float(n.get("eps", 1e-8))
    rank = max(b.rank(x), b.rank(y))
    product = b.op("multiply", x, y)
    axis %= max(rank, 1)
    shape = b.shape_of(product)
    parts = []
    for t in (broadcast_to(b, x, shape), broadcast_to(b, y, shape)):
        parts.append(b.op("divide", t, b.op("maximum", lengths(b, t, 2, axis, True), eps)))
    return b.op("sum", b.op("multiply", *parts), axis=[axis])


RULES = (
    Rule("aten._cdist_forward", distances),
    Rule("aten._pdist_forward", own_distances),
    Rule("aten.addbmm", lambda n: _scaled(n, n.b.op("sum", matmul(n.b, n.x("batch1"), n.x("batch2")), axis=[0]))),
    Rule("aten.addmv", lambda n: _scaled(n, matmul(n.b, n.x("mat"), n.x("vec")))),
    Rule("aten.addr", lambda n: _scaled(n, n.b.op("multiply", n.b.unsqueeze(n.x("vec1"), [1]), n.b.unsqueeze(n.x("vec2"), [0])))),
    Rule("aten.bilinear", bilinear),
    Rule("aten.cdist", distances),
    Rule("aten.chain_matmul", chain),
    Rule("aten.cosine_similarity", on_axes(cosine_similarity)),
    Rule("aten.cross", cross),
    Rule("aten.dot", dot),
    Rule("aten.ger", outer),
    Rule("aten.inner", inner),
    Rule("aten.kron", kron),
    Rule("aten.linalg_cross", cross),
    Rule("aten.linalg_matmul", lambda n: matmul(n.b, n.x(), n.x("other"))),
    Rule("aten.linalg_matrix_power", matrix_power),
    Rule("aten.linalg_multi_dot", chain),
    Rule("aten.matrix_power", matrix_power),
    Rule("aten.outer", outer),
    Rule("aten.pairwise_distance", pairwise_distance),
    Rule("aten.pdist", own_distances),
    Rule("aten.tensordot", tensordot),
    Rule("aten.vdot", dot),
)
