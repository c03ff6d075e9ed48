"""Rows of tables of bytes, `quantized.embedding_byte` and `quantized.embedding_bag_byte`.

Each row has a scale and a zero point of its own. A zero point is a real number there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Unsupported
from relaylang.frontends.torch.families.bags import Bags, bagged
from relaylang.frontends.torch.torchscript.values import Packed, Stored, Tensor
from relaylang.ir import Expr


def _rows(b: Builder, given: Packed, indices: Expr) -> Expr:
    """The real numbers of some rows."""
    table = given.weight
    if not isinstance(table, Stored) or table.quant is None or table.array.dtype != np.uint8:
        raise Unsupported("its table does not hold bytes")
    quant, count = table.quant, table.array.shape[0]
    scale = np.broadcast_to(quant.scale, (count,)).astype(np.float32)
    shift = -np.broadcast_to(quant.zero, (count,)).astype(np.float32) * scale
    weight = b.weight(f"{given.name}_weight" if given.name else "weight", table.array)
    row = b.cast(b.op("take", weight, indices, axis=0), "float32")
    scales, shifts = (b.op("take", b.const(v.reshape(-1, 1)), indices, axis=0) for v in (scale, shift))
    made: Expr = b.op("add", b.op("multiply", row, scales), shifts)
    return made


def embedding(b: Builder, given: Packed, indices: Tensor, pruned: bool = False) -> Any:
    if pruned:
        raise Unsupported("its table is pruned")
    return Tensor(_rows(b, given, indices.read()))


def embedding_bag(
    b: Builder, given: Packed, indices: Tensor, offsets: Any = None, scaled: bool = False, mode: int = 0, pruned: bool = False,
    weights: Any = None, mapping: Any = None, ends: bool = False,
) -> Any:  # fmt: skip
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
    rows = _rows(b, given, places)
    if weights is not None:
        rows = b.op("multiply", rows, b.reshape_exactly(weights.read(), [-1, 1]))
    return Tensor(bagged(b, rows, Bags(b, places, starts, ends), "sum", None))


__all__ = ["embedding", "embedding_bag"]
