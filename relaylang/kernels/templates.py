"""Kernels of users' operators: a text of the loop language, with names for what a call decides.

    operator my.scale
      # The data times a factor.
      type T: float32, int32
      attr factor: float = 2
      in data: T[S...]
      out y: T[S...]
      for i in 0 .. S
        y[i] = data[i] * factor

`T` is an element type, `factor` an attribute. `S...` stands for any number of extents, and `S` for their product. A lone
name in a shape is an extent. Extents of results are computed from those of arguments: `T[(H - K) / stride + 1]`.

`Template` has the head of an operator, which `heads` reads. `bound` finds what the names stand for in a call, and `body`
gives the statements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Any

from relaylang.diagnostics import RelayError, Span
from relaylang.ir.types import ANY
from relaylang.kernels import check, ir
from relaylang.kernels.dtypes import CTYPES
from relaylang.kernels.legal import independent, legal
from relaylang.kernels.reader import Reader
from relaylang.kernels.sizes import Size, largest, smallest
from relaylang.kernels.words import Line, Node, wrong

#: The kinds of attributes, each with a value that checks take where there is no default.
ATTRIBUTES: dict[str, Any] = {"int": 1, "float": 1.0, "bool": False, "str": "float32", "Ints": (1,) * 8, "Floats": (1.0,) * 8}
#: Extents that checks take for names, in order.
_SAMPLES = (3, 5, 7, 11, 13, 17, 19, 23)
#: So many combinations of element types are checked when an operator is added.
_COMBINATIONS = 64
#: So many bodies are kept: checks of types ask for those that lowerings and the interpreter ask for again.
_KEPT = 256

#: The same extent of two that must agree: `agree(left, right, what, argument)`; raises where they differ.
Agree = Callable[[Any, Any, str, "int | None"], Any]


class Misfit(Exception):
    """A call does not fit the text: the mistake, and the number of the argument, if it is one."""

    def __init__(self, message: str, argument: int | None = None) -> None:
        self.message, self.argument = message, argument
        super().__init__(message)


def _agree(left: Any, right: Any, what: str, argument: int | None) -> Any:
    if left is ANY or right is ANY:
        return right if left is ANY else left
    if left != right:
        raise Misfit(f"{what} is {left} elsewhere, and {right} here", argument)
    return left


@dataclass
class Attribute:
    """An attribute that a text declares; None where it must be given."""

    name: str
    kind: str
    default: Any
    span: Span


@dataclass
class Argument:
    """A tensor of the text: `in`, `out` or `work`. An extent that ends in `...` is a group of extents.

    With two groups, the attribute `axis` says where the extent between them stands. `broadcast` says that the argument is
    brought to the group's shape before the kernel, `zero` that the elements begin as zeros.
    """

    kind: str
    name: str
    span: Span
    dtype: str
    extents: list[Node]
    axis: str = ""
    broadcast: bool = False
    zero: bool = False

    @property
    def text(self) -> str:
        """The declaration as it stands in the text."""
        return self.span.source.text[self.span.first : self.span.last]


@dataclass
class Template:
    """An operator's text: its head, and the lines of its statements."""

    name: str
    span: Span
    doc: str = ""
    types: dict[str, tuple[str, ...]] = field(default_factory=dict)
    attributes: list[Attribute] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    _bodies: dict[Any, ir.Body] = field(default_factory=dict)

    def of(self, kind: str) -> list[Argument]:
        """The arguments of a kind."""
        return [a for a in self.arguments if a.kind == kind]

    # -- what names stand for --------------------------------------------------------------------------------------------

    def bound(
        self,
        given: Sequence[tuple[Sequence[Any], str]],
        attributes: Mapping[str, Any],
        results: Sequence[tuple[Sequence[Any], str]] | None = None,
        agree: Agree = _agree,
    ) -> dict[str, Any]:
        """What the names stand for in a call with tensors of these shapes and element types. Raises `Misfit`."""
        names: dict[str, Any] = dict(attributes)
        tensors = list(enumerate(zip(self.of("in"), given, strict=True)))
        for number, (argument, (shape, dtype)) in tensors:
            self._bind_type(argument, number, dtype, names)
            if not argument.broadcast:
                self._bind(argument, number, self._spread(argument, number, shape, names), names, agree)
        for number, (argument, (shape, _)) in tensors:
            if argument.broadcast:
                self._broadcast(argument, number, shape, names, agree)
        for number, (argument, (shape, _)) in tensors:
            if not argument.broadcast:
                self._compare(argument, number, shape, names, agree)
        for argument, (shape, dtype) in zip(self.of("out"), results or ()):
            self._bind_type(argument, None, dtype, names)
            if any(node.kind == "name" and node.text not in names for node in argument.extents):
                self._bind(argument, None, self._spread(argument, None, shape, names), names, agree)
            self._compare(argument, None, shape, names, agree)
        return names

    def _bind_type(self, argument: Argument, number: int | None, dtype: str, names: dict[str, Any]) -> None:
        wanted = names.get(argument.dtype, argument.dtype)
        if argument.dtype in self.types and argument.dtype not in names:
            if dtype not in self.types[argument.dtype]:
                raise Misfit(f"is of {dtype}, and the kernel takes {', '.join(self.types[argument.dtype])}", number)
            names[argument.dtype] = dtype
        elif wanted != dtype:
            raise Misfit(f"is of {dtype}, and the kernel has {wanted} for `{argument.text}`", number)

    def _spread(self, argument: Argument, number: int | None, shape: Sequence[Any], names: Mapping[str, Any]) -> list[Any]:
        """The value of each extent of the text: an extent, or the extents of a group."""
        groups = [n for n, e in enumerate(argument.extents) if e.kind == "group"]
        lone = len(argument.extents) - len(groups)
        if len(shape) < lone or (not groups and len(shape) != lone):
            least = " or more" if groups else ""
            raise Misfit(f"has {len(shape)} dimensions, and the kernel takes {lone}{least}: `{argument.text}`", number)
        out: list[Any] = list(shape)
        if not groups:
            return out
        if argument.axis:
            axis = names[argument.axis]
            if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
                raise Misfit(f"has no axis {axis}", number)
            axis %= len(shape)
            return [tuple(out[:axis]), out[axis], tuple(out[axis + 1 :])]
        first, size = groups[0], len(shape) - lone
        return [*out[:first], tuple(out[first : first + size]), *out[first + size :]]

    def _bind(self, argument: Argument, number: int | None, extents: Sequence[Any], names: dict[str, Any], agree: Agree) -> None:
        for node, extent in zip(argument.extents, extents):
            if node.kind == "group":
                before = names.get(f"{node.text}...")
                what = f"{node.text}... of `{argument.text}`"
                if before is not None and len(before) != len(extent):
                    raise Misfit(f"{what} has {len(before)} dimensions elsewhere, and {len(extent)} here", number)
                if before is not None:
                    extent = tuple([agree(a, b, f"an extent of {what}", number) for a, b in zip(before, extent)])
                _group(names, node.text, extent)
            elif node.kind == "name" and node.text not in {a.name for a in self.attributes}:
                before = names.get(node.text)
                what = f"the extent {node.text} of `{argument.text}`"
                names[node.text] = extent if before is None else agree(before, extent, what, number)

    def _broadcast(self, argument: Argument, number: int | None, shape: Sequence[Any], names: dict[str, Any], agree: Agree) -> None:
        (node,) = argument.extents
        before = names.get(f"{node.text}...", ())
        rank = max(len(before), len(shape))
        one, two = ([1] * (rank - len(s)) + list(s) for s in (before, shape))
        alone = all(a.broadcast for a in self.of("in") if any(e.text == node.text for e in a.extents))
        out = []
        for a, b in zip(one, two):
            if type(b) is int and b == 1:
                out.append(a)
            elif alone and type(a) is int and a == 1:
                out.append(b)
            else:
                out.append(agree(a, b, f"an extent of {node.text}... of `{argument.text}`", number))
        if not alone and len(before) < rank:
            raise Misfit(f"has {len(shape)} dimensions, and the kernel takes {len(before)} at most: `{argument.text}`", number)
        _group(names, node.text, tuple(out))

    def _compare(self, argument: Argument, number: int | None, shape: Sequence[Any], names: Mapping[str, Any], agree: Agree) -> None:
        """A tensor has the shape that the names give."""
        wanted = self._shape(argument, names)
        if len(wanted) != len(shape):
            raise Misfit(f"has {len(shape)} dimensions, and the kernel {len(wanted)}: `{argument.text}`", number)
        for left, right in zip(wanted, shape):
            agree(left, right, f"an extent of `{argument.text}`", number)

    def _shape(self, argument: Argument, names: Mapping[str, Any]) -> tuple[Any, ...]:
        shape: list[Any] = []
        for node in argument.extents:
            shape += names[f"{node.text}..."] if node.kind == "group" else [value(node, names)]
        return tuple(shape)

    def results(self, names: Mapping[str, Any], kind: str = "out") -> list[tuple[tuple[Any, ...], str]]:
        """The shapes and element types of the results. An extent is `ANY` where it depends on one that is not known."""
        return [(self._shape(a, names), names.get(a.dtype, a.dtype)) for a in self.of(kind)]

    # -- statements ------------------------------------------------------------------------------------------------------

    def body(self, names: Mapping[str, Any]) -> ir.Body:
        """The statements for what the names stand for. Buffers have the names of the text.

        Raises `RelayError` (R0644) with the place of the mistake in the text.
        """
        if any(isinstance(stands, Size) for stands in names.values()):
            return self._body(names)  # sizes belong to one kernel
        key = tuple((name, repr(stands)) for name, stands in names.items())
        if key not in self._bodies:
            if len(self._bodies) >= _KEPT:
                self._bodies.clear()
            self._bodies[key] = self._body(names)
        return self._bodies[key]

    def _body(self, names: Mapping[str, Any], trial: bool = False) -> ir.Body:
        spans: dict[int, Span] = {}
        pointers = {}
        for a in self.arguments:
            if a.name in names:
                wrong(a.span, f"{a.name} is the name of two things")
            dtype = names.get(a.dtype, a.dtype)
            if dtype not in CTYPES:
                wrong(a.span, f"no element type is called {dtype}")
            pointers[a.name] = f"{'const ' if a.kind == 'in' else ''}{dtype}*"
        plain = {name: stands for name, stands in names.items() if "." not in name}
        reader = Reader(self.span.source, pointers, spans, plain)
        reader.types = dict(pointers)
        reader.has_sizes = False
        body = reader.body(self.lines)
        if any(isinstance(s, ir.Loop) and s.kind == ir.PARALLEL for s in body):
            for stmt in body:
                if isinstance(stmt, (ir.Let, ir.Local, ir.Assign)):
                    wrong(
                        spans[id(stmt)],
                        f"{stmt.name} stands outside of the parallel loop",
                        "each thread needs its own, inside of the loop",
                    )
        for part in stages(body):
            check.check(part, pointers, lambda stmt, message: wrong(spans.get(id(stmt), self.span), message))
        if trial:
            independent(body, spans)
        return self._zeros(names) + legal(body, pointers, spans, self.span)

    def _zeros(self, names: Mapping[str, Any]) -> ir.Body:
        out: ir.Body = []
        for kind in ("out", "work"):
            for a, (shape, dtype) in zip(self.of(kind), self.results(names, kind)):
                if a.zero:
                    store = ir.Store(a.name, ir.Var("zero"), ir.Const(0, dtype))
                    out.append(ir.loop("zero", 0, math.prod(shape), [store]))
        return out

    def samples(self) -> list[dict[str, Any]]:
        """What the names may stand for, with each combination of element types: for checks."""
        extents = iter(_SAMPLES * 8)
        names: dict[str, Any] = {a.name: ATTRIBUTES[a.kind] if a.default is None else a.default for a in self.attributes}
        for argument in self.arguments:
            for node in argument.extents:
                if node.kind == "group" and f"{node.text}..." not in names:
                    _group(names, node.text, (2, next(extents)))
                elif node.kind == "name" and node.text not in names:
                    names[node.text] = next(extents)
        combinations = islice(product(*self.types.values()), _COMBINATIONS)
        return [{**names, **dict(zip(self.types, types))} for types in combinations]

    def examine(self) -> None:
        """Check the statements for each combination of element types. Raises `RelayError` (R0644) with the place."""
        for names in self.samples():
            try:
                self._body(names, trial=True)
            except RelayError as problem:
                types = ", ".join(f"{name} is {names[name]}" for name in self.types)
                noted = [replace(d, notes=(*d.notes, f"where {types}")) for d in problem.diagnostics]
                raise (RelayError(noted) if types else problem) from None


