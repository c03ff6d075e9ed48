"""What a text of a user may say, and what machines compute of it.

The texts of lowerings are right by their making; those of users are checked further: operations have as many operands as
they take, of types that they have. Then the statements become what C and numpy compute alike:

- floats of 16 bits are computed as float32, and each result is rounded;
- quotients of integers never trap: `/` and `%` become `div` and `mod`, shifts take any number of places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relaylang.diagnostics import Span
from relaylang.kernels import ir, rewrites, visit
from relaylang.kernels.ir import INDEX, Body, Expr
from relaylang.kernels.ops import TESTS
from relaylang.kernels.words import wrong

HALVES = ("float16", "bfloat16")
_NUMBERS, _REALS, _WHOLE, _LOGICAL, _ANY = "numbers", "floats", "integers", "integers or bools", "numbers or bools"
#: The operations of users' texts: how many operands they take, and of which elements.
OPERANDS: Mapping[str, tuple[int, str]] = {
    **dict.fromkeys(
        ("add", "sub", "mul", "div", "mod", "floor_div", "floor_mod", "pow", "max", "min", "peak", "trough"), (2, _NUMBERS)
    ),
    **dict.fromkeys(("quotient", "remainder"), (2, _WHOLE)),
    **dict.fromkeys(("neg", "abs", "sign"), (1, _NUMBERS)),
    **dict.fromkeys(("number", "fmax", "fmin"), (2, _REALS)),
    **dict.fromkeys(("exp", "log", "log2", "log10", "sqrt", "rsqrt", "tanh", "atanh", "sigmoid", "erf"), (1, _REALS)),
    **dict.fromkeys(("floor", "ceil", "trunc", "round", "round_even", "sin", "cos", "tan", "sinh", "cosh"), (1, _REALS)),
    **dict.fromkeys(("asin", "acos", "atan", "asinh", "acosh"), (1, _REALS)),
    **dict.fromkeys(("and", "or", "xor"), (2, _LOGICAL)),
    **dict.fromkeys(("shl", "shr", "left_shift", "right_shift"), (2, _WHOLE)),
    **dict.fromkeys(TESTS, (2, _ANY)),
    "not": (1, _LOGICAL),
    "select": (3, _ANY),
    "saturate": (1, _WHOLE),
    "bitcast": (1, _NUMBERS),
}
_SAFE = {"quotient": "div", "remainder": "mod", "shl": "left_shift", "shr": "right_shift"}
#: Those of indices; others need a conversion.
_OF_INDICES = frozenset({"add", "sub", "mul", "quotient", "remainder", "min", "max", "select", *TESTS})
#: What `reduce` combines with.
_REDUCES = frozenset({"add", "mul", "max", "min", "peak", "trough", "and", "or", "xor"})


def _kinds(ty: str) -> tuple[str, ...]:
    """The names of the kinds of elements that a type belongs to."""
    if ty == "bool":
        return (_LOGICAL, _ANY)
    return (_REALS, _NUMBERS, _ANY) if "float" in ty else (_WHOLE, _LOGICAL, _NUMBERS, _ANY)


class _Legal:
    def __init__(self, types: Mapping[str, str], spans: Mapping[int, Span], span: Span) -> None:
        self.types = dict(types)
        self.spans = spans
        self.span = span

    def body(self, body: Sequence[ir.Stmt]) -> Body:
        outer, before = self.types, self.span
        self.types = dict(outer)
        out: Body = []
        for stmt in body:
            self.span = self.spans.get(id(stmt), before)
            out.append(self.stmt(stmt))
        self.types, self.span = outer, before
        return out

    def stmt(self, stmt: ir.Stmt) -> ir.Stmt:
        span = self.span
        match stmt:
            case ir.Call(name):
                wrong(span, f"the kernel of an operator calls no functions, and {name} is one")
            case ir.Let(name, value):
                self._scalar(value.type)
                self.types[name] = value.type
            case ir.Local(name, ty):
                self._scalar(ty)
                self.types[name] = f"{ty}[]"
            case ir.Store(buffer) | ir.Reduce(_, buffer):
                held = self.types.get(buffer, "")
                if held.startswith("const "):
                    wrong(span, f"{buffer} is read, and cannot be written")
            case ir.If(condition) | ir.While(condition):
                if condition.type not in ("bool", INDEX, "int32", "int64"):
                    wrong(span, f"a condition is a comparison, not a value of the type {condition.type}")
        if isinstance(stmt, ir.Reduce):
            if stmt.op not in _REDUCES:
                wrong(span, f"`reduce` combines by {', '.join(sorted(_REDUCES))}, not by {stmt.op}")
            operand = ir.Var("old", stmt.value.type)
            self._checked(ir.Op(stmt.op, (operand, operand), stmt.value.type))
            if stmt.value.type in HALVES:
                index, value = self.value(stmt.index), stmt.value
                old = ir.Load(stmt.buffer, index, value.type)
                return ir.Store(stmt.buffer, index, self.value(ir.Op(stmt.op, (old, value), value.type)))
        return visit.rebuilt(stmt, self.value, self.body)

    def value(self, value: Expr) -> Expr:
        return visit.rewrite(value, self._checked)

    def _scalar(self, ty: str) -> None:
        if ir.vector_of(ir.element_of(ty))[1] > 1:
            wrong(
                self.span,
                f"the kernel of an operator computes with single elements, not with {ty}; a `vector` loop runs them side by side",
            )

    def _checked(self, value: Expr) -> Expr:
        match value:
            case ir.Intrinsic(name):
                wrong(self.span, f"{name} is of some machines alone; the kernel of an operator has no intrinsics")
            case ir.Load(buffer, _, ty) | ir.Address(buffer, _, ty):
                self._scalar(ty)
                held = self.types.get(buffer, "")
                element = ir.element_of(held.removesuffix("[]"))
                if held and ir.element_of(ty) != element:
                    wrong(self.span, f"{buffer} has elements of the type {element}, not {ir.element_of(ty)}")
                if isinstance(value, ir.Address) and held.startswith("const ") and not ty.startswith("const "):
                    return ir.Address(buffer, value.index, f"const {ty}")
            case ir.Cast(inner, ty):
                return self._cast(inner, ty)
            case ir.Op(name, args, ty):
                return self._operation(name, args, ty)
        return value

    def _cast(self, inner: Expr, ty: str) -> Expr:
        self._scalar(ty)
        if ty.endswith("*") or inner.type.endswith("*"):
            wrong(self.span, f"a value of the type {inner.type} cannot become one of the type {ty}")
        return converted(inner, ty)

    def _operation(self, name: str, args: tuple[Expr, ...], ty: str) -> Expr:
        self._scalar(ty)
        if name not in OPERANDS:
            wrong(
                self.span, f"{name} serves kernels of the language alone", notes=("the page on kernels lists the operations of users",)
            )
        count, kind = OPERANDS[name]
        if len(args) != count:
            wrong(self.span, f"{name} takes {count} operand{'s' * (count != 1)}, not {len(args)}")
        types = [a.type for a in (args[1:] if name == "select" else args)]
        if any(t.endswith("*") for t in types):
            if name == "select" and len(set(types)) == 1:
                return ir.Op(name, args, ty)
            wrong(self.span, f"{name} takes {kind}, not pointers")
        if len(set(types)) > 1:
            wrong(self.span, f"{name} of {' and '.join(types)}", notes=(f"convert one of them: {types[0]}(...)",))
        operand = types[0]
        if kind not in _kinds(operand):
            more = ("`mod(x, y)` is the rest of floats",) if name == "remainder" else ()
            wrong(self.span, f"{name} takes {kind}, not {operand}", notes=more)
        if operand == INDEX:
            return self._of_indices(name, args, ty)
        if name == "select" and args[0].type != "bool":
            args = (self._truth(args[0]), *args[1:])
        self._check_result(name, operand, ty)
        name = _SAFE.get(name, name)
        if operand not in HALVES or name == "select":
            return ir.Op(name, args, ty)
        wide = ir.Op(name, tuple([converted(a, "float32") for a in args]), ty if name in TESTS else "float32")
        return wide if name in TESTS else ir.Cast(wide, ty)

    def _of_indices(self, name: str, args: tuple[Expr, ...], ty: str) -> Expr:
        if name not in _OF_INDICES:
            wrong(self.span, f"{name} takes no index", notes=("convert it: int64(...)",))
        if name in ("quotient", "remainder") and ir.constant_of(args[1]) == 0:
            wrong(self.span, "an index is divided by 0")
        return ir.Op(name, args, ty)

    def _check_result(self, name: str, operand: str, ty: str) -> None:
        """Refuse a type that an operation on operands of another does not give."""
        if name == "saturate":
            if operand != "int32" or ty not in ("int8", "uint8", "int16", "uint16"):
                wrong(self.span, f"saturate makes an int32 a shorter integer, not {operand} a value of the type {ty}")
        elif name == "bitcast":
            if operand in HALVES or ty in HALVES or np.dtype(operand).itemsize != np.dtype(ty).itemsize or ty == "bool":
                wrong(self.span, f"bitcast of {operand} to {ty}", notes=("both types have 4, or both have 8 bytes",))
        elif ty != ("bool" if name in TESTS else operand):
            wrong(self.span, f"{name} of {operand} is of that type, not of the type {ty}")

    def _truth(self, test: Expr) -> Expr:
        if test.type not in (INDEX, "int32", "int64"):
            wrong(self.span, f"a condition is a comparison, not a value of the type {test.type}")
        return test.ne(0)


def converted(value: Expr, ty: str) -> Expr:
    """A value as another type. Floats of 16 bits are converted by way of float32."""
    if value.type == ty:
        return value
    if {value.type, ty} & set(HALVES) and "float32" not in (value.type, ty) and (value.type, ty) != ("float64", "float16"):
        value = ir.cast(value, "float32")
    return ir.cast(value, ty)


def legal(body: Sequence[ir.Stmt], types: Mapping[str, str], spans: Mapping[int, Span], span: Span) -> Body:
    """The statements of a user's text as machines compute them. `types` are the pointer types of the buffers.

    Raises `RelayError` (R0644) with the place of a statement that no machine computes.
    """
    return _Legal(types, spans, span).body(body)


def independent(body: Sequence[ir.Stmt], spans: Mapping[int, Span]) -> None:
    """Refuse a parallel or vector loop whose iterations may touch what another writes, at the loop's place."""
    for stmt in visit.statements(body):
        if isinstance(stmt, ir.Loop) and stmt.kind in (ir.PARALLEL, ir.VECTOR):
            try:
                rewrites.independent(
                    ir.Loop(stmt.var, stmt.low, stmt.high, _inlined(stmt.body), stmt.kind, stmt.step), reductions=False
                )
            except rewrites.Refused as problem:
                wrong(spans[id(stmt)], str(problem), notes=("`for` runs the iterations one after the other",))


