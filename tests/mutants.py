"""Changed files of every format, each read in a process of its own: `python -m tests.mutants --count 2000 onnx tflite`.

A file is read, or refused with a diagnostic, within 1 GB of memory and 20 s of processor time. Failures are an
exception, a fault of relaylang (R0900), a crash, and a process without end. `--keep` names the folder for such files.
The last line of a format states the most memory that a file took beyond the modules of its reader.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import io
import json
import os
import pickle
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Random = random.Random
FRONTENDS = Path(__file__).parent / "frontends"
#: What a process may use, and how long somebody waits for one that uses no processor.
MEMORY, SECONDS, PATIENCE = 1 << 30, 20, 300
BYTES = [0, 1, 2, 3, 4, 7, 8, 16, 32, 64, 127, 128, 255]
WORDS = [0, 1, 1 << 20, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
NUMBERS = [0, 1, -1, 2, 3, -2, 7, 100, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63)]
VALUES: list[Any] = [*NUMBERS, None, True, 1.5, "", "x", "float32", [], {}, [[]], [0] * 100]


# ---- changes


def changed_bytes(data: bytes, rng: Random) -> bytes:
    """A few bytes changed, dropped, repeated or put in, or the end cut off."""
    b = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        if not b:
            break
        at, kind = rng.randrange(len(b)), rng.randrange(7)
        if kind < 2:
            b[at] = rng.choice([*BYTES, rng.randrange(256)])
        elif kind == 2:
            del b[at : at + rng.choice([1, 2, 4, 8, 64])]
        elif kind == 3:
            b[at:at] = rng.randbytes(rng.choice([1, 4, 8]))
        elif kind == 4:
            other, count = rng.randrange(len(b)), rng.choice([1, 2, 4, 8, 16])
            b[at : at + count] = b[other : other + count]
        elif kind == 5:
            b[at : at + 4] = rng.choice(WORDS).to_bytes(4, "little")
        else:
            del b[at:]
    return bytes(b)


def changed_fields(data: bytes, rng: Random) -> bytes:
    """An ONNX model with other attributes, operators, operands, shapes, element types, constants or versions."""
    import onnx

    model = onnx.ModelProto.FromString(data)
    graph = model.graph
    names = [*[i.name for i in graph.input], *[o for n in graph.node for o in n.output], ""]
    for _ in range(rng.choice([1, 1, 2, 3])):
        node = rng.choice(graph.node)
        attribute = rng.choice(node.attribute) if node.attribute else None
        weight = rng.choice(graph.initializer) if graph.initializer else None
        given = rng.choice(graph.input) if graph.input else None
        value = given.type.tensor_type if given is not None else None
        kind = rng.randrange(18)
        if kind == 0 and attribute is not None:
            attribute.i = rng.choice(NUMBERS)
        elif kind == 1 and attribute is not None and attribute.ints:
            attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(NUMBERS)
        elif kind == 2 and attribute is not None:
            node.attribute.remove(attribute)
        elif kind == 3 and attribute is not None:
            attribute.type = rng.randrange(15)
        elif kind == 4:
            node.op_type = rng.choice(["Conv", "Gemm", "Reshape", "Slice", "Loop", "If", "LSTM", "Resize", "Pad", "TopK", "Concat"])
        elif kind == 5 and node.input:
            node.input[rng.randrange(len(node.input))] = rng.choice(names)
        elif kind == 6:
            node.input.append(rng.choice(names))
        elif kind == 7 and weight is not None and weight.dims:
            weight.dims[rng.randrange(len(weight.dims))] = rng.choice(NUMBERS)
        elif kind == 8 and weight is not None:
            weight.data_type = rng.randrange(28)
        elif kind == 9 and value is not None and value.shape.dim:
            rng.choice(value.shape.dim).dim_value = rng.choice(NUMBERS)
        elif kind == 10 and value is not None:
            value.shape.dim.add().dim_value = rng.choice([0, 1, 2, 3])
        elif kind == 11 and model.opset_import:
            model.opset_import[0].version = rng.choice([1, 5, 7, 9, 11, 13, 18, 21, 25, 99])
        elif kind == 12 and node.input:
            del node.input[rng.randrange(len(node.input))]
        elif kind == 13 and attribute is not None and attribute.type == 3:
            attribute.s = rng.choice([b"", b"x", b"\xff", b"SAME"])
        elif kind == 14 and attribute is not None and attribute.ints:
            del attribute.ints[rng.randrange(len(attribute.ints))]
        elif kind == 15 and value is not None and value.shape.dim:
            del value.shape.dim[rng.randrange(len(value.shape.dim))]
        elif kind == 16 and value is not None:
            value.elem_type = rng.choice([1, 2, 3, 6, 7, 9, 10, 11, 13, 16])
        elif kind == 17 and given is not None and value is not None and value.elem_type in (1, 6, 7, 9, 11):
            shape = [max(d.dim_value, 0) for d in value.shape.dim]
            if np.prod(shape, dtype=object) < 1000:  # an operand becomes a constant
                dtype = onnx.helper.tensor_dtype_to_np_dtype(value.elem_type)
                array = np.full(shape, rng.choice(NUMBERS[:8])).astype(dtype)
                graph.initializer.append(onnx.numpy_helper.from_array(array, given.name))
    return bytes(model.SerializeToString())


def changed_text(data: bytes, rng: Random) -> bytes:
    """A JSON text with one value changed or gone; changed bytes where it is none."""
    try:
        tree = json.loads(data)
    except ValueError:
        return changed_bytes(data, rng)
    places, stack = [], [tree]
    while stack:
        at = stack.pop()
        if isinstance(at, (dict, list)):
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            places += [(at, key) for key in keys]
            stack += [at[key] for key in keys]
    for holder, key in rng.sample(places, min(len(places), rng.choice([1, 1, 2]))):
        if not (key in holder if isinstance(holder, dict) else key < len(holder)):
            continue
        if rng.random() < 0.3:
            del holder[key]
        else:
            others = [h[k] for h, k in places if (k in h if isinstance(h, dict) else k < len(h))]
            holder[key] = copy.deepcopy(rng.choice(VALUES if rng.random() < 0.6 else others))
    return json.dumps(tree).encode()


def changed_archive(data: bytes, rng: Random) -> bytes:
    """A zip archive with a changed member, mostly a small one: a text, a graph, a pickle, an array."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    if not members:
        return changed_bytes(data, rng)
    small = [name for name in members if name.endswith((".json", ".py", ".pkl"))]
    picked = rng.choice(small if small and rng.random() < 0.9 else list(members))
    change = changed_text if picked.endswith(".json") and rng.random() < 0.7 else changed_bytes
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for name, content in members.items():
            archive.writestr(name, change(content, rng) if name == picked else content)
    return out.getvalue()


