"""Scalar expressions and loop nests: how one element of a result is computed, and the loops over all elements.

A `Nest` holds a loop for each dimension. Its expressions are a graph of `Scalar` nodes (shared by structure), its
stores say where results go. `build` merges neighbouring loops that all accesses run through as one. It computes each
expression in the outermost loop where its operands are known, and makes statements of the loop language.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relaylang.kernels import ir, render
from relaylang.kernels.dtypes import literal
from relaylang.kernels.index import ZERO, Affine, is_contiguous, linear, reshaped, splittable, strides_of, unravel
from relaylang.kernels.ops import TESTS
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
        total = 1
        for extent in self.shape:
            total *= extent
        return total


class Scalar:
    """One node: a constant, an index value, a load, a variable, a conversion, or an operation of `relaylang.kernels.ops`.

    Operators make operations in the same nest; numbers become constants of the node's type. `//` and `%` are those of C,
    and their second operand is positive. Comparisons but `==` make tests.
    """

    __slots__ = ("nest", "kind", "text", "args", "dtype", "data")

    def __init__(self, nest: Nest, kind: str, text: str, args: tuple[Scalar, ...], dtype: str, data: Any = None) -> None:
        self.nest = nest
        self.kind = kind
        self.text = text
        self.args = args
        self.dtype = dtype
        self.data = data

    def op(self, name: str, *others: Scalar | float) -> Scalar:
        """An operation with this value as its first operand, of this value's type."""
        return self.nest.op(name, [self, *others], "bool" if name in TESTS else self.dtype)

    def __add__(self, other: Scalar | float) -> Scalar:
        return self.op("add", other)

    def __sub__(self, other: Scalar | float) -> Scalar:
        return self.op("sub", other)

    def __rsub__(self, other: float) -> Scalar:
        return self.nest.op("sub", [other, self], self.dtype)

    def __mul__(self, other: Scalar | float) -> Scalar:
        return self.op("mul", other)

    def __truediv__(self, other: Scalar | float) -> Scalar:
        return self.op("div", other)

    def __floordiv__(self, other: Scalar | int) -> Scalar:
        return self.op("quotient", other)

    def __mod__(self, other: Scalar | int) -> Scalar:
        return self.op("remainder", other)

    def __neg__(self) -> Scalar:
        return self.op("neg")

    def __lt__(self, other: Scalar | float) -> Scalar:
        return self.op("lt", other)

    def __le__(self, other: Scalar | float) -> Scalar:
        return self.op("le", other)

    def __gt__(self, other: Scalar | float) -> Scalar:
        return self.op("gt", other)

    def __ge__(self, other: Scalar | float) -> Scalar:
        return self.op("ge", other)

    def __and__(self, other: Scalar | int) -> Scalar:
        return self.op("and", other)

    def __or__(self, other: Scalar | int) -> Scalar:
        return self.op("or", other)

    def eq(self, other: Scalar | float) -> Scalar:
        """Whether two values are equal (`==` compares nodes)."""
        return self.op("eq", other)

    def ne(self, other: Scalar | float) -> Scalar:
        return self.op("ne", other)

    def select(self, yes: Scalar, no: Scalar | float) -> Scalar:
        """One of two values by this test; the other is not computed."""
        return self.nest.op("select", [self, yes, yes.lifted(no)], yes.dtype)

    def lifted(self, other: Scalar | float) -> Scalar:
        """A number as a constant of this value's type."""
        return other if isinstance(other, Scalar) else self.nest.const(other, self.dtype)

    def cast(self, dtype: str) -> Scalar:
        """The value as another type: floats are cut to integers, integers wrap, anything but zero and nan is True."""
        return self.nest.cast(self, dtype)


