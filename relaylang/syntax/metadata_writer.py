"""Writes the metadata section of a text: the JSON that TVM reads, with TVM's own bytes where possible."""

from __future__ import annotations

import binascii
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.ir.expr import Constant, GlobalVar, RawAttrs
from relaylang.ir.types import ANY, ComputedDim, Extent, SymbolicDim, TensorType, Type, TypeVar
from relaylang.ops.record import Attributes
from relaylang.syntax.metadata import MODULE_KEY
from relaylang.syntax.metadata_nodes import OBJECTS, MetaNode, objects_of
from relaylang.syntax.tensorblob import BlobError, write_blob

#: The version that a section names as its writer: TVM's last one that changed what a text means.
VERSION = "0.16.dev0"


class _Writer:
    """Nodes in the order in which they are met. `typed`: constants carry their checked types, as TVM's do."""

    def __init__(self, typed: bool) -> None:
        self.typed = typed
        self.nodes: list[AnyValue] = [{"type_key": ""}]
        self.blobs: list[str] = []
        self.known: dict[int, int] = {}
        self.device = 0

    def adopt(self, found: Sequence[MetaNode]) -> None:
        """Begin with the nodes that unknown types may refer to, so that the numbers in them keep their meaning."""
        documents = {id(node.document): node.document for node in found if node.document is not None}
        if len(documents) > 1:
            title = "nodes of two metadata sections with unknown types cannot be written into one"
            raise RelayError(error("R0011", title))
        for document in documents.values():
            wanted = set().union(*(document.mentioned(node.attrs) for node in found if node.document is not None))
            if not wanted:
                return
            none = {"type_key": ""}
            self.nodes = [document.nodes[n] if n in wanted else none for n in range(max(wanted) + 1)]
            kept = [n.get("attrs", {}).get("data", "") for n in self.nodes if n.get("type_key") == "relay.Constant"]
            blobs = {int(n) for n in kept if str(n).isdecimal()} & set(range(len(document.blobs)))
            self.blobs = [document.blobs[n] if n in blobs else "" for n in range(max(blobs, default=-1) + 1)]

    def add(self, node: dict[str, AnyValue]) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def node(
        self, type_key: str, texts: Mapping[str, str], parts: Mapping[str, AnyValue], other: Mapping[str, AnyValue] = {}
    ) -> int:
        """A node whose attributes are texts, and the numbers of the nodes of `parts`, which come in TVM's order."""
        made: dict[str, AnyValue] = {"type_key": type_key, **other}
        number = self.add(made)
        attrs = {**texts, **{name: str(self.value(part)) for name, part in parts.items()}}
        if attrs:
            made["attrs"] = dict(sorted(attrs.items()))
        return number

    def string(self, value: str) -> int:
        raw = value.encode("utf-8", "surrogatepass")
        if not raw:
            return self.add({"type_key": "runtime.String"})
        if all(32 <= b < 127 for b in raw) and b'"' not in raw and b"\\" not in raw:
            return self.add({"type_key": "runtime.String", "repr_str": value})
        packed = struct.pack("<Q", len(raw)) + raw
        return self.add({"type_key": "runtime.String", "repr_b64": _base64(packed)})

    def number(self, value: AnyValue) -> int:
        floating = isinstance(value, (float, np.floating))
        dtype = value.dtype.name if isinstance(value, np.generic) else "float32" if floating else "int32"
        if isinstance(value, (bool, np.bool_)):
            dtype = "bool"
        elif isinstance(value, Extent):
            dtype = value.dtype
        elif type(value) is int and not -(1 << 31) <= value < 1 << 31:
            dtype = "int64"
        if isinstance(value, np.float32):
            value = float(str(value))  # its own digits, as it would stand in the text
        text = f"{float(value):.17g}" if floating else str(int(value))
        key = "FloatImm" if floating else "IntImm"
        return self.add({"type_key": key, "attrs": {"dtype": dtype, "span": "0", "value": text}})

    def array(self, value: np.ndarray) -> str:
        try:
            self.blobs.append(_base64(write_blob(value)))
        except BlobError as e:
            raise RelayError(error("R0011", str(e))) from None
        return str(len(self.blobs) - 1)

    def constant(self, value: Constant) -> int:
        attrs = {"_checked_type_": "0", "data": self.array(value.data), "span": "0", "virtual_device_": "0"}
        number = self.add({"type_key": "relay.Constant", "attrs": attrs})
        if not self.device:
            device = {"device_type_int": "-1", "memory_scope": "0", "target": "0", "virtual_device_id": "-1"}
            self.device = self.add({"type_key": "VirtualDevice", "attrs": device})
            device["memory_scope"] = str(self.string(""))
        attrs["virtual_device_"] = str(self.device)
        if self.typed and isinstance(value.checked_type, TensorType):
            attrs["_checked_type_"] = str(self.tensor_type(value.checked_type))
        return number

    def tensor_type(self, ty: TensorType) -> int:
        attrs = {"dtype": ty.dtype, "shape": "0", "span": "0"}
        number = self.add({"type_key": "relay.TensorType", "attrs": attrs})
        attrs["shape"] = str(self.value(list(ty.shape)))
        return number

    def value(self, value: AnyValue) -> int:
        """A value's node. Lists and maps nest as deep as attributes do, not with the program's size."""
        if value is None:
            return 0
        known = self.known.get(id(value)) if isinstance(value, (Attributes, Constant, MetaNode, RawAttrs, Type, GlobalVar)) else None
        if known is not None:
            return known
        if value is ANY:
            return self.add({"type_key": "tir.Any", "attrs": {"dtype": "int32", "span": "0"}})
        match value:
            case Constant():
                number = self.constant(value)
            case np.ndarray():
                number = self.constant(Constant(value))
            case MetaNode():
                number = self.node(value.type_key, value.attrs, value.parts or {}, value.other)
            case Attributes():
                number = self.node(type(value).type_key, *_split(value))  # type: ignore[attr-defined]
            case RawAttrs():
                number = self.node(value.type_key, *_split_raw(value))
            case TensorType():
                number = self.tensor_type(value)
            case ComputedDim():
                node: dict[str, AnyValue] = {"type_key": value.type_key}
                number = self.add(node)
                operands = {name: str(self.value(o)) for name, o in zip(OBJECTS[value.type_key], value.operands)}
                node["attrs"] = dict(sorted({**operands, "dtype": value.dtype, "span": "0"}.items()))
            case TypeVar(name, "ShapeVar"):
                dtype, key = (value.dtype, value.type_key) if isinstance(value, SymbolicDim) else ("int32", "tir.Var")
                attrs = {"dtype": dtype, "name": "0", "span": "0", "type_annotation": "0"}
                number = self.add({"type_key": key, "attrs": attrs})
                attrs["name"] = str(self.string(name))
                attrs["type_annotation"] = str(self.add({"type_key": "PrimType", "attrs": {"dtype": dtype}}))
            case GlobalVar(name):
                attrs = dict.fromkeys(("_checked_type_", "name_hint", "span", "struct_info_", "virtual_device_"), "0")
                number = self.add({"type_key": "GlobalVar", "attrs": attrs})
                attrs["name_hint"] = str(self.string(name))
            case str():
                return self.string(value)
            case bool() | int() | float() | np.generic():
                return self.number(value)
            case list() | tuple():
                node = {"type_key": "Array"}
                number = self.add(node)
                if value:
                    node["data"] = [self.value(v) for v in value]
            case Mapping():
                node = {"type_key": "Map"}
                number = self.add(node)
                if value:
                    node["keys"] = [str(k) for k in value]
                    node["data"] = [self.value(v) for v in value.values()]
            case _:
                raise RelayError(error("R0011", f"a {type(value).__name__} has no form in a metadata section"))
        self.known[id(value)] = number
        return number

    def module_attributes(self, values: Mapping[str, AnyValue]) -> int:
        attrs = {"__dict__": "0"}
        number = self.add({"type_key": "DictAttrs", "attrs": attrs})
        attrs["__dict__"] = str(self.value(values))
        return number


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


