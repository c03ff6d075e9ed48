"""The helpers of `tvm.relay.testing.darknet`: kinds of layers, pictures, and networks from their two files.

`__darknetffi__.dlopen(path).load_network(cfg, weights, clear)` reads the files itself, without Darknet's library.
"""

from __future__ import annotations

import importlib
import os
from enum import IntEnum
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.frontends.common.files import need_package
from relaylang.frontends.darknet.reader import Section, sections
from relaylang.runtime.text import read_bytes

LAYERTYPE = IntEnum(
    "LAYERTYPE",
    "CONVOLUTIONAL DECONVOLUTIONAL CONNECTED MAXPOOL SOFTMAX DETECTION DROPOUT CROP ROUTE COST NORMALIZATION AVGPOOL LOCAL SHORTCUT "
    "ACTIVE RNN GRU LSTM CRNN BATCHNORM NETWORK XNOR REGION YOLO REORG UPSAMPLE LOGXENT L2NORM BLANK",
    start=0,
)
ACTIVATION = IntEnum("ACTIVATION", "LOGISTIC RELU RELIE LINEAR RAMP TANH PLSE LEAKY ELU LOGGY STAIR HARDTAN LHTAN", start=0)


class Layer:
    """A layer of a network: its `type`, and the entries of its section as attributes."""

    def __init__(self, section: Section) -> None:
        self.type = LAYERTYPE.__members__.get(section.kind.upper(), LAYERTYPE.BLANK)
        self._entries = section.entries

    def __getattr__(self, name: str) -> Any:
        text = self.__dict__.get("_entries", {}).get(name)
        if text is None:
            raise AttributeError(f"the layer has no entry {name}")
        for read in (int, float):
            try:
                return read(text)
            except ValueError:
                continue
        return text


class Network:
    """A network by its two files: `w`, `h` and `c` of its input, `n` layers, and `batch`."""

    def __init__(self, cfg: str, weights: str) -> None:
        self.cfg, self.weights = cfg, weights
        parts = sections(read_bytes(cfg), cfg)
        net = Layer(parts[0])
        self.layers = [Layer(p) for p in parts[1:]]
        self.n = len(self.layers)
        self.w, self.h, self.c = (int(getattr(net, key, default)) for key, default in (("width", 0), ("height", 0), ("channels", 3)))
        self.batch = 1


class _Library:
    """What TVM's scripts call of Darknet's library."""

    @staticmethod
    def load_network(cfg: Any, weights: Any, clear: int = 0) -> Network:
        """A network by the names of its two files. Raises `RelayError` where the `.cfg` cannot be read."""
        return Network(os.fsdecode(cfg), os.fsdecode(weights))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"relaylang has no {name} of Darknet's library; load_network reads a network's files")


class _Loader:
    """In the place of the object that loads Darknet's library."""

    @staticmethod
    def dlopen(path: Any = None, flags: int = 0) -> _Library:
        """The functions of the library that are here. The file is not loaded, and may be missing."""
        return _Library()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"relaylang has no __darknetffi__.{name}: relay.frontend.from_darknet takes the names of both files")


__darknetffi__ = _Loader()


def load_image_color(test_image: str) -> np.ndarray:
    """A picture as numbers from 0 to 1, (3, height, width), with blue first. Needs the package pillow."""
    need_package("PIL", "png", "reading pictures")
    image = importlib.import_module("PIL.Image")
    try:
        with image.open(test_image) as picture:
            pixels = np.asarray(picture.convert("RGB"))
    except (OSError, ValueError):
        raise RelayError(error("R0001", f"cannot read the picture {test_image}")) from None
    return np.flip(pixels.transpose(2, 0, 1) / 255.0, 0)


def _resized(img: np.ndarray, width: int, height: int) -> np.ndarray:
    """A picture of another size; corners stay where they are."""
    for axis, size in ((2, width), (1, height)):
        have = img.shape[axis]
        at = np.arange(size) * ((have - 1) / (size - 1) if size > 1 else 0.0)
        low = np.minimum(at.astype(int), have - 1)
        share = (at - low).reshape([-1 if i == axis else 1 for i in range(3)])
        img = np.take(img, low, axis) * (1 - share) + np.take(img, np.minimum(low + 1, have - 1), axis) * share
    return img


def load_image(image: str, resize_width: int, resize_height: int) -> np.ndarray:
    """A picture of this size, (3, height, width): scaled as a whole, in the middle of grey."""
    img = load_image_color(image)
    _, height, width = img.shape
    wide = resize_width / width < resize_height / height
    new_w = resize_width if wide else width * resize_height // height
    new_h = height * resize_width // width if wide else resize_height
    canvas = np.full((3, resize_height, resize_width), 0.5)
    top, left = (resize_height - new_h) // 2, (resize_width - new_w) // 2
    canvas[:, top : top + new_h, left : left + new_w] = _resized(img, new_w, new_h)
    return canvas


__all__ = ["ACTIVATION", "LAYERTYPE", "__darknetffi__", "load_image", "load_image_color"]
