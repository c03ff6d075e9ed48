"""Conversions between element types."""

from __future__ import annotations

from typing import Any

import ml_dtypes

from relaylang.frontends.common import Rule, Unsupported
from relaylang.frontends.onnx.node import Node
from relaylang.frontends.onnx.tensors import TEXTS
from relaylang.frontends.onnx.texts import Texts
from relaylang.ir import Expr

#: Small floats without infinity: what lies outside becomes their largest number, whatever `saturate` says.
_ALWAYS = ("float4_e2m1fn",)


def as_dtype(n: Node, x: Expr, dtype: str) -> Any:
    """Small floats saturate unless the layer says otherwise; a scale (e8m0) is rounded upwards."""
    b = n.b
    small = dtype.startswith(("float8", "float4"))
    if dtype == "float8_e8m0fnu":
        roundings = {"up": "ceil", "down": "floor", "nearest": "round"}
        exponent = roundings[n.choice("round_mode", "up", roundings)]
        if "float8" not in b.dtype(x):
            x = b.op("power", b.const(2.0, "float32"), b.op(exponent, b.op("log2", b.cast(x, "float32"))))
    elif small and (n.int("saturate", 1) or dtype in _ALWAYS) and not b.dtype(x).startswith(("float8", "float4", "int", "uint")):
        most = float(ml_dtypes.finfo(dtype).max)
        x = b.op("clip", b.cast(x, "float32") if b.dtype(x) == "bfloat16" else x, a_min=-most, a_max=most)
    return b.cast(x, dtype)


def cast(n: Node, x: Expr | Texts) -> Any:
    if isinstance(x, Texts) or n.int("to") == TEXTS:
        if isinstance(x, Texts) and n.int("to") == TEXTS:
            return x
        raise Unsupported("numbers have no texts, and texts no numbers")
    return as_dtype(n, x, n.dtype("to"))


def cast_like(n: Node, x: Expr, like: Expr) -> Any:
    return as_dtype(n, x, n.b.dtype(like))


RULES = (
    Rule("Cast", cast),
    Rule("CastLike", cast_like),
)

__all__ = ["RULES", "as_dtype"]
