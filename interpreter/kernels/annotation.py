"""Marks on a program, which compute nothing: each gives its argument back."""

from __future__ import annotations

from relaylang.interpreter.kernels.common import Kernel

_MARKS = ("bitpack_end", "bitpack_start", "cast_hint", "checkpoint", "compiler_begin", "compiler_end", "stop_fusion")

KERNELS: dict[str, Kernel] = {f"annotation.{name}": lambda attrs, x: x for name in _MARKS}
