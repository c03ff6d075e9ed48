"""TVM's importer `relay.frontend.from_darknet`, with its signature and results."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError
from relaylang.frontends.common.inputs import no_model
from relaylang.frontends.darknet.importer import INPUT, import_darknet
from relaylang.frontends.options import Options
from relaylang.ir import ANY, IRModule


def files_of(net: Any) -> tuple[str, str | None]:
    """The names of a network's two files; None for weights that lie beside the `.cfg`. Raises `RelayError` (R0804)."""
    pair = (getattr(net, "cfg", None), getattr(net, "weights", None)) if not isinstance(net, (tuple, list)) else tuple(net)
    if isinstance(net, (str, os.PathLike)):
        pair = net, None
    if len(pair) == 2 and isinstance(pair[0], (str, bytes, os.PathLike)):
        return os.fsdecode(pair[0]), None if pair[1] is None else os.fsdecode(pair[1])
    wanted = "from_darknet takes the name of a .cfg file, a pair of the names of both files, or a network of load_network"
    raise RelayError(no_model(net, "network of Darknet", wanted))


def from_darknet(
    net: Any, shape: Sequence[int] | Mapping[str, Sequence[int]] | None = None, dtype: str | Mapping[str, str] = "float32"
) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A network of Darknet as a module and its parameters.

    `net` is the name of a `.cfg` file with its `.weights` beside it, or both names as a pair. It may also be a
    network of `__darknetffi__.dlopen(...).load_network`. `shape` is that of the input `data`, by default that of the file.
    The results are TVM's. That of the last layer comes first, then masks, anchors and attributes of layers with boxes.
    Raises `RelayError`.
    """
    cfg, weights = files_of(net)
    extents = shape.get(INPUT) if isinstance(shape, Mapping) else shape
    shapes = {} if extents is None else {INPUT: tuple([int(d) if isinstance(d, (int, np.integer)) else ANY for d in extents])}
    dtypes = dict(dtype) if isinstance(dtype, Mapping) else {INPUT: dtype}
    imported = import_darknet(cfg, Options(shapes, dtypes, freeze=False), weights=weights, described=True)
    return imported.module, imported.params


__all__ = ["from_darknet"]
