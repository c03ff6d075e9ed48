"""TVM's importer `relay.frontend.from_caffe`, with its signature and result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.frontends.caffe import import_caffe
from relaylang.frontends.options import Options
from relaylang.ir import ANY, IRModule


def from_caffe(
    init_net: Any,
    predict_net: Any,
    shape_dict: Mapping[str, Sequence[Any]] | None = None,
    dtype_dict: Mapping[str, str] | None = None,
) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A network of Caffe as a module and its parameters. Caffe is not needed.

    `init_net` has the weights and `predict_net` the layers: the names of a `.caffemodel` and a `.prototxt`, their contents,
    or NetParameters of Caffe's own package. `shape_dict` and `dtype_dict` give shapes and element types of inputs by name;
    by default the shapes are those of the file. Weights are parameters, as in TVM. Raises `RelayError`.
    """
    shapes = {n: tuple([int(d) if isinstance(d, (int, np.integer)) else ANY for d in s]) for n, s in (shape_dict or {}).items()}
    imported = import_caffe(predict_net, Options(shapes, dict(dtype_dict or {}), freeze=False), weights_of=init_net)
    return imported.module, imported.params


__all__ = ["from_caffe"]