def changed_program(data: bytes, rng: Random) -> bytes:
    """A compiled program with a changed part, and digests that fit."""
    from relaylang.runtime.artifact import read_sealed, write_sealed

    parts = read_sealed(data, "the seed")
    picked = rng.choice([name for name in parts if not name.endswith((".so", ".c"))])
    arrays = picked.endswith(".npz") and rng.random() < 0.7
    change = changed_text if picked.endswith(".json") else changed_archive if arrays else changed_bytes
    return write_sealed({**parts, picked: change(parts[picked], rng)})


def changed_whole(data: bytes, rng: Random) -> bytes:
    """A `.h5` file of Keras with another configuration."""
    import h5py

    out = io.BytesIO(data)
    try:
        with h5py.File(out, "r+") as file:
            text = file.attrs["model_config"]
            changed = changed_text(text if isinstance(text, bytes) else text.encode(), rng)
            del file.attrs["model_config"]
            file.attrs["model_config"] = np.bytes_(changed)
    except (OSError, ValueError, KeyError):  # HDF5 does not hold every text.
        return changed_bytes(data, rng)
    return out.getvalue()


def changed_mlir(data: bytes, rng: Random) -> bytes:
    """A program of MLIR with other numbers, values, operations, element types or lines."""
    text = data.decode("utf-8", "replace")
    kinds = (r"-?\d+", r"%[\w#]+", r"stablehlo\.\w+", r"(?<=x)[a-z]+\d+(?=>)|[a-z]+\d+(?=>)", r"\b[A-Za-z_]+\b", r"[\[\]{}()<>,:=]")
    for _ in range(rng.choice([1, 1, 2, 3])):
        kind = rng.randrange(len(kinds) + 2)
        if kind >= len(kinds):
            lines = text.splitlines(keepends=True)
            at = rng.randrange(len(lines)) if lines else 0
            text = "".join([*lines[:at], *([rng.choice(lines)] if lines and kind == len(kinds) else []), *lines[at + 1 :]])
            continue
        found = list(re.finditer(kinds[kind], text))
        if not found:
            continue
        at, other = rng.choice(found), rng.choice(found)[0]
        new = str(rng.choice([*NUMBERS, 4, 5, 8, 64])) if kind == 0 and rng.random() < 0.7 else other
        text = text[: at.start()] + new + text[at.end() :]
    return text.encode()


