"""Linear algebra on matrices whose extents are known: factors, solutions, determinants.

Every factor is that of LAPACK, signs and pivots too. A step works on whole matrices, under masks. Few steps are written
out, more are a loop. A matrix without an inverse gives infinite numbers or NaN, where libraries raise an error.

Source: G. H. Golub and C. F. Van Loan, Matrix Computations; and the LAPACK Users' Guide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common import nn
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.loops import while_loop
from relaylang.frontends.common.report import Malformed
from relaylang.ir import Expr

#: So few steps are written out one by one.
_UNROLLED = 4


class Matrices:
    """Matrices (..., rows, columns) as (batch, rows, columns), with the extents of the axes before."""

    def __init__(self, b: Builder, x: Expr) -> None:
        if b.rank(x) < 2:
            raise Malformed(f"its operand has {int(b.rank(x))} axes; matrices need 2")
        if "float" not in b.dtype(x):
            raise Unsupported(f"its matrices are of {b.dtype(x)}")
        self.b, self.like, self.front = b, x, b.rank(x) - 2
        self.rows, self.columns = (b.extent(x, a, "a matrix") for a in (-2, -1))
        if not self.rows or not self.columns:
            raise Unsupported("its matrices are empty")
        self.x = nn.flatten_front(b, x, self.front) if self.front else b.unsqueeze(x, [0])

    def square(self) -> int:
        """The extent of both axes. Raises `Malformed` where they differ."""
        if self.rows != self.columns:
            raise Malformed(f"its matrices have {self.rows} rows and {self.columns} columns; they must be square")
        return self.rows

    def back(self, x: Expr) -> Expr:
        """A result (batch, ...) with the axes that were before the matrices."""
        return nn.unflatten_front(self.b, x, self.like, self.front) if self.front else self.b.squeeze(x, [0])


def turned(b: Builder, x: Expr) -> Expr:
    """The transposed matrices."""
    rank = b.rank(x)
    return b.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def sides(b: Builder, a: Expr, y: Expr) -> tuple[Matrices, Matrices]:
    """The matrices and the right sides of equations, broadcast to one batch."""
    for v in (a, y):
        if b.rank(v) < 2:
            raise Malformed(f"a side of its equations has {int(b.rank(v))} axes; it needs 2")
    fronts = [list(b.static_shape(v, "its matrices"))[:-2] for v in (a, y)]
    rank = max(map(len, fronts))
    padded = [[1] * (rank - len(f)) + f for f in fronts]
    if any(p != q and 1 not in (p, q) for p, q in zip(*padded)):
        raise Malformed(f"its sides have the batches {fronts[0]} and {fronts[1]}")
    front = [q if p == 1 else p for p, q in zip(*padded)]
    wide = [Matrices(b, b.op("broadcast_to", v, shape=(*front, *b.static_shape(v)[-2:]))) for v in (a, y)]
    if wide[0].columns != wide[1].rows:
        raise Malformed(f"its matrices have {wide[0].columns} columns, and the right side {wide[1].rows} rows")
    return wide[0], wide[1]


def _steps(b: Builder, count: int, states: Sequence[Expr], step: Callable[[Expr, list[Expr]], list[Expr]], name: str) -> list[Expr]:
    """The states behind `count` steps, each from its number, int32, and the states before it."""
    if count <= _UNROLLED:
        now = list(states)
        for i in range(count):
            now = step(b.const(i, "int32"), now)
        return now

    def turn(values: list[Expr]) -> list[Expr]:
        return [b.op("add", values[0], 1), *step(values[0], values[1:])]

    return while_loop(b, lambda v: b.op("less", v[0], count), turn, [b.const(0, "int32"), *states], ["step"], name)[1:]


def _along(b: Builder, count: int, axis: int) -> Expr:
    """0 ... count - 1 along an axis of three."""
    return b.const(b.arrays.arange(count).astype(np.int32).reshape([-1 if a == axis else 1 for a in range(3)]))


def _row(b: Builder, x: Expr, at: Expr) -> Expr:
    """(batch, 1, columns)"""
    return b.unsqueeze(b.op("take", x, at, axis=1, mode="clip"), [1])


def _column(b: Builder, x: Expr, at: Expr) -> Expr:
    """(batch, rows, 1)"""
    return b.unsqueeze(b.op("take", x, at, axis=2, mode="clip"), [2])


def _where(b: Builder, mask: Expr, x: Expr, other: Expr | float) -> Expr:
    chosen: Expr = b.op("where", mask, x, b.const(other, b.dtype(x)) if isinstance(other, (int, float)) else other)
    return chosen


def _zeros(b: Builder, like: Expr, *extents: int) -> Expr:
    """Zeros (batch, ...) for each matrix."""
    b.arrays.reserve(extents)
    first = b.op("take", b.op("take", like, b.const(0), axis=2, mode="clip"), b.const(0), axis=1, mode="clip")
    none = b.unsqueeze(b.op("zeros_like", first), list(range(1, 1 + len(extents))))
    zeros: Expr = b.op("add", none, b.const(b.arrays.zeros((1, *extents)), b.dtype(like)))
    return zeros


# ---- factors


def lu(b: Builder, x: Expr, pivot: bool = True) -> tuple[Expr, Expr, Expr]:
    """The factors of (batch, rows, columns) in one matrix; the order of its rows; the row that each step exchanged.

    L below the diagonal has ones on it. Order (batch, rows, 1) and rows (batch, steps, 1) are int32, counted from 0.
    """
    rows, columns = (b.extent(x, a) for a in (1, 2))
    at, across = _along(b, rows, 1), _along(b, columns, 2)
    count = min(rows, columns)
    none = b.cast(_zeros(b, x, rows, 1), "int32")
    pivots = b.op("add", b.cast(_zeros(b, x, count, 1), "int32"), _along(b, count, 1))

    def step(k: Expr, states: list[Expr]) -> list[Expr]:
        a, order, exchanged = states
        here = b.op("equal", at, k)
        if pivot:
            size = _where(b, b.op("less", at, k), b.const(-1.0, b.dtype(a)), b.op("abs", _column(b, a, k)))
            best = b.op("argmax", size, axis=(1,), keepdims=True)
            there = b.op("equal", at, best)
            a, order = (_exchanged(b, v, k, here, there) for v in (a, order))
            exchanged = b.op("where", b.op("equal", _along(b, count, 1), k), best, exchanged)
        row, column = _row(b, a, k), _column(b, a, k)
        divisor = _column(b, row, k)
        below = b.op("greater", at, k)
        none_left = b.op("equal", divisor, 0.0)
        factor = b.op("divide", column, _where(b, none_left, b.op("ones_like", divisor), divisor))
        factor = _where(b, below, factor, 0.0)
        reduced = b.op("subtract", a, b.op("multiply", factor, _where(b, b.op("greater", across, k), row, 0.0)))
        return [_where(b, b.op("logical_and", below, b.op("equal", across, k)), factor, reduced), order, exchanged]

    factors, order, exchanged = _steps(b, count, [x, b.op("add", none, at), pivots], step, "lu")
    return factors, order, exchanged


def _exchanged(b: Builder, x: Expr, k: Expr, here: Expr, there: Expr) -> Expr:
    """Two rows in each other's places."""
    other = b.op("sum", _where(b, there, x, 0), axis=(1,), keepdims=True)
    return _where(b, here, other, _where(b, there, _row(b, x, k), x))


