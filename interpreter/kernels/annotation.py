"""Marks on a program, which compute nothing: each gives its argument back. And rounding as quantization would do it."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import Kernel, round_away

_MARKS = (
    "bitpack_end",
    "bitpack_start",
    "cast_hint",
    "checkpoint",
    "compiler_begin",
    "compiler_end",
    "stop_fusion",
    "with_funcid",
)
_IDENTITY = 0


def simulated_quantize(attrs: Any, x: Any, scale: Any, low: Any, high: Any) -> Any:
    if attrs.kind == _IDENTITY:
        return x
    return (round_away(np.asarray(np.maximum(np.minimum(x / scale, high), low))) * scale).astype(x.dtype)


KERNELS: dict[str, Kernel] = {
    **{f"annotation.{name}": lambda attrs, x: x for name in _MARKS},
    "relay.op.annotation.simulated_quantize": simulated_quantize,
}
