"""Inverses, solutions, determinants and factors of matrices, by `frontends.common.linear`."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported
from relaylang.frontends.common import linear as la
from relaylang.frontends.common.linear import Matrices, turned
from relaylang.frontends.common.nn import broadcast_to
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr


def _matrix(n: Node) -> Any:
    return n.x("A") if "A" in n.call.args else n.x()


def _info(b: Builder, m: Matrices, factors: Expr) -> Expr:
    """The place of the first pivot that is 0, from 1."""
    return m.back(la.first_wrong(b, b.op("equal", la.diagonal(b, factors), 0.0)))


def inverse(n: Node) -> Any:
    m = Matrices(n.b, _matrix(n))
    m.square()
    return m.back(la.inverse(n.b, m.x))


def inverse_and_info(n: Node) -> Any:
    m = Matrices(n.b, _matrix(n))
    m.square()
    return [m.back(la.inverse(n.b, m.x)), _info(n.b, m, la.lu(n.b, m.x)[0])]


# ---- equations


def _is_vector(n: Node, a: Expr, y: Expr) -> bool:
    """Whether the right side has a vector for each matrix."""
    b = n.b
    return b.rank(y) == 1 or (b.rank(y) == b.rank(a) - 1 and tuple(b.shape(y)) == tuple(b.shape(a))[:-1])


def solve(n: Node) -> Any:
    return _solution(n)[0]


def _solution(n: Node) -> tuple[Expr, Matrices, tuple[Expr, Expr, Expr]]:
    """The solution of `A X = B`, or of `X A = B`; the matrices and their factors."""
    b, a, y = n.b, n.x("A"), n.x("B")
    left, vector = bool(n.get("left", True)), _is_vector(n, a, y)
    if not left and not vector:
        a, y = turned(b, a), turned(b, y)
    left_side, right = la.sides(b, a, b.unsqueeze(y, [b.rank(y)]) if vector else y)
    left_side.square()
    factors = la.lu(b, left_side.x)
    x = right.back(la.lu_solve(b, factors[0], la.ordered(b, right.x, factors[1])))
    solution = b.squeeze(x, [-1]) if vector else x if left else turned(b, x)
    return solution, left_side, factors


def solve_and_info(n: Node) -> Any:
    solution, m, factors = _solution(n)
    info = _info(n.b, m, factors[0])
    if not n.call.target.startswith("aten._"):
        return [solution, info]
    return [solution, m.back(factors[0]), _pivots(n.b, m, factors[2]), info]


def solve_triangular(n: Node) -> Any:
    """`X` of `A X = B`, or of `X A = B`."""
    b, a, y, upper, left = n.b, n.x(), n.x("B"), bool(n.get("upper")), bool(n.get("left", True))
    if not left:
        a, y, upper = turned(b, a), turned(b, y), not upper
    m, right = la.sides(b, a, y)
    m.square()
    x = right.back(la.solve_triangular(b, m.x, right.x, upper, bool(n.get("unitriangular", False))))
    return x if left else turned(b, x)


def triangular_solve(n: Node) -> Any:
    """The older form: the right side is the first operand, and the matrix a result."""
    b, a, upper = n.b, n.x("A"), bool(n.get("upper", True))
    turn = bool(n.get("transpose", False))
    m, right = la.sides(b, turned(b, a) if turn else a, n.x())
    m.square()
    return [right.back(la.solve_triangular(b, m.x, right.x, upper != turn, bool(n.get("unitriangular", False)))), a]


def least_squares(n: Node) -> Any:
    """By QR factors, for matrices of full rank: solution, residuals, rank, and no singular values.

    The driver gels gives residuals, and gelsy, the default, a rank.
    """
    b, a, y = n.b, n.x(), n.x("b")
    residual = n.choice("driver", None, {None: False, "gelsy": False, "gels": True, "gelsd": None, "gelss": None})
    if residual is None:
        raise Unsupported("its driver gives singular values")
    vector = _is_vector(n, a, y)
    y = b.unsqueeze(y, [-1]) if vector else y
    rows, columns = (b.extent(a, i, "a matrix") for i in (-2, -1))
    if rows != b.extent(y, -2):
        raise Malformed(f"its matrices have {rows} rows, and the right side {b.extent(y, -2)}")
    said = "linalg_lstsq is converted for matrices of full rank"
    b.report.warn(said, b.span, "other matrices give infinite numbers or NaN")
    tall = rows >= columns
    fronts = [list(b.static_shape(v, "its matrices"))[:-2] for v in (a, y)]
    if fronts[0] != fronts[1]:
        raise Malformed(f"its sides have the batches {fronts[0]} and {fronts[1]}")
    m, right = Matrices(b, a if tall else turned(b, a)), Matrices(b, y)
    q, r = la.qr(b, m.x)
    least = min(rows, columns)
    q, r = b.slice(q, [0], [least], [2]), b.slice(r, [0], [least], [1])
    if tall:
        x = la.solve_triangular(b, r, _product(b, turned(b, q), right.x), True)
    else:
        x = _product(b, q, la.solve_triangular(b, turned(b, r), right.x, False))
    solution = right.back(x)
    none: Expr = b.const(b.arrays.zeros(0), b.dtype(a))
    residuals, rank = none, b.const(b.arrays.full(fronts[0], least, "int64"))
    if residual:
        rank = b.const(b.arrays.zeros(0), "int64")
    if residual and tall and rows > columns:
        rest = b.op("subtract", right.x, _product(b, m.x, x))
        residuals = right.back(b.op("sum", b.op("multiply", rest, rest), axis=(1,)))
    return [b.squeeze(solution, [-1]) if vector else solution, residuals, rank, none]


def _product(b: Builder, x: Expr, y: Expr) -> Expr:
    product: Expr = b.op("nn.batch_matmul", x, y, transpose_b=False)
    return product


# ---- LU factors


def _pivots(b: Builder, m: Matrices, exchanged: Expr) -> Expr:
    """The rows that steps exchange, counted from 1."""
    return m.back(b.op("add", b.squeeze(exchanged, [2]), 1))


def lu_factor(n: Node) -> Any:
    b, m = n.b, Matrices(n.b, _matrix(n))
    factors, _, exchanged = la.lu(b, m.x, bool(n.get("pivot", True)))
    return [m.back(factors), _pivots(b, m, exchanged), _info(b, m, factors)]


def _three(b: Builder, m: Matrices, factors: Expr, order: Expr) -> list[Expr]:
    """The permutation, the lower and the upper factor."""
    least = min(m.rows, m.columns)
    lower = la.triangle(b, b.slice(factors, [0], [least], [2]), False, True)
    upper = la.triangle(b, b.slice(factors, [0], [least], [1]), True)
    return [m.back(v) for v in (_permutation(b, m, order), lower, upper)]


def _permutation(b: Builder, m: Matrices, order: Expr) -> Expr:
    """P of `A = P L U`: a 1 at (row, step) where the row came to that place."""
    places = b.const(b.arrays.arange(m.rows).reshape(1, -1, 1), "int32")
    return b.cast(b.op("equal", places, b.transpose(order, [0, 2, 1])), b.dtype(m.x))


def lu(n: Node) -> Any:
    b, m = n.b, Matrices(n.b, _matrix(n))
    factors, order, _ = la.lu(b, m.x, bool(n.get("pivot", True)))
    return _three(b, m, factors, order)


def _order(b: Builder, m: Matrices, pivots: Expr) -> Expr:
    """The order of rows that exchanges make: (batch, rows, 1)."""
    flat = b.reshape(pivots, [-1, b.extent(pivots, -1)])
    return la.order_of(b, b.op("subtract", b.cast(flat, "int32"), 1), m.rows)


def lu_unpack(n: Node) -> Any:
    b, m = n.b, Matrices(n.b, n.x("LU_data"))
    return _three(b, m, m.x, _order(b, m, n.x("LU_pivots")))


def lu_solve(n: Node) -> Any:
    b, new = n.b, "LU" in n.call.args
    factors, pivots = (n.x("LU"), n.x("pivots")) if new else (n.x("LU_data"), n.x("LU_pivots"))
    y, left, adjoint = n.x("B") if new else n.x(), bool(n.get("left", True)), bool(n.get("adjoint", False))
    m, right = la.sides(b, factors, y if left else turned(b, y))
    m.square()
    order = _order(b, m, broadcast_to(b, pivots, b.slice(b.shape_of(m.like), [0], [-1], [0])))
    if adjoint == left:  # the transposed matrix: the factors from the other end, and the rows back in their places
        x = la.solve_triangular(b, turned(b, m.x), right.x, False)
        x = la.solve_triangular(b, la.triangle(b, turned(b, m.x), True, True), x, True, True)
        x = _product(b, _permutation(b, m, order), x)
    else:
        x = la.lu_solve(b, m.x, la.ordered(b, right.x, order))
    return right.back(x) if left else turned(b, right.back(x))


def determinant(n: Node) -> Any:
    b, m = n.b, Matrices(n.b, _matrix(n))
    m.square()
    factors, _, exchanged = la.lu(b, m.x)
    det = m.back(la.determinant(b, factors, exchanged))
    return [det, m.back(factors), _pivots(b, m, exchanged)] if n.call.target.startswith("aten._") else det


def log_determinant(n: Node) -> Any:
    b, m = n.b, Matrices(n.b, _matrix(n))
    m.square()
    factors, _, exchanged = la.lu(b, m.x)
    sign, size = (m.back(v) for v in la.log_determinant(b, factors, exchanged))
    if n.call.target.startswith("aten.logdet"):
        return b.op("where", b.op("less", sign, 0.0), b.const(float("nan"), b.dtype(size)), size)
    more = [m.back(factors), _pivots(b, m, exchanged)] if n.call.target.startswith("aten._") else []
    return [sign, size, *more]


# ---- other factors


def cholesky(n: Node) -> Any:
    return cholesky_and_info(n)[0]


def cholesky_and_info(n: Node) -> Any:
    b, upper = n.b, bool(n.get("upper", False))
    m = Matrices(b, turned(b, n.x()) if upper else n.x())
    m.square()
    factor = la.cholesky(b, m.x)
    wrong = b.op("logical_not", b.op("greater", la.diagonal(b, factor), 0.0))
    return [turned(b, m.back(factor)) if upper else m.back(factor), m.back(la.first_wrong(b, wrong))]


def cholesky_solve(n: Node) -> Any:
    """`X` of `L L^T X = B`; the right side is the first operand."""
    b, factor = n.b, n.x("input2") if "input2" in n.call.args else n.x("A")
    m, right = la.sides(b, turned(b, factor) if n.get("upper", False) else factor, n.x())
    m.square()
    x = la.solve_triangular(b, m.x, right.x, False)
    return right.back(la.solve_triangular(b, turned(b, m.x), x, True))


def cholesky_inverse(n: Node) -> Any:
    b, factor = n.b, n.x()
    m = Matrices(b, turned(b, factor) if n.get("upper", False) else factor)
    one = b.op("add", b.op("zeros_like", m.x), b.const(b.arrays.eye(m.square()), b.dtype(m.x)))
    near = la.solve_triangular(b, m.x, one, False)
    return m.back(_product(b, turned(b, near), near))


def qr(n: Node) -> Any:
    b, m = n.b, Matrices(n.b, _matrix(n))
    if "some" in n.call.args or n.call.target.startswith("aten.qr"):
        mode = "reduced" if n.get("some", True) else "complete"
    else:
        mode = n.choice("mode", "reduced", {name: name for name in ("reduced", "complete", "r")})
    q, r = la.qr(b, m.x)
    if mode != "complete":
        least = min(m.rows, m.columns)
        q, r = b.slice(q, [0], [least], [2]), b.slice(r, [0], [least], [1])
    return [b.const(b.arrays.zeros(0), b.dtype(r)) if mode == "r" else m.back(q), m.back(r)]


RULES = (
    Rule("aten._cholesky_solve_helper", cholesky_solve),
    Rule("aten._linalg_det", determinant),
    Rule("aten._linalg_slogdet", log_determinant),
    Rule("aten._linalg_solve_ex", solve_and_info),
    Rule("aten._lu_with_info", lu_factor),
    Rule("aten.cholesky", cholesky),
    Rule("aten.cholesky_inverse", cholesky_inverse),
    Rule("aten.cholesky_solve", cholesky_solve),
    Rule("aten.det", determinant),
    Rule("aten.inverse", inverse),
    Rule("aten.linalg_cholesky", cholesky),
    Rule("aten.linalg_cholesky_ex", cholesky_and_info),
    Rule("aten.linalg_det", determinant),
    Rule("aten.linalg_inv", inverse),
    Rule("aten.linalg_inv_ex", inverse_and_info),
    Rule("aten.linalg_lstsq", least_squares),
    Rule("aten.linalg_lu", lu),
    Rule("aten.linalg_lu_factor", lambda n: lu_factor(n)[:2]),
    Rule("aten.linalg_lu_factor_ex", lu_factor),
    Rule("aten.linalg_lu_solve", lu_solve),
    Rule("aten.linalg_qr", qr),
    Rule("aten.linalg_slogdet", log_determinant),
    Rule("aten.linalg_solve", solve),
    Rule("aten.linalg_solve_ex", solve_and_info),
    Rule("aten.linalg_solve_triangular", solve_triangular),
    Rule("aten.logdet", log_determinant),
    Rule("aten.lu_solve", lu_solve),
    Rule("aten.lu_unpack", lu_unpack),
    Rule("aten.qr", qr),
    Rule("aten.slogdet", log_determinant),
    Rule("aten.triangular_solve", triangular_solve),
)
