"""Inverses, solutions, determinants and factors of matrices, by `frontends.common.linear`."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Malformed, Rule
from relaylang.frontends.common import linear as la
from relaylang.frontends.common.linear import Matrices, turned
from relaylang.frontends.paddle.node import Node
from relaylang.ir import Expr


def _sides(n: Node, a: Expr, y: Expr) -> tuple[Matrices, Matrices]:
    """Square matrices and the right sides of equations, of one batch."""
    m, right = la.sides(n.b, a, y)
    m.square()
    return m, right


def inverse(n: Node, x: Expr) -> Any:
    m = Matrices(n.b, x)
    m.square()
    return m.back(la.inverse(n.b, m.x))


def solve(n: Node, x: Expr, y: Expr) -> Any:
    b = n.b
    vector = b.rank(y) == 1 or (b.rank(y) == b.rank(x) - 1 and tuple(b.shape(y)) == tuple(b.shape(x))[:-1])
    m, right = _sides(n, x, b.unsqueeze(y, [b.rank(y)]) if vector else y)
    solution = right.back(la.solve(b, m.x, right.x))
    return b.squeeze(solution, [-1]) if vector else solution


def triangular_solve(n: Node, x: Expr, y: Expr) -> Any:
    b, upper, turn = n.b, n.bool("upper", True), n.bool("transpose", False)
    m, right = _sides(n, turned(b, x) if turn else x, y)
    return right.back(la.solve_triangular(b, m.x, right.x, upper != turn, n.bool("unitriangular", False)))


def determinant(n: Node, x: Expr) -> Any:
    m = Matrices(n.b, x)
    m.square()
    factors, _, exchanged = la.lu(n.b, m.x)
    return m.back(la.determinant(n.b, factors, exchanged))


def log_determinant(n: Node, x: Expr) -> Any:
    """The signs, and behind them the logarithms of the sizes."""
    m = Matrices(n.b, x)
    m.square()
    factors, _, exchanged = la.lu(n.b, m.x)
    return n.b.op("stack", n.b.tuple([m.back(v) for v in la.log_determinant(n.b, factors, exchanged)]), axis=0)


def lu(n: Node, x: Expr) -> Any:
    b, m = n.b, Matrices(n.b, x)
    factors, _, exchanged = la.lu(b, m.x, n.bool("pivot", True))
    pivots = b.op("add", b.squeeze(exchanged, [2]), 1)
    info = la.first_wrong(b, b.op("equal", la.diagonal(b, factors), 0.0))
    return [m.back(v) for v in (factors, pivots, info)]


def cholesky(n: Node, x: Expr) -> Any:
    b, upper = n.b, n.bool("upper", False)
    m = Matrices(b, turned(b, x) if upper else x)
    m.square()
    factor = m.back(la.cholesky(b, m.x))
    return turned(b, factor) if upper else factor


def cholesky_solve(n: Node, y: Expr, factor: Expr) -> Any:
    """The right side is the first operand."""
    b = n.b
    m, right = _sides(n, turned(b, factor) if n.bool("upper", False) else factor, y)
    x = la.solve_triangular(b, m.x, right.x, False)
    return right.back(la.solve_triangular(b, turned(b, m.x), x, True))


def qr(n: Node, x: Expr) -> Any:
    b, mode, m = n.b, n.text("mode", "reduced"), Matrices(n.b, x)
    if mode not in ("reduced", "complete", "r"):
        raise Malformed(f"its mode is {mode[:40]!r}; it must be reduced, complete or r")
    q, r = la.qr(b, m.x)
    if mode != "complete":
        least = min(m.rows, m.columns)
        q, r = b.slice(q, [0], [least], [2]), b.slice(r, [0], [least], [1])
    return [m.back(q), m.back(r)]


RULES = (
    Rule("cholesky", cholesky),
    Rule("cholesky_solve", cholesky_solve),
    Rule("det", determinant),
    Rule("inverse", inverse),
    Rule("lu", lu),
    Rule("qr", qr),
    Rule("slogdet", log_determinant),
    Rule("solve", solve),
    Rule("triangular_solve", triangular_solve),
)
