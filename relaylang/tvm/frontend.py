"""TVM's importers: `relay.frontend.from_onnx`, `from_tflite` and `from_pytorch`, with its signatures and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Imported, Options
from relaylang.frontends.onnx import import_onnx
from relaylang.frontends.tflite import import_tflite
from relaylang.ir import ANY, IRModule
from relaylang.ir.types import Dim

#: What TVM's importers return.
Result = tuple[IRModule, dict[str, np.ndarray]]


def _shapes(shape: Mapping[str, Sequence[Any]] | None) -> dict[str, tuple[Dim, ...]]:
    """Shapes by name; anything but a number, such as `relay.Any()`, is an unknown extent."""
    return {n: tuple([int(d) if isinstance(d, (int, np.integer)) else ANY for d in s]) for n, s in (shape or {}).items()}


def _result(imported: Imported) -> Result:
    return imported.module, imported.params


def from_onnx(
    model: Any,
    shape: Mapping[str, Sequence[Any]] | None = None,
    dtype: str | Mapping[str, str] = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
    convert_config: Mapping[str, Any] | None = None,
    export_node_renamed_model_path: str | None = None,
) -> Result:
    """An ONNX model (a ModelProto, its bytes, or a path) as a module and its parameters.

    `shape` gives shapes of inputs by name; `dtype` their element types, where it is a mapping. With `freeze_params`,
    weights are constants and the parameters are empty. `opset` replaces the version that the model states. TVM's
    `convert_config` and `export_node_renamed_model_path` have no effect here: names of layers are kept as they are.
    Raises `RelayError`.
    """
    if opset is not None and hasattr(model, "opset_import"):
        copied = type(model)()
        copied.CopyFrom(model)
        for entry in copied.opset_import:
            if entry.domain in ("", "ai.onnx"):
                entry.version = opset
        model = copied
    shapes = _shapes(shape)
    return _result(import_onnx(model, Options(shapes, dict(dtype) if isinstance(dtype, Mapping) else {}, freeze=freeze_params)))


def from_tflite(
    model: Any,
    shape_dict: Mapping[str, Sequence[Any]] | None = None,
    dtype_dict: Mapping[str, str] | str | None = None,
    op_converter: Any = None,
) -> Result:
    """A TFLite model (a `Model` of the package tflite, the bytes of a file, or a path) as a module and its parameters.

    Weights are parameters, as in TVM. `shape_dict` and `dtype_dict` give shapes and element types of inputs by name.
    TVM's `op_converter` has no effect. Raises `RelayError`.
    """
    dtypes = dict(dtype_dict) if isinstance(dtype_dict, Mapping) else {}
    return _result(import_tflite(model, Options(_shapes(shape_dict), dtypes, freeze=False)))


__all__ = ["from_onnx", "from_tflite"]
