"""Quantized operators: `relaylang.qnn.op`."""

from relaylang.qnn import op

__all__ = ["op"]