#: The mark between a `.cfg` file and its weights in a seed.
SPLIT = b"\0SPLIT\0"


def changed_sections(data: bytes, rng: Random) -> bytes:
    """A `.cfg` file with other numbers, words, entries or sections."""
    cfg, split, weights = data.partition(SPLIT)
    lines = cfg.decode("utf-8", "replace").splitlines()
    for _ in range(rng.choice([1, 1, 2, 3])):
        at = rng.randrange(len(lines))
        kind = rng.randrange(5)
        key, equals, _ = lines[at].partition("=")
        if kind < 2 and equals:
            words = ["linear", "mish", "x", "", "1.5", "-1,-2", "1e9", "nan"]
            lines[at] = f"{key}={rng.choice([*NUMBERS, *words])}"
        elif kind == 2 and len(lines) > 1:
            del lines[at]
        elif kind == 3:
            lines.insert(at, rng.choice(lines))
        else:
            section = rng.choice(["route", "shortcut", "maxpool", "yolo", "region", "connected", "upsample", "reorg", "softmax", "x"])
            lines.insert(at, f"[{section}]")
    return "\n".join(lines).encode() + split + weights


def changed_net(data: bytes, rng: Random) -> bytes:
    """A network of Caffe with other numbers, words, layers or names."""
    text, split, weights = data.partition(SPLIT)
    lines = text.decode("utf-8", "replace").splitlines()
    for _ in range(rng.choice([1, 1, 2, 3])):
        at = rng.randrange(len(lines))
        words, kind = re.findall(r'"[^"]*"|[\w.-]+|[{}:]', lines[at]), rng.randrange(6)
        places = [i for i, word in enumerate(words) if (word[0] == '"' if kind == 1 else word.lstrip("-")[:1].isdigit())]
        if kind < 4 and places:
            others = [word for line in lines for word in re.findall(r'"[^"]*"', line)]
            words[rng.choice(places)] = rng.choice(others) if kind == 1 else str(rng.choice([*NUMBERS, 4, 5, 9, 0.5, "nan", "1e30"]))
            lines[at] = " ".join(words)
        elif kind == 4 and len(lines) > 1:
            del lines[at]
        elif words:
            del words[rng.randrange(len(words))]
            lines[at] = " ".join(words) if rng.random() < 0.5 else rng.choice(lines)
    return "\n".join(lines).encode() + split + weights


# ---- seeds


def onnx_seeds() -> list[bytes]:
    """Every model among ONNX's own node tests."""
    import onnx

    from tests.frontends.onnx.backend_cases import cases

    found = [case for name, case in sorted(cases().items()) if name.startswith("node/")]
    models = [case.model or onnx.load(str(Path(case.model_dir) / "model.onnx")) for case in found]
    return [m.SerializeToString() for m in models if m.graph.node]


def tflite_seeds() -> list[bytes]:
    """The files of the tests' folder, and a file for each operator of the tests' tables."""
    from tests.frontends.tflite.files import file
    from tests.frontends.tflite.test_operators import FLOATS

    made = [file(tensors, ops, ["x"], ["y"]) for tensors, ops, *_ in FLOATS.values()]
    return [path.read_bytes() for path in sorted((FRONTENDS / "tflite" / "data").glob("*.tflite"))] + made


