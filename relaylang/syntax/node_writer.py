"""Writes values as TVM's JSON: a list of nodes that refer to each other by number.

`relaylang.syntax.metadata` says how the JSON looks. The nodes come in the order in which TVM meets them.
"""

from __future__ import annotations

import binascii
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any as AnyValue
from typing import ClassVar, NamedTuple

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.ir.expr import Constant, GlobalVar, RawAttrs
from relaylang.ir.types import ANY, ComputedDim, SymbolicDim, TensorType, Type, TypeVar
from relaylang.ops.record import Attributes
from relaylang.syntax.metadata_nodes import OBJECTS, MetaNode, objects_of
from relaylang.syntax.tensorblob import BlobError, write_blob

#: The version that the JSON names as its writer: TVM's last one that changed what a text means.
VERSION = "0.16.dev0"

#: The place of a value that may be anywhere.
ANYWHERE = MetaNode("VirtualDevice", {"device_type_int": "-1", "virtual_device_id": "-1"}, None, {"target": None, "memory_scope": ""})


class Record(NamedTuple):
    """A node before its numbers are known.

    `texts` are the attributes that stand in place, `parts` the values of those that are nodes, in TVM's order. `data` are
    the elements of a list or map, `other` the fields beside the attributes.
    """

    type_key: str
    texts: Mapping[str, str] = {}
    parts: Mapping[str, AnyValue] = {}
    data: Sequence[AnyValue] = ()
    other: Mapping[str, AnyValue] = {}


def _map(value: Mapping[AnyValue, AnyValue]) -> Record:
    """The node of a map: keys that are all texts stand beside the values, others between them."""
    if all(isinstance(key, str) for key in value):
        return Record("Map", data=list(value.values()), other={"keys": list(value)} if value else {})
    return Record("Map", data=[part for pair in value.items() for part in pair])


class NodeWriter:
    """Nodes in the order in which they are met. `typed`: constants carry their checked types, as TVM's do."""

    #: Classes whose objects are one node however often they occur.
    shared: ClassVar[tuple[type, ...]] = (Attributes, Constant, MetaNode, RawAttrs, Type, GlobalVar)

    def __init__(self, typed: bool) -> None:
        self.typed = typed
        self.nodes: list[AnyValue] = [{"type_key": ""}]
        self.blobs: list[str] = []
        self._known: dict[int, int] = {}
        self._kept: list[AnyValue] = []  # no id is given out twice

    def number(self, root: AnyValue) -> int:
        """The number of a value's node. It and the nodes behind it are written, where they are not yet. No recursion."""
        root_number = [0]
        work: list[tuple[AnyValue, AnyValue, AnyValue]] = [(root_number, 0, root)]
        while work:
            holder, key, value = work.pop()
            number, inside = self._node(value)
            holder[key] = str(number) if isinstance(holder, dict) else number
            work.extend(reversed(inside))
        return root_number[0]

    def _node(self, value: AnyValue) -> tuple[int, list[tuple[AnyValue, AnyValue, AnyValue]]]:
        """A value's number, and the places in its node where the numbers of others belong."""
        if value is None:
            return 0, []
        shared = isinstance(value, self.shared)
        if shared and id(value) in self._known:
            return self._known[id(value)], []
        record = self.record(value)
        node: dict[str, AnyValue] = {"type_key": record.type_key, **record.other}
        attrs = dict(sorted({**record.texts, **dict.fromkeys(record.parts, "0")}.items()))
        if attrs:
            node["attrs"] = attrs
        inside: list[tuple[AnyValue, AnyValue, AnyValue]] = [(attrs, name, part) for name, part in record.parts.items()]
        if record.data:
            node["data"] = [0] * len(record.data)
            inside += [(node["data"], i, part) for i, part in enumerate(record.data)]
        self.nodes.append(node)
        if shared:
            self._known[id(value)] = len(self.nodes) - 1
            self._kept.append(value)
        return len(self.nodes) - 1, inside

    def record(self, value: AnyValue) -> Record:
        """A value's node. Raises `RelayError` (R0011) for a value that has none."""
        if value is ANY:
            return Record("tir.Any", {"dtype": "int32"}, {"span": None})
        match value:
            case Constant():
                ty = value.checked_type if self.typed and isinstance(value.checked_type, TensorType) else None
                parts = {"virtual_device_": ANYWHERE, "span": None, "_checked_type_": ty}
                return Record("relay.Constant", {"data": self._array(value.data)}, parts)
            case np.ndarray():
                return self.record(Constant(value))
            case MetaNode():
                return Record(value.type_key, value.attrs, value.parts or {}, other=value.other)
            case Attributes():
                return Record(type(value).type_key, *_split(value))  # type: ignore[attr-defined]
            case RawAttrs():
                return Record(value.type_key, *_split_raw(value))
            case TensorType():
                return Record("relay.TensorType", {"dtype": value.dtype}, {"shape": value.shape, "span": None})
            case ComputedDim():
                operands = dict(zip(OBJECTS[value.type_key], value.operands))
                return Record(value.type_key, {"dtype": value.dtype}, {**operands, "span": None})
            case TypeVar(name, "ShapeVar"):
                dtype, key = (value.dtype, value.type_key) if isinstance(value, SymbolicDim) else ("int32", "tir.Var")
                annotation = MetaNode("PrimType", {"dtype": dtype})
                return Record(key, {"dtype": dtype}, {"name": name, "type_annotation": annotation, "span": None})
            case GlobalVar(name):
                empty = dict.fromkeys(("virtual_device_", "span", "_checked_type_", "struct_info_"))
                return Record("GlobalVar", {}, {"name_hint": name, **empty})
            case str():
                return _string(value)
            case bool() | int() | float() | np.generic():
                return _number(value)
            case list() | tuple():
                return Record("Array", data=value)
            case Mapping():
                return _map(value)
        raise RelayError(error("R0011", f"a {type(value).__name__} has no form in a metadata section"))

    def _array(self, value: np.ndarray) -> str:
        """The number of a tensor."""
        self.blobs.append(blob(value))
        return str(len(self.blobs) - 1)

    def document(self, root: int) -> str:
        """The JSON."""
        return _json({"root": root, "nodes": self.nodes, "b64ndarrays": self.blobs, "attrs": {"tvm_version": VERSION}})


