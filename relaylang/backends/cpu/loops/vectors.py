"""Vector loops written out, where compilers make poor code of them: fixed-point products, floats between bytes, limits.

GCC makes masks of limits of floats, where an instruction for the maximum would do.

A lane holds an int32 or a float32; bytes and shorts become int32 as they are read. Each operation of such a loop is
a row of `FORMS`. A loop with anything else stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaylang.backends.cpu.dtypes import CTYPES, int_range
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.loops.ir import (
    INDEX,
    PARALLEL,
    SERIAL,
    UNROLLED,
    VECTOR,
    Address,
    Binary,
    Block,
    Body,
    Const,
    Expr,
    If,
    Let,
    Load,
    Loop,
    Statement,
    Stmt,
    Store,
    Template,
    Var,
    constant_of,
    expressions,
    key,
    rebuilt,
    rewrite,
    splat,
    statements,
    substitute,
    vector,
)
from relaylang.backends.cpu.loops.rewrites import stride

#: An int32 times a number in fixed point (`r_fixed`). Scalars read the first four of its operands: the value, and the number's
#: significand, half and shift to the right. Behind them are a shift to the left before, then half and shift of a
#: product's upper 32 bits. Vectors read these three instead. The last operand is the condition for the vector form.
#: A table of significands has one element more, because vectors also read each one's neighbour.
FIXED = "r_fixed({0}, {1}, {2}, {3})"
#: A small number times one in fixed point: the value, the significand, half and shift.
SHORT_FIXED = "(({0} * {1} + {2}) >> {3})"
#: Short integers, and the suffix of their helpers.
SHORT: Mapping[str, str] = {"int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16"}
#: A type -> short integers -> a vector of that type from such integers at an address.
WIDEN: Mapping[str, Mapping[str, str]] = {
    "int32": {dtype: f"r_widen_{short}" for dtype, short in SHORT.items()},
    "int64": {dtype: f"r_widen_long_{short}" for dtype, short in SHORT.items()},
}
#: An int32 as a short integer; a value out of range becomes the nearest one in it.
SATURATE: Mapping[str, str] = {dtype: f"r_saturate_{short}({{0}})" for dtype, short in SHORT.items()}
#: C of an operation on scalars -> on vectors, with `{v}` for the suffix of helpers.
FORMS: Mapping[str, str] = {
    "({0} + {1})": "({0} + {1})",
    "({0} - {1})": "({0} - {1})",
    "({0} * {1})": "({0} * {1})",
    "({0} + {1} - {2})": "({0} + {1} - {2})",
    "({0} - {1} + {2})": "({0} - {1} + {2})",
    "({0} * {1} + {2})": "({0} * {1} + {2})",
    "({0} < {1} ? {1} : {0})": "r_greater_{v}({1}, {0})",
    "({0} > {1} ? {1} : {0})": "r_lesser_{v}({1}, {0})",
    "({0} > {1} ? {0} : {1})": "r_greater_{v}({0}, {1})",
}
#: The same for floats alone.
FLOAT_FORMS: Mapping[str, str] = {
    **FORMS,
    "({0} / {1})": "({0} / {1})",
    "({0} > 0 ? {0} : 0)": "r_greater_vf({0}, (r_vf){{0}})",
    "r_round_f32({0})": "r_round_vf({0})",
    "({0} == {0} ? {0} : 0)": "r_number_vf({0}, r_splat_vf(0.0f))",
    "({0} == {0} ? {0} : {1})": "r_number_vf({0}, {1})",
    "r_quotient_f32({0}, {1}, {2}, {3})": "r_quotient_vf({0}, {1}, {2}, {3})",
    "(float)({0})": "__builtin_convertvector({0}, r_vf)",
}
_WHOLE = "__builtin_convertvector({0}, r_vi)"
#: A lane's lower bits alone, as a short integer.
_CUT = {"int8": "({0} << 24 >> 24)", "uint8": "({0} & 255)", "int16": "({0} << 16 >> 16)", "uint16": "({0} & 65535)"}
#: The same for integers, by the result's type. Short ones stay in lanes of 32 bits.
INTEGER_FORMS: Mapping[str, Mapping[str, str]] = {
    "int32": {**FORMS, "({0} << {1})": "({0} << {1})", "(int32_t)({0})": "{0}", "r_whole_i32({0})": _WHOLE},
    **{dtype: {f"({CTYPES[dtype]})({{0}})": cut, f"({CTYPES[dtype]})r_whole_i32({{0}})": cut.format(_WHOLE)}
       for dtype, cut in _CUT.items()},
}  # fmt: skip
#: The type of a lane that holds a value.
_LANE = {"int32": "int32", "float32": "float32", **dict.fromkeys(SHORT, "int32")}
_SUFFIX = {"int32": "vi", "float32": "vf"}
#: So many vectors are written one after the other, without a loop.
_FEW = 4


class _Stays(Exception):
    """The loop has something without a vector form."""


def writes_out(isa: Isa) -> bool:
    """Whether vector loops are written out for an instruction set."""
    return isa.name in ("avx2", "avx512")


def written_out(body: Sequence[Stmt], isa: Isa) -> Body:
    """Statements with their vector loops written out for an instruction set, where that is possible and gains."""
    if not writes_out(isa):
        return list(body)
    out: Body = []
    for stmt in body:
        if isinstance(stmt, Loop) and stmt.kind != PARALLEL and (found := _converted(stmt, isa.lanes)) is not None:
            new, conditions = found
            test: Expr | None = None
            for condition in conditions.values():
                test = condition if test is None else Binary("&&", test, condition)
            out += new if test is None else [If(test, new, [stmt])]
        else:
            out.append(rebuilt(stmt, lambda e: e, lambda inner: written_out(inner, isa)))
    return out


def _converted(at: Loop, lanes: int) -> tuple[Body, dict[object, Expr]] | None:
    """A loop with the vector loops in it written out, and the conditions for that; None where nothing changes.

    The conditions are known outside the loop.
    """
    if at.kind == VECTOR:
        try:
            return _Lanes(at, lanes).loop()
        except _Stays:
            return None
    new: Body = []
    conditions: dict[object, Expr] = {}
    for stmt in at.body:
        found = _converted(stmt, lanes) if isinstance(stmt, Loop) else None
        new += [stmt] if found is None else found[0]
        conditions.update({} if found is None else found[1])
    inside = {s.name for s in statements(at.body) if isinstance(s, Let)} | {at.var}
    used = {p.name for c in conditions.values() for p in expressions(c) if isinstance(p, Var)}
    if all(a is b for a, b in zip(new, at.body)) or inside & used:
        return None
    return [Loop(at.var, at.low, at.high, new, at.kind, at.step)], conditions


def _halved(stmt: Stmt) -> bool:
    """Whether a statement writes a vector's values held to the range of bytes."""
    return isinstance(stmt, Statement) and stmt.text.startswith(("r_saturated_u8(", "r_saturated_i8("))


