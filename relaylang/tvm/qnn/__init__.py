"""Quantized operators, `relaylang.tvm.qnn.op`, and the passes over them, `relaylang.tvm.qnn.transform`."""

from __future__ import annotations

import importlib
from typing import Any

from relaylang.tvm.qnn import op

__all__ = ["op"]


def __getattr__(name: str) -> Any:
    # The passes are loaded when they are asked for: operators alone need none of them.
    if name == "transform":
        return importlib.import_module("relaylang.tvm.qnn.transform")
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(op, name)  # qnn.quantize is qnn.op.quantize, as in TVM
