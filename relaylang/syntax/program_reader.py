"""Reads programs from TVM's JSON (`tvm.ir.load_json`), of TVM 0.16 and of the versions before it back to 0.6.

The reader leaves out places in texts, default devices, and types that TVM found: the checker here finds them anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as AnyValue
from typing import ClassVar

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
    RawAttrs,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    TypeData,
    Var,
)
from relaylang.ir.module import IRModule
from relaylang.ir.types import FuncType, GlobalTypeVar, RefType, Type, TypeCall, TypeVar
from relaylang.ops.extensions import find
from relaylang.ops.record import AttrError, Op, make_attrs
from relaylang.syntax.metadata import Document, decoded
from relaylang.syntax.metadata_nodes import Damaged, MetaNode


class _Parts:
    """The attributes of a node: values of others, and texts in place. Wrong ones raise `Damaged`."""

    __slots__ = ("_texts", "_values", "_what")

    def __init__(self, what: str, texts: Mapping[str, AnyValue], values: Mapping[str, AnyValue]) -> None:
        self._what = what
        self._texts = texts
        self._values = values

    def get(self, name: str, *kinds: type) -> AnyValue:
        """A value, of one of these classes."""
        value = self._values.get(name)
        if not isinstance(value, kinds):
            raise Damaged(f"{name} of {self._what} is a {type(value).__name__}")
        return value

    def maybe(self, name: str, *kinds: type) -> AnyValue:
        """A value that may be missing."""
        return None if self._values.get(name) is None else self.get(name, *kinds)

    def all(self, name: str, *kinds: type) -> list[AnyValue]:
        """A list of values of these classes; a missing one is empty."""
        values: list[AnyValue] = self.maybe(name, list) or []
        for value in values:
            if not isinstance(value, kinds):
                raise Damaged(f"{name} of {self._what} has a {type(value).__name__}")
        return values

    def name(self, attribute: str = "name_hint") -> str:
        text: str = self.get(attribute, str)
        return text

    def integer(self, name: str) -> int:
        """A number that stands in place."""
        try:
            return int(self._texts.get(name, ""))
        except (TypeError, ValueError):
            raise Damaged(f"{name} of {self._what} is no number") from None

    def map(self, name: str, key: type, value: type) -> dict[AnyValue, AnyValue]:
        """A map; a missing one is empty."""
        pairs: dict[AnyValue, AnyValue] = self.maybe(name, dict) or {}
        for k, v in pairs.items():
            if not isinstance(k, key) or not isinstance(v, value):
                shown = v.type_key if isinstance(v, MetaNode) else type(v).__name__
                raise Damaged(f"{name} of {self._what} has a {type(k).__name__} with a {shown}")
        return pairs

    def checked(self) -> bool:
        """Whether the writer's checker was here: it fills in what the program left out."""
        return self._texts.get("_checked_type_", "0") != "0"

    def device(self) -> MetaNode | None:
        """The device of a value; None for any."""
        device: MetaNode | None = self.maybe("virtual_device_", MetaNode)
        if device is None or (device.attrs.get("device_type_int") == "-1" and not any((device.parts or {}).values())):
            return None
        return device


def _function(p: _Parts) -> Function:
    attrs = dict(p.maybe("attrs", dict) or {})
    device = p.device()
    if device is not None:
        attrs["virtual_device"] = device
    types = p.all("type_params", TypeVar)
    return Function(p.all("params", Var), p.maybe("body", Expr), p.maybe("ret_type", Type), types, attrs)


def _call(p: _Parts) -> Call:
    op, stated = p.get("op", Expr), p.maybe("attrs", MetaNode, dict)
    attrs: AnyValue = None
    if isinstance(op, Op) and op.attrs is not None:
        schema = op.schema
        values = stated.values(schema) if isinstance(stated, MetaNode) else stated or {}
        # a missing object is an attribute that was not given
        values = {k: v for k, v in values.items() if v is not None or k not in schema or schema[k].optional}
        try:
            attrs = make_attrs(op.attrs, values)
        except AttrError as e:
            raise Damaged(f"{e.name} of {op.name} {e}") from None
    elif isinstance(stated, MetaNode) and not isinstance(op, Op):
        attrs = RawAttrs(stated.type_key, stated.values({}))
    elif isinstance(stated, dict):
        attrs = RawAttrs("DictAttrs", stated)
    return Call(op, p.all("args", Expr), attrs, () if p.checked() else p.all("type_args", Type))


