"""Which format a model file has, found from its contents, and the importer of each format."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from relaylang.frontends.common.files import need_package
from relaylang.frontends.common.imported import Imported
from relaylang.frontends.contents import (
    artifact_at,
    is_caffe,
    is_coreml,
    is_darknet,
    is_graph,
    is_keras,
    is_mlir,
    is_onnx,
    is_paddle,
    is_saved_model,
    is_symbol,
    is_tflite,
    is_torch,
)
from relaylang.frontends.options import DEFAULTS, Options
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


#: Every format, in the order of the tests.
FORMATS = (
    Format("mxnet", "relaylang.frontends.mxnet:import_mxnet", is_symbol),
    Format("tflite", "relaylang.frontends.tflite:import_tflite", is_tflite, ("flatbuffers",)),
    Format("darknet", "relaylang.frontends.darknet:import_darknet", is_darknet),
    Format("keras", "relaylang.frontends.keras:import_keras", is_keras, ("h5py",)),
    Format("pytorch", "relaylang.frontends.torch:import_pytorch", is_torch),
    Format("paddle", "relaylang.frontends.paddle:import_paddle", is_paddle, ("google.protobuf",)),
    Format("onnx", "relaylang.frontends.onnx:import_onnx", is_onnx),
    Format("coreml", "relaylang.frontends.coreml:import_coreml", is_coreml, ("google.protobuf",)),
    Format("caffe", "relaylang.frontends.caffe:import_caffe", is_caffe, ("google.protobuf",)),
    Format(
        "tensorflow",
        "relaylang.frontends.tensorflow:import_tensorflow",
        lambda data: is_saved_model(data) or is_graph(data),
        ("google.protobuf",),
    ),
    Format("stablehlo", "relaylang.frontends.stablehlo:import_stablehlo", lambda data: is_mlir(data) or artifact_at(data) >= 0),
)


def format_of(data: bytes) -> Format | None:
    """The format of a file's contents; None for text and for anything unknown."""
    return next((f for f in FORMATS if f.recognise(data)), None)


def import_bytes(data: bytes, name: str, options: Options = DEFAULTS) -> Imported | None:
    """A program from a model file's contents; None where they are of no known format. Raises `RelayError`."""
    known = format_of(data)
    if known is None:
        return None
    module, function = known.importer.split(":")
    for package in known.packages:
        need_package(package, known.name, f"importing {known.name}")
    imported: Imported = getattr(import_module(module), function)(data, options, name)
    return imported


def import_file(path: str, options: Options = DEFAULTS) -> Imported | None:
    """A program from a model file; None where it is of no known format. Raises `RelayError`."""
    return import_bytes(read_bytes(path), path, options)


#: Suffixes of other formats, with the way to one that is read.
_ROUTES = {
    ".pth": "weights alone: build the network, load them, and save `torch.export.export(net, inputs)`",
    ".pt": "weights alone: build the network, load them, and save `torch.export.export(net, inputs)`",
    ".safetensors": "weights alone: `--params` of relay run and relay compile takes them",
    ".caffemodel": "Caffe: relay import takes the .prototxt, and finds the .caffemodel beside it",
    ".mlpackage": "Core ML: the Manifest.json of a package names its model; this one names none that is there",
    ".mlmodelc": "Core ML: it is compiled; relay import takes the .mlpackage or .mlmodel that it was made from",
    ".pdiparams": "PaddlePaddle: relay import takes the .pdmodel or .json, and finds the .pdiparams beside it",
    ".pdparams": "PaddlePaddle: weights alone: build the network, load them, and save it by paddle.jit.save",
    ".weights": "Darknet: relay import takes the .cfg, and finds the .weights beside it",
    ".params": "MXNet: relay import takes NAME-symbol.json, and finds NAME-0000.params beside it",
    ".mlirbc": "MLIR's bytecode of another dialect: write the program with StableHLO",
    ".xml": "OpenVINO: save the network from its framework as ONNX",
}


def route(path: str) -> list[str]:
    """How a network of another format gets in, as notes: by its file's suffix."""
    note = _ROUTES.get(os.path.splitext(path)[1].lower())
    return [note] if note is not None else []


__all__ = ["FORMATS", "Format", "format_of", "import_bytes", "import_file", "route"]