def order_of(b: Builder, pivots: Expr, rows: int) -> Expr:
    """The order (batch, rows, 1) of rows that exchanges (batch, steps), counted from 0, make."""
    at = _along(b, rows, 1)

    def step(k: Expr, states: list[Expr]) -> list[Expr]:
        there = b.op("equal", at, b.unsqueeze(b.op("take", pivots, k, axis=1, mode="clip"), [1, 2]))
        return [_exchanged(b, states[0], k, b.op("equal", at, k), there)]

    first = b.unsqueeze(b.op("zeros_like", b.op("take", pivots, b.const(0), axis=1, mode="clip")), [1, 2])
    return _steps(b, b.extent(pivots, 1), [b.op("add", first, at)], step, "order")[0]


def triangle(b: Builder, x: Expr, upper: bool, unit: bool = False) -> Expr:
    """A triangle of matrices with zeros beside it; `unit` puts ones on the diagonal."""
    part: Expr = b.op("trilu", x, b.const(0, "int32"), upper=upper)
    if not unit:
        return part
    return _where(b, b.const(b.arrays.eye(b.extent(x, -2), b.extent(x, -1), dtype=np.dtype(bool))), b.op("ones_like", part), part)


def solve_triangular(b: Builder, a: Expr, y: Expr, upper: bool, unit: bool = False) -> Expr:
    """The solution of `a x = y`, for a triangle (batch, n, n) and columns (batch, n, columns)."""
    size = b.extent(a, 1)
    a = triangle(b, a, upper, unit)
    at = _along(b, size, 1)

    def step(k: Expr, states: list[Expr]) -> list[Expr]:
        k = b.op("subtract", size - 1, k) if upper else k
        row = _row(b, a, k)
        known = b.op("sum", b.op("multiply", b.transpose(row, [0, 2, 1]), states[0]), axis=(1,), keepdims=True)
        rest = b.op("subtract", _row(b, y, k), known)
        solution = rest if unit else b.op("divide", rest, _column(b, row, k))
        return [_where(b, b.op("equal", at, k), solution, states[0])]

    start = b.op("add", b.op("zeros_like", y), _zeros(b, a, size, 1))
    return _steps(b, size, [start], step, "solve")[0]