Index = Affine | Scalar
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
        self._known: dict[tuple[Any, ...], Scalar] = {}
        #: What tensors have at an index, each worked out once: (tensor, index) -> element.
        self.elements: dict[tuple[Any, ...], Scalar] = {}
        self.stores: list[tuple[Buf, Index, Scalar]] = []
        self._scaled: dict = {}
        #: Loops to cut in two, so that an index needs no division: (loop, extent of its inner part).
        self.splits: list[tuple[int, int]] = []
        self.reductions: list[tuple[Buf, Index, Scalar, str]] = []
        self.updates: list[tuple[Scalar, list[tuple[Scalar, Scalar]]]] = []

    # -- making expressions ------------------------------------------------------------------------------------------
    def _make(self, key: tuple[Any, ...], kind: str, text: str, args: tuple[Scalar, ...], dtype: str, data: Any = None) -> Scalar:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Scalar(self, kind, text, args, dtype, data)
        return found

    def const(self, value: float | int | bool, dtype: str) -> Scalar:
        """A number, which may be a size."""
        if isinstance(value, Size):
            return self.cast(self.index(Affine({}, value)), dtype)
        text = literal(value, dtype)
        return self._make(("const", text, dtype), "const", text, (), dtype, value)

    def index(self, form: Affine) -> Scalar:
        """An index as a number of type int64."""
        return self._make(("index", form.key()), "index", "", (), "int64", form)

    def as_scalar(self, index: Index) -> Scalar:
        return self.index(index) if isinstance(index, Affine) else index

    def variable(self, name: str, dtype: str, depth: int, index: int | None = None) -> Scalar:
        """A variable that is set by hand in the loop at `depth`; with `index`, an element of a local array."""
        return self._make(("var", name, index), "var", name, (), dtype, (depth, index))

    def op(self, name: str, args: Sequence[Scalar | float], dtype: str) -> Scalar:
        """An operation by its name. Numbers among the operands become constants of the type of the first value."""
        like = next(a for a in args if isinstance(a, Scalar))
        operands = tuple([like.lifted(a) for a in args])
        return self._make(("op", name, dtype, *[id(a) for a in operands]), "op", name, operands, dtype)

    def cast(self, value: Scalar, dtype: str) -> Scalar:
        """A value as another type; see `Scalar.cast`."""
        if value.dtype == dtype:
            return value
        between = {value.dtype, dtype} & {"float16", "bfloat16"} and (value.dtype, dtype) != ("float64", "float16")
        if between and "float32" not in (value.dtype, dtype):
            value = self.cast(value, "float32")
        return self._make(("cast", dtype, id(value)), "cast", "", (value,), dtype)

    def load(self, buf: Buf, offset: Index) -> Scalar:
        """The element at an offset; 0 where the buffer has none, which a selection may ask for and not use."""
        if buf.size == 0:
            return self.const(0, buf.dtype)
        if isinstance(offset, Affine):
            key: tuple[Any, ...] = ("load", buf.name, offset.key())
            return self._make(key, "load", buf.name, (), buf.dtype, offset)
        return self._make(("loadx", buf.name, id(offset)), "loadx", buf.name, (offset,), buf.dtype)

    # -- index arithmetic --------------------------------------------------------------------------------------------
    def add(self, left: Index, right: Index | int) -> Index:
        if isinstance(left, Affine) and isinstance(right, (Affine, int)):
            return left + right
        return self.as_scalar(left) + self.as_scalar(Affine({}, right) if isinstance(right, int) else right)

    def scale(self, index: Index, factor: int) -> Index:
        if isinstance(index, Affine):
            return index * factor
        return index if factor == 1 else index * factor

    def offset(self, index: Sequence[Index], shape: Sequence[int], strides: Sequence[int] | None = None) -> Index:
        """The offset of an element in an array of `shape`: a C-contiguous one, or one with `strides`."""
        affine = [i for i in index if isinstance(i, Affine)]
        if len(affine) == len(index):
            return linear(affine, shape, strides)
        total: Index = ZERO
        for i, stride, extent in zip(index, strides_of(shape) if strides is None else strides, shape):
            if extent != 1:
                total = self.add(total, self.scale(i, stride))
        return total

    def unravel(self, offset: Index, shape: Sequence[int]) -> list[Index]:
        """The index, in an array of `shape`, of the element at an offset."""
        if isinstance(offset, Affine):
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
        if isinstance(index, Affine):
            least, most = index.span(self.extents)
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

    def update(self, test: Scalar, values: Sequence[tuple[Scalar, Scalar]]) -> None:
        """Where a test holds, variables get new values, in the innermost loop."""
        self.updates.append((test, list(values)))

    # -- emitting ----------------------------------------------------------------------------------------------------
    def _written(self) -> list[tuple[Buf, Index, Scalar]]:
        """What the loops write: the buffer, the offset and the value."""
        return [*self.stores, *(r[:3] for r in self.reductions)]

    def reachable(self) -> list[Scalar]:
        """All values that the loops need, operands first."""
        order: list[Scalar] = []
        done: set[int] = set()
        stack: list[tuple[Scalar, bool]] = []
        for test, values in reversed(self.updates):
            stack.extend((a, False) for a in (*(value for _, value in values), test))
        for _, offset, value in reversed(self._written()):
            stack.append((value, False))
            if isinstance(offset, Scalar):
                stack.append((offset, False))
        while stack:
            node, ready = stack.pop()
            if ready:
                order.append(node)
            elif id(node) not in done:
                done.add(id(node))
                stack.append((node, True))
                stack.extend((a, False) for a in reversed(node.args))
        return order

    def merged(self, forms: list[Affine], group: tuple[int, int] = (-1, -1)) -> tuple[list[int], list[int]]:
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
                if same and d not in self.bounds and all(f.terms.get(outer, 0) == f.terms.get(d, 0) * self.extents[d] for f in forms):
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
        elsewhere = {
            n.text
            for n in self.reachable()
            if n.kind == "loadx" or (n.kind == "load" and not (isinstance(where, Affine) and n.data.key() == where.key()))
        }
        return [b for b in bufs if b.name not in elsewhere]

    def _forms(self, order: list[Scalar]) -> list[Affine]:
        forms = [n.data for n in order if isinstance(n.data, Affine)]
        return forms + [offset for _, offset, _ in self._written() if isinstance(offset, Affine)]

    def build(self, fixed: int = 0, flat: tuple[int, int, End, End] | None = None) -> ir.Body:
        """The loops, in the loop language. The innermost one is vector code, unless it reduces into one element.

        The first `fixed` loops are neither merged nor opened: the caller has opened them, with variables `i0`, `i1`...
        `flat` = (first, last, low, high) bounds the loops `first..last`, which must merge, taken as one.
        """
        if self.empty or not (self._written() or self.updates):
            return []
        order = self.reachable()
        forms = self._forms(order)
        variables = [n for n in order if n.kind == "var"] or self.updates
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

        def known(form: Affine) -> ir.Expr:
            return indexed(Affine({v: c for v, c in form.terms.items() if v in position}, form.const), names)

        stored = {buf.name for buf, _, _ in self._written()}
        depth: dict[int, int] = {}
        uses: dict[int, int] = {}
        #: The innermost loop in which a value is used.
        deepest: dict[int, int] = {}

        def use(node: Scalar, at: int) -> None:
            uses[id(node)] = uses.get(id(node), 0) + 1
            deepest[id(node)] = max(deepest.get(id(node), 0), at)

        for node in order:
            own = 0
            if isinstance(node.data, Affine):
                own = max((position.get(v, 0) for v in node.data.terms), default=0)
            elif node.kind == "var":
                own = min(node.data[0], loops)
            if node.text in stored and node.kind in ("load", "loadx"):
                # What the loops write they read anew each time.
                own = loops
            own = depth[id(node)] = max([own, *[depth[id(a)] for a in node.args]])
            for a in node.args:
                use(a, own)
        for _, offset, value in self._written():
            use(value, loops)
            if isinstance(offset, Scalar):
                use(offset, loops)
        for test, values in self.updates:
            for a in (test, *(value for _, value in values)):
                use(a, loops)
        levels: list[ir.Body] = [[] for _ in range(loops + 1)]
        made: dict[int, ir.Expr] = {}
        count = 0
        for node in order:
            terms = tuple(made[id(a)] for a in node.args)
            expr = made[id(node)] = _expr(node, terms, known)
            if node.kind in ("const", "var", "index"):
                continue
            own = depth[id(node)]
            if uses.get(id(node), 0) == 1 and deepest.get(id(node), own) == own and len(render.render(expr)) < _INLINE:
                continue
            let = ir.Let(f"t{count}", expr)
            count += 1
            levels[own].append(let)
            made[id(node)] = let.var

        def place(offset: Index) -> ir.Expr:
            return known(offset) if isinstance(offset, Affine) else made[id(offset)]

        for buf, offset, value in self.stores:
            levels[loops].append(ir.Store(buf.name, place(offset), made[id(value)]))
        for buf, offset, value, name in self.reductions:
            levels[loops].append(ir.Reduce(name, buf.name, place(offset), made[id(value)]))
        for test, values in self.updates:
            levels[loops].append(ir.If(made[id(test)], [ir.Assign(name.text, made[id(value)]) for name, value in values]))
        return levels

    def _loops(self, keep: list[int], extents: list[int], levels: list[ir.Body], fixed: int) -> ir.Body:
        """The loops around the levels, from inside out."""
        body = levels[-1]
        inner = keep[-1] if keep else -1
        vector = not self.updates and all(isinstance(offset, Affine) and inner in offset.terms for _, offset, _, _ in self.reductions)
        last = len(keep) - 1
        # A few neighbours are written out: the loop around them has vectors, which compilers interleave.
        few = inner >= 0 and surely_less(extents[inner], _FEW + 1)
        short = vector and last > fixed and inner not in self._scaled and few and not self.reductions
        for p in range(last, fixed - 1, -1):
            d = keep[p]
            low, high, *count = self._scaled.get(d, (0, extents[d]))
            kind = ir.VECTOR if vector and p == last - short else ir.UNROLLED if short and p == last else ir.SERIAL
            if count:
                # Compilers find the count of a loop that begins with 0.
                start = ir.Let(f"i{d}", ir.expr(low) + ir.Var(f"n{d}"))
                loop = ir.loop(f"n{d}", 0, count[0], [start, *body], kind)
            else:
                loop = ir.loop(f"i{d}", low, high, body, kind)
            body = [*levels[p], loop]
        if fixed:
            body = [s for level in levels[: min(fixed, len(keep))] for s in level] + body
            if any(isinstance(s, ir.Let) for level in levels[: fixed + 1] for s in level):
                # Names of its own: several nests may stand in the loops that the caller has opened.
                return [ir.Block(body)]
        return body