def mxnet_seeds() -> list[bytes]:
    """The symbols of the tests' folder, and a symbol for each of the tests' layers."""
    from tests.frontends.mxnet.cases import cases

    made = [case.symbol().encode() for case in cases().values()]
    return [path.read_bytes() for path in sorted((FRONTENDS / "mxnet" / "data").glob("*.json"))] * 20 + made


def mxnet_params_seeds() -> list[bytes]:
    """The parameter files of the tests' folder."""
    return [path.read_bytes() for path in sorted((FRONTENDS / "mxnet" / "data").glob("*.params"))]


def keras_seeds() -> list[bytes]:
    """Networks of Keras in archives."""
    from tests.frontends.keras.recorded import files

    return [data for name, data in files() if name.endswith(".keras")]


def h5_seeds() -> list[bytes]:
    """Networks of Keras 2 and 3 in HDF5 files."""
    from tests.frontends.keras.recorded import files

    return [data for name, data in files() if name.endswith(".h5")]


def stablehlo_seeds() -> list[bytes]:
    """Programs of JAX as text."""
    from tests.frontends.stablehlo.recorded import members

    return [data for name, data in members().items() if name.endswith(".mlir") and len(data) < 20_000]


def artifact_seeds() -> list[bytes]:
    """Portable artifacts of JAX's programs."""
    from tests.frontends.stablehlo.recorded import members

    return [data for name, data in members().items() if name.endswith(".mlirbc")]


def caffe_seeds() -> list[bytes]:
    """Networks and layers of the tests, with weights."""
    from tests.frontends.caffe.networks import NETWORKS, caffemodel, prototxt
    from tests.frontends.caffe.test_layers import NETS

    nets = [*[made() for made in NETWORKS.values()], *[net for net, _ in NETS.values()]]
    return [prototxt(net).encode() + SPLIT + caffemodel(net) for net in nets]


def caffemodel_seeds() -> list[bytes]:
    """Files of weights with their whole networks."""
    from relaylang.frontends.caffe.reader import message
    from relaylang.frontends.caffe.schema import caffe
    from tests.frontends.caffe.networks import NETWORKS, prototxt, weights
    from tests.frontends.caffe.test_layers import NETS

    made = []
    for net in [*[made() for made in NETWORKS.values()], *[net for net, _ in NETS.values()]]:
        whole = caffe()["NetParameter"].FromString(message(prototxt(net).encode(), "seed", "it").SerializeToString())
        for layer in whole.layer:
            for array in weights(net).get(layer.name, []):
                blob = layer.blobs.add()
                blob.shape.dim.extend(array.shape)
                blob.data.append(array.tobytes())
        made.append(whole.SerializeToString())
    return made


def darknet_seeds() -> list[bytes]:
    """Networks of every layer, with weights."""
    from tests.frontends.darknet.networks import NETWORKS, weights_for

    return [cfg.encode() + SPLIT + weights_for(cfg) for cfg in NETWORKS.values()]


def _torch_files() -> list[bytes]:
    import torch

    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)
            self.lstm = torch.nn.LSTM(4, 5, batch_first=True)

        def forward(self, x: Any) -> Any:
            y = torch.relu(self.norm(self.conv(x))).flatten(2).transpose(1, 2)
            return self.lstm(y)[0].softmax(-1)

    net, x = Net().eval(), torch.zeros(1, 3, 6, 6)
    files = [io.BytesIO() for _ in range(3)]
    torch.export.save(torch.export.export(net, (x,)), files[0])
    torch.jit.save(torch.jit.trace(net, x), files[1])
    torch.jit.save(torch.jit.script(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())), files[2])
    return [f.getvalue() for f in files]


def pt2_seeds() -> list[bytes]:
    """A program of torch.export."""
    return _torch_files()[:1]


def torchscript_seeds() -> list[bytes]:
    """A traced and a scripted module."""
    return _torch_files()[1:]


def _arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    kinds = ("float32", "int8", "bool", "float16", "int64")
    return {f"w{i}": (rng.normal(size=(i + 1, 3)) * 9).astype(kind) for i, kind in enumerate(kinds)}


def _saved(suffix: str) -> list[bytes]:
    from relaylang.runtime.params import save_params

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"p{suffix}"
        save_params(path, _arrays())
        return [path.read_bytes()]