def solve(b: Builder, a: Expr, y: Expr) -> Expr:
    """The solution of `a x = y`, for (batch, n, n) and (batch, n, columns)."""
    factors, order, _ = lu(b, a)
    return lu_solve(b, factors, ordered(b, y, order))


def ordered(b: Builder, y: Expr, order: Expr) -> Expr:
    """The rows of (batch, n, columns) in an order (batch, n, 1)."""
    wide = b.op("add", b.op("zeros_like", y), b.cast(b.op("zeros_like", order), b.dtype(y)))
    rows: Expr = b.op("gather", b.op("add", y, wide), b.op("add", b.cast(wide, "int32"), order), axis=1)
    return rows


def lu_solve(b: Builder, factors: Expr, y: Expr) -> Expr:
    """The solution for rows that have the order of the factors."""
    return solve_triangular(b, factors, solve_triangular(b, factors, y, False, True), True)


def inverse(b: Builder, x: Expr) -> Expr:
    """The inverse of (batch, n, n)."""
    size = b.extent(x, 1)
    one = b.op("add", b.op("zeros_like", x), b.const(b.arrays.eye(size), b.dtype(x)))
    return solve(b, x, one)


def cholesky(b: Builder, x: Expr) -> Expr:
    """The lower factor L of `x = L L^T`, from the lower triangle of (batch, n, n)."""
    size = b.extent(x, 1)
    at, across = _along(b, size, 1), _along(b, size, 2)

    def step(k: Expr, states: list[Expr]) -> list[Expr]:
        known = b.op("sum", b.op("multiply", states[0], _row(b, states[0], k)), axis=(2,), keepdims=True)
        rest = b.op("subtract", _column(b, x, k), known)
        column = b.op("divide", rest, b.op("sqrt", _row(b, rest, k)))
        here = b.op("logical_and", b.op("equal", across, k), b.op("greater_equal", at, k))
        return [_where(b, here, column, states[0])]

    return _steps(b, size, [b.op("zeros_like", x)], step, "cholesky")[0]