#: The most iterations of an innermost loop that are written out.
_FEW = 4


def split_nest(shape: Sequence[int], fill: Callable[[Nest, list[Affine]], None]) -> Nest:
    """A nest over `shape` that `fill(nest, index)` gives its stores; loops are cut where reshaped indices want it."""
    factors = [[extent] for extent in shape]
    for _ in range(_SPLITS):
        nest = Nest([f for parts in factors for f in parts])
        index, where, n = [], [], 0
        for d, parts in enumerate(factors):
            steps = strides_of(parts)
            index.append(Affine({n + i: step for i, step in enumerate(steps)}))
            where += [(d, i) for i in range(len(parts))]
            n += len(parts)
        fill(nest, index)
        if not nest.splits or nest.empty:
            return nest
        loop, inner = nest.splits[0]
        d, i = where[loop]
        factors[d][i : i + 1] = [factors[d][i] // inner, inner]
    return nest


def indexed(form: Affine, names: Sequence[str]) -> ir.Expr:
    """An index of loop variables as an expression, by the variables' names."""
    total: ir.Expr = ir.number(0)
    for v, c in form.terms.items():
        total = total + ir.Var(names[v]) * c
    return total + form.const


def _expr(node: Scalar, args: tuple[ir.Expr, ...], known: Callable[[Affine], ir.Expr]) -> ir.Expr:
    """A node as an expression of the loop language."""
    match node.kind:
        case "const":
            return ir.Const(node.data, node.dtype)
        case "var":
            index = node.data[1]
            return ir.Var(node.text, node.dtype) if index is None else ir.Load(node.text, ir.number(index), node.dtype)
        case "index":
            return ir.Cast(known(node.data), "int64")
        case "load":
            return ir.Load(node.text, known(node.data), node.dtype)
        case "loadx":
            return ir.Load(node.text, args[0], node.dtype)
        case "cast":
            return ir.Cast(args[0], node.dtype)
    return ir.Op(node.text, args, node.dtype)
