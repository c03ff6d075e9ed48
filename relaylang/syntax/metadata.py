"""The metadata section of a text: the values without a literal, as the JSON that TVM reads and writes.

The JSON is a list of nodes that refer to each other by number. Node 0 is the null reference. `root` is the map from type
keys to lists. Every attribute is a string: a number, a text, or a node's number. The tensors stand beside the nodes in
base64 (`tensorblob`).
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any as AnyValue
from typing import ClassVar

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir.expr import Constant, GlobalVar
from relaylang.ir.types import (
    ANY,
    KINDS,
    Dim,
    GlobalTypeVar,
    IncompleteType,
    SymbolicDim,
    TensorType,
    TupleType,
    Type,
    TypeVar,
    computed_dim,
    extent,
)
from relaylang.syntax.metadata_nodes import COMPUTED, OBJECTS, Damaged, MetaNode, objects_of
from relaylang.syntax.tensorblob import BlobError, read_blob

#: The key under which a section carries its module's attributes, as a list of one map.
MODULE_KEY = "IRModule"


#: The deepest nest of lists and maps in an attribute's value, and the most values in one. Nodes may be shared, so a small
#: section can describe a value of any size.
DEEPEST_VALUE = 100
_MOST_VALUES = 10_000_000

_CONSTANT = re.compile(r"meta\[relay\.Constant\]\[([0-9]{1,7})\]")


#: Type keys of TVM 0.6 that have other names today.
_OLD_KEYS = {
    "StrMap": "Map",
    "Variable": "tir.Var",
    "SizeVar": "tir.SizeVar",
    "Cast": "tir.Cast",
    "Any": "tir.Any",
    "relay.Op": "Op",
    "relay.Module": "IRModule",
    "relay.FuncType": "FuncType",
    "relay.TypeCall": "TypeCall",
    **{key.removeprefix("tir."): key for key in COMPUTED},
}


class Document:
    """A section as it was read: its nodes, and its tensors in base64. `version` is that of the TVM that wrote it."""

    __slots__ = ("_arrays", "_extents", "_values", "blobs", "nodes")
    #: What a map may have as keys.
    keys: ClassVar[tuple[type, ...]] = (str, int, float, bool, type(None))

    def __init__(self, nodes: list[AnyValue], blobs: list[AnyValue], version: str = "") -> None:
        self.nodes = nodes
        self.blobs = blobs
        self._values: dict[int, AnyValue] = {}
        self._extents: dict[int, tuple[int, int]] = {}  # how deep a node's value nests, and how many values it holds
        self._arrays: dict[int, np.ndarray] = {}

    def result(self, root: AnyValue) -> AnyValue:
        """What the value of the root means. Raises `Damaged`."""
        if not isinstance(root, dict) or not all(isinstance(k, str) and isinstance(v, list) for k, v in root.items()):
            raise Damaged("its root is not a map from type keys to lists")
        return root

    def number(self, text: AnyValue) -> int:
        """A node's number."""
        try:
            number = int(text)
        except (TypeError, ValueError):
            raise Damaged(f"{_short(text)} is not the number of a node") from None
        if not 0 <= number < len(self.nodes):
            raise Damaged(f"it refers to node {number} of {len(self.nodes)}")
        return number

    def node(self, number: int) -> dict[str, AnyValue]:
        node = self.nodes[number]
        if not isinstance(node, dict) or not isinstance(node.get("type_key", ""), str):
            raise Damaged(f"node {number} is not a node")
        today = _OLD_KEYS.get(node.get("type_key", ""))
        return {**node, "type_key": today} if today is not None else node

    def array(self, number: AnyValue) -> np.ndarray:
        """A tensor by its number."""
        try:
            at = int(number)
            blob = self.blobs[at] if at >= 0 else None
        except (TypeError, ValueError, IndexError):
            raise Damaged(f"it refers to tensor {_short(number)} of {len(self.blobs)}") from None
        if at not in self._arrays:
            self._arrays[at] = decode_tensor(blob, f"tensor {at}")
        return self._arrays[at]

    def mentioned(self, attrs: Mapping[str, str]) -> set[int]:
        """The nodes that attributes of an unknown meaning may refer to, and all that those refer to."""
        mentioned: set[int] = set()
        stack: list[AnyValue] = [dict(attrs)]
        while stack:
            node = stack.pop()
            texts = [*node.values()] if node.get("type_key") is None else [*(node.get("attrs") or {}).values()]
            texts += node.get("data") or []
            for text in texts:
                number = int(text) if str(text).isdecimal() and len(str(text)) < 10 else 0
                if 0 < number < len(self.nodes) and number not in mentioned:
                    mentioned.add(number)
                    stack.append(self.nodes[number])
        return mentioned

    def value(self, root: int) -> AnyValue:
        """A node's value. The nodes that it refers to are made first, without recursion."""
        values = self._values
        stack = [root]
        opened: set[int] = set()
        while stack:
            number = stack[-1]
            if number in values:
                stack.pop()
                continue
            node = self.node(number)
            needs = [n for n in self._needs(node) if n not in values]
            if not needs:
                self._measure(number, node)
                values[number] = self._make(number, node)
                stack.pop()
                continue
            if number in opened:
                raise Damaged(f"node {number} contains itself")
            opened.add(number)
            stack.extend(needs)
        return values[root]

    def _measure(self, number: int, node: dict[str, AnyValue]) -> None:
        """Refuse a value that is small in the section, through shared nodes, and large in memory."""
        parts = [self._extents.get(n, (0, 1)) for n in self._needs(node)]
        depth = 1 + max([d for d, _ in parts], default=0)
        count = 1 if node.get("type_key") in COMPUTED else 1 + sum([c for _, c in parts])
        if depth > DEEPEST_VALUE:
            raise Damaged(f"the value of node {number} nests more than {DEEPEST_VALUE} deep")
        if count > max(_MOST_VALUES, 2 * len(self.nodes)):
            raise Damaged(f"the value of node {number} has more than {_MOST_VALUES} parts")
        self._extents[number] = depth, count

    def _needs(self, node: dict[str, AnyValue]) -> list[int]:
        key = node.get("type_key", "")
        if key in ("Array", "Map"):
            data = node.get("data") or []
            if not isinstance(data, list):
                raise Damaged(f"the elements of a {key} are no list")
            return [self.number(n) for n in data]
        attrs = self._attrs(node)
        return [self.number(attrs[name]) for name in objects_of(key) or () if _is_number(attrs.get(name))]

    def _attrs(self, node: dict[str, AnyValue]) -> dict[str, AnyValue]:
        attrs = node.get("attrs") or {}
        if not isinstance(attrs, dict):
            raise Damaged("a node's attributes are no map")
        return attrs

    def _at(self, attrs: dict[str, AnyValue], name: str) -> AnyValue:
        return self._values[self.number(attrs[name])] if name in attrs else None

    def _make(self, number: int, node: dict[str, AnyValue]) -> AnyValue:
        key = node.get("type_key", "")
        attrs = self._attrs(node)
        match key:
            case "":
                return None
            case "Array" | "Map":
                return self._container(number, node)
            case "runtime.String":
                return _string(node)
            case "relay.Constant":
                return Constant(self.array(attrs.get("data", "")))
            case "runtime.NDArray":
                return decode_tensor(node.get("repr_str", ""), f"the tensor in node {number}")
            case "IntImm" | "FloatImm":
                return _number(attrs, key == "FloatImm")
            case "tir.Any":
                return ANY
            case "DictAttrs":
                values = self._at(attrs, "__dict__")
                return values if isinstance(values, dict) else {}
            case "GlobalVar" | "relay.GlobalVar":
                return GlobalVar(str(self._at(attrs, "name_hint")))
            case "tir.Var" | "tir.SizeVar":
                name = self._at(attrs, "name") if _is_number(attrs.get("name")) else attrs.get("name")  # 0.6: in place
                return SymbolicDim(str(name), str(attrs.get("dtype", "int32")), key)
            case "StringImm":
                return str(attrs.get("value", ""))
            case _ if key in COMPUTED or key == "tir.Cast":
                return self._computed(number, key, attrs)
        ty = self._type(key, attrs)
        return ty if ty is not None else self._unknown(key, node, attrs)

    def _container(self, number: int, node: dict[str, AnyValue]) -> AnyValue:
        """The list or the mapping of a node. A mapping's keys stand beside its values, or between them."""
        data = [self._values[self.number(n)] for n in node.get("data") or []]
        if node["type_key"] == "Array":
            return data
        keys = node.get("keys")
        if keys is None:
            keys, data = data[::2], data[1::2]
        if not isinstance(keys, list) or len(keys) != len(data) or not all(isinstance(k, self.keys) for k in keys):
            raise Damaged(f"the map in node {number} has other keys than values")
        return dict(zip(keys, data))

    def _computed(self, number: int, key: str, attrs: dict[str, AnyValue]) -> Dim:
        operands = [self._at(attrs, name) for name in OBJECTS[key]]
        if not all(isinstance(o, (int, np.integer, TypeVar)) and not isinstance(o, bool) for o in operands):
            raise Damaged(f"node {number} computes an extent from other values")
        return computed_dim(key, [_extent(o) for o in operands], str(attrs.get("dtype", "int32")))

    def _type(self, key: str, attrs: dict[str, AnyValue]) -> Type | None:
        match key:
            case "relay.TypeVar" | "TypeVar":
                return TypeVar(str(self._at(attrs, "name_hint")), _kind(attrs))
            case "relay.GlobalTypeVar" | "GlobalTypeVar":
                return GlobalTypeVar(str(self._at(attrs, "name_hint")), _kind(attrs, "AdtHandle"))
            case "relay.TensorType":
                shape = self._at(attrs, "shape")
                fits = isinstance(shape, list) and all(d is ANY or isinstance(d, (int, np.integer, TypeVar)) for d in shape)
                return TensorType(list(map(_extent, shape)), str(attrs.get("dtype"))) if fits else IncompleteType()
            case "TupleType" | "relay.TupleType":
                fields = self._at(attrs, "fields")
                return TupleType(fields if isinstance(fields, list) else ())
            case "IncompleteType" | "relay.IncompleteType":
                return IncompleteType(_kind(attrs))
        return None

    def _unknown(self, key: str, node: dict[str, AnyValue], attrs: dict[str, AnyValue]) -> MetaNode:
        """A node that this toolchain has no value for. Of a known key, it holds the objects that it refers to."""
        texts = {str(k): str(v) for k, v in attrs.items()}
        other = {k: v for k, v in node.items() if k not in ("type_key", "attrs")}
        names = objects_of(key)
        if names is None:
            return MetaNode(key, texts, self, None, other)
        parts = {name: self._at(attrs, name) for name in names if _is_number(attrs.get(name))}
        return MetaNode(key, texts, None, parts, other)


