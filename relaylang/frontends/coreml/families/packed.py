"""Weights in fewer bits: palettes, scales, and masks of elements other than zero. They become numbers at import."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule
from relaylang.frontends.common.quantized import dequantize
from relaylang.frontends.coreml.node import Ints, Node
from relaylang.frontends.coreml.values import unpacked
from relaylang.ir import Expr


def _array(n: Node, x: Expr, what: str) -> np.ndarray:
    return n.b.need(x, f"its {what}")


def affine_dequantize(n: Node, quantized_data: Expr, zero_point: Expr, scale: Expr, axis: int) -> Any:
    """`scale * (data - zero point)`; vectors are along an axis. It stays in the program with `keep_quantized`."""
    b = n.b
    data, zero, factor = (_array(n, x, what) for x, what in ((quantized_data, "data"), (zero_point, "zero"), (scale, "scale")))
    at = int(axis % b.rank(quantized_data))
    if any(v.size != 1 and v.shape != (data.shape[at],) for v in (zero, factor)):
        raise Malformed(f"it has {factor.size} scales and {zero.size} zero points for {data.shape[at]} channels")
    if b.options.keep_quantized and not b.options.freeze:
        offset = b.const(zero.reshape(() if zero.size == 1 else -1))
        return dequantize(b, quantized_data, b.const(factor.reshape(() if factor.size == 1 else -1)), offset, at, factor.dtype.name)
    along = [-1 if i == at else 1 for i in range(data.ndim)]
    b.arrays.reserve(data.shape, "unpacking its weights", 8)
    wide = data.astype(np.float32) - zero.astype(np.float32).reshape(along if zero.size > 1 else ())
    return n.weight((wide * factor.astype(np.float32).reshape(along if factor.size > 1 else ())).astype(factor.dtype))


def _spread(n: Node, factor: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Factors of blocks, repeated to the elements of the data."""
    if factor.ndim != len(shape) or any(f == 0 or d % f for f, d in zip(factor.shape, shape)):
        raise Malformed(f"it has scales of the shape {factor.shape} for data of the shape {shape}")
    n.b.arrays.reserve(shape, "unpacking its weights", factor.itemsize)
    for axis, (own, extent) in enumerate(zip(factor.shape, shape)):
        factor = np.repeat(factor, extent // own, axis) if own != extent and own != 1 else factor
    return factor


def _scaled(n: Node, data: np.ndarray, scale: Expr, offset: Expr | None) -> np.ndarray:
    factor = _array(n, scale, "scale")
    n.b.arrays.reserve(data.shape, "unpacking its weights", 8)
    wide = data.astype(np.float32)
    if offset is not None:
        wide = wide - _spread(n, _array(n, offset, "offset"), data.shape).astype(np.float32)
    return (wide * _spread(n, factor, data.shape).astype(np.float32)).astype(factor.dtype)


def blockwise_shift_scale(n: Node, data: Expr, scale: Expr, offset: Expr | None = None) -> Any:
    """`scale * (data - offset)`, where each scale is that of a block of the data."""
    return n.weight(_scaled(n, _array(n, data, "data"), scale, offset))


def _looked_up(n: Node, places: np.ndarray, table: np.ndarray, axis: int | None) -> np.ndarray:
    """The elements of palettes (blocks..., elements, extent of a vector) at places (blocks * k...)."""
    if table.ndim != places.ndim + 2 or 0 in table.shape or any(d % f for f, d in zip(table.shape, places.shape)):
        raise Malformed(f"its palettes have the shape {table.shape}, and their places {places.shape}")
    if places.size and int(places.max()) >= table.shape[-2]:
        raise Malformed(f"it names the place {int(places.max())} of palettes of {table.shape[-2]} elements")
    width = table.shape[-1]
    n.b.arrays.reserve([*places.shape, width], "unpacking its weights", 8 + table.itemsize)
    blocks = [n.b.arrays.arange(d) // (d // f) for d, f in zip(places.shape, table.shape) if d]
    if places.size == 0:
        return n.b.arrays.zeros(places.shape, table.dtype)
    elements = table[tuple([*np.ix_(*blocks), places])] if blocks else table[places]
    if width == 1:
        return elements[..., 0]
    if axis is None:
        raise Malformed(f"its palettes hold vectors of {width} elements, and it does not say of which axis")
    at = axis % places.ndim
    moved = np.moveaxis(elements, -1, at + 1)
    shape = list(places.shape)
    shape[at] *= width
    return moved.reshape(shape)


def lut_to_dense(n: Node, indices: Expr, lut: Expr, shape: Ints | None = None, vector_axis: int | None = None) -> Any:
    """The elements of a palette. In the first form, places of a few bits are packed, and the shape is stated."""
    places, table = _array(n, indices, "places"), _array(n, lut, "palette")
    if shape is None:
        return n.weight(_looked_up(n, places, table, vector_axis))
    if table.ndim != 1 or table.size not in (2, 4, 16, 64, 256) or any(d < 0 for d in shape):
        raise Malformed(f"its palette has the shape {table.shape}")
    bits, count = int(math.log2(table.size)), math.prod(shape)
    n.b.arrays.reserve(count, "unpacking its weights", table.itemsize)
    return n.weight(table[unpacked(n.b.arrays, places.tobytes(), bits, count)].reshape([int(d) for d in shape]))


def _dense(n: Node, numbers: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Numbers at the places of a mask, zeros elsewhere."""
    kept = mask != 0
    if numbers.ndim != 1 or int(kept.sum()) != numbers.size:
        raise Malformed(f"its mask keeps {int(kept.sum())} elements, and it has {numbers.size}")
    dense = n.b.arrays.zeros(mask.shape, numbers.dtype)
    dense[kept] = numbers
    return dense


def sparse_to_dense(n: Node, nonzero_data: Expr, mask: Expr, shape: Ints | None = None) -> Any:
    """The elements that are not zero, at the places of a mask. In the first form, its bits are packed."""
    numbers, kept = _array(n, nonzero_data, "elements"), _array(n, mask, "mask")
    if shape is not None:
        if any(d < 0 for d in shape):
            raise Malformed(f"its shape is {list(shape)[:8]}")
        kept = unpacked(n.b.arrays, kept.tobytes(), 1, math.prod(shape)).reshape([int(d) for d in shape])
    return n.weight(_dense(n, numbers, kept))


def lut_to_sparse(n: Node, indices_mask: Expr, indices_nonzero_data: Expr, lut: Expr, vector_axis: int | None = None) -> Any:
    """A mask and elements of palettes, from a mask and places in them."""
    mask, table = _array(n, indices_mask, "mask"), _array(n, lut, "palette")
    places = _dense(n, _array(n, indices_nonzero_data, "places"), mask)
    elements = _looked_up(n, places, table, vector_axis)
    if table.shape[-1] > 1 and vector_axis is not None:
        n.b.arrays.reserve((mask.size, table.shape[-1]), "unpacking its weights", mask.itemsize)
        mask = np.repeat(mask, table.shape[-1], vector_axis % mask.ndim)
    return [n.b.const(mask), n.b.const(elements[mask != 0])]


def sparse_shift_scale(n: Node, data_mask: Expr, nonzero_data: Expr, scale: Expr, offset: Expr | None = None) -> Any:
    """A mask and `scale * (data - offset)` of its elements."""
    mask = _array(n, data_mask, "mask")
    scaled = _scaled(n, _dense(n, _array(n, nonzero_data, "elements"), mask), scale, offset)
    return [n.b.const(mask), n.b.const(scaled[mask != 0])]


def cast(n: Node, source_val: Expr, output_dtype: str) -> Any:
    if output_dtype not in ("fp16", "fp32"):
        raise Malformed(f"its element type is {output_dtype[:40]!r}")
    kind = {"fp16": np.float16, "fp32": np.float32}[output_dtype]
    return n.weight(_array(n, source_val, "value").astype(kind))


RULES = (
    Rule("constexpr_affine_dequantize", affine_dequantize),
    Rule("constexpr_blockwise_shift_scale", blockwise_shift_scale),
    Rule("constexpr_cast", cast),
    Rule("constexpr_lut_to_dense", lut_to_dense),
    Rule("constexpr_lut_to_sparse", lut_to_sparse),
    Rule("constexpr_sparse_blockwise_shift_scale", sparse_shift_scale),
    Rule("constexpr_sparse_to_dense", sparse_to_dense),
)
