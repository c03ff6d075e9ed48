"""The inputs of a model and its sparse weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.frontends.common import Builder, damaged, value_for
from relaylang.frontends.common.lists import list_of, option_of
from relaylang.frontends.onnx.tensors import MAX_RANK, TEXTS, dtype_of, tensor_type
from relaylang.frontends.options import Options
from relaylang.ir import Dim, TensorType, Type

if TYPE_CHECKING:
    from relaylang.frontends.onnx.importer import Importer


def input_type(b: Builder, value: Any, file: str, options: Options) -> Type:
    """The type of a model's input: as the options say, else as the file says.

    A sequence is a list, an optional an option; the options then speak of the tensors inside.
    """
    name = value.name
    shape = options.shapes.get(name)
    what = f"the input {name}"
    kind = value.type.WhichOneof("value")
    if kind is None:
        if shape is not None:
            return TensorType(shape, options.dtypes.get(name, "float32"))
        notes = ["a program has tensors only; give the input a value when the model is imported"]
        raise RelayError(error("R0801", f"{file}: {what} is a value of no type", notes=notes))
    if kind == "tensor_type" and value.type.tensor_type.elem_type == TEXTS:
        return _text_type(value, file, options)
    stated = stated_value(b, value.type, file, what, shape, options.dtypes.get(name))
    if stated is None:
        notes = [f"--shape {name}=1x3x224x224 gives {'it' if kind == 'tensor_type' else 'its elements'} one"]
        raise RelayError(error("R0804", f"{file}: {what} has no shape", notes=notes))
    return stated


def _text_type(value: Any, file: str, options: Options) -> TensorType:
    """The type of an input of texts: bytes, whose number the options give as a further extent."""
    name, stated = value.name, value.type.tensor_type
    shape, dtype = options.shapes.get(name), options.dtypes.get(name, "uint8")
    if dtype != "uint8":
        raise RelayError(error("R0804", f"{file}: the input {name} has texts, whose bytes are uint8, not {dtype}"))
    known = stated.HasField("shape")
    if (
        shape is not None
        and shape
        and isinstance(shape[-1], int)
        and shape[-1] > 0
        and (not known or len(shape) == len(stated.shape.dim) + 1)
    ):
        return TensorType(shape, dtype)
    extents = "x".join([str(d.dim_value or "?") for d in stated.shape.dim] + ["16"])
    notes = [f"each text is a row of bytes; --shape {name}={extents} gives each 16 of them"]
    raise RelayError(error("R0804", f"{file}: the input {name} has texts, and their longest is not known", notes=notes))


def input_value(value: Any, given: Any, file: str, options: Options) -> np.ndarray:
    """A value that the caller gives for a tensor, as the model states it. Strings stay as they are."""
    if np.asarray(given).dtype.kind in "OSU":
        return np.asarray(given)
    name, what = value.name, f"the input {value.name}"
    stated = tensor_type(value.type.tensor_type, file, what)
    shape = options.shapes.get(name, stated.shape if stated is not None else None)
    dtype = options.dtypes.get(name) or dtype_of(value.type.tensor_type.elem_type, file, what)
    return value_for(file, name, given, shape, dtype)


def stated_value(
    b: Builder, proto: Any, file: str, what: str, shape: Sequence[Dim] | None = None, dtype: str | None = None
) -> Type | None:
    """The type of a TypeProto, with another shape and element type where they are given; None where it states no rank."""
    around = []
    while proto.WhichOneof("value") in ("sequence_type", "optional_type"):
        around.append(list_of if proto.HasField("sequence_type") else option_of)
        proto = getattr(proto, proto.WhichOneof("value")).elem_type
    kind = proto.WhichOneof("value")
    if kind != "tensor_type":
        notes = ["a program has tensors only; give the input a value when the model is imported"]
        raise RelayError(error("R0801", f"{file}: {what} is a {kind or 'value of no type'}", notes=notes))
    stated = tensor_type(proto.tensor_type, file, what, None if around else b.extents)
    dtype = dtype or dtype_of(proto.tensor_type.elem_type, file, what)
    if shape is not None and stated is not None and len(stated.shape) != len(shape) and not around:
        raise RelayError(error("R0804", f"{file}: {what} has {len(stated.shape)} axes, not {len(shape)}"))
    extents = shape if shape is not None else stated.shape if stated is not None else None
    if extents is None:
        return None
    known: Type = TensorType(extents, dtype)
    for wrap in reversed(around):
        known = wrap(b, known)
    return known


def dense(proto: Any, importer: Importer) -> np.ndarray:
    """The array of a SparseTensorProto: zero but at its indices, which are flat or a row per element."""
    values = importer.array(proto.values)
    indices = importer.array(proto.indices)
    shape = tuple(int(d) for d in proto.dims)
    name = f"the sparse tensor {proto.values.name}"
    if any(d < 0 for d in shape) or len(shape) > MAX_RANK:
        raise damaged(importer.file, f"{name} has the impossible shape {shape}")
    if indices.dtype != np.int64 or values.ndim != 1 or indices.shape not in ((values.size,), (values.size, len(shape))):
        raise damaged(importer.file, f"{name} has {values.shape} values at indices of the shape {indices.shape}")
    extents = shape if indices.ndim == 2 else (math.prod(shape),)
    if values.size and not ((indices >= 0) & (indices < np.array(extents, np.int64))).all():
        raise damaged(importer.file, f"{name} has an index outside its shape {shape}")
    array = np.zeros(importer.builder.arrays.reserve(shape, "laying sparse weights out", values.itemsize), values.dtype)
    flat = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), shape)
    array.reshape(-1)[flat] = values
    return array


__all__ = ["dense", "input_type", "stated_value"]
