"""Facts about a model before it is read: the main file of a folder, and the format of a file's contents.

A message is known by its first fields, a text by its first words, an archive by its members.
"""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Mapping

from relaylang.runtime.params import UNZIPPING

#: The formats that importers read.
KNOWN = "ONNX, TFLite, TensorFlow, Keras, PyTorch, StableHLO, MXNet, Core ML, PaddlePaddle, Darknet and Caffe"

#: How a graph and a SavedModel begin in protobuf's text format.
_TEXT = re.compile(rb"\s*(?:#[^\n]*\n\s*)*(?:node|library|versions|saved_model_schema_version|meta_graphs)\s*[:{]")
_SAVED_TEXT = re.compile(rb"\s*(?:#[^\n]*\n\s*)*(?:saved_model_schema_version|meta_graphs)\s*[:{]")


#: So many bytes of a field show what it is.
_LONGEST = 1 << 16


def _fields(data: bytes, most: int = 1 << 12) -> list[tuple[int, int, int, int]] | None:
    """The number, wire type, start and end of a message's first fields, as far as they go; None for no message."""
    fields: list[tuple[int, int, int, int]] = []
    at = 0
    try:
        while at < len(data) and len(fields) < most:
            tag, at = _varint(data, at)
            wire, start = tag & 7, at
            if wire == 0:
                _, at = _varint(data, at)
            elif wire == 2:
                size, start = _varint(data, at)
                at = start + size
            elif wire in (1, 5):
                at += 8 if wire == 1 else 4
            else:
                return None
            fields.append((tag >> 3, wire, start, at))
    except IndexError:
        pass
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128 or shift > 63:
            return value, at


#: The wire types of the fields of GraphDef, NodeDef, SavedModel and MetaGraphDef.
_GRAPH = {1: 2, 2: 2, 3: 0, 4: 2, 5: 2}
_NODE = {1: 2, 2: 2, 3: 2, 4: 2, 5: 2, 6: 2, 7: 2}
_SAVED, _META = {1: 0, 2: 2}, {1: 2, 2: 2, 3: 2, 4: 2, 5: 2, 6: 2, 7: 2}


def _fits(fields: list[tuple[int, int, int, int]] | None, kinds: Mapping[int, int]) -> bool:
    return bool(fields) and all(kinds.get(number) == wire for number, wire, _, _ in fields or ())


def is_saved_model(data: bytes) -> bool:
    """Whether the bytes are a SavedModel, as a message or as text."""
    if _SAVED_TEXT.match(data[: 1 << 12]):
        return True
    fields = _fields(data)
    inner = [data[start : min(end, start + _LONGEST)] for number, _, start, end in fields or () if number == 2]
    return _fits(fields, _SAVED) and bool(inner) and _fits(_fields(inner[0], 64), _META)


def is_graph(data: bytes) -> bool:
    """Whether the bytes are a GraphDef, as a message or as text."""
    if is_text(data):
        if _SAVED_TEXT.match(data[: 1 << 12]):
            return False
        return b"op:" in data or b"op :" in data
    fields = _fields(data)
    if not _fits(fields, _GRAPH):
        return False
    for number, _, start, end in fields or ():
        if number == 1:
            inner = _fields(data[start : min(end, start + _LONGEST)], 64)
            names = [bytes(data[start + a : start + z]) for n, _, a, z in inner or () if n == 2]
            return _fits(inner, _NODE) and bool(names) and re.fullmatch(rb"[A-Za-z_][\w>]*", names[0]) is not None
    return False


def is_text(data: bytes) -> bool:
    """Whether the bytes are the text of a message."""
    return _TEXT.match(data[: 1 << 12]) is not None


def is_tflite(data: bytes) -> bool:
    """Whether the bytes are a TFLite file, such as Vela reads and writes."""
    return data[4:8] == b"TFL3"


