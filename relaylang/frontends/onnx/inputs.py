"""The inputs of a model and its sparse weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.frontends.common.files import damaged
from relaylang.frontends.common.options import Options
from relaylang.frontends.onnx.tensors import dtype_of, type_of
from relaylang.ir import TensorType, Type

if TYPE_CHECKING:
    from relaylang.frontends.onnx.importer import Importer


def input_type(value: Any, file: str, options: Options) -> Type:
    """The type of a model's input: as the options say, else as the file says, with `?` for named extents."""
    name = value.name
    shape = options.shapes.get(name)
    kind = value.type.WhichOneof("value")
    if kind is None and shape is not None:
        return TensorType(shape, options.dtypes.get(name, "float32"))
    if kind != "tensor_type":
        what = {"optional_type": "an optional", "sequence_type": "a sequence", None: "a value of no type"}.get(kind, f"a {kind}")
        notes = ["a program has tensors only; give the input a value when the model is imported"]
        raise RelayError(error("R0801", f"{file}: the input {name} is {what}", notes=notes))
    stated = type_of(value, file, f"the input {name}")
    dtype = options.dtypes.get(name) or dtype_of(value.type.tensor_type.elem_type, file, f"the input {name}")
    if shape is None:
        if stated is None:
            notes = [f"--shape {name}=1x3x224x224 gives it one"]
            raise RelayError(error("R0804", f"{file}: the input {name} has no shape", notes=notes))
        return TensorType(stated.shape, dtype)
    if stated is not None and len(stated.shape) != len(shape):
        raise RelayError(error("R0804", f"{file}: the input {name} has {len(stated.shape)} axes, not {len(shape)}"))
    return TensorType(shape, dtype)


def dense(proto: Any, importer: Importer) -> np.ndarray:
    """The array of a SparseTensorProto: zero but at its indices, which are flat or a row per element."""
    values = importer.array(proto.values)
    indices = importer.array(proto.indices)
    shape = tuple(int(d) for d in proto.dims)
    if any(d < 0 for d in shape) or int(np.prod(shape, dtype=object)) * values.itemsize > importer.options.limit:
        raise damaged(importer.file, f"the tensor {proto.values.name} has the impossible shape {shape}")
    made = np.zeros(shape, values.dtype)
    flat = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), shape)
    made.reshape(-1)[flat] = values
    return made


__all__ = ["dense", "input_type"]
