"""Scalar expressions and loop nests: how one element of a result is computed, and the C of all elements.

A `Nest` holds a loop for each dimension. Its expressions are a graph of `Scalar` nodes (shared by structure), its
stores say where results go. `emit` merges neighbouring loops that all accesses run through as one. It computes each
expression in the outermost loop where its operands are known, and writes the C.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.backends.cpu.dtypes import CTYPES, literal
from relaylang.backends.cpu.index import ZERO, Affine, linear, strides_of, unravel


class Buf:
    """Memory with a C name: a C-contiguous array of `shape` and `dtype`."""

    __slots__ = ("name", "shape", "dtype")

    def __init__(self, name: str, shape: Sequence[int], dtype: str) -> None:
        self.name = name
        self.shape = tuple(shape)
        self.dtype = dtype

    @property
    def size(self) -> int:
        total = 1
        for extent in self.shape:
            total *= extent
        return total


class Scalar:
    """One node: a constant, an index value, a load, a C variable, or an operation given as a C template."""

    __slots__ = ("kind", "text", "args", "dtype", "data")

    def __init__(self, kind: str, text: str, args: tuple[Scalar, ...], dtype: str, data: Any = None) -> None:
        self.kind = kind
        self.text = text
        self.args = args
        self.dtype = dtype
        self.data = data


Index = Affine | Scalar


class Nest:
    """Loops `0..extents[d]` and the values computed inside. `bounds[d]`, where given, narrows loop `d` to C
    expressions."""

    def __init__(self, extents: Sequence[int], bounds: dict[int, tuple[str, str]] | None = None) -> None:
        self.extents = [max(1, e) for e in extents]
        self.empty = any(e == 0 for e in extents)
        self.bounds = bounds or {}
        self._known: dict[tuple[Any, ...], Scalar] = {}
        #: What tensors have at an index, each worked out once: (tensor, index) -> element.
        self.elements: dict[tuple[Any, ...], Scalar] = {}
        self.stores: list[tuple[Buf, Index, Scalar]] = []
        self.statements: list[tuple[str, tuple[Scalar, ...]]] = []

    # -- making expressions ------------------------------------------------------------------------------------------
    def _make(self, key: tuple[Any, ...], kind: str, text: str, args: tuple[Scalar, ...], dtype: str,
              data: Any = None) -> Scalar:  # fmt: skip
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Scalar(kind, text, args, dtype, data)
        return found

    def const(self, value: float | int | bool, dtype: str) -> Scalar:
        text = literal(value, dtype)
        return self._make(("const", text, dtype), "const", text, (), dtype)

    def index(self, form: Affine) -> Scalar:
        """An index as a number of type int64."""
        return self._make(("index", form.key()), "index", "", (), "int64", form)

    def as_scalar(self, index: Index) -> Scalar:
        return self.index(index) if isinstance(index, Affine) else index

    def variable(self, name: str, dtype: str, depth: int) -> Scalar:
        """A C variable that is set by hand in the loop at `depth`."""
        return self._make(("var", name), "var", name, (), dtype, depth)

    def op(self, template: str, args: Sequence[Scalar], dtype: str) -> Scalar:
        """An operation: `template` is C with `{0}`, `{1}` ... for the operands, and must be closed by brackets."""
        key = ("op", template, dtype, *[id(a) for a in args])
        return self._make(key, "op", template, tuple(args), dtype)

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
        if isinstance(right, int):
            right = Affine({}, right)
        return self.op("({0} + {1})", [self.as_scalar(left), self.as_scalar(right)], "int64")

    def scale(self, index: Index, factor: int) -> Index:
        if isinstance(index, Affine):
            return index * factor
        return index if factor == 1 else self.op(f"({{0}} * {factor})", [index], "int64")

    def offset(self, index: Sequence[Index], shape: Sequence[int]) -> Index:
        """The offset of an element in a C-contiguous array of `shape`."""
        affine = [i for i in index if isinstance(i, Affine)]
        if len(affine) == len(index):
            return linear(affine, shape)
        total: Index = ZERO
        for i, stride, extent in zip(index, strides_of(shape), shape):
            if extent != 1:
                total = self.add(total, self.scale(i, stride))
        return total

    def unravel(self, offset: Index, shape: Sequence[int]) -> list[Index]:
        """The index, in an array of `shape`, of the element at an offset."""
        if isinstance(offset, Affine):
            parts = unravel(offset, shape, self.extents)
            if parts is not None:
                return list(parts)
        value = self.as_scalar(offset)
        out: list[Index] = []
        for d, (stride, extent) in enumerate(zip(strides_of(shape), shape)):
            if extent == 1:
                out.append(ZERO)
                continue
            part = value if stride == 1 else self.op(f"({{0}} / {stride})", [value], "int64")
            out.append(part if d == 0 else self.op(f"({{0}} % {extent})", [part], "int64"))
        return out

    def inside(self, index: Index, low: int, high: int) -> tuple[Scalar | None, Index]:
        """A test that `low <= index < high` (None where that always holds), and the index clamped into the range."""
        if isinstance(index, Affine):
            least, most = index.span(self.extents)
            if least >= low and most < high:
                return None, index
        value = self.as_scalar(index)
        test = self.op(f"(({{0}} >= {low}) & ({{0}} < {high}))", [value], "bool")
        clamped = self.op(f"r_clamp_index({{0}}, {low}, {high - 1})", [value], "int64")
        return test, clamped

    def store(self, buf: Buf, offset: Index, value: Scalar) -> None:
        self.stores.append((buf, offset, value))

    def statement(self, template: str, args: Sequence[Scalar]) -> None:
        """A C statement in the innermost loop, with `{0}`, `{1}` ... for expressions."""
        self.statements.append((template, tuple(args)))

    # -- emitting ----------------------------------------------------------------------------------------------------
    def _reachable(self) -> list[Scalar]:
        order: list[Scalar] = []
        done: set[int] = set()
        stack: list[tuple[Scalar, bool]] = []
        for _, args in reversed(self.statements):
            stack.extend((a, False) for a in reversed(args))
        for _, offset, value in reversed(self.stores):
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
                if same and d not in self.bounds and all(
                    f.terms.get(outer, 0) == f.terms.get(d, 0) * self.extents[d] for f in forms
                ):
                    keep[-1] = d
                    extents[d] = extents[outer] * self.extents[d]
                    if outer in self._scaled:
                        low, high = self._scaled[outer]
                        self._scaled[d] = (f"({low})*{self.extents[d]}", f"({high})*{self.extents[d]}")
                    # later comparisons need this loop's own extent, kept in self.extents
                    continue
            keep.append(d)
        return keep, extents

    def runs_as_one(self, first: int, last: int) -> bool:
        """Whether the loops `first..last` merge into one."""
        self._scaled: dict = {}
        keep, _ = self.merged(self._forms(self._reachable()), (first, last))
        return sum(first <= d <= last for d in keep) <= 1

    def _forms(self, order: list[Scalar]) -> list[Affine]:
        forms = [n.data for n in order if isinstance(n.data, Affine)]
        return forms + [offset for _, offset, _ in self.stores if isinstance(offset, Affine)]

    def emit(self, split: bool = True, indent: str = "  ", fixed: int = 0,
             flat: tuple[int, int, str, str] | None = None) -> tuple[list[str], int]:  # fmt: skip
        """The C of the loops and the number of units that the outermost one may be cut into.

        With `split`, the outermost loop runs over units `lo..hi` (C variables of the enclosing function). The first
        `fixed` loops are neither merged nor opened: the caller has opened them and named their variables `i0`, `i1`...
        `flat` = (first, last, low, high) bounds the loops `first..last`, which must merge, taken as one.
        """
        if self.empty or not (self.stores or self.statements):
            return [], 0
        order = self._reachable()
        forms = self._forms(order)
        variables = [n for n in order if n.kind == "var"] or self.statements
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
        names = [""] * len(self.extents)
        position = {}
        for p, d in enumerate(keep):
            names[d] = f"i{d}"
            position[d] = p + 1
        for d in range(len(self.extents)):
            if not names[d]:
                names[d] = "0"

        def known(form: Affine) -> Affine:
            return Affine({v: c for v, c in form.terms.items() if v in position}, form.const)

        def depth_of(form: Affine) -> int:
            return max((position[v] for v in known(form).terms), default=0)

        stored = {buf.name for buf, _, _ in self.stores}
        depth: dict[int, int] = {}
        uses: dict[int, int] = {}
        for node in order:
            own = 0
            if isinstance(node.data, Affine):
                own = depth_of(node.data)
            elif node.kind == "var":
                own = int(node.data)
            if node.text in stored and node.kind in ("load", "loadx"):
                # What the loops write they read anew each time.
                own = len(keep)
            depth[id(node)] = max([own, *[depth[id(a)] for a in node.args]])
            for a in node.args:
                uses[id(a)] = uses.get(id(a), 0) + 1
        for _, offset, value in self.stores:
            uses[id(value)] = uses.get(id(value), 0) + 1
            if isinstance(offset, Scalar):
                uses[id(offset)] = uses.get(id(offset), 0) + 1
        for _, args in self.statements:
            for a in args:
                uses[id(a)] = uses.get(id(a), 0) + 1
        body: list[list[str]] = [[] for _ in range(len(keep) + 1)]
        texts: dict[int, str] = {}
        user_depth: dict[int, int] = {}
        for node in order:
            for a in node.args:
                user_depth[id(a)] = max(user_depth.get(id(a), 0), depth[id(node)])
        for _, _, value in self.stores:
            user_depth[id(value)] = len(keep)
        for _, args in self.statements:
            for a in args:
                user_depth[id(a)] = len(keep)
        count = 0
        for node in order:
            if node.kind in ("const", "var"):
                texts[id(node)] = node.text
                continue
            if node.kind == "index":
                texts[id(node)] = f"((int64_t)({known(node.data).text(names)}))"
                continue
            if node.kind == "load":
                text = f"{node.text}[{known(node.data).text(names)}]"
            elif node.kind == "loadx":
                text = f"{node.text}[{texts[id(node.args[0])]}]"
            else:
                text = node.text.format(*[texts[id(a)] for a in node.args])
            own = depth[id(node)]
            if uses.get(id(node), 0) == 1 and len(text) < 72 and user_depth.get(id(node), own) == own:
                texts[id(node)] = text
                continue
            name = f"t{count}"
            count += 1
            body[own].append(f"const {CTYPES[node.dtype]} {name} = {text};")
            texts[id(node)] = name
        for buf, offset, value in self.stores:
            where = known(offset).text(names) if isinstance(offset, Affine) else texts[id(offset)]
            body[len(keep)].append(f"{buf.name}[{where}] = {texts[id(value)]};")
        for template, args in self.statements:
            body[len(keep)].append(template.format(*[texts[id(a)] for a in args]))
        return self._loops(keep, extents, names, body, split, indent, fixed)

    def _loops(self, keep: list[int], extents: list[int], names: list[str], body: list[list[str]], split: bool,
               indent: str, fixed: int) -> tuple[list[str], int]:  # fmt: skip
        out: list[str] = []
        units = 1
        pad = indent
        open_loops = 0
        out += [pad + line for line in body[0]]
        for p, d in enumerate(keep):
            low, high = self._scaled.get(d, ("0", str(extents[d])))
            if p >= fixed:
                if split and p == 0 and d not in self._scaled:
                    if len(keep) == 1:
                        units = -(-extents[d] // 1024)
                        low, high = "lo*1024", f"(hi*1024 < {extents[d]} ? hi*1024 : {extents[d]})"
                    else:
                        units = extents[d]
                        low, high = "lo", "hi"
                if p == len(keep) - 1:
                    out.append(pad + "R_IVDEP")
                out.append(f"{pad}for (long {names[d]} = {low}; {names[d]} < {high}; {names[d]}++) {{")
                pad += "  "
                open_loops += 1
            out += [pad + line for line in body[p + 1]]
        for _ in range(open_loops):
            pad = pad[:-2]
            out.append(pad + "}")
        if fixed and any(body[: fixed + 1]):
            # Names of its own: several nests may stand in the loops that the caller has opened.
            out = [indent + "{", *out, indent + "}"]
        return out, units