def blob(value: np.ndarray) -> str:
    """A tensor in base64. Raises `RelayError` (R0011)."""
    try:
        return _base64(write_blob(value))
    except BlobError as e:
        raise RelayError(error("R0011", str(e))) from None


def _string(value: str) -> Record:
    raw = value.encode("utf-8", "surrogatepass")
    if not raw:
        return Record("runtime.String")
    if all(32 <= b < 127 for b in raw) and b'"' not in raw and b"\\" not in raw:
        return Record("runtime.String", other={"repr_str": value})
    packed = struct.pack("<Q", len(raw)) + raw
    return Record("runtime.String", other={"repr_b64": _base64(packed)})


def _number(value: AnyValue) -> Record:
    floating = isinstance(value, (float, np.floating))
    dtype = value.dtype.name if isinstance(value, np.generic) else "float32" if floating else "int32"
    if isinstance(value, (bool, np.bool_)):
        dtype = "bool"
    elif isinstance(getattr(value, "dtype", None), str):
        dtype = value.dtype
    elif type(value) is int and not -(1 << 31) <= value < 1 << 31:
        dtype = "int64"
    if isinstance(value, np.float32):
        value = float(str(value))  # its own digits, as it would stand in the text
    text = f"{float(value):.17g}" if floating else str(int(value))
    return Record("FloatImm" if floating else "IntImm", {"dtype": dtype, "value": text}, {"span": None})


def _split(attrs: Attributes) -> tuple[dict[str, str], dict[str, AnyValue]]:
    """An operator's attributes as a section has them: the texts of those that stand in place, and the objects."""
    texts, parts = {}, {}
    for field in type(attrs).schema.values():  # type: ignore[attr-defined]
        value = attrs[field.name]
        if field.is_object:
            parts[field.name] = value
        elif value is None and field.kind != "str":
            title = f"attribute {field.name} of {type(attrs).type_key} has no value, which a metadata section cannot express"  # type: ignore[attr-defined]
            raise RelayError(error("R0011", title))
        else:
            texts[field.name] = _in_place(value)
    return texts, parts


def _split_raw(attrs: RawAttrs) -> tuple[dict[str, str], dict[str, AnyValue]]:
    """The same of attributes whose declaration we may not know: then numbers and element types stand in place."""
    objects = objects_of(attrs.type_key)
    texts, parts = {}, {}
    for name, value in attrs.values.items():
        plain = isinstance(value, (bool, int, float)) or "dtype" in name
        if name not in objects if objects is not None else plain:
            texts[name] = _in_place(value)
        else:
            parts[name] = value
    return texts, parts


def _in_place(value: AnyValue) -> str:
    if value is None:
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    return f"{value:.17g}" if isinstance(value, (float, np.floating)) else str(value)


def _base64(raw: bytes) -> str:
    return binascii.b2a_base64(raw, newline=False).decode("ascii")


def _json(value: AnyValue, indent: str = "") -> str:
    """JSON in the layout of TVM's writer: maps of one entry and short lists of numbers stand in one line."""
    inner = indent + "  "
    if isinstance(value, dict):
        items = [f"{json.dumps(k)}: {_json(v, inner)}" for k, v in value.items()]
        if len(items) < 2 and indent != "    ":
            return "{" + "".join(items) + "}"
        return "{\n" + ", \n".join(inner + item for item in items) + "\n" + indent + "}"
    if isinstance(value, list):
        if not value or (len(value) <= 10 and isinstance(value[0], int)):
            return "[" + ", ".join(map(str, value)) + "]"
        return "[\n" + ", \n".join(inner + _json(v, inner) for v in value) + "\n" + indent + "]"
    return json.dumps(value)
