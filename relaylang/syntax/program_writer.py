"""Writes programs as the JSON of TVM 0.16 (`tvm.ir.save_json`): a node for each expression, type, function and module."""

from __future__ import annotations

from typing import Any as AnyValue
from typing import ClassVar

import numpy as np

from relaylang.ir.expr import (
    Call,
    Clause,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    TypeData,
    Var,
)
from relaylang.ir.module import IRModule
from relaylang.ir.types import (
    KINDS,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    SymbolicDim,
    TupleType,
    TypeCall,
    TypeVar,
)
from relaylang.ops.record import Op
from relaylang.syntax.metadata_nodes import MetaNode
from relaylang.syntax.node_writer import ANYWHERE, NodeWriter, Record, blob

#: The type key of each class of expressions with parts only, and the parts in TVM's order.
_EXPRESSIONS: dict[type, tuple[str, ...]] = {
    Tuple: ("fields",),
    Call: ("op", "args", "attrs", "type_args"),
    Let: ("var", "value", "body"),
    If: ("cond", "true_branch", "false_branch"),
    RefCreate: ("value",),
    RefRead: ("ref",),
    RefWrite: ("ref", "value"),
}
#: The same of types and of patterns.
_OTHERS: dict[type, tuple[str, tuple[str, ...]]] = {
    FuncType: ("FuncType", ("arg_types", "ret_type", "type_params", "type_constraints")),
    TupleType: ("TupleType", ("fields",)),
    RefType: ("relay.RefType", ("value",)),
    TypeCall: ("TypeCall", ("func", "args")),
    TypeData: ("relay.TypeData", ("header", "type_vars", "constructors")),
    PatternWildcard: ("relay.PatternWildcard", ()),
    PatternVar: ("relay.PatternVar", ("var",)),
    PatternConstructor: ("relay.PatternConstructor", ("constructor", "patterns")),
    PatternTuple: ("relay.PatternTuple", ("patterns",)),
}


class _ProgramWriter(NodeWriter):
    """A program's nodes. Places in texts are left out."""

    shared: ClassVar[tuple[type, ...]] = (*NodeWriter.shared, Expr, Pattern, Clause, TypeData)

    def record(self, value: AnyValue) -> Record:
        match value:
            case Op(name=name):
                return Record("Op", other={"repr_str": name})
            case GlobalVar(name):
                empty = dict.fromkeys(("virtual_device_", "span"))
                parts = {"name_hint": name, **empty, "_checked_type_": value.checked_type, "struct_info_": None}
                return Record("GlobalVar", {}, parts)
            case Constructor():
                parts = {"name_hint": value.name_hint, "inputs": value.inputs, "belong_to": value.belong_to}
                return Record("relay.Constructor", {"tag": str(value.tag)}, {**parts, "span": None, "_checked_type_": None})
            case Var():
                vid = MetaNode("relay.Id", {}, None, {"name_hint": value.name_hint})
                return _expression(value, {"vid": vid, "type_annotation": value.type_annotation}, device=value.virtual_device)
            case Function():
                attrs = dict(value.attrs)
                device = attrs.pop("virtual_device", None)
                parts = {"params": value.params, "body": value.body, "ret_type": value.ret_type, "type_params": value.type_params}
                return _expression(value, {**parts, "attrs": _dict_attrs(attrs)}, device=device)
            case TupleGetItem(tuple_value, index):
                return _expression(value, {"tuple_value": tuple_value}, index=str(index))
            case Match(data, clauses, complete):
                ends = {"virtual_device_": None, "span": None, "_checked_type_": value.checked_type}
                return Record("relay.Match", {"complete": str(int(complete))}, {"data": data, "clauses": clauses, **ends})
            case Clause(lhs, rhs):
                return Record("relay.Clause", {}, {"lhs": lhs, "rhs": rhs})
            case TypeVar(name, kind) if not isinstance(value, SymbolicDim):
                return Record("TypeVar", {"kind": str(KINDS[kind])}, {"name_hint": name, "span": None})
            case GlobalTypeVar(name, kind):
                return Record("GlobalTypeVar", {"kind": str(KINDS[kind])}, {"name_hint": name})
            case IncompleteType(kind):
                return Record("IncompleteType", {"kind": str(KINDS[kind])}, {"span": None})
            case IRModule():
                return _module(value)
            case np.ndarray():
                return Record("runtime.NDArray", other={"repr_str": blob(value)})
        names = _EXPRESSIONS.get(type(value))
        if names is not None and isinstance(value, Expr):
            return _expression(value, {name: getattr(value, name) for name in names})
        key, names = _OTHERS.get(type(value), ("", ()))
        if key:
            return Record(key, {}, {**{name: getattr(value, name) for name in names}, "span": None})
        return super().record(value)


def _expression(value: Expr, parts: dict[str, AnyValue], device: AnyValue = None, **texts: str) -> Record:
    ends = {"virtual_device_": ANYWHERE if device is None else device, "span": None, "_checked_type_": value.checked_type}
    return Record(f"relay.{type(value).__name__}", texts, {**parts, **ends})


def _dict_attrs(attrs: AnyValue) -> MetaNode | None:
    return MetaNode("DictAttrs", {}, None, {"__dict__": attrs}) if attrs else None


def _module(mod: IRModule) -> Record:
    parts = {
        "functions": mod.functions,
        "type_definitions": mod.type_definitions,
        "global_var_map_": {gv.name_hint: gv for gv in mod.functions},
        "global_type_var_map_": {gtv.name_hint: gtv for gtv in mod.type_definitions},
        "source_map": MetaNode("SourceMap", {}, None, {"source_map": {}}),
        "attrs": _dict_attrs(mod.attrs),
        "global_infos": {},
    }
    return Record("IRModule", {}, parts)


def save_json(value: AnyValue) -> str:
    """A module, an expression, a type or a value as the JSON of TVM 0.16, which TVM and `load_json` read.

    Values are numbers, strings, arrays, and lists and maps of all these. Types that a checker found are written, places in
    texts are not. Raises `RelayError` (R0011) for a value that has no form in it.
    """
    writer = _ProgramWriter(typed=True)
    return writer.document(writer.number(value))


__all__ = ["save_json"]
