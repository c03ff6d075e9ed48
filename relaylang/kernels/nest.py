"""Loop nests: how one element of a result is computed, and the loops over all elements.

A `Nest` holds a loop for each dimension, with the variables of `relaylang.kernels.index`. Its stores say which values go
where. Equal values are computed once. `build` merges neighbouring loops that all accesses run through as one. It computes each
expression in the outermost loop where its operands are known, and makes statements of the loop language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from math import prod
from typing import Any

from relaylang.kernels import ir, render, visit
from relaylang.kernels.dtypes import literal
from relaylang.kernels.index import (
    ZERO,
    affine,
    const_of,
    is_contiguous,
    linear,
    reshaped,
    span,
    splittable,
    strides_of,
    terms_of,
    unravel,
)
from relaylang.kernels.sizes import Size, surely_less

#: A longer expression in C gets a name, even if it is used once.
_INLINE = 72


class Buf:
    """Memory with a C name, which points to the first element: an array of `shape` and `dtype`.

    It is C-contiguous, or has `strides` (in elements): then it is a part of a larger tensor.
    """

    __slots__ = ("name", "shape", "dtype", "strides")

    def __init__(self, name: str, shape: Sequence[int], dtype: str, strides: Sequence[int] | None = None) -> None:
        self.name = name
        self.shape = tuple(shape)
        self.dtype = dtype
        self.strides = tuple(strides_of(shape) if strides is None else strides)

    @property
    def contiguous(self) -> bool:
        return is_contiguous(self.shape, self.strides)

    def reshaped(self, shape: Sequence[int]) -> Buf | None:
        """The same memory seen with another shape; None where no strides do that."""
        strides = reshaped(self.shape, self.strides, shape)
        return None if strides is None else Buf(self.name, shape, self.dtype, strides)

    @property
    def size(self) -> int:
        return prod(self.shape)


#: What an element is computed with: a value, or an affine form.
Scalar = ir.Expr
#: A part of an index: an affine form, or a value of the type int64.
Index = ir.Expr
#: The most loops of a nest that are cut in two.
_SPLITS = 6
#: An end of a loop, as an expression, a number, or C.
End = ir.Expr | int | str
#: Bounds of loops: a low and a high end, and where it is known, the count of iterations.
Bounds = dict[int, tuple[End, ...]]


class Nest:
    """Loops `0..extents[d]` and the values computed inside. `bounds[d]`, where given, narrows loop `d` to C
    expressions `(low, high)`, or to `(low, high, count)` where the count of iterations is known."""

    def __init__(self, extents: Sequence[int], bounds: Bounds | None = None) -> None:
        self.extents = [1 if e == 0 else e for e in extents]
        self.empty = any(e == 0 for e in extents)
        self.bounds = bounds or {}
        #: The value that stands for all equal ones, by identity and by structure.
        self._same: dict[int, tuple[Scalar, Scalar]] = {}
        self._nodes: dict[tuple[Any, ...], Scalar] = {}
        #: The loops in which variables get their values that are set by hand.
        self.set_in: dict[str, int] = {}
        #: The element to read in place of any element of some buffers, by their names.
        self.replaced: dict[str, Scalar] = {}
        #: What tensors have at an index, each worked out once: (tensor, index) -> element.
        self.elements: dict[tuple[Any, ...], Scalar] = {}
        self.stores: list[tuple[Buf, Index, Scalar]] = []
        self._scaled: dict = {}
        #: Loops to cut in two, so that an index needs no division: (loop, extent of its inner part).
        self.splits: list[tuple[int, int]] = []
        self.reductions: list[tuple[Buf, Index, Scalar, str]] = []
        self.updates: list[tuple[Scalar, list[tuple[str, Scalar]]]] = []

    # -- making expressions ------------------------------------------------------------------------------------------
    def const(self, value: float | int | bool, dtype: str) -> Scalar:
        """A number, which may be a size."""
        return self.as_scalar(ir.number(value)).cast(dtype) if isinstance(value, Size) else ir.Const(value, dtype)

    def as_scalar(self, index: Index) -> Scalar:
        """An index as a number of the type int64."""
        return index.cast("int64")

    def variable(self, name: str, dtype: str, depth: int, index: int | None = None) -> Scalar:
        """A variable that is set by hand in the loop at `depth`; with `index`, an element of a local array."""
        self.set_in[name] = depth
        return ir.Var(name, dtype) if index is None else ir.Load(name, ir.number(index), dtype)

    def same(self, value: Scalar) -> Scalar:
        """The one value that stands for all equal ones."""
        stack = [value]
        while stack:
            node = stack[-1]
            operands = _operands(node)
            left = [a for a in operands if id(a) not in self._same]
            if left:
                stack += left
                continue
            stack.pop()
            if id(node) not in self._same:
                args = [self._same[id(a)][1] for a in operands]
                new = node if all(a is b for a, b in zip(operands, args)) else visit.with_parts(node, args)
                same = self._nodes.setdefault(_structure(new), new)
                self._same[id(node)], self._same[id(same)] = (node, same), (same, same)
        return self._same[id(value)][1]

    def load(self, buf: Buf, offset: Index) -> Scalar:
        """The element at an offset; 0 where the buffer has none, which a selection may ask for and not use."""
        if buf.size == 0:
            return self.const(0, buf.dtype)
        if buf.name in self.replaced:
            return self.replaced[buf.name]
        return ir.Load(buf.name, offset, buf.dtype)

    # -- index arithmetic --------------------------------------------------------------------------------------------
    def add(self, left: Index, right: Index | int) -> Index:
        right = ir.number(right) if isinstance(right, int) else right
        return left + right if left.type == right.type == ir.INDEX else self.as_scalar(left) + self.as_scalar(right)

    def scale(self, index: Index, factor: int) -> Index:
        if index.type == ir.INDEX:
            return index * ir.number(factor)
        return index if factor == 1 else index * factor

    def offset(self, index: Sequence[Index], shape: Sequence[int], strides: Sequence[int] | None = None) -> Index:
        """The offset of an element in an array of `shape`: a C-contiguous one, or one with `strides`."""
        if all(i.type == ir.INDEX for i in index):
            return linear(index, shape, strides)
        total: Index = ZERO
        for i, stride, extent in zip(index, strides_of(shape) if strides is None else strides, shape):
            if extent != 1:
                total = self.add(total, self.scale(i, stride))
        return total

    def unravel(self, offset: Index, shape: Sequence[int]) -> list[Index]:
        """The index, in an array of `shape`, of the element at an offset."""
        if offset.type == ir.INDEX:
            parts = unravel(offset, shape, self.extents)
            if parts is not None:
                return list(parts)
            split = splittable(offset, shape, self.extents)
            if split is not None:
                self.splits.append(split)
        value = self.as_scalar(offset)
        out: list[Index] = []
        for d, (stride, extent) in enumerate(zip(strides_of(shape), shape)):
            if extent == 1:
                out.append(ZERO)
                continue
            part = value if stride == 1 else value // stride
            out.append(part if d == 0 else part % extent)
        return out

    def inside(self, index: Index, low: int, high: int) -> tuple[Scalar | None, Index]:
        """A test that `low <= index < high` (None where that always holds), and the index clamped into the range."""
        if index.type == ir.INDEX:
            least, most = span(index, self.extents)
            if surely_less(low - 1, least) and surely_less(most, high):
                return None, index
        value = self.as_scalar(index)
        return (value >= low) & (value < high), value.op("clamp", low, high - 1)

    def place(self, buf: Buf, index: Sequence[Index]) -> Index:
        """The offset of an element in a buffer."""
        return self.offset(index, buf.shape, buf.strides)

    def store(self, buf: Buf, offset: Index, value: Scalar) -> None:
        self.stores.append((buf, offset, value))

    def reduce(self, buf: Buf, offset: Index, name: str, value: Scalar) -> None:
        """Combine a value into an element, by an operation."""
        self.reductions.append((buf, offset, value, name))

    def update(self, test: Scalar, values: Sequence[tuple[str, Scalar]]) -> None:
        """Where a test holds, variables get new values, in the innermost loop."""
        self.updates.append((test, list(values)))

    # -- emitting ----------------------------------------------------------------------------------------------------
    def _written(self) -> list[tuple[Buf, Index, Scalar]]:
        """What the loops write: the buffer, the offset and the value."""
        return [*self.stores, *(r[:3] for r in self.reductions)]

    def copied(self) -> list[ir.Load]:
        """The elements of buffers that are stored as they are."""
        return [value for _, _, value in self.stores if isinstance(value, ir.Load) and value.buffer not in self.set_in]

    def reachable(self) -> list[Scalar]:
        """All values that the loops need, operands first."""
        order: list[Scalar] = []
        done: set[int] = set()
        stack: list[tuple[Scalar, bool]] = []
        for test, values in reversed(self.updates):
            stack.extend((self.same(a), False) for a in (*(value for _, value in values), test))
        for _, offset, value in reversed(self._written()):
            stack.append((self.same(value), False))
            if offset.type != ir.INDEX:
                stack.append((self.same(offset), False))
        while stack:
            node, ready = stack.pop()
            if ready:
                order.append(node)
            elif id(node) not in done:
                done.add(id(node))
                stack.append((node, True))
                stack.extend((a, False) for a in reversed(_operands(node)))
        return order

    def merged(self, forms: list[dict[int, int]], group: tuple[int, int] = (-1, -1)) -> tuple[list[int], list[int]]:
        """Which loops remain when neighbours that every form runs through as one are merged, and their extents.

        Loops inside `group` (first, last) are not merged with those outside.
        A merged loop keeps the number of its innermost member, whose coefficients it has.
        """
        keep: list[int] = []
        extents = list(self.extents)
        loops = [d for d in range(len(extents)) if extents[d] != 1 or d in self.bounds]
        for d in loops:
            if keep:
                outer = keep[-1]
                same = (group[0] <= d <= group[1]) == (group[0] <= outer <= group[1])
                if same and d not in self.bounds and all(f.get(outer, 0) == f.get(d, 0) * self.extents[d] for f in forms):
                    keep[-1] = d
                    extents[d] = extents[outer] * self.extents[d]
                    if outer in self._scaled:
                        self._scaled[d] = tuple(ir.expr(part) * self.extents[d] for part in self._scaled[outer])
                    # later comparisons need this loop's own extent, kept in self.extents
                    continue
            keep.append(d)
        return keep, extents

    def merged_axes(self) -> tuple[list[int], list[int]]:
        """`merged` for all accesses."""
        self._scaled = {}
        return self.merged(self._forms(self.reachable()))

    def runs_as_one(self, first: int, last: int) -> bool:
        """Whether the loops `first..last` merge into one."""
        self._scaled = {}
        keep, _ = self.merged(self._forms(self.reachable()), (first, last))
        return sum(first <= d <= last for d in keep) <= 1

    def only_read_where_written(self, bufs: Sequence[Buf]) -> list[Buf]:
        """The buffers of these that are read at the written offset alone."""
        if len(self.stores) != 1 or len(self._written()) != 1 or self.updates:
            return []
        where = self.stores[0][1]
        elsewhere = {n.buffer for n in self.reachable() if isinstance(n, ir.Load) and self.same(n.index) is not self.same(where)}
        return [b for b in bufs if b.name not in elsewhere]

    def _forms(self, order: list[Scalar]) -> list[dict[int, int]]:
        """The factors of loop variables in each affine form."""
        indices = [i for node in order for i in visit.parts(node)] + [offset for _, offset, _ in self._written()]
        return [terms_of(i) for i in indices if i.type == ir.INDEX]

    def build(self, fixed: int = 0, flat: tuple[int, int, End, End] | None = None) -> ir.Body:
        """The loops, in the loop language. The innermost one is vector code, unless it reduces into one element.

        The first `fixed` loops are neither merged nor opened: the caller has opened them, with variables `i0`, `i1`...
        `flat` = (first, last, low, high) bounds the loops `first..last`, which must merge, taken as one.
        """
        if self.empty or not (self._written() or self.updates):
            return []
        order = self.reachable()
        forms = self._forms(order)
        variables = self.updates or any(_name(node) in self.set_in for node in order)
        self._scaled = dict(self.bounds)
        if fixed or variables:
            keep = [d for d in range(len(self.extents)) if d < fixed or self.extents[d] != 1 or d in self.bounds]
            extents = list(self.extents)
        else:
            keep, extents = self.merged(forms, flat[:2] if flat is not None else (-1, -1))
        if flat is not None:
            first, last, low, high = flat
            group = [d for d in keep if first <= d <= last]
            assert len(group) <= 1
            self._scaled.update({d: (low, high) for d in group})
        levels = self._levels(order, {d: p + 1 for p, d in enumerate(keep)})
        return self._loops(keep, extents, levels, fixed)

    def _levels(self, order: list[Scalar], position: dict[int, int]) -> list[ir.Body]:
        """The statements outside all loops, in the first, and so on: each value as far out as possible.

        `position` has the number of the loops of each variable.
        """
        loops = len(position)
        names = [f"i{v}" for v in range(len(self.extents))]

        def known(form: Index) -> ir.Expr:
            return indexed(affine({v: c for v, c in terms_of(form).items() if v in position}, const_of(form)), names)

        depth = self._depths(order, position)
        uses, deepest = self._uses(order, depth, loops)
        levels: list[ir.Body] = [[] for _ in range(loops + 1)]
        exprs: dict[int, ir.Expr] = {}
        count = 0
        for node in order:
            operands = visit.parts(node)
            expr = node
            if operands and not (isinstance(node, ir.Load) and node.buffer in self.set_in):
                expr = visit.with_parts(node, [known(a) if a.type == ir.INDEX else exprs[id(a)] for a in operands])
            exprs[id(node)] = expr
            if not _operands(node) and not (isinstance(node, ir.Load) and node.buffer not in self.set_in):
                continue
            own = depth[id(node)]
            if uses.get(id(node), 0) == 1 and deepest.get(id(node), own) == own and len(render.render(expr)) < _INLINE:
                continue
            let = ir.Let(f"t{count}", expr)
            count += 1
            levels[own].append(let)
            exprs[id(node)] = let.var

        def computed(value: Scalar) -> ir.Expr:
            return exprs[id(self.same(value))]

        levels[loops] += self._results(lambda offset: known(offset) if offset.type == ir.INDEX else computed(offset), computed)
        return levels

    def _results(self, place: Callable[[Index], ir.Expr], computed: Callable[[Scalar], ir.Expr]) -> ir.Body:
        """The statements that store, reduce and update, of the expressions of offsets and values."""
        body: ir.Body = [ir.Store(buf.name, place(offset), computed(value)) for buf, offset, value in self.stores]
        body += [ir.Reduce(name, buf.name, place(offset), computed(value)) for buf, offset, value, name in self.reductions]
        for test, values in self.updates:
            body.append(ir.If(computed(test), [ir.Assign(name, computed(value)) for name, value in values]))
        return body

    def _depths(self, order: list[Scalar], position: dict[int, int]) -> dict[int, int]:
        """In how many loops each value must be computed, by its identity."""
        stored = {buf.name for buf, _, _ in self._written()}
        depth: dict[int, int] = {}
        for node in order:
            own = max((position.get(v, 0) for i in visit.parts(node) if i.type == ir.INDEX for v in terms_of(i)), default=0)
            name = _name(node)
            if name in self.set_in:
                own = min(self.set_in[name], len(position))
            if name in stored and isinstance(node, ir.Load):
                # What the loops write they read anew each time.
                own = len(position)
            depth[id(node)] = max([own, *[depth[id(a)] for a in _operands(node)]])
        return depth

    def _uses(self, order: list[Scalar], depth: Mapping[int, int], loops: int) -> tuple[dict[int, int], dict[int, int]]:
        """How often each value is used, and the innermost loop in which it is, by its identity."""
        uses: dict[int, int] = {}
        deepest: dict[int, int] = {}

        def use(node: Scalar, at: int) -> None:
            uses[id(node)] = uses.get(id(node), 0) + 1
            deepest[id(node)] = max(deepest.get(id(node), 0), at)

        for node in order:
            for operand in _operands(node):
                use(operand, depth[id(node)])
        for _, offset, value in self._written():
            use(self.same(value), loops)
            if offset.type != ir.INDEX:
                use(self.same(offset), loops)
        for test, values in self.updates:
            for updated in (test, *(value for _, value in values)):
                use(self.same(updated), loops)
        return uses, deepest

    def _loops(self, keep: list[int], extents: list[int], levels: list[ir.Body], fixed: int) -> ir.Body:
        """The loops around the levels, from inside out."""
        body = levels[-1]
        inner = keep[-1] if keep else -1
        vector = not self.updates and all(offset.type == ir.INDEX and inner in terms_of(offset) for _, offset, _, _ in self.reductions)
        last = len(keep) - 1
        # A few neighbours are written out: the loop around them has vectors, which compilers interleave.
        few = inner >= 0 and not isinstance(extents[inner], Size) and extents[inner] <= _FEW
        short = vector and last > fixed and inner not in self._scaled and few and not self.reductions
        kinds = {last: ir.UNROLLED} if short else {}
        if vector:
            kinds[last - short] = ir.VECTOR
        for p in range(last, fixed - 1, -1):
            d = keep[p]
            low, high, *count = self._scaled.get(d, (0, extents[d]))
            kind = kinds.get(p, ir.SERIAL)
            if count:
                # Compilers find the count of a loop that begins with 0.
                start = ir.Let(f"i{d}", ir.expr(low) + ir.Var(f"n{d}"))
                loop = ir.loop(f"n{d}", 0, count[0], [start, *body], kind)
            else:
                loop = ir.loop(f"i{d}", low, high, body, kind)
            body = [*levels[p], loop]
        if fixed:
            body = [*chain.from_iterable(levels[: min(fixed, len(keep))]), *body]
            if any(isinstance(s, ir.Let) for level in levels[: fixed + 1] for s in level):
                # Names of its own: several nests may stand in the loops that the caller has opened.
                return [ir.Block(body)]
        return body


#: The most iterations of an innermost loop that are written out.
_FEW = 4


def split_nest(shape: Sequence[int], fill: Callable[[Nest, list[Index]], None]) -> Nest:
    """A nest over `shape` that `fill(nest, index)` gives its stores; loops are cut where reshaped indices want it."""
    factors = [[extent] for extent in shape]
    for _ in range(_SPLITS):
        nest = Nest([f for parts in factors for f in parts])
        index, where, n = [], [], 0
        for d, parts in enumerate(factors):
            steps = strides_of(parts)
            index.append(affine({n + i: step for i, step in enumerate(steps)}))
            where += [(d, i) for i in range(len(parts))]
            n += len(parts)
        fill(nest, index)
        if not nest.splits or nest.empty:
            return nest
        loop, inner = nest.splits[0]
        d, i = where[loop]
        factors[d][i : i + 1] = [factors[d][i] // inner, inner]
    return nest


def indexed(form: Index, names: Sequence[str]) -> ir.Expr:
    """An affine form as an expression for the kernel, of the loop variables' names. Sizes become their values there."""
    total: ir.Expr = ir.number(0)
    for v, c in terms_of(form).items():
        total = total + ir.Var(names[v]) * c
    return total + const_of(form)


def _operands(node: Scalar) -> tuple[Scalar, ...]:
    """The values among a value's parts. Others are affine forms."""
    return tuple(a for a in visit.parts(node) if a.type != ir.INDEX) if node.type != ir.INDEX else ()


def _name(node: Scalar) -> str:
    """The name that a value reads."""
    return node.buffer if isinstance(node, ir.Load) else node.name if isinstance(node, ir.Var) else ""


def _structure(node: Scalar) -> tuple[Any, ...]:
    """What makes two values equal whose operands are the same."""
    if node.type == ir.INDEX:
        return (ir.INDEX, tuple(terms_of(node).items()), const_of(node))
    parts = [_structure(a) if a.type == ir.INDEX else id(a) for a in visit.parts(node)]
    match node:
        case ir.Const(value, ty):
            return ("const", literal(value, ty), ty)
        case ir.Load(name) | ir.Op(name) | ir.Var(name):
            return (type(node), name, node.type, *parts)
    return (type(node), node.type, *parts)
