"""Random programs: every kind of node, names of every kind, sharing within and across scopes.

They are well-scoped, not well-typed: the printed text must read back.
"""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np

from relaylang.ir import (
    ANY,
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
    Pattern,
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
from relaylang.ops import OPS, make_attrs

PLAIN = ("x", "x", "y", "x1", "data", "weight_0")
ODD = (
    "_",
    "_x",
    "a b",
    "é",
    "let",
    "a",
    "a.15",
    "a.1",
    "a.0",
    "features.0.0_weight",
    "0",
    "1",
    "1.0",
    "input:0",
    "layer-1",
    "a[0]",
    "inff",
    "",
    "/x",
    "x/y",
    "%",
    'q"uote',
    "new\nline",
    "back\\slash",
    "tab\t",
    "\x85",
    "名前",
    "Tensor",
    "ref",
)
GLOBALS = ("main", "f-g", "a.b", "é", "let", "f g", "x")
DTYPES = (
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "bool",
    "bfloat16",
)
INF = float("inf")
FLOATS = (0.0, -0.0, 1.0, 0.1, 1 / 3, 1e-7, 1e10, 123456789.0, 5.39136e-05, INF, -INF, float("nan"), 2.5)
UNARY = ("log", "nn.relu", "tanh", "nn.softmax", "nn.batch_flatten")


def _call(name: str, args: list[Expr], **values: Any) -> Call:
    """A call of an operator, whose arguments may be of wrong types."""
    op = OPS[name]
    return Call(op, args, make_attrs(op.attrs, values) if op.attrs is not None else None)


class Env:
    """What a generated expression may refer to: variables, nodes that stand elsewhere already, type variables."""

    def __init__(self, variables: list[Var], pool: list[Expr], types: list[TypeVar]) -> None:
        self.variables = variables
        self.pool = pool
        self.types = types

    def inside(self, *variables: Var, types: list[TypeVar] | None = None) -> Env:
        return Env([*self.variables, *variables], list(self.pool), self.types + (types or []))


class AnyPrograms:
    """Random modules. `plain`: what TVM reads, too (plain names, no 8-bit scalars, nothing that it loses)."""

    def __init__(self, rng: random.Random, plain: bool = False) -> None:
        self.rng = rng
        self.plain = plain
        self.names = PLAIN if plain else PLAIN + ODD
        self.header = GlobalTypeVar("List")
        element = TypeVar("A")
        self.cons = Constructor("Cons", [element, TypeCall(self.header, [element])], self.header, 0)
        self.nil = Constructor("Nil", [], self.header, 1)
        self.data = TypeData(self.header, [element], [self.cons, self.nil])
        self.globals = [GlobalVar(n) for n in (("main", "f") if plain else rng.sample(GLOBALS, 3))]

    def type(self, env: Env, depth: int = 2) -> Type:
        rng = self.rng
        kind = rng.randrange(8) if depth else 0
        if kind == 1:
            return TupleType([self.type(env, depth - 1) for _ in range(rng.randrange(3))])
        if kind == 2 and not self.plain:
            bound = TypeVar(rng.choice("AB"))
            inner = Env([], [], [*env.types, bound])
            return FuncType([self.type(inner, depth - 1)], self.type(inner, depth - 1), [bound])
        if kind == 3:
            return FuncType([self.type(env, depth - 1)], self.type(env, depth - 1))
        if kind == 4 and not self.plain:
            return RefType(self.type(env, depth - 1))
        if kind == 5:
            return TypeCall(self.header, [self.type(env, depth - 1)])
        if kind == 6 and env.types:
            return rng.choice(env.types)
        return TensorType([rng.choice((1, 3, ANY)) for _ in range(rng.randrange(3))], rng.choice(DTYPES))

    def var(self, env: Env) -> Var:
        return Var(self.rng.choice(self.names), self.type(env) if self.rng.random() < 0.5 else None)

    def constant(self) -> Constant:
        rng = self.rng
        dtype = rng.choice(("int32", "int64", "float32", "bool") if self.plain else DTYPES)
        shape = (2,) if rng.random() < 0.15 else ()
        if dtype == "bool":
            return Constant(np.full(shape, rng.random() < 0.5))
        if dtype.startswith(("int", "uint")):
            info = np.iinfo(dtype)
            value = rng.choice((0, 1, info.min, info.max, 5))
            return Constant(np.full(shape, 5 if self.plain else value, dtype))
        kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
        number = rng.choice((0.0, 1.0, 2.5) if self.plain else FLOATS)
        with np.errstate(over="ignore"):
            return Constant(np.full(shape, number, "float64").astype(kind))

    def attr(self, depth: int = 2) -> Any:
        rng = self.rng
        scalars: list[Any] = [0, -5, 2**40, True, "text", 'a"b\\c\n', None, 0.1, 1e300, INF, np.int8(3), np.int64(4)]
        scalars += [np.float64(0.1), np.float16(0.5), np.uint8(200), rng.choice(self.globals), "é\x07", np.float32(0.1)]
        if depth and rng.random() < 0.3:
            values = [self.attr(depth - 1) for _ in range(rng.randrange(3))]
            return tuple(values) if rng.random() < 0.6 else {f"k {i}": v for i, v in enumerate(values)}
        return rng.choice([1, "text"] if self.plain else scalars)

    def expr(self, env: Env, depth: int) -> Expr:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.1:
            return self.leaf(env)
        if env.pool and rng.random() < 0.15:
            return rng.choice(env.pool)
        expr = self.inner(env, depth - 1)
        env.pool.append(expr)
        return expr

    def leaf(self, env: Env) -> Expr:
        kind = self.rng.randrange(6)
        if kind == 0 or not env.variables:
            return self.constant()
        if kind == 1:
            return self.rng.choice(self.globals)
        return self.rng.choice(env.variables)

    def inner(self, env: Env, depth: int) -> Expr:
        rng = self.rng
        match rng.randrange(14):
            case 0 | 1:
                return self.unary(self.expr(env, depth))
            case 2:
                return Call(OPS["add"], [self.expr(env, depth), self.expr(env, depth)])
            case 3:
                return Tuple([self.expr(env, depth) for _ in range(rng.randrange(4))])
            case 4:
                return TupleGetItem(self.expr(env, depth), rng.choice((0, 1, 15)))
            case 5:
                return self.let(env, depth)
            case 6:
                return If(self.expr(env, depth), self.expr(env, depth), self.expr(env, depth))
            case 7:
                return self.function(env, depth)
            case 8:
                return self.match(env, depth)
            case 9:
                return RefCreate(self.expr(env, depth))
            case 10:
                return RefRead(self.expr(env, depth))
            case 11:
                return RefWrite(self.expr(env, depth), self.expr(env, depth))
            case 12:
                return Call(self.expr(env, depth), [self.expr(env, depth)])
        return Call(self.cons, [self.expr(env, depth), self.expr(env, depth)])

    def unary(self, arg: Expr) -> Expr:
        rng = self.rng
        match rng.randrange(5):
            case 0:
                values = {"a_min": rng.choice((0.0, 0.1, -1e-5)), "a_max": rng.choice((6.0, 1.5))}
                return _call("clip", [arg], **values)
            case 1:
                return _call("reshape", [arg], newshape=(-1, 3))
            case 2:
                conv: dict[str, Any] = {"strides": (2, 2), "padding": (1, 1), "channels": 8} if rng.random() < 0.5 else {}
                return _call("nn.conv2d", [arg, arg], **conv)
        return _call(rng.choice(UNARY), [arg])

    def let(self, env: Env, depth: int) -> Expr:
        var = self.var(env)
        if self.rng.random() < 0.3:
            value: Expr = self.function(env.inside(var), depth)
        else:
            value = self.expr(env, depth)
        return Let(var, value, self.expr(env.inside(var), depth))

    def function(self, env: Env, depth: int) -> Function:
        rng = self.rng
        types = [] if self.plain or rng.random() < 0.6 else [TypeVar(rng.choice("AB"))]
        typed = env.inside(types=types)
        params = [self.var(typed) for _ in range(rng.randrange(3))]
        keys = ["Primitive"] if self.plain else ["Primitive", "a.b", "my key", "let", "relay.reshape_only"]
        attrs = {k: self.attr() for k in rng.sample(keys, min(rng.randrange(3), len(keys)))}
        ret_type = self.type(typed) if rng.random() < 0.4 else None
        return Function(params, self.expr(typed.inside(*params), depth), ret_type, types, attrs)

    def pattern(self, env: Env, found: list[Var], depth: int = 2) -> Pattern:
        kind = self.rng.randrange(5) if depth else self.rng.randrange(2)
        if kind == 0:
            return PatternWildcard()
        if kind == 1:
            found.append(Var(self.rng.choice(self.names)))
            return PatternVar(found[-1])
        if kind == 2:
            return PatternConstructor(self.nil)
        if kind == 3:
            return PatternConstructor(self.cons, [self.pattern(env, found, depth - 1) for _ in range(2)])
        return PatternTuple([self.pattern(env, found, depth - 1) for _ in range(self.rng.randrange(2, 4))])

    def match(self, env: Env, depth: int) -> Expr:
        data = self.expr(env, depth)
        clauses = []
        for _ in range(self.rng.randrange(1, 3)):
            variables: list[Var] = []
            pattern = self.pattern(env, variables)
            clauses.append(Clause(pattern, self.expr(env.inside(*variables), depth)))
        return Match(data, clauses, self.rng.random() < 0.7)

    def module(self, depth: int = 5) -> IRModule:
        functions = {var: self.function(Env([], [], []), depth) for var in self.globals}
        attrs = {} if self.plain or self.rng.random() < 0.8 else {"a": self.attr(), "b c": self.attr()}
        return IRModule(functions, {self.header: self.data}, attrs)