_KINDS = {str(number): kind for kind, number in KINDS.items()}


def _is_number(text: AnyValue) -> bool:
    """Whether an attribute may be a node's number. Strings that became objects stand in place in older sections."""
    return isinstance(text, int) or (isinstance(text, str) and text.isdecimal())


def _kind(attrs: Mapping[str, AnyValue], default: str = "Type") -> str:
    """The kind of a type variable."""
    return _KINDS.get(str(attrs.get("kind")), default)


def _extent(dim: AnyValue) -> Dim:
    return extent(int(dim), dim.dtype.name) if isinstance(dim, np.integer) else dim


def _short(value: AnyValue) -> str:
    text = value if isinstance(value, str) else repr(value)
    return f"`{text if len(text) <= 40 else text[:37] + '...'}`"


def _string(node: dict[str, AnyValue]) -> str:
    if "repr_b64" in node:
        raw = _base64(node["repr_b64"], "a string")
        if len(raw) < 8 or struct.unpack_from("<Q", raw)[0] != len(raw) - 8:
            raise Damaged("a string is cut off")
        return raw[8:].decode("utf-8", "replace")
    return str(node.get("repr_str", ""))


def _base64(text: AnyValue, what: str) -> bytes:
    if not isinstance(text, str):
        raise Damaged(f"{what} is not a text in base64")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Damaged(f"{what} is not base64") from None