class _Lanes:
    """The vector form of one loop."""

    def __init__(self, at: Loop, lanes: int) -> None:
        self.at = at
        self.lanes = lanes
        #: The names that the body defines: those of places, and those of values.
        self.places: dict[str, Expr] = {}
        self.values: dict[str, Expr] = {}
        self.conditions: dict[object, Expr] = {}
        self.fixed = self.short = self.floats = self.limits = False

    def loop(self) -> tuple[Body, dict[object, Expr]]:
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
            few = constant_of(at.low) is not None and at.trips // step <= _FEW
            out: Body = [Loop(at.var, at.low, end, body, UNROLLED if few else SERIAL, step)]
            return out + ([Loop(at.var, end, at.high, at.body, VECTOR)] if at.trips % lanes else []), self.conditions
        name = f"{at.var}_end"
        return [Block([
            Let(name, at.low + (at.high - at.low) // lanes * lanes),
            Loop(at.var, at.low, Var(name), body, SERIAL, lanes),
            Loop(at.var, Var(name), at.high, at.body, VECTOR),
        ])], self.conditions  # fmt: skip

    def twice(self, body: Body) -> Body:
        """The statements of two vectors, whose bytes are written at once."""
        lets = [stmt for stmt in body if isinstance(stmt, Let)]
        values: dict[str, Expr] = {stmt.name: Var(f"{stmt.name}_", stmt.value.type) for stmt in lets}
        values[self.at.var] = Var(self.at.var) + self.lanes
        out: Body = []
        for one, other in zip(body, substitute(body, values)):
            if isinstance(one, Statement) and isinstance(other, Statement) and _halved(one):
                text = one.text.replace("r_saturated_", "r_saturated_pair_").replace("{1}", "{1}, {2}")
                out.append(Statement(text, (*one.args, other.args[1])))
            else:
                out += [one, Let(f"{other.name}_", other.value) if isinstance(other, Let) else other]
        return out

    def statement(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Let(name, value, False) if value.type == INDEX:
                self.places[name] = value
                return stmt
            case Let(name, value, False):
                self.values[name] = value
                return Let(name, self.value(value))
            case Store(buffer, index, value) if self.step(index) == 1:
                if value.type in _SUFFIX:
                    return Store(buffer, index, self.value(value))
                return self.short_store(Address(buffer, index, f"{value.type}*"), value)
        raise _Stays

    def short_store(self, to: Address, value: Expr) -> Stmt:
        """A vector's values cut to short ones, or held to their range, as they are written."""
        short = SHORT.get(value.type)
        if short is None:
            raise _Stays
        self.short = True
        made = self.values.get(value.name) if isinstance(value, Var) else value
        if isinstance(made, Template) and made.text == SATURATE[value.type]:
            return Statement(f"r_saturated_{short}({{0}}, {{1}});", (to, self.value(made.args[0])))
        return Statement(f"r_narrow_{short}({{0}}, {{1}});", (to, self.value(value)))

    def step(self, index: Expr) -> int | None:
        """How far a place moves with the loop's variable."""
        places = self.places
        return stride(rewrite(index, lambda e: places.get(e.name, e) if isinstance(e, Var) else e), self.at.var)

    def value(self, value: Expr) -> Expr:
        """The vector of a value in neighbouring iterations."""
        lane = _LANE.get(value.type)
        if lane is None:
            raise _Stays
        ty = vector(lane, self.lanes)
        match value:
            case Var(name) if name in self.values:
                return Var(name, ty)
            case Var(name) if name != self.at.var and name not in self.places:
                return splat(Var(name, lane), self.lanes)
            case Const(data):
                return splat(Const(data, lane), self.lanes)
            case Load(buffer, index):
                match self.step(index):
                    case 0:
                        return splat(Template("{0}", (value,), lane), self.lanes)
                    case 1 if value.type in SHORT:
                        self.short = True
                        return Template(f"{WIDEN[lane][value.type]}({{0}})", (Address(buffer, index, f"const {value.type}*"),), ty)
                    case 1:
                        return Load(buffer, index, ty)
            case Template(text, args) if text == SHORT_FIXED:
                self.fixed = True
                return Template(text, tuple(self.value(a) for a in args), ty)
            case Template(text, args) if text == FIXED:
                return self.product(args, ty)
            case Template(text, args):
                return self.operation(text, args, value.type, ty)
        raise _Stays

    def operation(self, text: str, args: Sequence[Expr], dtype: str, ty: str) -> Expr:
        if text == SATURATE.get(dtype):
            low, high = (splat(Const(n, "int32"), self.lanes) for n in int_range(dtype))
            return Template("r_lesser_vi({2}, r_greater_vi({1}, {0}))", (self.value(args[0]), low, high), ty)
        forms = FLOAT_FORMS if dtype == "float32" else INTEGER_FORMS.get(dtype, {})
        if text not in forms or (text in FORMS and any(_LANE.get(a.type) != _LANE[dtype] for a in args)):
            raise _Stays
        self.floats = self.floats or dtype == "float32"
        self.limits = self.limits or (dtype == "float32" and "?" in text)
        form = forms[text].replace("{v}", _SUFFIX[_LANE[dtype]])
        return Template(form, tuple(self.value(a) for a in args), ty)

    def product(self, args: Sequence[Expr], ty: str) -> Expr:
        value, significand, _, _, left, half, right, condition = args
        after = significand
        if isinstance(significand, Load) and self.step(significand.index):
            after = Load(significand.buffer, significand.index + 1, significand.type)
        if isinstance(condition, Const):
            if not condition.value:
                raise _Stays
        else:
            self.conditions[key(condition)] = condition
        self.fixed = True
        parts = tuple(self.value(part) for part in (value, significand, after, half, right))
        if not (isinstance(left, Const) and left.value == 0):
            parts = (Template("({0} << {1})", (parts[0], self.value(left)), ty), *parts[1:])
        return Template("r_fixed_vi({0}, {1}, {2}, {3}, {4})", parts, ty)
