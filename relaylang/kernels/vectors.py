"""Vector loops written out, where compilers make poor code of them: fixed-point products, floats between bytes, limits.

GCC makes masks of limits of floats, where an instruction for the maximum would do.

A lane holds an int32 or a float32; bytes and shorts become int32 as they are read. Each operation of such a loop has a
form for vectors (`relaylang.kernels.ops`). A loop with anything else stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.kernels import ir
from relaylang.kernels.dtypes import int_range
from relaylang.kernels.ops import OPERATIONS, SHORT
from relaylang.kernels.rewrites import stride
from relaylang.kernels.visit import expressions, exprs, rebuilt, rewrite, statements, substitute

#: The type of a lane that holds a value.
_LANE = {"int32": "int32", "float32": "float32", **dict.fromkeys(SHORT, "int32")}
#: A lane's lower bits alone, as a short integer: a shift to the left and back, or a mask.
_SHIFTS, _MASKS = {"int8": 24, "int16": 16}, {"uint8": 255, "uint16": 65535}
#: Operations of floats for which compilers make poor vector code.
_LIMITS = ("max", "min", "number")
#: Operations for whose sake loops are written out.
_GAINS = {*_LIMITS, "fixed", "fixed_short", "saturate", "near_quotient"}
#: So many vectors are written one after the other, without a loop.
_FEW = 4


class _Stays(Exception):
    """The loop has something without a vector form: what, as a text. Without one, vectors would not gain."""


def written_out(body: Sequence[ir.Stmt], lanes: int) -> ir.Body:
    """Statements with their vector loops written out in vectors of `lanes`, where that is possible and gains.

    With 0 lanes, all stay.
    """
    if not lanes:
        return list(body)
    out: ir.Body = []
    for stmt in body:
        if isinstance(stmt, ir.Loop) and stmt.kind != ir.PARALLEL and (vectorised := _converted(stmt, lanes)) is not None:
            new, conditions = vectorised
            test: ir.Expr | None = None
            for condition in conditions.values():
                test = condition if test is None else test & condition
            out += new if test is None else [ir.If(test, new, [stmt])]
        else:
            out += [*_reason(stmt, lanes), rebuilt(stmt, lambda e: e, lambda inner: written_out(inner, lanes))]
    return out


def _reason(stmt: ir.Stmt, lanes: int) -> ir.Body:
    """Why a vector loop stays a loop though vectors of its own would gain, as a comment."""
    if not isinstance(stmt, ir.Loop) or stmt.kind != ir.VECTOR:
        return []
    operations = {p.name for s in statements(stmt.body) for v in exprs(s) for p in expressions(v) if isinstance(p, ir.Op)}
    try:
        _Lanes(stmt, lanes).loop()
    except _Stays as reason:
        return [ir.Note(f"left to the C compiler: {reason}")] if reason.args and operations & _GAINS else []
    return []


def _converted(at: ir.Loop, lanes: int) -> tuple[ir.Body, dict[object, ir.Expr]] | None:
    """A loop with the vector loops in it written out, and the conditions for that; None where nothing changes.

    The conditions are known outside the loop.
    """
    if at.kind == ir.VECTOR:
        try:
            return _Lanes(at, lanes).loop()
        except _Stays:
            return None
    new: ir.Body = []
    conditions: dict[object, ir.Expr] = {}
    for stmt in at.body:
        vectorised = _converted(stmt, lanes) if isinstance(stmt, ir.Loop) else None
        new += [stmt] if vectorised is None else vectorised[0]
        conditions.update({} if vectorised is None else vectorised[1])
    inside = {s.name for s in statements(at.body) if isinstance(s, ir.Let)} | {at.var}
    used = {p.name for c in conditions.values() for p in expressions(c) if isinstance(p, ir.Var)}
    if all(a is b for a, b in zip(new, at.body)) or inside & used:
        return None
    return [ir.Loop(at.var, at.low, at.high, new, at.kind, at.step)], conditions


def _halved(stmt: ir.Stmt) -> bool:
    """Whether a statement writes a vector's values held to the range of bytes."""
    return isinstance(stmt, ir.Store) and isinstance(stmt.value, ir.Op) and stmt.value.name == "saturate" and "int8" in stmt.value.type