def decode_tensor(text: AnyValue, what: str) -> np.ndarray:
    raw = _base64(text, what)
    try:
        array, end = read_blob(raw)
    except BlobError as e:
        raise Damaged(f"{what}: {e}") from None
    if end != len(raw):
        raise Damaged(f"{what} has {len(raw) - end} bytes behind its end")
    return array


def _number(attrs: dict[str, AnyValue], floating: bool) -> AnyValue:
    """A number with its type: Python's for int32, float32 and bool, numpy's for the others."""
    dtype, text = str(attrs.get("dtype", "")), str(attrs.get("value", ""))
    try:
        value = float(text) if floating else int(text)
        if dtype in ("int32", "float32"):
            return value
        if dtype == "bool":
            return bool(value)
        scalar = np.dtype(dtype).type(value)
        if not floating and int(scalar) != value:  # numpy 1 wraps
            raise OverflowError
        return scalar
    except (ValueError, TypeError, OverflowError):
        raise Damaged(f"{_short(text)} is not a number of type {_short(dtype)}") from None


def decoded(text: str, kind: type[Document], what: str, source: SourceFile | None = None, offset: int = 0) -> AnyValue:
    """The value of the root of a document in JSON, which begins at `offset` of `source`.

    Raises `RelayError` (R0010) for a damaged document; `what` names it. Sizes that its headers claim are checked before
    anything is allocated.
    """
    at = offset + len(text) - len(text.lstrip())
    try:
        document = json.loads(text)
        if not isinstance(document, dict):
            raise Damaged("it is not a map")
        nodes, blobs, root = document.get("nodes"), document.get("b64ndarrays") or [], document.get("root", 0)
        if not isinstance(nodes, list) or not isinstance(blobs, list):
            raise Damaged("it has no list `nodes`")
        attrs = document.get("attrs")
        known = kind(nodes, blobs, str(attrs.get("tvm_version", "")) if isinstance(attrs, dict) else "")
        return known.result(known.value(known.number(root)))
    except json.JSONDecodeError as e:
        at, problem = offset + e.pos, f"it is not JSON: {e.msg[:1].lower()}{e.msg[1:]}"
    except RecursionError:
        problem = "it is nested too deeply"
    except Damaged as e:
        problem = str(e)
    except ValueError as e:
        problem = f"it is not JSON: {e}"
    span = None
    if source is not None:
        at = min(at, len(source.text))
        span = Span(SourceFile(source.name, source.text), at, at)
    raise RelayError(error("R0010", f"{what} cannot be read: {problem}", span))


