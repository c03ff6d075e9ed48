"""Looking on while a program runs: a trace, a watch for NaN and infinity, intermediate values, a profile.

A `Watch` sees each binding before and behind its evaluation, and each call. A program that nobody watches runs at full
speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, Span, error
from relaylang.interpreter.code import Code, Slots
from relaylang.interpreter.values import Value, is_tensor, value_text, value_type
from relaylang.ir import Call, Expr, GlobalVar, Tuple, Type, Var, type_text
from relaylang.ops.record import Op

_SHOWN = 60
_FEW = 4


@dataclass(frozen=True)
class Site:
    """A place where a value is bound: `variable` to the value of `node`, in a function's code.

    `into` and `args` are slots of the function's frame; `slots_of()` gives the frame's variables and their slots.
    """

    variable: Var
    node: Expr
    code: Code
    into: int
    args: tuple[int, ...]
    slots_of: Callable[[], dict[Var, int]]

    @property
    def what(self) -> str:
        """The name of the evaluated operator or function, or the kind of expression."""
        return node_name(self.node)

    @property
    def type(self) -> Type | None:
        return self.variable.checked_type or self.node.checked_type

    @property
    def is_op(self) -> bool:
        return isinstance(self.node, Call) and isinstance(self.node.op, Op)


def node_name(node: Expr) -> str:
    """`nn.dense`, `@f`, `%f`, `Cons`, or `if`, `tuple`, `ref_read` for other expressions."""
    if isinstance(node, Call):
        op = node.op
        if node.span is not None and node.span.operator:
            return node.span.operator
        if isinstance(op, GlobalVar):
            return f"@{op.name_hint}"
        if isinstance(op, Var):
            return f"%{op.name_hint}"
        return str(getattr(op, "name", None) or getattr(op, "name_hint", None) or "call")
    kinds = {"TupleGetItem": "field", "RefCreate": "ref", "RefRead": "ref_read", "RefWrite": "ref_write"}
    name = type(node).__name__
    return kinds.get(name, name.lower())


class Watch:
    """Sees the bindings and calls of a run. `stack` holds the callers of the function that runs, the outermost first.

    `keep_all` keeps each value of a function until the function returns.
    """

    keep_all = False
    stack: Sequence[Any] = ()

    def attach(self, stack: Sequence[Any]) -> None:
        """An evaluation begins, with this stack."""
        self.stack = stack

    def entered(self, code: Code, slots: Slots) -> None:
        """A function begins; its arguments stand in the first slots."""

    def before(self, site: Site, slots: Slots) -> None:
        """A binding is about to be evaluated. Calls of functions and branches are not told of here."""

    def bound(self, site: Site, slots: Slots, seconds: float) -> None:
        """A binding has its value. What a function returns by a call in its place is bound in the end by its caller."""


class Watches(Watch):
    """Several of them, told one after the other."""

    def __init__(self, watches: Sequence[Watch]) -> None:
        self.watches = list(watches)
        self.keep_all = any(w.keep_all for w in watches)

    def attach(self, stack: Sequence[Any]) -> None:
        self.stack = stack
        for watch in self.watches:
            watch.attach(stack)

    def entered(self, code: Code, slots: Slots) -> None:
        for watch in self.watches:
            watch.entered(code, slots)

    def before(self, site: Site, slots: Slots) -> None:
        for watch in self.watches:
            watch.before(site, slots)

    def bound(self, site: Site, slots: Slots, seconds: float) -> None:
        for watch in self.watches:
            watch.bound(site, slots, seconds)


def clock(seconds: float) -> str:
    """A duration in a unit that suits it."""
    if seconds < 1e-3:
        return f"{1e6 * seconds:.1f} us"
    return f"{1e3 * seconds:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def place(span: Span | None) -> str:
    if span is None:
        return "no place"
    return f"{span} {span.label}" if span.label else str(span)


def type_says(value: Value, ty: Type | None) -> str:
    """A value's type: its own for a tensor, the checker's for the rest, where it knows one."""
    return type_text(ty) if ty is not None and not is_tensor(value) else value_type(value)


def summary(value: Value) -> str:
    """A value in a few words: its elements if they are few, else their range and mean."""
    if isinstance(value, tuple):
        text = f"({', '.join([_inside(v) for v in value[:_FEW]])}{', ...' if len(value) > _FEW else ''})"
        return text if len(text) <= 2 * _SHOWN else text[: 2 * _SHOWN - 3] + "..."
    if not is_tensor(value):
        text = " ".join(value_text(value, 20).split())
        return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
    if value.size <= _FEW:
        text = np.array2string(np.asarray(value), max_line_width=200, separator=", ")
        return " ".join(text.split())
    if value.dtype.kind == "b":
        return f"{int(value.sum())} of {value.size} True"
    wide = np.asarray(value)
    if wide.dtype.kind == "V" or wide.dtype.itemsize < 4:
        wide = wide.astype(np.float32)
    with np.errstate(all="ignore"):
        text = f"{wide.min():.6g} .. {wide.max():.6g}, mean {wide.mean(dtype=np.float64):.6g}"
    bad = not_finite(value)
    return f"{text}, {bad}" if bad else text


def _inside(value: Value) -> str:
    return f"[{summary(value)}]" if is_tensor(value) and value.size > _FEW else summary(value)


def not_finite(value: Value) -> str:
    """`2 NaN, 1 Inf` of a tensor of floats; nothing where all is finite, or the value is no such tensor."""
    if not is_tensor(value) or value.dtype.kind not in "fcV":
        return ""
    wide = np.asarray(value)
    if wide.dtype.kind == "V" or wide.dtype.itemsize < 4:
        wide = wide.astype(np.float32)
    if np.isfinite(wide).all():
        return ""
    nan, inf = int(np.isnan(wide).sum()), int(np.isinf(wide).sum())
    return ", ".join([f"{n} {what}" for n, what in ((nan, "NaN"), (inf, "Inf")) if n])


class Trace(Watch):
    """Writes a line for each binding: its time, name, type and value; and for each call the arguments."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self.write = write

    def entered(self, code: Code, slots: Slots) -> None:
        arguments = [f"%{p.name_hint} = {summary(v)}" for p, v in zip(code.function.params, slots)]
        self.write(f"{'':>10}  {self._indent()}{code.name}({', '.join(arguments)})\n")

    def bound(self, site: Site, slots: Slots, seconds: float) -> None:
        value = slots[site.into]
        says = f"%{site.variable.name_hint} : {type_says(value, site.type)} = {summary(value)}"
        at = f"{site.what} at {place(site.node.span)}" if site.node.span is not None else site.what
        self.write(f"{clock(seconds):>10}  {self._indent()}  {says}   {at}\n")

    def _indent(self) -> str:
        depth = len(self.stack)
        return "  " * min(depth, 12) + (f"[{depth}] " if depth > 12 else "")


