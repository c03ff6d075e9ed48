"""Products of matrices."""

from __future__ import annotations

import math
from typing import Any

from relaylang.frontends.common import Malformed, Rule, Unsupported, nn
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.einsum import einsum as einsum_
from relaylang.frontends.paddle.families.elementwise import joined
from relaylang.frontends.paddle.node import Node, Tensors
from relaylang.ir import Expr


def _turned(b: Builder, x: Expr, turn: bool) -> Expr:
    """The last two axes changed for each other. A vector stays."""
    rank = b.rank(x)
    return b.transpose(x, [*range(rank - 2), rank - 1, rank - 2]) if turn and rank > 1 else x


def matmul(n: Node, x: Expr, y: Expr) -> Any:
    b = n.b
    x, y = joined(b, x, y)
    x, y = _turned(b, x, n.bool("transpose_x", False)), _turned(b, y, n.bool("transpose_y", False))
    return nn.matmul(b, x, y)


def legacy_matmul(n: Node, x: Expr, y: Expr) -> Any:
    """The product times `alpha`. That of two vectors has one element in one axis."""
    b, alpha = n.b, n.float("alpha", 1.0)
    product = matmul(n, x, y)
    product = product if alpha == 1 else b.op("multiply", product, alpha)
    return product if b.rank(product) else b.reshape_exactly(product, [1])


def flat(b: Builder, x: Expr, columns: int) -> Expr:
    """A matrix of an operand: the axes before `columns` are its rows."""
    rank = b.rank(x)
    if not 0 < columns < rank:
        raise Malformed(f"it makes a matrix of an operand that has {int(rank)} axes, at the axis {columns}")
    return x if rank == 2 else nn.flatten_front(b, _flat_end(b, x, columns), columns)


def _flat_end(b: Builder, x: Expr, columns: int) -> Expr:
    ends = b.shape(x)[columns:]
    if len(ends) == 1:
        return x
    if not all(isinstance(d, int) for d in ends):
        raise Unsupported("its operand must have known extents; --shape gives them")
    return b.op("reshape", x, newshape=[*[0] * columns, math.prod(int(d) for d in ends)])


def matmul_with_flatten(n: Node, x: Expr, y: Expr) -> Any:
    b, columns, others = n.b, n.int("x_num_col_dims", 1), n.int("y_num_col_dims", 1)
    product = nn.matmul(b, flat(b, x, columns), flat(b, y, others))
    product = product if columns == 1 else nn.unflatten_front(b, product, x, columns)
    rest = b.shape(y)[others:]
    return product if len(rest) == 1 else b.op("reshape", product, newshape=[*[0] * columns, *b.static_shape(y)[others:]])


def fc(n: Node, x: Expr, weight: Expr, bias: Expr | None = None) -> Any:
    b, columns = n.b, n.int("in_num_col_dims", 1)
    product = nn.matmul(b, flat(b, x, columns), weight)
    if bias is not None:
        product = b.op("add", product, b.reshape(bias, [-1]))
    kind = n.text("activation_type", "")
    if kind not in ("", "relu"):
        raise Unsupported(f"its activation is {kind[:40]!r}")
    product = b.op("nn.relu", product) if kind else product
    return product if columns == 1 else nn.unflatten_front(b, product, x, columns)


def linear(n: Node, x: Expr, weight: Expr, bias: Expr | None = None) -> Any:
    product = nn.matmul(n.b, x, _turned(n.b, weight, n.bool("transpose_weight", False)))
    return product if bias is None else n.b.op("add", product, bias)


def dot(n: Node, x: Expr, y: Expr) -> Any:
    """The product along the last axis, which programs of PaddlePaddle 2 keep."""
    b = n.b
    old = n.operation.attributes.get("op_role") is not None and b.rank(x) == 1
    return b.op("sum", b.op("multiply", x, y), axis=[-1], keepdims=old)


def addmm(n: Node, x: Expr, left: Expr, right: Expr) -> Any:
    b = n.b
    product = b.op("multiply", nn.matmul(b, left, right), n.float("alpha", 1.0))
    return b.op("add", b.op("multiply", x, n.float("beta", 1.0)), product)


def einsum(n: Node, xs: Tensors) -> Any:
    return [einsum_(n.b, n.text("equation"), n.list(xs))]


def dist(n: Node, x: Expr, y: Expr) -> Any:
    """The norm of a difference."""
    b, p = n.b, n.operation.attributes.get("p", 2.0)
    apart = b.op("abs", b.op("subtract", x, y))
    every = list(range(b.rank(apart)))
    if not isinstance(p, (int, float)):
        raise Malformed(f"its attribute p is {str(p)[:40]!r}")
    if math.isinf(p):
        return b.op("max" if p > 0 else "min", apart, axis=every)
    if p == 0:
        return b.op("sum", b.cast(b.op("not_equal", apart, 0.0), b.dtype(x)), axis=every)
    return b.op("power", b.op("sum", b.op("power", apart, float(p)), axis=every), 1.0 / p)


def kron(n: Node, x: Expr, y: Expr) -> Any:
    """Blocks of the second operand, each times an element of the first."""
    b = n.b
    shapes = [list(b.static_shape(v)) for v in (x, y)]
    rank = max(map(len, shapes))
    left, right = ([1] * (rank - len(s)) + s for s in shapes)
    parts = [[d for pair in zip(s, [1] * rank) for d in (pair if at == 0 else pair[::-1])] for at, s in enumerate((left, right))]
    product = b.op("multiply", *[b.reshape_exactly(v, p) for v, p in zip((x, y), parts)])
    return b.reshape_exactly(product, [p * q for p, q in zip(left, right)])


RULES = (
    Rule("addmm", addmm),
    Rule("baddbmm", addmm),
    Rule("bmm", lambda n, x, y: nn.matmul(n.b, n.b.of_rank(x, 3), n.b.of_rank(y, 3))),
    Rule("dist", dist),
    Rule("dot", dot),
    Rule("einsum", einsum),
    Rule("fc", fc),
    Rule("kron", kron),
    Rule("legacy_matmul", legacy_matmul),
    Rule("linear_v2", linear),
    Rule("matmul", matmul),
    Rule("matmul_with_flatten", matmul_with_flatten),
    Rule("mv", lambda n, x, vector: nn.matmul(n.b, n.b.of_rank(x, 2), n.b.of_rank(vector, 1))),
)