def load_metadata(text: str, source: SourceFile | None = None, offset: int = 0) -> dict[str, list[AnyValue]]:
    """The values of a metadata section by type key.

    `text` is the JSON behind `#[metadata]`, which begins at `offset` of `source`. Constants become `Constant` nodes with
    read-only data. Numbers, strings, lists and maps become Python's, types become types, and unknown nodes `MetaNode`. An
    entry that was left out is None. Raises `RelayError` (R0010) for a damaged section.
    """
    sections: dict[str, list[AnyValue]] = decoded(text, Document, "the metadata section", source, offset)
    return sections


def constants_of(meta: dict[str, list[AnyValue]]) -> dict[str, np.ndarray]:
    """Take the constants out of a section's values, by their references: `meta[relay.Constant][0]`."""
    values = meta.pop("relay.Constant", [])
    return {f"meta[relay.Constant][{i}]": v.data for i, v in enumerate(values) if isinstance(v, Constant)}


def with_values(meta: Mapping[str, list[AnyValue]] | None, values: Mapping[str, Sequence[AnyValue]]) -> dict[str, list[AnyValue]]:
    """A section's values, with those that it lacks filled in from elsewhere, by type key and number."""
    filled = dict(meta or {})
    for key, others in values.items():
        own = filled.get(key, [])
        filled[key] = [other if mine is None else mine for mine, other in zip_longest(own, others)]
    return filled


def numbered_constants(constants: Mapping[str, np.ndarray]) -> dict[str, list[AnyValue]]:
    """A section's values of constants that are given by their references."""
    values: list[AnyValue] = []
    for name, array in constants.items():
        match = _CONSTANT.fullmatch(name)
        if match is not None:
            at = int(match[1])
            values += [None] * (at + 1 - len(values))
            values[at] = Constant(array)
    return {"relay.Constant": values}


def module_attributes(meta: Mapping[str, list[AnyValue]] | None) -> dict[str, AnyValue]:
    """The attributes of the module that a metadata section belongs to."""
    values = (meta or {}).get(MODULE_KEY) or [None]
    return dict(values[0]) if isinstance(values[0], dict) else {}
