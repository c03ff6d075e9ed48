"""Programs as both sides exchange them (see `worker.py`): a list of nodes, each after the nodes that it refers to.

Text is not enough: TVM's reader does not accept everything that its printer writes. A value that two blocks share would
be written into one of them.
"""

from __future__ import annotations

import base64
from typing import Any

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
    pattern_vars,
    post_order,
)
from relaylang.ops import get
from relaylang.ops.record import Op, make_attrs


def array(row: list[Any]) -> np.ndarray:
    dtype, shape, data = row
    return np.frombuffer(base64.b64decode(data), dtype).reshape(shape).copy()


def array_row(a: np.ndarray) -> list[Any]:
    return [a.dtype.name, list(a.shape), base64.b64encode(np.ascontiguousarray(a).tobytes()).decode()]


class Reader:
    """One module. `types`: type variables by TVM's address, so that one variable stays one."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.nodes: list[Any] = []
        self.type_vars: dict[int, TypeVar] = {}
        self.type_names: dict[str, GlobalTypeVar] = {}
        self.globals: dict[str, GlobalVar] = {}
        self.constructors: dict[tuple[str, int], Constructor] = {}
        self.data: dict[GlobalTypeVar, TypeData] = {}

    def type_name(self, name: str) -> GlobalTypeVar:
        return self.type_names.setdefault(name, GlobalTypeVar(name))

    def type(self, row: list[Any] | None) -> Type | None:
        match row:
            case None:
                return None
            case ["tensor", shape, dtype]:
                return TensorType([ANY if d == "?" else d for d in shape], dtype)
            case ["tuple", fields]:
                return TupleType([self.type(f) for f in fields])
            case ["func", params, args, ret]:
                variables = [self.type(p) for p in params]
                return FuncType([self.type(a) for a in args], self.type(ret), variables)
            case ["ref", value]:
                return RefType(self.type(value))
            case ["var", number, name]:
                return self.type_vars.setdefault(number, TypeVar(name))
            case ["name", name]:
                return self.type_name(name)
            case ["call", func, args]:
                return TypeCall(self.type(func), [self.type(a) for a in args])
        raise ValueError(f"no type: {row}")

    def value(self, value: Any) -> Any:
        match value:
            case {"map": entries}:
                return {k: self.value(v) for k, v in entries.items()}
            case {"constant": row}:
                return Constant(array(row))
            case {"any": _}:
                return ANY
            case {"other": kind}:
                raise ValueError(f"an attribute of TVM's kind {kind}")
            case list():
                return [self.value(v) for v in value]
        return value

    def pattern(self, row: list[Any]) -> Pattern:
        match row:
            case ["var", at]:
                return PatternVar(self.nodes[at])
            case ["constructor", data, number, patterns]:
                return PatternConstructor(self.constructors[data, number], [self.pattern(p) for p in patterns])
            case ["tuple", patterns]:
                return PatternTuple([self.pattern(p) for p in patterns])
        return PatternWildcard()

    def node(self, row: list[Any]) -> Expr:
        n = self.nodes
        match row:
            case ["var", name, ty]:
                return Var(name, self.type(ty))
            case ["global", name]:
                return self.globals.setdefault(name, GlobalVar(name))
            case ["constant", *data]:
                return Constant(array(data))
            case ["operator", name]:
                return get(name)
            case ["constructor", data, number]:
                return self.constructors[data, number]
            case ["call", op, args, attrs, types]:
                callee, operands = n[op], [n[a] for a in args]
                if not isinstance(callee, Op):
                    return Call(callee, operands, None, [self.type(t) for t in types])
                if callee.attrs is None:
                    return Call(callee, operands)
                known = {k: self.value(v) for k, v in attrs.items() if k in callee.schema}
                return Call(callee, operands, make_attrs(callee.attrs, known))
            case ["tuple", fields]:
                return Tuple([n[f] for f in fields])
            case ["field", value, index]:
                return TupleGetItem(n[value], index)
            case ["let", var, value, body]:
                return Let(n[var], n[value], n[body])
            case ["if", cond, then, other]:
                return If(n[cond], n[then], n[other])
            case ["function", params, body, ret, types, attrs]:
                known = {k: self.value(v) for k, v in attrs.items()}
                return Function([n[p] for p in params], n[body], self.type(ret), [self.type(t) for t in types], known)
            case ["match", data, clauses, complete]:
                return Match(n[data], [Clause(self.pattern(p), n[rhs]) for p, rhs in clauses], complete)
            case ["ref", value]:
                return RefCreate(n[value])
            case ["read", ref]:
                return RefRead(n[ref])
            case ["write", ref, value]:
                return RefWrite(n[ref], n[value])
        raise ValueError(f"no node: {row}")

    def module(self) -> IRModule:
        for name, variables, constructors in self.given["types"]:
            header = self.type_name(name)
            once = len({c for c, _ in constructors}) == len(constructors)
            found = []
            for i, (c, inputs) in enumerate(constructors):
                made = Constructor(c if once else f"{c}_{i}", [self.type(t) for t in inputs], header, i)
                found.append(made)
                self.constructors[name, i] = made
            self.data[header] = TypeData(header, [self.type(v) for v in variables], found)
        for row in self.given["nodes"]:
            self.nodes.append(self.node(row))
        functions = {self.globals.setdefault(name, GlobalVar(name)): self.nodes[at] for name, at in self.given["functions"]}
        return IRModule(functions, self.data)


def module(given: dict[str, Any]) -> IRModule:
    """The module that TVM's side has written. Raises `ValueError` and `AttrError` if the data are no program."""
    return Reader(given).module()