def qr(b: Builder, x: Expr) -> tuple[Expr, Expr]:
    """The square orthogonal factor (batch, m, m) and the upper one (batch, m, n), by Householder's reflections."""
    rows, columns = (b.extent(x, a) for a in (1, 2))
    at = _along(b, rows, 1)
    unit = b.op("add", _zeros(b, x, rows, rows), b.const(b.arrays.eye(rows), b.dtype(x)))

    def step(k: Expr, states: list[Expr]) -> list[Expr]:
        a, q = states
        column = _where(b, b.op("less", at, k), b.op("zeros_like", _column(b, a, k)), _column(b, a, k))
        first = _row(b, column, k)
        rest = _where(b, b.op("greater", at, k), column, 0.0)
        squares = b.op("sum", b.op("multiply", rest, rest), axis=(1,), keepdims=True)
        length = b.op("sqrt", b.op("add", b.op("multiply", first, first), squares))
        beta = _where(b, b.op("less", first, 0.0), length, b.op("negative", length))
        done = b.op("equal", squares, 0.0)  # nothing is left below the diagonal
        one = b.op("ones_like", beta)
        tau = _where(b, done, b.op("zeros_like", beta), b.op("divide", b.op("subtract", beta, first), _where(b, done, one, beta)))
        vector = b.op("divide", rest, _where(b, done, one, b.op("subtract", first, beta)))
        vector = _where(b, b.op("equal", at, k), b.op("ones_like", vector), vector)
        scaled = b.op("multiply", vector, tau)
        across = b.op("sum", b.op("multiply", vector, a), axis=(1,), keepdims=True)
        over = b.op("sum", b.op("multiply", q, b.transpose(vector, [0, 2, 1])), axis=(2,), keepdims=True)
        a = b.op("subtract", a, b.op("multiply", scaled, across))
        return [a, b.op("subtract", q, b.op("multiply", over, b.transpose(scaled, [0, 2, 1])))]

    r, q = _steps(b, min(rows, columns), [x, unit], step, "qr")
    return q, triangle(b, r, True)


# ---- what factors tell


def diagonal(b: Builder, x: Expr) -> Expr:
    """The diagonals of (batch, rows, columns): (batch, smaller extent)."""
    count = min(b.extent(x, 1), b.extent(x, 2))
    here = b.const(b.arrays.eye(b.extent(x, 1), b.extent(x, 2), dtype=np.dtype(bool)))
    return b.slice(b.op("sum", _where(b, here, x, 0.0), axis=(2,)), [0], [count], [1])


def parity(b: Builder, exchanged: Expr, dtype: str) -> Expr:
    """1 or -1 (batch): whether the steps exchanged an even number of rows."""
    steps = _along(b, b.extent(exchanged, 1), 1)
    moved = b.op("sum", b.cast(b.op("not_equal", exchanged, steps), "int32"), axis=(1, 2))
    return b.cast(b.op("subtract", 1, b.op("multiply", b.op("bitwise_and", moved, 1), 2)), dtype)


def determinant(b: Builder, factors: Expr, exchanged: Expr) -> Expr:
    """Of each matrix of LU factors: (batch)."""
    product: Expr = b.op("multiply", b.op("prod", diagonal(b, factors), axis=(1,)), parity(b, exchanged, b.dtype(factors)))
    return product


def log_determinant(b: Builder, factors: Expr, exchanged: Expr) -> tuple[Expr, Expr]:
    """The sign of the determinant, and the logarithm of its size: (batch)."""
    diagonals = diagonal(b, factors)
    sign = b.op("multiply", b.op("prod", b.op("sign", diagonals), axis=(1,)), parity(b, exchanged, b.dtype(factors)))
    return sign, b.op("sum", b.op("log", b.op("abs", diagonals)), axis=(1,))


def first_wrong(b: Builder, wrong: Expr) -> Expr:
    """The place of the first wrong number of (batch, count), counted from 1; 0 for none. int32."""
    place = b.op("argmax", b.cast(wrong, "int32"), axis=(1,))
    return _where(b, b.op("any", wrong, axis=(1,)), b.op("add", place, 1), 0)


__all__ = [
    "Matrices",
    "cholesky",
    "determinant",
    "diagonal",
    "first_wrong",
    "inverse",
    "log_determinant",
    "lu",
    "lu_solve",
    "order_of",
    "ordered",
    "qr",
    "sides",
    "solve",
    "solve_triangular",
    "triangle",
    "turned",
]