class _Lanes:
    """The vector form of one loop."""

    def __init__(self, at: ir.Loop, lanes: int) -> None:
        self.at = at
        self.lanes = lanes
        #: The names that the body defines: those of places, and those of values.
        self.places: dict[str, ir.Expr] = {}
        self.values: dict[str, ir.Expr] = {}
        self.conditions: dict[object, ir.Expr] = {}
        self.fixed = self.short = self.floats = self.limits = False

    def loop(self) -> tuple[ir.Body, dict[object, ir.Expr]]:
        at, lanes = self.at, self.lanes
        if at.step != 1 or (at.trips is not None and at.trips < lanes):
            raise _Stays
        body = [self.statement(stmt) for stmt in at.body]
        if not (self.fixed or self.limits or (self.short and self.floats)):
            raise _Stays
        if at.trips is not None:
            end = at.low + at.trips // lanes * lanes
            step = lanes
            if at.trips // lanes % 2 == 0 and any(_halved(stmt) for stmt in body):
                body, step = self.twice(body), 2 * lanes
            few = ir.constant_of(at.low) is not None and at.trips // step <= _FEW
            out: ir.Body = [ir.Loop(at.var, at.low, end, body, ir.UNROLLED if few else ir.SERIAL, step)]
            return out + ([ir.Loop(at.var, end, at.high, at.body, ir.VECTOR)] if at.trips % lanes else []), self.conditions
        name = f"{at.var}_end"
        return [
            ir.Block(
                [
                    ir.Let(name, at.low + (at.high - at.low) // lanes * lanes),
                    ir.Loop(at.var, at.low, ir.Var(name), body, ir.SERIAL, lanes),
                    ir.Loop(at.var, ir.Var(name), at.high, at.body, ir.VECTOR),
                ]
            )
        ], self.conditions

    def twice(self, body: ir.Body) -> ir.Body:
        """The statements of two vectors, whose bytes are written at once."""
        lets = [stmt for stmt in body if isinstance(stmt, ir.Let)]
        names: dict[str, ir.Expr] = {stmt.name: ir.Var(f"{stmt.name}_", stmt.value.type) for stmt in lets}
        names[self.at.var] = ir.Var(self.at.var) + self.lanes
        out: ir.Body = []
        for one, other in zip(body, substitute(body, names)):
            if isinstance(one, ir.Store) and isinstance(other, ir.Store) and _halved(one):
                values = (*one.value.args, *other.value.args)  # type: ignore[attr-defined]
                dtype, lanes = ir.vector_of(one.value.type)
                out.append(ir.Store(one.buffer, one.index, ir.Op("saturate", values, ir.vector(dtype, 2 * lanes))))
            else:
                out += [one, ir.Let(f"{other.name}_", other.value) if isinstance(other, ir.Let) else other]
        return out

    def statement(self, stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Let(name, value, False) if value.type == ir.INDEX:
                self.places[name] = value
                return stmt
            case ir.Let(name, value, False):
                self.values[name] = value
                return ir.Let(name, self.value(value))
            case ir.Store(buffer, index, value) if self.step(index) == 1:
                if value.type in ("int32", "float32"):
                    return ir.Store(buffer, index, self.value(value))
                return ir.Store(buffer, index, self.shortened(value))
        raise _Stays("a statement that is no plain store")

    def shortened(self, value: ir.Expr) -> ir.Expr:
        """A vector's values cut to short ones, or held to their range, as they are written."""
        if value.type not in SHORT:
            raise _Stays(f"a result of type {value.type}")
        self.short = True
        ty = ir.vector(value.type, self.lanes)
        named = self.values.get(value.name) if isinstance(value, ir.Var) else value
        if isinstance(named, ir.Op) and named.name == "saturate":
            return ir.Op("saturate", (self.value(named.args[0]),), ty)
        return ir.Cast(self.value(value), ty)

    def step(self, index: ir.Expr) -> int | None:
        """How far a place moves with the loop's variable."""
        places = self.places
        return stride(rewrite(index, lambda e: places.get(e.name, e) if isinstance(e, ir.Var) else e), self.at.var)

    def value(self, value: ir.Expr) -> ir.Expr:
        """The vector of a value in neighbouring iterations."""
        lane = _LANE.get(value.type)
        if lane is None:
            raise _Stays(f"a value of type {value.type}")
        ty = ir.vector(lane, self.lanes)
        match value:
            case ir.Var(name) if name in self.values:
                return ir.Var(name, ty)
            case ir.Var(name) if name != self.at.var and name not in self.places:
                return ir.splat(ir.Var(name, lane), self.lanes)
            case ir.Const(data):
                return ir.splat(ir.Const(data, lane), self.lanes)
            case ir.Load(buffer, index):
                match self.step(index):
                    case 0:
                        return ir.splat(value if value.type == lane else ir.Cast(value, lane), self.lanes)
                    case 1 if value.type in SHORT:
                        self.short = True
                        return ir.Cast(ir.Load(buffer, index, ir.vector(value.type, self.lanes)), ty)
                    case 1:
                        return ir.Load(buffer, index, ty)
            case ir.Op("fixed", args):
                return self.product(args, ty)
            case ir.Op("saturate", (inner,), dtype):
                low, high = int_range(dtype)
                return ir.op("min", ir.op("max", self.value(inner), low), high)
            case ir.Op(name, args):
                return self.operation(name, args, value.type, ty)
            case ir.Cast(inner, dtype):
                return self.cast(inner, dtype, ty)
        raise _Stays(f"a {type(value).__name__}")

    def cast(self, inner: ir.Expr, dtype: str, ty: str) -> ir.Expr:
        """A conversion. Short integers stay in lanes of 32 bits."""
        value = self.value(inner)
        if dtype == "float32":
            self.floats = True
        if value.type != ty:
            value = ir.Cast(value, ty)
        if dtype in _SHIFTS:
            return value << _SHIFTS[dtype] >> _SHIFTS[dtype]
        return value & _MASKS[dtype] if dtype in _MASKS else value

    def operation(self, name: str, args: Sequence[ir.Expr], dtype: str, ty: str) -> ir.Expr:
        if dtype not in OPERATIONS[name].vectors or any(_LANE.get(a.type) != _LANE[dtype] for a in args):
            raise _Stays(f"the operation {name} of {dtype}")
        self.floats = self.floats or dtype == "float32"
        self.limits = self.limits or (dtype == "float32" and name in _LIMITS)
        self.fixed = self.fixed or name == "fixed_short"
        return ir.Op(name, tuple(self.value(a) for a in args), ty)

    def product(self, args: Sequence[ir.Expr], ty: str) -> ir.Expr:
        """A product in fixed point. Its operands after those of scalars are a shift to the left before, half and shift of
        the product's upper 32 bits, and the condition for this form.

        A table of significands has one element more, because vectors also read each one's neighbour.
        """
        if len(args) < 8:
            raise _Stays("a product in fixed point without the parts for vectors")
        value, significand, _, _, left, half, right, condition = args
        after = significand
        if isinstance(significand, ir.Load) and self.step(significand.index):
            after = ir.Load(significand.buffer, significand.index + 1, significand.type)
        if isinstance(condition, ir.Const):
            if not condition.value:
                raise _Stays("a product in fixed point beyond the upper 32 bits")
        else:
            self.conditions[ir.key(condition)] = condition
        self.fixed = True
        operands = [self.value(part) for part in (value, significand, after, half, right)]
        if not (isinstance(left, ir.Const) and left.value == 0):
            operands[0] = operands[0] << self.value(left)
        return ir.Op("fixed_lanes", tuple(operands), ty)