def _module(p: _Parts) -> IRModule:
    attrs = p.maybe("attrs", dict)
    return IRModule(p.map("functions", GlobalVar, Function), p.map("type_definitions", GlobalTypeVar, TypeData), attrs)


#: Nodes by type key: the attributes that are nodes, and what makes the value of them.
_NODES: dict[str, tuple[tuple[str, ...], Callable[[_Parts], AnyValue]]] = {
    "relay.Id": (("name_hint",), _Parts.name),
    "relay.Var": (
        ("vid", "type_annotation", "virtual_device_"),
        lambda p: Var(p.name("vid"), p.maybe("type_annotation", Type), virtual_device=p.device()),
    ),
    "relay.Function": (("params", "body", "ret_type", "type_params", "attrs", "virtual_device_"), _function),
    "relay.Call": (("op", "args", "attrs", "type_args"), _call),
    "relay.Tuple": (("fields",), lambda p: Tuple(p.all("fields", Expr))),
    "relay.TupleGetItem": (("tuple_value",), lambda p: TupleGetItem(p.get("tuple_value", Expr), p.integer("index"))),
    "relay.Let": (("var", "value", "body"), lambda p: Let(p.get("var", Var), p.get("value", Expr), p.get("body", Expr))),
    "relay.If": (
        ("cond", "true_branch", "false_branch"),
        lambda p: If(p.get("cond", Expr), p.get("true_branch", Expr), p.get("false_branch", Expr)),
    ),
    "relay.RefCreate": (("value",), lambda p: RefCreate(p.get("value", Expr))),
    "relay.RefRead": (("ref",), lambda p: RefRead(p.get("ref", Expr))),
    "relay.RefWrite": (("ref", "value"), lambda p: RefWrite(p.get("ref", Expr), p.get("value", Expr))),
    "relay.Match": (
        ("data", "clauses"),
        lambda p: Match(p.get("data", Expr), p.all("clauses", Clause), bool(p.integer("complete"))),
    ),
    "relay.Clause": (("lhs", "rhs"), lambda p: Clause(p.get("lhs", Pattern), p.get("rhs", Expr))),
    "relay.PatternWildcard": ((), lambda p: PatternWildcard()),
    "relay.PatternVar": (("var",), lambda p: PatternVar(p.get("var", Var))),
    "relay.PatternConstructor": (
        ("constructor", "patterns"),
        lambda p: PatternConstructor(p.get("constructor", Constructor), p.all("patterns", Pattern)),
    ),
    "relay.PatternTuple": (("patterns",), lambda p: PatternTuple(p.all("patterns", Pattern))),
    "relay.Constructor": (
        ("name_hint", "inputs", "belong_to"),
        lambda p: Constructor(p.name(), p.all("inputs", Type), p.get("belong_to", GlobalTypeVar), p.integer("tag")),
    ),
    "relay.TypeData": (
        ("header", "type_vars", "constructors"),
        lambda p: _type_data(p.get("header", GlobalTypeVar), p.all("type_vars", TypeVar), p.all("constructors", Constructor)),
    ),
    "FuncType": (
        ("arg_types", "ret_type", "type_params"),
        lambda p: FuncType(p.all("arg_types", Type), p.maybe("ret_type", Type), p.all("type_params", TypeVar)),
    ),
    "relay.RefType": (("value",), lambda p: RefType(p.get("value", Type))),
    "TypeCall": (("func", "args"), lambda p: TypeCall(p.get("func", Type), p.all("args", Type))),
    "IRModule": (("functions", "type_definitions", "attrs"), _module),
}


