"""Matrix products."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Builder, Rule, Unsupported, nn
from relaylang.frontends.common.einsum import einsum as einsum_of
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr


def matmul(n: Node, x: Expr, y: Expr) -> Any:
    return nn.matmul(n.b, x, y)


def gemm(n: Node, x: Expr, y: Expr, z: Expr | None = None) -> Any:
    b = n.b
    alpha, beta = n.float("alpha", 1.0), n.float("beta", 1.0)
    product = _product(b, x, y, bool(n.int("transA", 0)), bool(n.int("transB", 0)))
    product = product if alpha == 1.0 else _scaled(b, product, alpha)
    if z is None or beta == 0.0:
        return product
    z = z if beta == 1.0 else _scaled(b, z, beta)
    vector = b.rank(z) == 1 and b.shape(z)[0] == b.shape(product)[-1] and b.shape(z)[0] != 1
    return b.op("nn.bias_add", product, z, axis=-1) if vector else b.op("add", product, z)


def _product(b: Builder, x: Expr, y: Expr, transpose_x: bool, transpose_y: bool) -> Expr:
    if transpose_x:
        x = b.transpose(x, [1, 0])
    if not transpose_y:
        return nn.matmul(b, x, y)
    units = b.shape(y)[0]
    return b.op("nn.dense", x, y, units=units if isinstance(units, int) else None)


def _scaled(b: Builder, x: Expr, factor: float) -> Expr:
    if "float" in b.dtype(x):
        return b.op("multiply", x, factor)
    if factor != int(factor):
        raise Unsupported("a product of whole numbers takes whole factors only")
    return b.op("multiply", x, int(factor))


def einsum(n: Node, *xs: Expr) -> Any:
    return [einsum_of(n.b, n.string("equation"), xs)]


def det(n: Node, x: Expr) -> Any:
    """Elimination, a column at a time, with the largest element of the column as pivot."""
    b = n.b
    size = b.extent(x, -1, "a matrix")
    if size > 16:
        raise Unsupported(f"determinants of matrices with more than 16 rows, here {size}, are not converted")
    result: Any = None
    for left in range(size, 0, -1):
        column = b.slice(x, [0], [1], [b.rank(x) - 1])
        best = b.op("argmax", b.op("abs", column), axis=[-2], keepdims=True)
        pivot_row = b.op("one_hot", b.squeeze(best, [-2, -1]), 1.0, 0.0, depth=left, dtype=b.dtype(x)) if left > 1 else None
        if pivot_row is None:
            last = b.squeeze(column, [-2, -1])
            return last if result is None else b.op("multiply", result, last)
        chosen = b.unsqueeze(pivot_row, [-1])  # 1 at the pivot's row
        row = b.op("sum", b.op("multiply", x, chosen), axis=[-2], keepdims=True)
        pivot = b.slice(row, [0], [1], [b.rank(x) - 1])
        first = b.slice(x, [0], [1], [b.rank(x) - 2])
        # The first row takes the pivot's place; a change of two rows changes the sign.
        moved = b.op("add", b.op("multiply", x, b.op("subtract", 1.0, chosen)), b.op("multiply", chosen, first))
        below = b.slice(moved, [1], [left], [b.rank(x) - 2])
        one = b.const(1, b.dtype(x))
        safe = b.op("where", b.op("equal", pivot, 0.0), one, pivot)
        factor = b.op("divide", b.slice(below, [0], [1], [b.rank(x) - 1]), safe)
        below = b.op("subtract", below, b.op("multiply", factor, row))
        sign = b.op("where", b.op("equal", best, 0), one, b.const(-1, b.dtype(x)))
        part = b.squeeze(b.op("multiply", sign, pivot), [-2, -1])
        result = part if result is None else b.op("multiply", result, part)
        x = b.slice(below, [1], [left], [b.rank(x) - 1])
    return result


RULES = (
    Rule("MatMul", matmul),
    Rule("Gemm", gemm),
    Rule("Einsum", einsum),
    Rule("Det", det),
)
