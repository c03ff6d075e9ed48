"""The nodes of a metadata section without a class here, and which of their attributes are numbers of nodes.

In the section's JSON every attribute is a string. Where TVM keeps an object the string is the number of that object's
node, elsewhere it is the value itself. Only the declaration of the node's type tells one from the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING
from typing import Any as AnyValue

from relaylang.diagnostics import RelayError, error
from relaylang.ir.expr import Constant, Expr
from relaylang.ir.types import Type
from relaylang.ops import OPS
from relaylang.ops.record import AttrField

if TYPE_CHECKING:
    from relaylang.syntax.metadata import Document


class Damaged(Exception):
    """A section is damaged; the message says how."""


#: Operators of two extents.
COMPUTED = frozenset(f"tir.{name}" for name in ("Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max"))
_EXPR = ("virtual_device_", "span", "_checked_type_")

#: Attributes that are objects, in TVM's order, by the types that no operator's attributes have.
OBJECTS: dict[str, tuple[str, ...]] = {
    "DictAttrs": ("__dict__",),
    "EnvFunc": (),
    "Executor": ("name", "attrs"),
    "FuncType": ("arg_types", "ret_type", "type_params", "type_constraints", "span"),
    "GlobalTypeVar": ("name_hint",),
    "GlobalVar": ("name_hint",),
    "Op": (),
    "PrimType": (),
    "Runtime": ("name", "attrs"),
    "SourceName": (),
    "Span": ("source_name",),
    "Target": ("kind", "tag", "keys", "attrs", "features", "host"),
    "TargetKind": ("name", "default_keys"),
    "TupleType": ("fields",),
    "TypeVar": ("name_hint",),
    "VirtualDevice": ("target", "memory_scope"),
    "ext.attrs.CMSISNNCompilerConfigNode": ("mcpu", "mattr", "debug_last_error"),
    "ext.attrs.EthosUCompilerConfigNode": (
        "accelerator_config",
        "enable_cascader",
        "enable_striping",
        "disable_copying_constants",
        "dev_force_block_config",
        "dev_max_open_plans",
        "dev_max_closed_plans",
        "dev_select_proposal_idx",
        "dev_disable_pareto_plans",
        "dev_disable_pareto_proposals",
        "dev_disable_block_culling",
        "dev_cascader_logging",
    ),
    "ext.attrs.EthosnCompilerConfigNode": ("variant", "sram_size", "tops", "ple_ratio", "debug_dir"),
    "relay.Call": ("op", "args", "attrs", "type_args", *_EXPR),
    "relay.GlobalTypeVar": ("name_hint",),
    "relay.GlobalVar": ("name_hint",),
    "relay.Id": ("name_hint",),
    "relay.RefType": ("value", "span"),
    "relay.TensorType": ("shape",),
    "relay.Tuple": ("fields", *_EXPR),
    "relay.TupleGetItem": ("tuple_value", *_EXPR),
    "relay.TupleType": ("fields",),
    "relay.TypeVar": ("name_hint",),
    "relay.Var": ("vid", "type_annotation", *_EXPR),
    **dict.fromkeys(sorted(COMPUTED), ("a", "b")),
    "tir.Cast": ("value",),
    "tir.SizeVar": ("name",),
    "tir.Var": ("name",),
}


@lru_cache(maxsize=1)
def _of_operators() -> dict[str, tuple[str, ...]]:
    """The same of the operators' attributes, by type key; two classes of one key have their attributes together."""
    fields: dict[str, dict[str, None]] = {}
    for op in OPS.values():
        if op.attrs is not None:
            names = fields.setdefault(op.attrs.type_key, {})  # type: ignore[attr-defined]
            names.update((field.name, None) for field in op.schema.values() if field.is_object)
    return {key: tuple(names) for key, names in fields.items()}


def objects_of(type_key: str) -> tuple[str, ...] | None:
    """The attributes of a node type that hold objects, in TVM's order. None for an unknown type."""
    known = OBJECTS.get(type_key)
    return known if known is not None else _of_operators().get(type_key)


