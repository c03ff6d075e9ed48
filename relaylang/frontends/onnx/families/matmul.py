"""Matrix products."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Builder, Rule, Unsupported, nn
from relaylang.frontends.common.einsum import einsum as einsum_of
from relaylang.frontends.common.linear import Matrices, determinant, lu
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
    m = Matrices(n.b, x)
    m.square()
    factors, _, exchanged = lu(n.b, m.x)
    return m.back(determinant(n.b, factors, exchanged))


RULES = (
    Rule("MatMul", matmul),
    Rule("Gemm", gemm),
    Rule("Einsum", einsum),
    Rule("Det", det),
)