def zip_archive(data: bytes) -> zipfile.ZipFile | None:
    """The zip archive in some bytes; None where there is none, or where it is cut short."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (*UNZIPPING, ValueError):
        return None
    # The last directory of a part of an archive is that of an archive inside it.
    return archive if min((m.header_offset for m in archive.infolist()), default=0) == 0 else None


def _members(data: bytes) -> list[str]:
    """The names in a zip archive; [] where there is none."""
    archive = zip_archive(data) if data[:2] == b"PK" else None
    return archive.namelist() if archive is not None else []


def is_torch(data: bytes) -> bool:
    """Whether the bytes are a zip archive of PyTorch, or begin as one and have no directory at their end."""
    ends = ("/data.pkl", "/archive_format", "/constants.pkl", "serialized_exported_program.json")
    if members := _members(data):
        return any(name.endswith(ends) for name in members)
    return data[:4] == b"PK\3\4" and any(end.encode() in data[: 1 << 16] for end in (*ends, "/version", "/model_weights_config.json"))


def is_keras(data: bytes) -> bool:
    """Whether the bytes are an HDF5 file or an archive of Keras, or begin as one and have no directory at their end."""
    if members := _members(data):
        return {"config.json", "model.weights.h5"} <= set(members)
    cut = data[:4] == b"PK\3\4" and data[30:].startswith((b"metadata.json", b"config.json", b"model.weights.h5"))
    return cut or data[:8] == b"\x89HDF\r\n\x1a\n"


#: The fields of a ModelProto and their wire types.
_ONNX = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}


def is_onnx(data: bytes) -> bool:
    """Whether the bytes are a protobuf message with the fields of a ModelProto, as far as they go."""
    at = 0
    seen = set()
    try:
        while at < len(data):
            tag, at = _varint(data, at)
            field, wire = tag >> 3, tag & 7
            if _ONNX.get(field) != wire:
                return False
            seen.add(field)
            size, at = _varint(data, at)
            at += size if wire == 2 else 0
    except IndexError:
        pass  # the file is cut short; the reader reports it
    return 7 in seen


def is_symbol(data: bytes) -> bool:
    """Whether a file's bytes begin as the JSON of MXNet's symbols, as far as its first fields show."""
    start = data[:4096].lstrip()
    if not start.startswith(b"{"):
        return False
    return b'"nodes"' in start and b'"op"' in start and (b'"inputs"' in start or b'"name"' in start)


#: The sections that begin a network of Darknet.
_SECTIONS = (b"[net]", b"[network]")


def is_darknet(data: bytes) -> bool:
    """Whether a text begins with the section of a network of Darknet, after comments and empty lines."""
    for line in data[: 1 << 14].splitlines():
        line = b"".join(line.split())
        if line and line[:1] not in (b"#", b";"):
            return line.lower() in _SECTIONS
    return False


#: How a network of Caffe begins in protobuf's text format, and how its layers do.
_CAFFE = re.compile(
    rb"\s*(?:#[^\n]*\n\s*)*(?:name|input|input_dim|force_backward|debug_info)\s*:|"
    rb"\s*(?:#[^\n]*\n\s*)*(?:layers?|input_shape|state)\s*:?\s*\{"
)
_CAFFE_LAYER = re.compile(rb"(?:^|[\s}])layers?\s*:?\s*\{")
#: The wire types of the fields of NetParameter, LayerParameter and V1LayerParameter.
_NET = {1: (2,), 2: (2,), 3: (2,), 4: (0, 2), 5: (0,), 6: (2,), 7: (0,), 8: (2,), 100: (2,)}
_LAYER = {1: (2,), 2: (2,), 3: (2,), 4: (2,), 5: (2, 5), 6: (2,), 7: (2,), 8: (2,), 9: (2,), 10: (0,), 11: (0, 2)}
_V1_LAYER = {1: (2,), 2: (2,), 3: (2,), 4: (2,), 5: (0,), 6: (2,)}


def is_caffe_text(data: bytes) -> bool:
    """Whether the bytes are a network of Caffe in protobuf's text format."""
    return _CAFFE.match(data[: 1 << 14]) is not None and _CAFFE_LAYER.search(data) is not None


def is_caffe(data: bytes) -> bool:
    """Whether the bytes are a network of Caffe, as a message or as text. Its first layer tells a message."""
    if is_caffe_text(data):
        return True
    fields = _fields(data, 64)
    if not fields or any(wire not in _NET.get(number, ()) for number, wire, _, _ in fields):
        return False
    first = next((field for field in fields if field[0] in (2, 100)), None)
    return first is not None and _is_layer(data, *first)


def _is_layer(data: bytes, number: int, wire: int, start: int, end: int) -> bool:
    """Whether a field of a network, with the number 2 or 100, holds a layer of Caffe."""
    known = _V1_LAYER if number == 2 else _LAYER
    inner = _fields(data[start : min(end, start + _LONGEST)], 64) or []
    if not inner or any(wire not in known.get(n, (0, 2)) or (n < 12 and n not in known) for n, wire, _, _ in inner):
        return False
    if number == 100:
        text = next((bytes(data[start + a : start + z]) for n, _, a, z in inner if n == 2), b"")
        return re.fullmatch(rb"[A-Za-z][\w.]*", text) is not None
    return any(n == 5 for n, *_ in inner) or _is_first(data, [f for f in inner if f[0] == 1], start)


def _is_first(data: bytes, fields: list[tuple[int, int, int, int]], start: int) -> bool:
    """Whether a field holds a layer of Caffe's first form: its name and its type begin it."""
    for _, _, at, end in fields:
        inner = _fields(data[start + at : start + min(end, at + _LONGEST)], 8) or []
        words = {n: bytes(data[start + at + a : start + at + z]) for n, wire, a, z in inner if wire == 2}
        if re.fullmatch(rb"[a-z][a-z0-9_]*", words.get(2, b"")):
            return True
    return False


