"""TVM's importer `relay.frontend.from_coreml`, with its signature and result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.frontends.coreml import import_coreml
from relaylang.frontends.options import Options
from relaylang.ir import ANY, IRModule


def from_coreml(model: Any, shape: Mapping[str, Sequence[Any]] | None = None) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A model of Core ML as a module and its parameters. coremltools is not needed.

    `model` is the name of a `.mlmodel` or `.mlpackage`, its contents, or a model or spec of coremltools. `shape` gives shapes
    of inputs by name; by default they are those of the file. Weights are parameters, as in TVM. Raises `RelayError`.
    """
    shapes = {n: tuple([int(d) if isinstance(d, (int, np.integer)) else ANY for d in s]) for n, s in (shape or {}).items()}
    imported = import_coreml(model, Options(shapes, freeze=False))
    return imported.module, imported.params


__all__ = ["from_coreml"]