def _inlined(body: Sequence[ir.Stmt], around: Mapping[str, Expr] = {}) -> Body:
    """Statements without names for indices that are sums of others."""
    values = dict(around)
    out: Body = []

    def change(value: Expr) -> Expr:
        return visit.rewrite(value, lambda part: values.get(part.name, part) if isinstance(part, ir.Var) else part)

    for stmt in body:
        if isinstance(stmt, ir.Let) and not stmt.mutable and stmt.value.type == INDEX:
            value = change(stmt.value)
            if all(isinstance(part, (ir.Var, ir.Linear, ir.Extent)) for part in visit.expressions(value)):
                values[stmt.name] = value
                continue
        out.append(visit.rebuilt(stmt, change, lambda inner: _inlined(inner, values)))
    return out


def renamed(body: Sequence[ir.Stmt], buffers: Mapping[str, str], prefix: str) -> Body:
    """Statements with other names of buffers. Their own names get a prefix, so that they meet no name of the C."""

    def name(old: str) -> str:
        return buffers.get(old) or prefix + old

    def leaf(value: Expr) -> Expr:
        match value:
            case ir.Var(old, ty):
                return ir.Var(name(old), ty)
            case ir.Load(old, index, ty, aligned):
                return ir.Load(name(old), index, ty, aligned)
            case ir.Address(old, index, ty):
                return ir.Address(name(old), index, ty)
        return value

    def change(value: Expr) -> Expr:
        return visit.rewrite(value, leaf)

    def stmt(old: ir.Stmt) -> ir.Stmt:
        new = visit.rebuilt(old, change, lambda inner: [stmt(s) for s in inner])
        match new:
            case ir.Let(own, value, mutable):
                return ir.Let(name(own), value, mutable)
            case ir.Assign(own, value):
                return ir.Assign(name(own), value)
            case ir.Local(own, ty, shape, space, zero):
                return ir.Local(name(own), ty, shape, space, zero)
            case ir.Store(own, index, value, aligned):
                return ir.Store(name(own), index, value, aligned)
            case ir.Reduce(op, own, index, value):
                return ir.Reduce(op, name(own), index, value)
            case ir.Loop(own, low, high, inner, kind, step):
                return ir.Loop(name(own), low, high, inner, kind, step)
        return new

    return [stmt(s) for s in body]


__all__ = ["HALVES", "OPERANDS", "converted", "independent", "legal", "renamed"]