#: The numbers of a Core ML model's kinds: pipelines, other models, neural networks and programs.
_COREML = range(200, 3001)


def is_coreml(data: bytes) -> bool:
    """Whether the bytes are a model of Core ML, or an archive of a package: a version, a description, and a model."""
    if data[:2] == b"PK":
        names = _members(data)
        return any(n.split("/")[-1] == "Manifest.json" for n in names) and any(n.endswith(".mlmodel") for n in names)
    fields = _fields(data, 8) or []
    if [f[:2] for f in fields[:2]] != [(1, 0), (2, 2)] or not 0 < _varint(data, fields[0][2])[0] < 256:
        return False
    return any(number in _COREML and wire == 2 for number, wire, _, _ in fields)


#: The wire types of the fields of ProgramDesc and BlockDesc.
_PROGRAM, _BLOCK = {1: 2, 2: 2, 3: 2, 4: 2, 5: 2}, {1: 0, 2: 0, 3: 2, 4: 2, 5: 0}


def is_pir(data: bytes) -> bool:
    """Whether the bytes begin as the JSON of PaddlePaddle's programs."""
    start = data[:1024].lstrip()
    return start.startswith(b"{") and b'"base_code"' in start and b'"pir"' in start


def is_paddle(data: bytes) -> bool:
    """Whether the bytes are a program of PaddlePaddle, as JSON or as a message. Its first block tells a message."""
    if is_pir(data):
        return True
    fields = _fields(data, 64)
    if not fields or not _fits(fields, _PROGRAM) or fields[0][0] != 1:
        return False
    inner = _fields(data[fields[0][2] : min(fields[0][3], fields[0][2] + _LONGEST)], 64) or []
    return [f[:2] for f in inner[:2]] == [(1, 0), (2, 0)] and _fits(inner, _BLOCK)


#: How a program of MLIR begins, after comments and aliases.
_MLIR = re.compile(
    rb"\s*(?:(?://[^\n]*|[#!][\w.]+ = [^\n]*)\n\s*)*"
    rb'(?:module\s*[@{]|module attributes|builtin\.module|"builtin\.module"|func\.func|"func\.func"|vhlo\.func|"vhlo\.func)'
)
#: A portable artifact begins so; what jax.export serialises has one inside.
BYTECODE = b"ML\xefR"
_PRODUCER = b"StableHLO_v"


def artifact_at(data: bytes) -> int:
    """Where a portable artifact of StableHLO begins in some bytes; -1 where there is none."""
    at = data.find(BYTECODE)
    while at > 0 and data[at + 5 : at + 5 + len(_PRODUCER)] != _PRODUCER:
        at = data.find(BYTECODE, at + 1)
    return at


def is_mlir(data: bytes) -> bool:
    """Whether a text begins as MLIR's do."""
    return _MLIR.match(data[: 1 << 16]) is not None


#: The file of a model's folder that an importer reads; the others are beside it.
_MAIN = ("saved_model.pb", "saved_model.pbtxt", "inference.json", "inference.pdmodel", "__model__")


def main_file(path: str) -> str:
    """The main file of a model that is a folder; the path itself for anything else."""
    if not os.path.isdir(path):
        return path
    names = [*_MAIN, *_package(path)]
    return next((inner for name in names if os.path.isfile(inner := os.path.join(path, name))), path)


def _package(path: str) -> list[str]:
    """The model of a package of Core ML inside of its folder; [] where the folder is none."""
    try:
        with open(os.path.join(path, "Manifest.json"), "rb") as stream:
            name = root_model(stream.read(1 << 24))
    except OSError:
        return []
    return [os.path.join("Data", name)] if name else []


def root_model(manifest: bytes) -> str:
    """The path of a package's model in its folder Data, as Manifest.json states it; "" where it states none."""
    try:
        entries = json.loads(manifest)
        name = entries["itemInfoEntries"][entries["rootModelIdentifier"]]["path"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    inside = isinstance(name, str) and not os.path.isabs(name) and ".." not in name.replace("\\", "/").split("/")
    return name if inside and "\0" not in name else ""


__all__ = [
    "BYTECODE",
    "KNOWN",
    "artifact_at",
    "is_caffe",
    "is_caffe_text",
    "is_coreml",
    "is_darknet",
    "is_graph",
    "is_keras",
    "is_mlir",
    "is_onnx",
    "is_paddle",
    "is_pir",
    "is_saved_model",
    "is_symbol",
    "is_text",
    "is_tflite",
    "is_torch",
    "main_file",
    "root_model",
    "zip_archive",
]
