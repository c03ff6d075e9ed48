"""How this backend fuses operators: it has kernels for some that are opaque elsewhere, and none to fuse for others."""

from __future__ import annotations

from relaylang.backends.cpu.lower import ALONE
from relaylang.backends.cpu.lower.texts import with_texts
from relaylang.ops.record import Op, OpPattern

#: Patterns other than the record's.
PATTERNS = {
    "qnn.quantize": OpPattern.BROADCAST,
    "qnn.dequantize": OpPattern.BROADCAST,
    "qnn.requantize": OpPattern.BROADCAST,
    "qnn.add": OpPattern.BROADCAST,
    "qnn.subtract": OpPattern.BROADCAST,
    "qnn.mul": OpPattern.BROADCAST,
    "qnn.conv2d": OpPattern.OUT_ELEMWISE_FUSABLE,
    "qnn.dense": OpPattern.OUT_ELEMWISE_FUSABLE,
    **{f"image.resize{n}d": OpPattern.OUT_ELEMWISE_FUSABLE for n in (1, 2, 3)},
    **dict.fromkeys(ALONE, OpPattern.OPAQUE),
}


def pattern_of(op: Op) -> int:
    """How this backend fuses an operator."""
    return OpPattern.OPAQUE if op.name in with_texts() else PATTERNS.get(op.name, op.pattern)