class Writer:
    """The other way."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self.index: dict[int, int] = {}
        self.keep: list[Any] = []

    def add(self, node: Any, row: list[Any]) -> None:
        self.index[id(node)] = len(self.rows)
        self.keep.append(node)
        self.rows.append(row)

    def type(self, ty: Type | None) -> list[Any] | None:
        match ty:
            case TensorType(shape, dtype):
                return ["tensor", [d if isinstance(d, int) else "?" for d in shape], dtype]
            case TupleType(fields):
                return ["tuple", [self.type(f) for f in fields]]
            case FuncType():
                params, args = [self.type(p) for p in ty.type_params], [self.type(a) for a in ty.arg_types]
                return ["func", params, args, self.type(ty.ret_type)]
            case RefType(value):
                return ["ref", self.type(value)]
            case TypeVar(name):
                self.keep.append(ty)
                return ["var", id(ty), name]
            case GlobalTypeVar(name):
                return ["name", name]
            case TypeCall(func, args):
                return ["call", self.type(func), [self.type(a) for a in args]]
        return None

    def value(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self.value(v) for v in value]
        if isinstance(value, Constant):
            return {"constant": array_row(value.data)}
        return value if value is not ANY else {"any": True}

    def attrs(self, attrs: Any) -> Any:
        if attrs is None:
            return None
        return [attrs.type_key, {name: self.value(getattr(attrs, name)) for name in type(attrs).schema}]

    def bind(self, var: Var) -> int:
        if id(var) not in self.index:
            self.add(var, ["var", var.name_hint, self.type(var.type_annotation)])
        return self.index[id(var)]

    def pattern(self, p: Pattern) -> list[Any]:
        match p:
            case PatternVar(var):
                return ["var", self.bind(var)]
            case PatternConstructor(constructor, patterns):
                inner = [self.pattern(q) for q in patterns]
                return ["constructor", constructor.belong_to.name_hint, constructor.tag & 0xFFFFFF, inner]
            case PatternTuple(patterns):
                return ["tuple", [self.pattern(q) for q in patterns]]
        return ["wildcard"]

    def row(self, n: Expr) -> list[Any]:
        def at(*nodes: Expr) -> list[int]:
            return [self.index[id(node)] for node in nodes]

        match n:
            case Var():
                return ["var", n.name_hint, self.type(n.type_annotation)]
            case GlobalVar(name):
                return ["global", name]
            case Constant():
                return ["constant", *array_row(n.data)]
            case Op():
                return ["operator", n.name]
            case Constructor():
                return ["constructor", n.belong_to.name_hint, n.tag & 0xFFFFFF]
            case Call():
                return ["call", *at(n.op), at(*n.args), self.attrs(n.attrs), [self.type(t) for t in n.type_args]]
            case Tuple(fields):
                return ["tuple", at(*fields)]
            case TupleGetItem(value, index):
                return ["field", *at(value), index]
            case Let(var, value, body):
                return ["let", self.bind(var), *at(value, body)]
            case If(cond, then, other):
                return ["if", *at(cond, then, other)]
            case Function():
                params = [self.bind(p) for p in n.params]
                types = [self.type(t) for t in n.type_params]
                return ["function", params, *at(n.body), self.type(n.ret_type), types, dict(n.attrs)]
            case Match():
                clauses = [[self.pattern(c.lhs), *at(c.rhs)] for c in n.clauses]
                return ["match", *at(n.data), clauses, n.complete]
            case RefCreate(value):
                return ["ref", *at(value)]
            case RefRead(ref):
                return ["read", *at(ref)]
            case RefWrite(ref, value):
                return ["write", *at(ref, value)]
        raise ValueError(f"no node: {n!r}")

    def module(self, mod: IRModule) -> dict[str, Any]:
        functions = []
        for gv, func in mod.functions.items():
            for node in post_order(func):
                if isinstance(node, Match):
                    for clause in node.clauses:
                        for var in pattern_vars(clause.lhs):
                            self.bind(var)
                if id(node) not in self.index:
                    self.add(node, self.row(node))
            functions.append([gv.name_hint, self.index[id(func)]])
        types = []
        for name, data in mod.type_definitions.items():
            constructors = [[c.name_hint, [self.type(t) for t in c.inputs]] for c in data.constructors]
            types.append([name.name_hint, [self.type(v) for v in data.type_vars], constructors])
        return {"nodes": self.rows, "functions": functions, "types": types}


def written(mod: IRModule) -> dict[str, Any]:
    """A module for TVM's side."""
    return Writer().module(mod)
