"""Products of matrices."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Rule, nn
from relaylang.frontends.common.einsum import einsum
from relaylang.frontends.tensorflow.node import Node
from relaylang.ir import Expr


def _turned(n: Node, x: Expr, turn: bool) -> Expr:
    rank = n.b.rank(x)
    return n.b.transpose(x, [*range(rank - 2), rank - 1, rank - 2]) if turn else x


def matmul(n: Node, x: Expr, y: Expr) -> Any:
    b = n.b
    x, y = b.of_rank(x, 2), b.of_rank(y, 2)
    return nn.matmul(b, _turned(n, x, n.bool("transpose_a")), _turned(n, y, n.bool("transpose_b")))


def batch_matmul(n: Node, x: Expr, y: Expr) -> Any:
    """Batches broadcast. Whole numbers of 8 bits may add up in int32."""
    b = n.b
    product = nn.matmul(b, _turned(n, x, n.bool("adj_x")), _turned(n, y, n.bool("adj_y")), n.dtype("Tout") if n.has("Tout") else None)
    return product


RULES = (
    Rule("BatchMatMul", batch_matmul),
    Rule("BatchMatMulV2", batch_matmul),
    Rule("BatchMatMulV3", batch_matmul),
    Rule("Einsum", lambda n, *xs: [einsum(n.b, n.text("equation"), list(xs))]),
    Rule("MatMul", matmul),
)
