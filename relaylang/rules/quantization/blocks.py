"""Weights of few bits in blocks: a scale and a zero point for so many neighbours of a row, as MatMulNBits has them.

As an expression, such a weight is a `qnn.dequantize` of its blocks as rows, which is reshaped: a program in existing operators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from relaylang.ir import Call, Constant, Expr
from relaylang.ops.record import Op


@dataclass(frozen=True)
class Blocks:
    """A weight (rows, columns) as `(codes - zeros) * scales`.

    `codes` are uint8 of shape (rows, blocks, size); those behind `columns` do not count. `scales` (float32) and `zeros` (int32)
    have the shape (rows, blocks).
    """

    codes: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray
    columns: int

    def expr(self, op: Callable[..., Expr], constant: Callable[[np.ndarray], Expr]) -> Expr:
        """The weight in float32. `op` makes the call of an operator, `constant` that of an array."""
        rows, blocks, size = self.codes.shape
        parts = (self.codes.reshape(-1, size), self.scales.reshape(-1).astype("float32"), self.zeros.reshape(-1).astype("int32"))
        real = op("qnn.dequantize", *map(constant, parts), axis=0, out_dtype="float32")
        weight = op("reshape", real, newshape=[rows, blocks * size])
        if self.columns == blocks * size:
            return weight
        return op("strided_slice", weight, begin=[0, 0], end=[rows, self.columns], strides=[1, 1])


def row_weight(layer: Expr) -> Constant | None:
    """The constant weight of a dense layer: float32, a row for each of its results."""
    if not isinstance(layer, Call) or not isinstance(layer.op, Op) or layer.op.name != "nn.dense":
        return None
    weight = layer.args[1]
    return weight if isinstance(weight, Constant) and weight.dtype == "float32" and weight.data.size else None


def in_blocks(weight: np.ndarray, bits: int, size: int) -> Blocks:
    """The nearest weight with blocks of `size` columns. The range of a block has its least and greatest number, and 0."""
    rows, columns = weight.shape
    blocks = -(-columns // size)
    padded = np.pad(weight.astype("float64"), ((0, 0), (0, blocks * size - columns))).reshape(rows, blocks, size)
    most = (1 << bits) - 1
    low, high = padded.min(2).clip(max=0), padded.max(2).clip(min=0)
    scales = ((high - low) / most).astype("float32")
    scales[scales < np.finfo("float32").tiny] = 1
    zeros = np.rint(-low / scales).clip(0, most).astype("int32")
    codes = (np.rint(padded / scales[..., None]) + zeros[..., None]).clip(0, most).astype("uint8")
    return Blocks(codes, scales, zeros, columns)


def packed(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Numbers of 4 or 8 bits, the last axis in bytes, the lowest bits first. A last byte may have zeros."""
    if bits == 8:
        return numbers.astype("uint8")
    pairs = np.pad(numbers.astype("uint8"), [(0, 0)] * (numbers.ndim - 1) + [(0, numbers.shape[-1] % 2)])
    return pairs[..., ::2] | (pairs[..., 1::2] << 4)


__all__ = ["Blocks", "in_blocks", "packed"]