def _type_data(header: GlobalTypeVar, type_vars: list[TypeVar], constructors: list[Constructor]) -> TypeData:
    return TypeData(header, type_vars, constructors, extern=not constructors)


#: The names that stood in place in TVM 0.6, by type key.
_NAMES = {
    "relay.Id": "name_hint",
    "relay.GlobalVar": "name_hint",
    "GlobalVar": "name_hint",
    "relay.Constructor": "name_hint",
    "TypeVar": "name_hint",
    "GlobalTypeVar": "name_hint",
    "Variable": "name",
    "SizeVar": "name",
}


def _of_0_6(nodes: list[AnyValue]) -> list[AnyValue]:
    """The nodes of TVM 0.6 with names as nodes of their own, as they are today."""
    renamed = list(nodes)

    def named(node: dict[str, AnyValue], attribute: str, name: AnyValue) -> dict[str, AnyValue]:
        renamed.append({"type_key": "runtime.String", "repr_str": str(name)})
        return {**node, "attrs": {**node["attrs"], attribute: str(len(renamed) - 1)}}

    for number, node in enumerate(nodes):
        attrs = node.get("attrs") if isinstance(node, dict) else None
        key = node.get("type_key") if isinstance(node, dict) else None
        if not isinstance(attrs, dict):
            continue
        if key in ("relay.TypeVar", "relay.GlobalTypeVar"):
            variable = str(attrs.get("var"))
            behind = nodes[int(variable)] if variable.isdecimal() and int(variable) < len(nodes) else None
            if isinstance(behind, dict) and isinstance(behind.get("attrs"), dict):
                renamed[number] = named(node, "name_hint", behind["attrs"].get("name"))
        elif key in _NAMES and _NAMES[key] in attrs:
            renamed[number] = named(node, _NAMES[key], attrs[_NAMES[key]])
    return renamed


class _ProgramDocument(Document):
    """A document whose nodes are parts of a program, too."""

    __slots__ = ()
    keys: ClassVar[tuple[type, ...]] = (*Document.keys, Expr, Type)

    def __init__(self, nodes: list[AnyValue], blobs: list[AnyValue], version: str = "") -> None:
        super().__init__(_of_0_6(nodes) if version.startswith("0.6") else nodes, blobs)

    def result(self, root: AnyValue) -> AnyValue:
        return root

    def _needs(self, node: dict[str, AnyValue]) -> list[int]:
        row = _NODES.get(node.get("type_key", ""))
        if row is None:
            return super()._needs(node)
        attrs = self._attrs(node)
        return [self.number(attrs[name]) for name in row[0] if name in attrs]

    def _measure(self, number: int, node: dict[str, AnyValue]) -> None:
        """Parts of a program are shared in memory, too, and may nest as deep as they like."""
        if node.get("type_key") in _NODES:
            self._extents[number] = 0, 1
        else:
            super()._measure(number, node)

    def _make(self, number: int, node: dict[str, AnyValue]) -> AnyValue:
        key = node.get("type_key", "")
        if key == "Op":
            name = str(node.get("repr_str", node.get("global_key", "")))
            op = find(name)
            if op is None:
                raise Damaged(f"there is no operator {name}")
            return op
        row = _NODES.get(key)
        if row is None:
            return super()._make(number, node)
        attrs = self._attrs(node)
        return row[1](_Parts(f"node {number}, a {key},", attrs, {name: self._at(attrs, name) for name in row[0]}))


def load_json(text: str) -> AnyValue:
    """What `save_json` or TVM wrote: a module, an expression, a type, or numbers, strings, arrays, lists and maps of them.

    A node of a class that is not here is a `MetaNode`. Raises `RelayError` (R0010) for a damaged text, and for a program
    with operators or functions that are not Relay's.
    """
    if not isinstance(text, str):
        raise TypeError(f"a program's JSON is a text, not a value of type {type(text).__name__}")
    return decoded(text, _ProgramDocument, "the program's JSON")


__all__ = ["load_json"]