def stages(body: Sequence[ir.Stmt]) -> list[ir.Body]:
    """The parts of a kernel that run one after the other: each parallel loop, and the statements between two of them."""
    out: list[ir.Body] = []
    for stmt in body:
        alone = isinstance(stmt, ir.Loop) and stmt.kind == ir.PARALLEL
        if alone or not out or (isinstance(before := out[-1][-1], ir.Loop) and before.kind == ir.PARALLEL):
            out.append([])
        out[-1].append(stmt)
    return out


def _group(names: dict[str, Any], name: str, extents: tuple[Any, ...]) -> None:
    """A group of extents, and their product."""
    names[f"{name}..."] = extents
    names[name] = ANY if any(not isinstance(e, int) for e in extents) else math.prod(extents)


SUMS: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "quotient": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "min": smallest,
    "max": largest,
}


def value(node: Node, names: Mapping[str, Any]) -> Any:
    """The number of an extent. `ANY` where it depends on an extent that is not known. Raises `Misfit`."""
    match node.kind:
        case "number":
            return int(node.text)
        case "name":
            return names[node.text]
        case "load":
            at = value(node.parts[0], names)
            stands = names[node.text]
            if not -len(stands) <= at < len(stands):
                raise Misfit(f"{node.text} has {len(stands)} elements, and none at {at}")
            return stands[at]
        case "minus":
            return SUMS["sub"](0, value(node.parts[0], names))
    left, right = (value(part, names) for part in node.parts)
    if not isinstance(left, int) or not isinstance(right, int):
        return ANY
    if node.text in ("quotient", "remainder") and right == 0:
        raise Misfit(f"the extent `{_text(node.span)}` divides by 0")
    return SUMS[node.text](left, right)


def _text(span: Span) -> str:
    return span.source.text[span.first : span.last]


__all__ = ["ATTRIBUTES", "SUMS", "Argument", "Attribute", "Misfit", "Template", "stages", "value"]
