"""Which format a model file has, found from its contents, and the importer of each format."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from relaylang.frontends.common.files import need_package
from relaylang.frontends.common.imported import Imported
from relaylang.frontends.darknet.reader import is_darknet
from relaylang.frontends.options import DEFAULTS, Options
from relaylang.runtime.params import UNZIPPING
from relaylang.runtime.text import read_bytes


@dataclass(frozen=True)
class Format:
    """A format: its name, the function that imports it ("module:function"), and the test of a file's contents.

    The importer needs `packages` when Python loads it; the extra of the format's name installs them.
    """

    name: str
    importer: str
    recognise: Callable[[bytes], bool]
    packages: tuple[str, ...] = ()


def _is_tflite(data: bytes) -> bool:
    return data[4:8] == b"TFL3"


def _members(data: bytes) -> list[str]:
    """The names in a zip archive; [] where there is none."""
    if data[:2] != b"PK":
        return []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.namelist()
    except (*UNZIPPING, ValueError):
        return []


def _is_torch(data: bytes) -> bool:
    ends = ("/data.pkl", "/archive_format", "/constants.pkl", "serialized_exported_program.json")
    return any(name.endswith(ends) for name in _members(data)) or _is_cut(data)


def _is_cut(data: bytes) -> bool:
    """Whether the bytes begin as a zip archive of PyTorch does, and have no directory at their end."""
    ends = (b"/data.pkl", b"/version", b"/archive_format", b"/constants.pkl")
    return data[:4] == b"PK\3\4" and not _members(data) and any(e in data[: 1 << 16] for e in ends)


def _is_keras(data: bytes) -> bool:
    return data[:8] == b"\x89HDF\r\n\x1a\n" or {"config.json", "model.weights.h5"} <= set(_members(data))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128 or shift > 63:
            return value, at


#: The fields of a ModelProto and their wire types.
_ONNX = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}


def _is_onnx(data: bytes) -> bool:
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
        pass  # the file is cut short; the reader says so
    return 7 in seen


#: Every format, in the order of the tests.
FORMATS = (
    Format("tflite", "relaylang.frontends.tflite:import_tflite", _is_tflite, ("flatbuffers",)),
    Format("darknet", "relaylang.frontends.darknet:import_darknet", is_darknet),
    Format("keras", "relaylang.frontends.keras:import_keras", _is_keras, ("h5py",)),
    Format("pytorch", "relaylang.frontends.torch:import_pytorch", _is_torch),
    Format("onnx", "relaylang.frontends.onnx:import_onnx", _is_onnx),
)


def format_of(data: bytes) -> Format | None:
    """The format of a file's contents; None for text and for anything unknown."""
    return next((f for f in FORMATS if f.recognise(data)), None)


def import_bytes(data: bytes, name: str, options: Options = DEFAULTS) -> Imported | None:
    """A program from a model file's contents; None where they are of no known format. Raises `RelayError`."""
    found = format_of(data)
    if found is None:
        return None
    module, function = found.importer.split(":")
    for package in found.packages:
        need_package(package, found.name, f"importing {found.name}")
    imported: Imported = getattr(import_module(module), function)(data, options, name)
    return imported


def import_file(path: str, options: Options = DEFAULTS) -> Imported | None:
    """A program from a model file; None where it is of no known format. Raises `RelayError`."""
    return import_bytes(read_bytes(path), path, options)


_TENSORFLOW = "TensorFlow: `python -m tf2onnx.convert --{how} {path} --output net.onnx` makes an ONNX file"
#: Suffixes of other formats, with the way to one that is read.
_ROUTES = {
    ".pb": _TENSORFLOW.format(how="graphdef", path="NET.pb"),
    ".pbtxt": _TENSORFLOW.format(how="graphdef", path="NET.pb"),
    ".pth": "weights alone: build the network, load them, and save `torch.export.export(net, inputs)`",
    ".pt": "weights alone: build the network, load them, and save `torch.export.export(net, inputs)`",
    ".safetensors": "weights alone: `--params` of relay run and relay compile takes them",
    ".caffemodel": "Caffe: convert it to ONNX, with caffe2onnx", ".prototxt": "Caffe: convert it to ONNX, with caffe2onnx",
    ".mlmodel": "Core ML: save the network from its framework as ONNX",
    ".mlpackage": "Core ML: save the network from its framework as ONNX",
    ".pdmodel": "PaddlePaddle: `paddle2onnx` makes an ONNX file",
    ".weights": "Darknet: relay import takes the .cfg, and finds the .weights beside it",
    ".params": "MXNet: `mxnet.onnx.export_model` makes an ONNX file", ".xml": "OpenVINO: save the network from its framework as ONNX",
}  # fmt: skip


def route(path: str) -> list[str]:
    """How a network of another format gets in, as notes: by its file's suffix, or by what its folder holds."""
    if os.path.isdir(path):
        if os.path.exists(os.path.join(path, "saved_model.pb")):
            return [
                f"TensorFlow SavedModel: `python -m tf2onnx.convert --saved-model {path} --output net.onnx` makes an ONNX file,"
                f" `tf.lite.TFLiteConverter.from_saved_model(\"{path}\")` a .tflite file"
            ]
    found = _ROUTES.get(os.path.splitext(path)[1].lower())
    return [found] if found is not None else []


__all__ = ["FORMATS", "Format", "format_of", "import_bytes", "import_file", "route"]