def npz_seeds() -> list[bytes]:
    """Arrays as relaylang writes them, and compressed by numpy."""
    out = io.BytesIO()
    np.savez_compressed(out, **_arrays())
    return [*_saved(".npz"), out.getvalue()]


_PROGRAM = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) -> Tensor[(2, 4), float32] {
  if (greater(sum(%x), 0f)) { nn.relu(nn.dense(%x, %w, units=4)) } else { nn.dense(%x, %w, units=4) }
}
"""


def vm_seeds() -> list[bytes]:
    """A program of the VM, whose tensors the interpreter computes."""
    from relaylang.backends.vm import compile_vm
    from relaylang.syntax import parse

    made = compile_vm(parse(_PROGRAM).module, "c", {"w": np.ones((4, 3), "float32")}, native=False)
    with tempfile.TemporaryDirectory() as folder:
        made.save(Path(folder) / "p.vm")
        return [(Path(folder) / "p.vm").read_bytes()]


def tar_seeds() -> list[bytes]:
    """A program for the CPU."""
    from relaylang.backends import compile_module
    from relaylang.syntax import parse

    text = _PROGRAM.replace("if (greater(sum(%x), 0f)) { nn.relu(nn.dense(%x, %w, units=4)) } else { ", "").replace(" }\n}", "\n}")
    made = compile_module(parse(text).module, "c -num-threads=1 -cflags=-O0", {"w": np.ones((4, 3), "float32")})
    with tempfile.TemporaryDirectory() as folder:
        made.save(Path(folder) / "p.tar")
        return [(Path(folder) / "p.tar").read_bytes()]


# ---- readers

SHAPES: list[dict[str, tuple[int, ...]]] = [{}, {"x": (1, 3, 6, 6)}, {"input": (1, 3)}]


def import_network(data: bytes, rng: Random) -> None:
    from relaylang.frontends.formats import import_bytes
    from relaylang.frontends.options import Options

    torch = data[:2] == b"PK"
    import_bytes(data, "mutant", Options(rng.choice(SHAPES) if torch else {}))


def import_symbol(data: bytes, rng: Random) -> None:
    """A symbol with the shapes of its first case or network, by its own names."""
    from relaylang.frontends.mxnet import import_mxnet
    from relaylang.frontends.options import Options

    shapes = {"data": (2, 3, 8, 8)} if b'"data"' in data else {f"x{i}": rng.choice(_SYMBOLS) for i in range(data.count(b'"null"'))}
    import_mxnet(data, Options({name: shape for name, shape in shapes.items() if f'"{name}"'.encode() in data}), "mutant")


#: Shapes of which operands take some.
_SYMBOLS = ((2, 3), (2, 3, 4), (2, 3, 8, 8), (4,))


def read_weights(data: bytes, rng: Random) -> None:
    from relaylang.frontends.mxnet.params import read_params
    from relaylang.runtime.budget import Budget

    read_params(data, "mutant.params", Budget("mutant.params", len(data)))


def import_cfg(data: bytes, rng: Random) -> None:
    from relaylang.frontends.darknet import import_darknet

    cfg, _, weights = data.partition(SPLIT)
    import_darknet(cfg, file="mutant.cfg", weights=weights)


def import_net(data: bytes, rng: Random) -> None:
    from relaylang.frontends.caffe import import_caffe

    text, _, weights = data.partition(SPLIT)
    import_caffe(text, file="mutant.prototxt", weights_of=weights)


def import_model(data: bytes, rng: Random) -> None:
    from relaylang.frontends.caffe import import_caffe

    import_caffe(data, file="mutant.caffemodel")


def read_arrays(suffix: str) -> Callable[[bytes, Random], None]:
    def read(data: bytes, rng: Random) -> None:
        from relaylang.runtime.params import load_params

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"p{suffix}"
            path.write_bytes(data)
            load_params(path)

    return read


def read_vm(data: bytes, rng: Random) -> None:
    from relaylang.runtime.vm.file import unpacked

    unpacked(data, "mutant.vm")


def read_tar(data: bytes, rng: Random) -> None:
    """The parts of a program; its code does not run."""
    from relaylang.runtime.packed import unpacked

    unpacked(data, "mutant.tar")


def tensorflow_kind(name: str) -> tuple[Any, Any, Any]:
    """The seeds, changes and reader of TensorFlow's graphs ("graph") or SavedModels ("saved")."""

    def of(part: str) -> Any:
        return lambda *args: getattr(importlib.import_module("tests.frontends.tensorflow.mutants"), part)(*args)

    changed = of(f"changed_{name}")
    return of(f"{name}_seeds"), [changed_bytes if name == "graph" else changed_archive, changed, changed], of(f"read_{name}")


