"""TVM's importer `relay.frontend.from_paddle`, with its signature and result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.frontends.options import Options
from relaylang.frontends.paddle import import_paddle
from relaylang.ir import ANY, IRModule


def from_paddle(
    program_or_layer: Any, shape_dict: Mapping[str, Sequence[Any]] | None = None, scope: Any = None
) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A program of PaddlePaddle as a module and its parameters.

    `program_or_layer` is a Program, a TranslatedLayer, the bytes of a `.pdmodel` or `.json` file, or its path. `shape_dict`
    gives shapes of inputs by name. `scope` has the weights: a Scope, arrays by name, or the bytes or the path of a
    `.pdiparams` file. By default they are beside the file, those of a layer are its own, and those of a Program are in
    PaddlePaddle's global scope. Weights are parameters, as in TVM. Raises `RelayError`.
    """
    shapes = {n: tuple([int(d) if isinstance(d, (int, np.integer)) else ANY for d in s]) for n, s in (shape_dict or {}).items()}
    if scope is None and hasattr(program_or_layer, "global_block"):
        import paddle

        scope = paddle.static.global_scope()
    imported = import_paddle(program_or_layer, Options(shapes, freeze=False), params=scope)
    return imported.module, imported.params


__all__ = ["from_paddle"]
