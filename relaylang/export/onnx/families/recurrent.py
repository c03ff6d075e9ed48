"""Recurrent layers."""

from __future__ import annotations

from typing import Any

from relaylang.export.onnx.emitter import Emitter
from relaylang.export.onnx.packing import LAYERS, OPERANDS
from relaylang.export.walk import Value
from relaylang.ir import Call


def _layer(kind: str, results: int) -> Any:
    def rule(e: Emitter, call: Call, *operands: Value) -> Any:
        attrs: Any = call.attrs
        by_name = dict(zip(attrs.operands, operands))
        return e.op(kind, *[by_name.get(name) for name in OPERANDS], outputs=results, **attrs.attrs)

    return rule


RULES = {op.name: _layer(kind, 3 if kind == "LSTM" else 2) for kind, op in LAYERS.items()}

__all__ = ["RULES"]