def coreml_kind(name: str) -> tuple[Any, Any, Any]:
    """The seeds, changes and reader of Core ML's networks ("network") or packages of programs ("package")."""

    def of(part: str) -> Any:
        return lambda *args: getattr(importlib.import_module("tests.frontends.coreml.mutants"), part)(*args)

    changed = of("changed")
    return of(f"{name}_seeds"), [changed_bytes, changed, changed, changed], of("read")


def paddle_kind(form: str) -> tuple[Any, Any, Any]:
    """The seeds, changes and reader of PaddlePaddle's messages ("message") or JSON ("json")."""

    def of(part: str) -> Any:
        return lambda *args: getattr(importlib.import_module("tests.frontends.paddle.mutants"), part)(*args)

    changed = of(f"changed_{form}")
    seeds = of("pdmodel_seeds" if form == "message" else "pir_seeds")
    return seeds, [changed_bytes, changed, changed, changed], of("read_program")


@dataclass(frozen=True)
class Kind:
    """A format: files that are right, ways to change them, and the reader."""

    seeds: Callable[[], list[bytes]]
    changes: Sequence[Callable[[bytes, Random], bytes]]
    read: Callable[[bytes, Random], None]


KINDS = {
    "onnx": Kind(onnx_seeds, [changed_bytes, changed_fields, changed_fields], import_network),
    "keras": Kind(keras_seeds, [changed_bytes, changed_archive, changed_archive, changed_archive], import_network),
    "h5": Kind(h5_seeds, [changed_bytes, changed_whole, changed_whole], import_network),
    "caffe": Kind(caffe_seeds, [changed_bytes, changed_net, changed_net, changed_net], import_net),
    "caffemodel": Kind(caffemodel_seeds, [changed_bytes], import_model),
    "coreml": Kind(*coreml_kind("network")),
    "mlprogram": Kind(*coreml_kind("package")),
    "darknet": Kind(darknet_seeds, [changed_bytes, changed_sections, changed_sections], import_cfg),
    "stablehlo": Kind(stablehlo_seeds, [changed_bytes, changed_mlir, changed_mlir, changed_mlir], import_network),
    "mlirbc": Kind(artifact_seeds, [changed_bytes], import_network),
    "tflite": Kind(tflite_seeds, [changed_bytes], import_network),
    "mxnet": Kind(mxnet_seeds, [changed_bytes, changed_text, changed_text], import_symbol),
    "mxnet_params": Kind(mxnet_params_seeds, [changed_bytes], read_weights),
    "pt2": Kind(pt2_seeds, [changed_bytes, changed_archive, changed_archive, changed_archive], import_network),
    "torchscript": Kind(torchscript_seeds, [changed_bytes, changed_archive, changed_archive, changed_archive], import_network),
    "pdmodel": Kind(*paddle_kind("message")),
    "pir": Kind(*paddle_kind("json")),
    "graphdef": Kind(*tensorflow_kind("graph")),
    "savedmodel": Kind(*tensorflow_kind("saved")),
    "npz": Kind(npz_seeds, [changed_bytes, changed_archive], read_arrays(".npz")),
    "params": Kind(lambda: _saved(".params"), [changed_bytes], read_arrays(".params")),
    "safetensors": Kind(lambda: _saved(".safetensors"), [changed_bytes], read_arrays(".safetensors")),
    "vm": Kind(vm_seeds, [changed_bytes, changed_program, changed_program], read_vm),
    "tar": Kind(tar_seeds, [changed_bytes, changed_program, changed_program], read_tar),
}