def _unknown(values: AnyValue) -> list[MetaNode]:
    """The nodes of unknown types among values, lists and maps."""
    found = []
    stack = [values]
    while stack:
        value = stack.pop()
        if isinstance(value, MetaNode):
            if value.parts is None:
                found.append(value)
            else:
                stack.extend(value.parts.values())
        elif isinstance(value, (list, tuple)):
            stack.extend(value)
        elif isinstance(value, Mapping):
            stack.extend(value.values())
    return found


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


def save_metadata(meta: Mapping[str, list[AnyValue]], typed: bool = False) -> str:
    """The JSON of a metadata section with these values by type key, which TVM and `load_metadata` read.

    Under `IRModule` stand maps of module attributes. `typed` writes the constants' checked types, as TVM does.
    Raises `RelayError` (R0011) for a value that has no form in it.
    """
    writer = _Writer(typed)
    writer.adopt(_unknown(list(meta.values())))
    node: dict[str, AnyValue] = {"type_key": "Map", "keys": list(meta), "data": []}
    root = writer.add(node)
    for key, values in meta.items():
        array: dict[str, AnyValue] = {"type_key": "Array"}
        node["data"].append(writer.add(array))
        write = writer.module_attributes if key == MODULE_KEY else writer.value
        data = [write(value) for value in values]
        if data:
            array["data"] = data
    attrs = {"tvm_version": VERSION}
    return _json({"root": root, "nodes": writer.nodes, "b64ndarrays": writer.blobs, "attrs": attrs})
