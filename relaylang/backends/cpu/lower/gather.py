"""Operators that gather elements: the index of their operand is computed from the values of another, or selected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from relaylang.backends.cpu.kernel import Kernel, Recipe, Value
from relaylang.backends.cpu.lower.common import axis_of, elements, result_type
from relaylang.ir import Call
from relaylang.kernels import ir
from relaylang.kernels.dtypes import is_float
from relaylang.kernels.nest import Index, Nest, Scalar
from relaylang.kernels.sizes import largest


def _take(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    data, indices = args
    attrs = call.attrs
    shape, dtype = result_type(call)
    mode = attrs.mode
    batch = attrs.batch_dims or 0
    rank, width = len(data.shape), len(indices.shape)
    axis = None if attrs.axis is None else axis_of(attrs.axis, rank)
    if batch < 0:
        batch += width
    extent = math.prod(data.shape) if axis is None else data.shape[axis]

    def bounded(nest: Nest, value: Scalar) -> Scalar:
        if indices.dtype == "uint64":  # its upper half is no int64
            return (value % largest(extent, 1) if mode == "wrap" else value.op("min", extent - 1)).cast("int64")
        value = value.cast("int64")
        if mode == "wrap":
            return value.op("floor_mod", extent)
        return value.op("clamp", 0, extent - 1)

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        if axis is None:
            where = bounded(nest, indices.at(nest, index))
            return data.at(nest, nest.unravel(where, data.shape))
        middle = index[axis : axis + width - batch]
        where = bounded(nest, indices.at(nest, [*index[:batch], *middle]))
        return data.at(nest, [*index[:axis], where, *index[axis + width - batch :]])

    return Recipe(shape, dtype, at)


@elements
def _gather(call: Call, args: list[Any], nest: Nest, index: Sequence[Index]) -> Scalar:
    data, indices = args
    axis = axis_of(call.attrs.axis, len(data.shape))
    extent = data.shape[axis]
    value = indices.at(nest, index).cast("int64")
    where = value.op("clamp", 0, extent - 1)
    return data.at(nest, [*index[:axis], where, *index[axis + 1 :]])


@elements
def _gather_nd(call: Call, args: list[Any], nest: Nest, index: Sequence[Index]) -> Scalar:
    data, indices = args
    batch = call.attrs.batch_dims or 0
    depth, width = indices.shape[0], len(indices.shape) - 1
    where: list[Index] = list(index[:batch])
    for d in range(depth):
        value = indices.at(nest, [ir.number(d), *index[:width]]).cast("int64")
        limit = data.shape[batch + d] - 1
        where.append(value.op("clamp", 0, limit))
    return data.at(nest, [*where, *index[width:]])


@elements
def _one_hot(call: Call, args: list[Any], nest: Nest, index: Sequence[Index]) -> Scalar:
    indices, on, off = args
    shape, dtype = result_type(call)
    axis = axis_of(call.attrs.axis, len(shape))
    value = indices.at(nest, [*index[:axis], *index[axis + 1 :]]).cast("int64")
    test = value.eq(nest.as_scalar(index[axis]))
    values = [v.at(nest, []).cast(dtype) for v in (on, off)]
    return test.select(*values)


@elements
def _sequence_mask(call: Call, args: list[Any], nest: Nest, index: Sequence[Index]) -> Scalar:
    data, lengths = args
    axis = axis_of(call.attrs.axis, len(data.shape))
    _, dtype = result_type(call)
    kind = "float64" if is_float(lengths.dtype) else "int64"
    length = lengths.at(nest, [index[1 - axis]]).cast(kind)
    test = nest.as_scalar(index[axis]) < length
    mask = nest.const(call.attrs.mask_value, dtype)
    return test.select(data.at(nest, index), mask)


@elements
def _reverse_sequence(call: Call, args: list[Any], nest: Nest, index: Sequence[Index]) -> Scalar:
    data, lengths = args
    shape, _ = result_type(call)
    seq, batch = axis_of(call.attrs.seq_axis, len(shape)), axis_of(call.attrs.batch_axis, len(shape))
    length = lengths.at(nest, [index[batch]]).cast("int64")
    length = length.op("min", shape[seq])
    here = nest.as_scalar(index[seq])
    where = (here < length).select(length - 1 - here, here)
    return data.at(nest, [*index[:seq], where, *index[seq + 1 :]])


RECIPES: dict[str, Any] = {
    "take": _take,
    "gather": _gather,
    "gather_nd": _gather_nd,
    "one_hot": _one_hot,
    "sequence_mask": _sequence_mask,
    "reverse_sequence": _reverse_sequence,
}
