"""Whether a tensor type can exist: its rank, its extents and its element type."""

from __future__ import annotations

import re

from relaylang.ir.types import TensorType
from relaylang.ops.domains import MOST_DIMENSIONS

#: The bound of extents: TVM and the backends count in 64 bits.
LIMIT = 2**63
_USUAL = frozenset(["bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"])
#: The small floats that networks are stored in, as ml_dtypes names them (OCP 8-bit floating point, OCP microscaling).
_SMALL = r"float8_(e4m3fn|e4m3fnuz|e5m2|e5m2fnuz|e8m0fnu)|float4_e2m1fn"
#: Element types that something can be computed with, those of accelerators, and vectors of them.
_DTYPE = rf"(bool|handle|custom\[.*\]\d+|u?int(1|2|4|8|16|32|64)|float(16|32|64)|bfloat16|{_SMALL})(x\d+)?"


def unsound(ty: TensorType) -> str | None:
    """The problem of a tensor type's extents or of its element type, if there is one."""
    if len(ty.shape) > MOST_DIMENSIONS:
        return f"it has {len(ty.shape)} dimensions, and {MOST_DIMENSIONS} are possible"
    for axis, dim in enumerate(ty.shape):
        if isinstance(dim, int) and not 0 <= dim < LIMIT:
            return f"dimension {axis} is {dim}, which {'is negative' if dim < 0 else 'does not fit 64 bits'}"
    if not ty.dtype:
        return "it has no element type"
    if ty.dtype not in _USUAL and re.fullmatch(_DTYPE, ty.dtype) is None:
        return f"`{ty.dtype}` is not an element type"
    return None


__all__ = ["LIMIT", "unsound"]