def mutant(kind: str, number: int, seeds: Sequence[bytes]) -> tuple[bytes, Random]:
    """A changed file by its number, and the generator that chooses the reader's options."""
    rng = Random(f"{kind} {number}")
    return rng.choice(KINDS[kind].changes)(rng.choice(seeds), rng), rng


def verdict(kind: str, data: bytes, rng: Random) -> tuple[str, str]:
    """ "read", "refused" or what went wrong, and the codes or the last words. Reads the file in this process."""
    from relaylang.diagnostics import RelayError

    try:
        KINDS[kind].read(data, rng)
    except RelayError as refused:
        ours = [d.title for d in refused.diagnostics if d.code == "R0900"]
        return ("R0900", ours[0]) if ours else ("refused", " ".join(sorted({d.code for d in refused.diagnostics})))
    except MemoryError:
        return "refused", "R0901"  # as the command line says it
    except Exception as wrong:
        place = traceback.extract_tb(wrong.__traceback__)[-1]
        return type(wrong).__name__, f"{wrong} ({os.path.basename(place.filename)}:{place.lineno})"
    return "read", ""


# ---- processes


def apart(work: Callable[[], Any], limited: bool = False) -> Any:
    """A function's result, from a child process. Raises `ChildProcessError` where it dies or does not end."""
    front, back = os.pipe()
    child = os.fork()
    if not child:
        os.close(front)
        try:
            if limited:
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
                resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
            with os.fdopen(back, "wb") as stream:
                pickle.dump(work(), stream)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(back)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(PATIENCE if limited else 0)
    with os.fdopen(front, "rb") as stream:
        content = stream.read()
    _, status = os.waitpid(child, 0)
    signal.alarm(0)
    if status:
        ended = os.waitstatus_to_exitcode(status)
        raise ChildProcessError(f"signal {signal.Signals(-ended).name}" if ended < 0 else f"exit status {ended}")
    return pickle.loads(content)


def _resident() -> int:
    """The memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def measured(kind: str, data: bytes, rng: Random) -> tuple[str, str, int]:
    """As `verdict`, with the bytes of memory that the reader took, its own processes included."""
    before = _resident()
    found, said = verdict(kind, data, rng)
    own, others = (resource.getrusage(who).ru_maxrss << 10 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return found, said, max(own - before, others)


def failures(kind: str, numbers: Sequence[int], keep: str = "") -> Iterator[tuple[int, str, str, int]]:
    """The number, the verdict, the words and the memory of every mutant. Each is read by a process of its own, with limits."""
    seeds = apart(KINDS[kind].seeds)  # torch and compilers stay out of the readers' memory
    verdict(kind, seeds[0], Random(0))  # the reader's modules are imported once, before the processes part
    for number in numbers:
        data, rng = mutant(kind, number, seeds)
        try:
            found, said, taken = apart(lambda data=data, rng=rng: measured(kind, data, rng), limited=True)
        except ChildProcessError as died:
            found, said, taken = "died", str(died), 0
        if found not in ("read", "refused") and keep:
            os.makedirs(keep, exist_ok=True)
            Path(keep, f"{kind}-{number}").write_bytes(data)
        yield number, found, said, taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], help="formats (default: all)")
    parser.add_argument("--count", type=int, default=2000, help="files of each format (2000)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first file (0)")
    parser.add_argument("--keep", default="", metavar="FOLDER", help="put files that fail there")
    args = parser.parse_args()
    failed = 0
    for kind in args.kinds or KINDS:
        start, count, wrong, most = time.monotonic(), Counter[str](), Counter[str](), 0
        for number, found, said, taken in failures(kind, range(args.first, args.first + args.count), args.keep):
            count[found] += 1
            most = max(most, taken)
            if found not in ("read", "refused"):
                wrong[f"{found}: {said[-160:]}"] += 1
                if wrong[f"{found}: {said[-160:]}"] == 1:
                    print(f"{kind} {number}: {found}: {said}", flush=True)
        failed += wrong.total()
        verdicts = ", ".join(f"{n} {name}" for name, n in count.most_common())
        print(f"{kind}: {args.count} files, {verdicts}; at most {most >> 20} MB; {time.monotonic() - start:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
