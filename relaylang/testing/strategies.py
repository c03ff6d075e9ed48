"""Hypothesis strategies for Relay programs (`pip install 'relaylang[test]'`).

    from hypothesis import given
    from relaylang.testing import strategies as relay

    @given(relay.modules())
    def test(mod): ...

All results are well-typed, and an expression has the requested type. The strategies use every operator that accepts one or
two arguments and default attributes. They also use lets, sharing, branches, tuples, closures and references, and recursive
functions, algebraic data types and matches. A failure shrinks towards few functions, small depth and constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any as AnyValue

import numpy as np

from relaylang.ir import (
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Function,
    FuncType,
    GlobalTypeVar,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    RefCreate,
    RefRead,
    RefType,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeVar,
    Var,
)
from relaylang.ops import OPS
from relaylang.ops.record import AttrError, Op, make_attrs
from relaylang.typing import infer

try:
    from hypothesis import strategies as st
except ImportError as absent:
    raise ImportError("relaylang.testing.strategies needs Hypothesis: pip install 'relaylang[test]'") from absent

#: The tensor types that programs are made of, the plainest first.
TENSORS: tuple[TensorType, ...] = (
    TensorType((), "float32"),
    TensorType((), "int32"),
    TensorType((), "bool"),
    TensorType((2, 3), "float32"),
    TensorType((3,), "float32"),
    TensorType((2, 3), "int32"),
    TensorType((1, 2, 4, 4), "float32"),
)
SCALARS = TENSORS[:3]

_LIST = GlobalTypeVar("List")
_A = TypeVar("A")
CONS = Constructor("Cons", [_A, TypeCall(_LIST, [_A])], _LIST, 0)
NIL = Constructor("Nil", [], _LIST, 1)
LIST = TypeData(_LIST, [_A], [CONS, NIL])

_NAMES = ("x", "y", "data", "a b", "let", "features.0.0_weight", "layer-1", "é", "0")


def _called(op: Op, args: Sequence[Expr]) -> Call:
    return Call(op, args, make_attrs(op.attrs, {}) if op.attrs is not None else None)


@cache
def calls() -> dict[Type, list[tuple[Op, tuple[TensorType, ...]]]]:
    """By result type: the operators of the registry, and the argument types with which they give it."""
    calls_by_type: dict[Type, list[tuple[Op, tuple[TensorType, ...]]]] = {}
    for name in sorted(OPS):
        op = OPS[name]
        if op.args is None or not 1 <= len(op.args) <= 2:
            continue
        for ty in TENSORS:
            operand_types = (ty,) * len(op.args)
            try:
                call = _called(op, [Var("x", t) for t in operand_types])
            except AttrError:
                break
            if any(d.severity == "error" for d in infer(call, fragment=True)):
                continue
            if isinstance(call.checked_type, TensorType) and call.checked_type in TENSORS:
                calls_by_type.setdefault(call.checked_type, []).append((op, operand_types))
    return calls_by_type


def types(depth: int = 2) -> st.SearchStrategy[Type]:
    """Types that `expressions` can make values of."""
    tensors: st.SearchStrategy[Type] = st.sampled_from(TENSORS)
    if depth <= 0:
        return tensors
    inner = types(depth - 1)
    return st.one_of(
        tensors,
        st.lists(inner, max_size=3).map(TupleType),
        st.sampled_from(SCALARS).map(lambda ty: TypeCall(_LIST, [ty])),
        inner.map(RefType),
        st.tuples(inner, inner).map(lambda pair: FuncType([pair[0]], pair[1])),
    )


@st.composite
def constants(draw: Callable[[AnyValue], AnyValue], ty: TensorType) -> Constant:
    """A constant of a tensor type: scalars of any value, larger ones filled with one."""
    if ty.dtype == "bool":
        value: AnyValue = draw(st.booleans())
    elif ty.dtype == "int32":
        value = draw(st.integers(-(2**31), 2**31 - 1))
    else:
        value = draw(st.floats(width=32))
    shape = [extent for extent in ty.shape if isinstance(extent, int)]
    return Constant(np.full(shape, value, ty.dtype))


class _Maker:
    """Makes one program. `env` are the variables in scope, `shared` the nodes that stand in the current scope already."""

    def __init__(self, draw: Callable[[AnyValue], AnyValue], functions: dict[GlobalVar, FuncType]) -> None:
        self.draw = draw
        self.functions = functions

    def var(self, ty: Type) -> Var:
        return Var(self.draw(st.sampled_from(_NAMES)), ty)

    def expr(self, ty: Type, env: list[Var], depth: int, shared: list[tuple[Type, Expr]]) -> Expr:
        """An expression of a type. Each kind that fits may be drawn, the plainest first."""
        known: list[Expr] = [v for v in env if v.type_annotation == ty]
        known += [node for t, node in shared if t == ty]
        if known and (depth <= 0 or self.draw(st.integers(0, 3)) == 0):
            return self.draw(st.sampled_from(known))
        if depth <= 0:
            return self.value(ty, env, 0, shared)
        kinds = [self.value, self.conditional, self.let, self.field, self.closure, self.reference, self.match, self.unpack]
        if isinstance(ty, TensorType) and ty in calls():
            kinds = [self.value, self.operator, self.operator, *kinds[1:]]
        if any(f.ret_type == ty for f in self.functions.values()):
            kinds.append(self.function)
        expr = self.draw(st.sampled_from(kinds))(ty, env, depth - 1, shared)
        shared.append((ty, expr))
        return expr

    def value(self, ty: Type, env: list[Var], depth: int, shared: list[tuple[Type, Expr]]) -> Expr:
        match ty:
            case TupleType(fields):
                return Tuple([self.expr(f, env, depth, shared) for f in fields])
            case RefType(value):
                return RefCreate(self.expr(value, env, depth, shared))
            case FuncType(arg_types, ret_type):
                params = [self.var(t) for t in arg_types]
                return Function(params, self.expr(ret_type, [*env, *params], depth, []), ret_type)
            case TypeCall(_, (element,)):
                if depth <= 0:
                    # the element's type shows nowhere else in an empty list
                    return Call(CONS, [self.expr(element, env, 0, shared), Call(NIL, [])])
                return Call(CONS, [self.expr(element, env, depth - 1, shared), self.expr(ty, env, depth - 1, shared)])
        assert isinstance(ty, TensorType)
        return self.draw(constants(ty))

    def operator(self, ty: Type, env: list[Var], depth: int, shared: list[tuple[Type, Expr]]) -> Expr:
        op, args = self.draw(st.sampled_from(calls()[ty]))
        return _called(op, [self.expr(t, env, depth, shared) for t in args])

    def conditional(self, ty: Type, env: list[Var], depth: int, shared: list[tuple[Type, Expr]]) -> Expr:
        cond = self.expr(SCALARS[2], env, depth, shared)
        return If(cond, self.expr(ty, env, depth, []), self.expr(ty, env, depth, []))

    def let(self, ty: Type, env: list[Var], depth: int, shared: list[tuple[Type, Expr]]) -> Expr:
        var = self.var(self.draw(types(1)))
        assert var.type_annotation is not None
        value = self.expr(var.type_annotation, env, depth, [])
        return Let(var, value, self.expr(ty, [*env, var], depth, []))

    def field(self, ty: Type, env: list[Var], depth: int, shared: list[tuple[Type, Expr]]) -> Expr:
        other = self.draw(st.sampled_from(TENSORS))
        fields = self.draw(st.permutations([ty, other]))
        index = next(i for i, f in enumerate(fields) if f is ty)
        return TupleGetItem(self.expr(TupleType(fields), env, depth, shared), index)

    def closure(self, ty: Type, env: list[Var], depth: int, shared: list[tuple[Type, Expr]]) -> Expr:
        arg = self.draw(st.sampled_from(TENSORS))
        function = self.expr(FuncType([arg], ty), env, depth, shared)
        return Call(function, [self.expr(arg, env, depth, shared)])

    def reference(self, ty: Type, env: list[Var], depth: int, shared: list[tuple[Type, Expr]]) -> Expr:
        cell = self.var(RefType(ty))
        written = RefWrite(cell, self.expr(ty, [*env, cell], depth, []))
        return Let(cell, RefCreate(self.expr(ty, env, depth, [])), Let(Var("_"), written, RefRead(cell)))

    def function(self, ty: Type, env: list[Var], depth: int, shared: list[tuple[Type, Expr]]) -> Expr:
        name = self.draw(st.sampled_from([v for v, f in self.functions.items() if f.ret_type == ty]))
        return Call(name, [self.expr(t, env, depth, shared) for t in self.functions[name].arg_types])

    def match(self, ty: Type, env: list[Var], depth: int, shared: list[tuple[Type, Expr]]) -> Expr:
        element = self.draw(st.sampled_from(SCALARS))
        data = self.expr(TypeCall(_LIST, [element]), env, depth, shared)
        head, tail = self.var(element), self.var(TypeCall(_LIST, [element]))
        if tail.name_hint == head.name_hint:
            tail = Var(tail.name_hint + "_", tail.type_annotation)
        first = PatternConstructor(CONS, [PatternVar(head), PatternVar(tail)])
        rest = self.draw(st.sampled_from([PatternConstructor(NIL), PatternWildcard()]))
        some = self.expr(ty, [*env, head, tail], depth, [])
        return Match(data, [Clause(first, some), Clause(rest, self.expr(ty, env, depth, []))])

    def unpack(self, ty: Type, env: list[Var], depth: int, shared: list[tuple[Type, Expr]]) -> Expr:
        parts = [Var("left", self.draw(st.sampled_from(TENSORS))), Var("right", ty)]
        data = self.expr(TupleType([p.type_annotation or ty for p in parts]), env, depth, shared)
        return Match(data, [Clause(PatternTuple([PatternVar(p) for p in parts]), self.expr(ty, [*env, *parts], depth, []))])


@st.composite
def expressions(draw: Callable[[AnyValue], AnyValue], ty: Type | None = None, depth: int = 4) -> Expr:
    """A closed expression of a type (any, if none is given). It may use `List`, which `modules` defines."""
    return _Maker(draw, {}).expr(ty if ty is not None else draw(types()), [], depth, [])


@st.composite
def modules(draw: Callable[[AnyValue], AnyValue], depth: int = 4, most: int = 3) -> IRModule:
    """A module of up to `most` functions, `@main` among them, that may call each other and themselves, and of `List`."""
    count = draw(st.integers(1, most))
    names = ["main", "f-g", "helper"][:count] + [f"f{i}" for i in range(3, count)]
    kinds = {GlobalVar(name): FuncType(draw(st.lists(types(1), max_size=2)), draw(st.sampled_from(TENSORS))) for name in names}
    maker = _Maker(draw, kinds)
    functions = {}
    for name, kind in kinds.items():
        params = [maker.var(ty) for ty in kind.arg_types]
        functions[name] = Function(params, maker.expr(kind.ret_type, params, draw(st.integers(0, depth)), []), kind.ret_type)
    return IRModule(functions, {_LIST: LIST})


__all__ = ["CONS", "LIST", "NIL", "SCALARS", "TENSORS", "calls", "constants", "expressions", "modules", "types"]
