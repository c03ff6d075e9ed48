"""Rows of tables of bytes, 4 or 2 bits: `quantized.embedding_byte`, `quantized.embedding_bag_4bit` and their kin.

Each row has a scale and a zero point of its own. A zero point is a real number there. Relay has no elements of 4 bits, so
such a table becomes bytes. The operators `..._rowwise_offsets` take a tensor of bytes instead: each row has its numbers,
the first in the lowest bits, then its scale and its shift.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Unsupported
from relaylang.frontends.torch.families.bags import Bags, bagged
from relaylang.frontends.torch.torchscript.values import Packed, Stored, Tensor
from relaylang.ir import Expr

#: What the rows' scales, and their zero points times these, are rounded to.
_ROUNDED = {8: np.float32, 4: np.float16, 2: np.float16}


def _table(b: Builder, rows_table: Packed | Tensor, bits: int) -> tuple[Expr, np.ndarray, np.ndarray]:
    """The numbers of a table, and its rows' scales and shifts."""
    if isinstance(rows_table, Tensor):
        array = b.value(b.frozen(rows_table.read()))
        each = np.dtype(_ROUNDED[bits]).itemsize
        if array is None or array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] < 2 * each:
            raise Unsupported("its table is no constant of bytes, whose rows end with a scale and a shift")
        numbers, ends = array[:, : -2 * each], np.ascontiguousarray(array[:, -2 * each :]).view(_ROUNDED[bits]).astype(np.float32)
        b.arrays.reserve((numbers.size, 8 // bits))
        parts = numbers[:, :, None] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8(2**bits - 1)
        return b.const(np.ascontiguousarray(parts.reshape(len(array), -1))), ends[:, 0], ends[:, 1]
    table = rows_table.weight
    if not isinstance(table, Stored) or table.quant is None or table.array.dtype != np.uint8:
        raise Unsupported("its table does not hold bytes")
    quant, count = table.quant, table.array.shape[0]
    scale = np.broadcast_to(quant.scale, (count,)).astype(np.float32)
    shift = -np.broadcast_to(quant.zero, (count,)).astype(np.float32) * scale
    scale, shift = (v.astype(_ROUNDED[bits]).astype(np.float32) for v in (scale, shift))
    return b.weight(f"{rows_table.name}_weight" if rows_table.name else "weight", table.array), scale, shift


def _rows(b: Builder, table: Packed | Tensor, indices: Expr, bits: int) -> Expr:
    """The real numbers of some rows."""
    weight, scale, shift = _table(b, table, bits)
    row = b.cast(b.op("take", weight, indices, axis=0), "float32")
    scales, shifts = (b.op("take", b.const(v.reshape(-1, 1)), indices, axis=0) for v in (scale, shift))
    rows: Expr = b.op("add", b.op("multiply", row, scales), shifts)
    return rows


def embedding(b: Builder, given: Packed, indices: Tensor, pruned: bool = False, *, bits: int = 8) -> Any:
    if pruned:
        raise Unsupported("its table is pruned")
    return Tensor(_rows(b, given, indices.read(), bits))


def embedding_bag(
    b: Builder,
    given: Packed | Tensor,
    indices: Tensor,
    offsets: Any = None,
    scaled: bool = False,
    mode: int = 0,
    pruned: bool = False,
    weights: Any = None,
    mapping: Any = None,
    ends: bool = False,
    *,
    bits: int = 8,
) -> Any:
    """Sums of rows, whatever the mode says: PyTorch computes no others."""
    if pruned or mapping is not None:
        raise Unsupported("its table is pruned")
    places = indices.read()
    if b.rank(places) == 2:
        count, each = b.static_shape(places, "the indices")
        starts: Expr = b.const(b.arrays.arange(count) * each)
        places, ends = b.reshape_exactly(places, [count * each]), False
    elif offsets is None:
        raise Unsupported("it has no offsets")
    else:
        starts = offsets.read()
    rows = _rows(b, given, places, bits)
    if weights is not None:
        rows = b.op("multiply", rows, b.reshape_exactly(weights.read(), [-1, 1]))
    return Tensor(bagged(b, rows, Bags(b, places, starts, ends), "sum", None))


__all__ = ["embedding", "embedding_bag"]
