"""Loops that turn a matrix: they write along one axis and read along another.

Such loops wait for memory: each element read is alone in its line of the cache. Here squares are turned in registers, of
as many numbers as a vector has. Their rows are read along the one axis, and written along the other.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
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


@dataclass(frozen=True)
class _Transpose:
    """A nest that stores `value` in rows along axis `last`, and reads `load` in rows along axis `across`."""

    nest: Nest
    axes: Sequence[int]
    extents: Sequence[int]
    load: ir.Load
    across: int
    lanes: int

    @property
    def last(self) -> int:
        return self.axes[-1]

    @property
    def rest(self) -> list[int]:
        """The axes of neither side of a square."""
        return [d for d in self.axes if d not in (self.across, self.last)]

    def renumbered(self, form: Index) -> Index:
        """An index by the numbers of the merged axes, which loops have from here on."""
        return affine({self.axes.index(d): c for d, c in terms_of(form).items() if d in self.axes}, const_of(form))

    def of_squares(self) -> Scalar:
        """What the nest stores, with `load` from a square that is turned."""
        number = self.axes.index
        replaced: dict[int, Scalar] = {}
        for node in self.nest.reachable():
            if node is self.load:
                at = affine({number(self.across): self.lanes, number(self.last): 1})
                replaced[id(node)] = ir.Load("square", at, node.type)
            elif isinstance(node, ir.Load):
                replaced[id(node)] = ir.Load(node.buffer, self.renumbered(node.index), node.type)
            else:
                replaced[id(node)] = visit.with_parts(node, [replaced[id(part)] for part in visit.parts(node)])
        return replaced[id(self.nest.same(self.nest.stores[0][2]))]


def _transpose_of(nest: Nest, lanes: int) -> _Transpose | None:
    """The transpose that a nest is, if squares of `lanes` by `lanes` numbers are worth it."""
    if nest.empty or nest.bounds or nest.updates or nest.reductions or len(nest.stores) != 1:
        return None
    _, offset, _ = nest.stores[0]
    order = nest.reachable()
    loads = [n for n in order if isinstance(n, ir.Load)]
    if not all(_is_plain(n, nest) for n in order) or offset.type != ir.INDEX or not surely_less(_FEW, prod(nest.extents)):
        return None
    axes, extents = nest.merged_axes()
    if len(axes) < 2 or terms_of(offset).get(axes[-1]) != 1:
        return None
    read = _read_across(loads, axes, extents, lanes)
    return _Transpose(nest, axes, extents, *read, lanes) if read is not None and read[0].type in _TURNED else None


def _is_plain(node: ir.Expr, nest: Nest) -> bool:
    """Whether a node computes with numbers that do not depend on their places, and reads what the nest does not write."""
    match node:
        case ir.Load():
            return node.index.type == ir.INDEX and node.buffer != nest.stores[0][0].name and node.buffer not in nest.set_in
        case ir.Cast():
            return bool(node.value.type != ir.INDEX)
    return isinstance(node, (ir.Const, ir.Op))


def turned(nest: Nest, isa: Isa, name: str) -> tuple[ir.Function, ir.Body] | None:
    """For a nest that turns a matrix: the function that its stage calls by `name`, and the stage. None for others."""
    transpose = _transpose_of(nest, isa.lanes) if isa.lanes > 1 else None
    return None if transpose is None else (turn_kernel(name, isa, transpose.load.type), _stage(transpose, isa, name))


def _stage(transpose: _Transpose, isa: Isa, name: str) -> ir.Body:
    """Squares of a transpose, one after the other, turned by the function `name`."""
    nest, load, lanes, axes, extents = transpose.nest, transpose.load, transpose.lanes, transpose.axes, transpose.extents
    buf, offset, value = nest.stores[0]
    across, last = axes.index(transpose.across), axes.index(transpose.last)
    rest = [axes.index(d) for d in transpose.rest]
    source, target = transpose.renumbered(load.index), transpose.renumbered(offset)
    of_squares = transpose.of_squares()
    in_place = nest.same(value) is load and buf.dtype == load.type
    names = [f"y{n}" for n in range(len(axes))]
    names[across], names[last] = "p0", "q0"
    sizes = [extents[d] for d in axes]
    height, width = sizes[across], sizes[last]
    chunk = lanes * _SQUARES
    counts = [*(sizes[n] for n in rest), -(-height // lanes), -(-width // chunk)]
    b = Builder()

    def stored(p: ir.Expr, p_end: ir.Expr, q: ir.Expr, q_end: ir.Expr) -> None:
        """Turn a square on the stack, and store what the nest makes of its part."""
        square = b.local("t", load.type, [lanes * lanes])
        call(ir.address(square, 0, written=True), ir.number(lanes))
        b.let("square", ir.address(square, (p0 * lanes + q0) * -1))
        bounds: Bounds = {n: (y, y + 1) for n, y in zip(rest, ys)}
        inner = Nest(sizes, {**bounds, across: (p, p_end), last: (q, q_end)})
        inner.stores.append((buf, target, of_squares))
        b.add(*written_out(halves.blocked(inner.build()), isa.explicit_lanes))

    def call(to: ir.Expr, step: ir.Expr) -> None:
        origin = Buf(load.buffer, (), load.type)
        b.call(name, ir.address(origin, indexed(source, names)), ir.expr(terms_of(source)[last]), to, step)

    with b.loop("u", prod(counts), kind=ir.PARALLEL) as u:
        *ys, block, part = (b.let(name, digit) for name, digit in zip([*(f"y{n}" for n in rest), "b", "k"], digits(u, counts)))
        p1 = b.let("p1", block * lanes)
        p0 = b.let("p0", ir.minimum(p1, height - lanes))
        with b.loop("q1", part * chunk, ir.minimum((part + 1) * chunk, width), step=lanes) as q1:
            # The last squares reach back over those before, and store their own results only.
            q0 = b.let("q0", ir.minimum(q1, width - lanes))
            tests = [one.eq(other) for one, other, extent in ((p0, p1, height), (q0, q1, width)) if extent % lanes]
            with b.when(functools.reduce(operator.and_, tests)) if tests else nullcontext():
                if in_place:
                    call(ir.address(buf, indexed(target, names), written=True), ir.expr(terms_of(target)[across]))
                else:
                    stored(p1, p1 + lanes, q1, q1 + lanes)
            if tests:
                with b.otherwise():
                    stored(p1, p0 + lanes, q1, q0 + lanes)
    return b.body