class NanWatch(Watch):
    """Finds where NaN and infinity come from: operators whose operands are finite and whose value is not.

    `found` holds a warning for each such place of the program, the first `most` of them.
    """

    def __init__(self, tell: Callable[[Diagnostic], object] | None = None, most: int = 20) -> None:
        self.found: list[Diagnostic] = []
        self.places: set[int] = set()
        self.tell = tell
        self.most = most

    def bound(self, site: Site, slots: Slots, seconds: float) -> None:
        if not site.is_op or id(site.node) in self.places:
            return
        bad = [t for v in _tensors(slots[site.into]) if (t := not_finite(v))]
        if not bad or any([not_finite(v) for a in site.args for v in _tensors(slots[a])]):
            return
        self.places.add(id(site.node))
        if len(self.found) >= self.most:
            return
        notes = [f"argument {i + 1} is {value_type(slots[a])}: {summary(slots[a])}" for i, a in enumerate(site.args[:4])]
        title = f"%{site.variable.name_hint} is {value_type(slots[site.into])} with {bad[0]}, from finite operands"
        notes.append(f"in {site.code.name}, {len(self.stack)} calls deep")
        said = error("R0412", f"{site.what}: {title}", site.node.span, notes=notes, severity="warning")
        self.found.append(said)
        if self.tell is not None:
            self.tell(said)


def _tensors(value: Value) -> Iterator[Any]:
    """The tensors in a value and its tuples."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            stack.extend(reversed(item))
        elif is_tensor(item):
            yield item


class Intermediates(Watch):
    """Keeps every tensor that is bound, by name. Tuples of named tensors are left out.

    `arrays["x_3"]` is the value of `%x_3`, and `x_3.0` the first field of a tuple. `@f/x_3` stands for a variable of a
    function other than the first. `x_3#2` is the second value of a variable that is bound again.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.counts: dict[str, int] = {}
        self.first: str | None = None

    def entered(self, code: Code, slots: Slots) -> None:
        if self.first is None:
            self.first = code.name

    def bound(self, site: Site, slots: Slots, seconds: float) -> None:
        if isinstance(site.node, Tuple):
            return
        name = site.variable.name_hint
        if site.code.name != self.first:
            name = f"{site.code.name}/{name}"
        count = self.counts[name] = self.counts.get(name, 0) + 1
        stack = [(name if count == 1 else f"{name}#{count}", slots[site.into])]
        while stack:
            key, value = stack.pop()
            if isinstance(value, tuple):
                stack.extend([(f"{key}.{i}", v) for i, v in enumerate(value)])
            elif is_tensor(value):
                self.arrays[key] = np.asarray(value)
