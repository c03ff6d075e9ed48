"""One layer as a conversion sees it."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.caffe.reader import Layer, shape, values
from relaylang.frontends.caffe.schema import caffe
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.report import Malformed
from relaylang.ir import ANY, Expr, is_static

if TYPE_CHECKING:
    from relaylang.frontends.caffe.importer import Importer

#: Extents of a file are at most so large.
LARGEST = 1 << 31


class Node:
    """A layer: its parameters, its weights and the builder `b`. `results` is the number of results that the network uses."""

    def __init__(self, importer: Importer, layer: Layer) -> None:
        self.importer = importer
        self.layer = layer
        self.results = len(layer.tops)
        self.b: Builder = importer.builder

    def params(self, name: str) -> Any:
        """A message of parameters; with its default values where the layer has none."""
        message = getattr(self.layer.message, name, None)
        return message if message is not None else getattr(caffe()["LayerParameter"](), name)

    def axis(self, params: Any, x: Expr, name: str = "axis", old: str = "") -> int:
        """An axis of an operand, counted from its end where it is negative. `old` is the field of old files."""
        if old and params.HasField(old):
            name = old
        return int(getattr(params, name) % self.b.rank(x))

    def float(self, params: Any, name: str) -> builtins.float:
        """A number. Raises `Malformed` where it is infinite or no number."""
        value = float(getattr(params, name))
        if not math.isfinite(value):
            raise Malformed(f"its {name} is {value}")
        return value

    def floats(self, params: Any, name: str) -> list[builtins.float]:
        """Numbers of a field that may be repeated. Raises `Malformed` where one is infinite or no number."""
        numbers = [float(v) for v in getattr(params, name)]
        if not all(map(math.isfinite, numbers)):
            raise Malformed(f"its {name} has numbers that are not finite")
        return numbers

    def spatial(self, params: Any, name: str, count: int, default: int | None, short: str = "") -> list[int]:
        """A number for each of `count` spatial axes. Fields such as `kernel_h` and `kernel_w` come first for two axes."""
        ends = [f"{short or name}_{side}" for side in "hw"]
        if count == 2 and any(params.HasField(end) for end in ends):
            extents = [int(getattr(params, end)) for end in ends]
        else:
            extents = [int(v) for v in getattr(params, name)]
            extents = extents * count if len(extents) == 1 else extents
            if not extents and default is not None:
                extents = [default] * count
        if len(extents) != count or any(v >= LARGEST for v in extents):
            raise Malformed(f"its {name} is {extents[:8]}, and its operand has {count} spatial axes")
        return extents

    @property
    def blobs(self) -> Sequence[Any]:
        """The layer's weights: those of the file of weights under its name, else its own."""
        return self.importer.weights.get(self.layer.name) or self.layer.blobs

    def array(self, index: int, extents: Sequence[int] | None, what: str) -> np.ndarray:
        """A weight by its number, in a shape that has as many elements; None keeps that of the file. Raises `Malformed`."""
        blobs = self.blobs
        if index >= len(blobs):
            raise Malformed(f"its {what} is not in {self.importer.source}, which has {len(blobs)} weights for it")
        array = values(blobs[index], f"its {what}")
        wanted = shape(blobs[index]) if extents is None else extents
        if any(d < 0 for d in wanted) or math.prod(wanted) != array.size:
            raise Malformed(f"its {what} has {array.size} elements in {self.importer.source}, and the shape {tuple(wanted)}")
        return array.reshape(tuple(wanted))

    def count(self, index: int, what: str) -> int:
        """How many elements a weight has."""
        return self.array(index, None, what).size if index < len(self.blobs) else self.array(index, (), what).size

    def weight(self, array: np.ndarray, what: str) -> Expr:
        """A weight as a constant or a parameter, named after the layer: `conv1_weight`."""
        return self.b.weight(f"{self.layer.name or self.layer.type}_{what}", np.ascontiguousarray(array))

    def reshape(self, x: Expr, extents: Sequence[Any]) -> Expr:
        """An operand in another shape. An extent that is not known stays at its place, or is the only one."""
        have = self.b.shape(x)
        if all(isinstance(d, int) for d in extents):
            return self.b.reshape_exactly(x, [int(d) for d in extents])
        open_ = [i for i, d in enumerate(extents) if not is_static(d)]
        if all(i < len(have) and not is_static(have[i]) for i in open_) and 0 not in extents:
            return self.b.reshape(x, [d if is_static(d) else 0 for d in extents])
        if len(open_) == 1 and 0 not in extents:
            return self.b.reshape(x, [d if is_static(d) else -1 for d in extents])
        raise Unsupported("it needs known extents; --shape gives them")


def product(extents: Sequence[Any]) -> Any:
    """The product of extents; `ANY` where one is not known."""
    return math.prod(extents) if all(isinstance(d, int) for d in extents) else ANY


__all__ = ["LARGEST", "Node", "product"]
