"""Files of networks for `benchmarks/importers.py`, in the formats that TVM reads by a framework: those of the tests.

RELAY_ZOO names a folder of large networks, if there is one. Its parts are:

- `mxnet`, of `scripts/mxnet_results.py --zoo`
- `tensorflow`, of `tests/frontends/tensorflow/applications.py make`
- `keras2`, networks of `keras.applications` that Keras 2 saved as `.h5` files
- `darknet`, Darknet's own `.cfg` files with random weights
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.shared import SHARED

Shapes = dict[str, Sequence[int]]
ZOO = Path(os.environ.get("RELAY_ZOO", "/nowhere"))
#: Networks of the zoo, out of 34: one or two of each kind.
CLASSIFIERS = (
    "alexnet",
    "densenet121",
    "inceptionv3",
    "mobilenet1.0",
    "mobilenetv2_1.0",
    "resnet18_v1",
    "resnet50_v2",
    "squeezenet1.1",
)
#: Small networks of Keras 2.
LAYERS = ("conv2d", "dense", "gru", "lstm", "merges", "nested", "norms", "sequential", "shared", "transposed2d")


class File(NamedTuple):
    """A network: its format, its name in the table, its file, and the shapes that the file leaves open."""

    format: str
    name: str
    path: Path
    shapes: Shapes = {}


def mxnet(folder: Path) -> Iterator[File]:
    for symbol in sorted((SHARED / "mxnet").glob("*-symbol.json")):
        with np.load(str(symbol).replace("-symbol.json", "-expected.npz")) as arrays:
            yield File("mxnet", symbol.stem.removesuffix("-symbol"), symbol, {"data": arrays["input0"].shape})
    for name in CLASSIFIERS:
        arrays_path = ZOO / "mxnet" / f"{name}.npz"
        if arrays_path.is_file():
            with np.load(arrays_path) as arrays:
                yield File("mxnet", name, arrays_path.with_name(f"{name}-symbol.json"), {"data": arrays["data"].shape})


def tensorflow(folder: Path) -> Iterator[File]:
    from tests.frontends.tensorflow.recorded import networks

    for name, network in networks(folder).items():
        yield File("tensorflow", name, network.path)
    for path in sorted((ZOO / "tensorflow").glob("*/frozen.pb")):
        yield File("tensorflow", path.parent.name, path)


def keras(folder: Path) -> Iterator[File]:
    from tests.frontends.keras.recorded import files

    known = dict(files())
    for name in LAYERS:
        path = folder / f"{name}.h5"
        path.write_bytes(known[f"{name}.2.h5"])
        yield File("keras", name, path)
    for path in sorted((ZOO / "keras2").glob("*.h5")):
        yield File("keras", path.stem, path)


def coreml(folder: Path) -> Iterator[File]:
    from tests.frontends.coreml.recorded import members

    for name, data in members().items():
        if name.endswith(".network"):
            path = folder / f"{name.removesuffix('.network')}.mlmodel"
            path.write_bytes(data)
            yield File("coreml", path.stem, path)


def paddle(folder: Path) -> Iterator[File]:
    from tests.frontends.paddle.test_networks import files, names

    for name in names("2", True):
        path = folder / f"{name}.pdmodel"
        program, weights = files("2", name)
        path.write_bytes(program)
        path.with_suffix(".pdiparams").write_bytes(weights)
        yield File("paddle", name, path)


def darknet(folder: Path) -> Iterator[File]:
    from tests.frontends.darknet.networks import NETWORKS, weights_for

    for name, cfg in NETWORKS.items():
        path = folder / f"{name}.cfg"
        path.write_text(cfg)
        path.with_suffix(".weights").write_bytes(weights_for(cfg))
        yield File("darknet", name, path)
    for path in sorted((ZOO / "darknet").glob("*.cfg")):
        yield File("darknet", path.stem, path)


def caffe(folder: Path) -> Iterator[File]:
    from tests.frontends.caffe.networks import NETWORKS, caffemodel, prototxt

    for name, make in NETWORKS.items():
        path = folder / f"{name}.prototxt"
        path.write_text(prototxt(make()))
        path.with_suffix(".caffemodel").write_bytes(caffemodel(make()))
        yield File("caffe", name, path)


FORMATS = {f.__name__: f for f in (mxnet, tensorflow, keras, coreml, paddle, darknet, caffe)}