class MetaNode:
    """A node without a class here: its type key, and its attributes as the section's strings.

    `parts` holds the values of the attributes that are objects, for a known node type. For an unknown type it is None.
    Then `document` is the node's section, for the attributes may be numbers of nodes there. The printer writes that section
    again with the node. `other` has the node's fields beside the attributes (`repr_str`, `data`).
    """

    __slots__ = ("attrs", "document", "other", "parts", "type_key")
    __match_args__ = ("type_key", "attrs")

    def __init__(
        self,
        type_key: str,
        attrs: Mapping[str, str] | None = None,
        document: Document | None = None,
        parts: Mapping[str, AnyValue] | None = None,
        other: Mapping[str, AnyValue] | None = None,
    ) -> None:
        self.type_key = type_key
        self.attrs = dict(attrs or {})
        self.document = document
        self.parts = None if parts is None else dict(parts)
        self.other = dict(other or {})

    def values(self, schema: Mapping[str, AttrField]) -> dict[str, AnyValue]:
        """The attributes as values. `schema` says which of those that stand in place are numbers.

        Raises `RelayError` (R0010) where a node that one refers to is damaged.
        """
        if self.parts is None:
            try:
                return {name: self._guess(name, text) for name, text in self.attrs.items()}
            except Damaged as e:
                raise RelayError(error("R0010", f"the metadata section cannot be read: {e}")) from None
        return {
            name: self.parts[name] if name in self.parts else _in_place(schema.get(name), text) for name, text in self.attrs.items()
        }

    def _guess(self, name: str, text: str) -> AnyValue:
        """The value of an undeclared attribute: a string where it may be the number of a string's node."""
        if self.document is None or not text.isdecimal() or len(text) > 9 or "dtype" in name:
            return text
        number = int(text)
        known = number < len(self.document.nodes)
        if known and self.document.node(number).get("type_key") == "runtime.String":
            return self.document.value(number)
        return number

    def content(self) -> dict[str, AnyValue]:
        """The node's content, for comparing. In an unknown type's node, attributes that may be node numbers do not count."""
        if self.parts is None:
            plain = {name: "" if text.isdecimal() else text for name, text in self.attrs.items()}
            return {**plain, "": self.other.get("repr_str")}
        return {**self.attrs, **self.parts, "": self.other.get("repr_str")}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MetaNode):
            return NotImplemented
        return self.type_key == other.type_key and self.content() == other.content()

    def __hash__(self) -> int:
        return hash((self.type_key, len(self.attrs)))

    def __repr__(self) -> str:
        return f"MetaNode({self.type_key!r})"


def device_node(kind: int = -1, number: int = -1, target: MetaNode | None = None, scope: str = "") -> MetaNode:
    """A VirtualDevice: the number of its kind in DLPack, its own number, its target, its memory. -1 is unknown."""
    plain = {"device_type_int": str(kind), "memory_scope": "0", "target": "0", "virtual_device_id": str(number)}
    return MetaNode("VirtualDevice", plain, parts={"memory_scope": scope, "target": target})


def target_node(
    kind: str, device: int, keys: list[str], options: Mapping[str, AnyValue], tag: str = "", host: MetaNode | None = None
) -> MetaNode:
    """A Target: the name of its kind, the number of the device that it compiles for, its keys and options."""
    attrs = {"default_device_type": str(device), "default_keys": "0", "name": "0"}
    of = MetaNode("TargetKind", attrs, None, {"name": kind, "default_keys": keys})
    parts = {"kind": of, "tag": tag, "keys": keys, "attrs": dict(options), "features": {}, "host": host}
    return MetaNode("Target", dict.fromkeys(parts, "0"), None, parts)


def _in_place(field: AttrField | None, text: str) -> AnyValue:
    """The value of an attribute that is not a node's number. A text that does not fit the field stays a string."""
    kind = "" if field is None else field.kind
    try:
        if kind == "float":
            return float(text)
        if kind in ("int", "bool"):
            return int(text)
    except ValueError:
        pass
    return text


#: The kind of a node that a call may take as its attributes.
ATTRIBUTES = "attributes"


def kind_of_meta(value: AnyValue) -> str:
    """The kind of a value of a metadata section, as a word for messages."""
    if isinstance(value, MetaNode):
        other = "attrs." not in value.type_key and (value.type_key in OBJECTS or value.type_key.startswith("relay."))
        return f"a node of the class {value.type_key[:60]}" if other else ATTRIBUTES
    kinds: list[tuple[AnyValue, str]] = [
        (bool, "a truth value"),
        (int, "a whole number"),
        (float, "a number"),
        (str, "a string"),
        (Mapping, "a map"),
        ((list, tuple), "a list"),
        (Type, "a type"),
        (Constant, "a tensor"),
        (Expr, "an expression"),
    ]
    return next((word for kind, word in kinds if isinstance(value, kind)), "a value")
