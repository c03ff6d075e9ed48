"""The numbers of the element types of simulated quantization."""

from __future__ import annotations

from relaylang.tvm.op.composed import CODES

SQNN_DTYPE_TO_CODE = CODES
SQNN_CODE_TO_DTYPE = {code: dtype for dtype, code in CODES.items()}

__all__ = ["SQNN_CODE_TO_DTYPE", "SQNN_DTYPE_TO_CODE"]
