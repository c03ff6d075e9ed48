"""TVM's importer `relay.frontend.from_keras`, with its signature and result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.frontends.keras import import_keras
from relaylang.frontends.options import Options
from relaylang.ir import ANY, IRModule

_LAYOUTS = ("NCHW", "NHWC", "NDHWC", "NWC")


def from_keras(
    model: Any, shape: Mapping[str, Sequence[Any]] | None = None, layout: str = "NCHW"
) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A model of Keras as a module and its parameters.

    `model` is the object, the bytes of a `.h5` or `.keras` file, or its path.
    With the layout "NCHW", inputs and outputs of four axes have their channels second, and so do convolutions. Other
    layouts ("NHWC", "NDHWC", "NWC") keep those of the model. `shape` gives shapes of inputs by name, in that layout.
    Raises `RelayError`.
    """
    if layout not in _LAYOUTS:
        raise RelayError(error("R0804", f"the layout is {layout!r:.40}, and from_keras takes {', '.join(_LAYOUTS)}"))
    shapes = {
        name: tuple([int(d) if isinstance(d, (int, np.integer)) else ANY for d in extents]) for name, extents in (shape or {}).items()
    }
    first = layout == "NCHW"
    imported = import_keras(model, Options(shapes, freeze=False, layout="NCHW" if first else ""), pictures_first=first)
    return imported.module, imported.params


__all__ = ["from_keras"]
