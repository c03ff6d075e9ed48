"""Loops that turn a matrix: they write along one axis and read along another.

Such loops wait for memory: each element read is alone in its line of the cache. Here squares are turned in registers, of
as many numbers as a vector has. Their rows are read along the one axis, and written along the other.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from contextlib import nullcontext
from math import prod

from relaylang.backends.cpu.isa import Isa
from relaylang.kernels import halves, ir, visit
from relaylang.kernels.build import Builder
from relaylang.kernels.index import affine, const_of, digits, terms_of
from relaylang.kernels.nest import Bounds, Buf, Index, Nest, Scalar, indexed
from relaylang.kernels.sizes import surely_less
from relaylang.kernels.vectors import written_out

#: Element types that vectors are made of.
_TURNED = ("float32", "int32")
#: Fewer elements than this are not worth the code.
_FEW = 2048
#: The squares in a unit of work.
_SQUARES = 16


def turn_kernel(name: str, isa: Isa, dtype: str) -> ir.Function:
    """`name(t, n, r, m)`: a square of `lanes` by `lanes` numbers turned, `r[c * m + i] = t[i * n + c]`.

    Rows trade halves, quarters and so on until each has become a column.
    """
    lanes = isa.lanes
    t, n, r, m = (ir.Param(name, ty) for name, ty in (("t", f"const {dtype}*"), ("n", ir.INDEX), ("r", f"{dtype}*"), ("m", ir.INDEX)))
    b = Builder()
    rows = [b.var(f"a{i}", ir.load(t, ir.Var("n") * i, lanes=lanes)) for i in range(lanes)]
    step = 1
    while step < lanes:
        low = [lane if not lane & step else lanes + lane - step for lane in range(lanes)]
        high = [lane + step if not lane & step else lanes + lane for lane in range(lanes)]
        for i in range(lanes):
            if not i & step:
                first, second = rows[i], rows[i + step]
                traded = b.let(f"b{step}_{i}", ir.mix(first, second, low))
                b.assign(second, ir.mix(first, second, high))
                b.assign(first, traded)
        step *= 2
    for i, row in enumerate(rows):
        b.store(r, row, ir.Var("m") * i)
    return ir.Function(name, [t, n, r, m], b.body)


def _read_across(loads: Sequence[ir.Load], axes: Sequence[int], extents: Sequence[int], lanes: int) -> tuple[ir.Load, int] | None:
    """The one load that runs along another axis than the last of `axes`, and that axis."""
    last = axes[-1]
    across = [n for n in loads if terms_of(n.index).get(last, 0) not in (0, 1)]
    if len(across) != 1 or extents[last] < lanes:
        return None
    for axis in axes[:-1]:
        if terms_of(across[0].index).get(axis, 0) == 1 and extents[axis] >= lanes:
            return across[0], axis
    return None


def turned(nest: Nest, isa: Isa, name: str) -> tuple[ir.Function, ir.Body] | None:
    """For a nest that turns a matrix: the function that its stage calls by `name`, and the stage. None for others."""
    if isa.lanes == 1 or nest.empty or nest.bounds or nest.updates or nest.reductions or len(nest.stores) != 1:
        return None
    buf, offset, value = nest.stores[0]
    order = nest.reachable()
    loads = [n for n in order if isinstance(n, ir.Load)]
    plain = all(isinstance(n, (ir.Load, ir.Const, ir.Op)) or (isinstance(n, ir.Cast) and n.value.type != ir.INDEX) for n in order)
    plain = plain and all(n.index.type == ir.INDEX and n.buffer != buf.name and n.buffer not in nest.set_in for n in loads)
    if not plain or offset.type != ir.INDEX or not surely_less(_FEW, prod(nest.extents)):
        return None
    axes, extents = nest.merged_axes()
    if len(axes) < 2 or terms_of(offset).get(axes[-1]) != 1:
        return None
    found = _read_across(loads, axes, extents, isa.lanes)
    if found is None or found[0].type not in _TURNED:
        return None
    load, across = found
    lanes, last = isa.lanes, axes[-1]
    # The loops that remain get numbers of their own.
    number = {d: n for n, d in enumerate(axes)}
    rest = [d for d in axes if d not in (across, last)]

    def renumbered(form: Index) -> Index:
        return affine({number[d]: c for d, c in terms_of(form).items() if d in number}, const_of(form))

    source, target = renumbered(load.index), renumbered(offset)
    origin = Buf(load.buffer, (), load.type)
    of_squares: dict[int, Scalar] = {}
    for node in order:
        if isinstance(node, ir.Load):
            at = affine({number[across]: lanes, number[last]: 1}) if node is load else renumbered(node.index)
            of_squares[id(node)] = ir.Load("square" if node is load else node.buffer, at, node.type)
        else:
            of_squares[id(node)] = visit.with_parts(node, [of_squares[id(p)] for p in visit.parts(node)])
    value = nest.same(value)
    names = [f"y{n}" for n in range(len(axes))]
    names[number[across]], names[number[last]] = "p0", "q0"
    height, width = extents[across], extents[last]
    chunk = lanes * _SQUARES
    counts = [*(extents[d] for d in rest), -(-height // lanes), -(-width // chunk)]
    b = Builder()

    def stored(p: ir.Expr, p_end: ir.Expr, q: ir.Expr, q_end: ir.Expr) -> None:
        """Turn a square on the stack, and store what the nest makes of its part."""
        square = b.local("t", load.type, [lanes * lanes])
        call(ir.address(square, 0, written=True), ir.number(lanes))
        b.let("square", ir.address(square, (p0 * lanes + q0) * -1))
        bounds: Bounds = {number[d]: (y, y + 1) for d, y in zip(rest, ys)}
        inner = Nest([extents[d] for d in axes], {**bounds, number[across]: (p, p_end), number[last]: (q, q_end)})
        inner.stores.append((buf, target, of_squares[id(value)]))
        b.add(*written_out(halves.blocked(inner.build()), isa.explicit_lanes))

    def call(to: ir.Expr, step: ir.Expr) -> None:
        b.call(name, ir.address(origin, indexed(source, names)), ir.expr(terms_of(source)[number[last]]), to, step)

    with b.loop("u", prod(counts), kind=ir.PARALLEL) as u:
        *ys, block, part = (b.let(name, digit) for name, digit in zip([*(f"y{number[d]}" for d in rest), "b", "k"], digits(u, counts)))
        p1 = b.let("p1", block * lanes)
        p0 = b.let("p0", ir.minimum(p1, height - lanes))
        with b.loop("q1", part * chunk, ir.minimum((part + 1) * chunk, width), step=lanes) as q1:
            # The last squares reach back over those before, and store their own results only.
            q0 = b.let("q0", ir.minimum(q1, width - lanes))
            tests = [one.eq(other) for one, other, extent in ((p0, p1, height), (q0, q1, width)) if extent % lanes]
            with b.when(functools.reduce(operator.and_, tests)) if tests else nullcontext():
                if value is load and buf.dtype == load.type:
                    to = ir.address(buf, indexed(target, names), written=True)
                    call(to, ir.expr(terms_of(target)[number[across]]))
                else:
                    stored(p1, p1 + lanes, q1, q1 + lanes)
            if tests:
                with b.otherwise():
                    stored(p1, p0 + lanes, q1, q0 + lanes)
    return turn_kernel(name, isa, load.type), b.body
