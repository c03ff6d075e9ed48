"""Marks on a program that compute nothing."""

from __future__ import annotations

from relaylang.ops.record import Op
from relaylang.ops.relations import identity

NAMES = (
    "bitpack_end",
    "bitpack_start",
    "cast_hint",
    "checkpoint",
    "compiler_begin",
    "compiler_end",
    "stop_fusion",
)

OPS = tuple(Op(f"annotation.{name}", ("data",), None, identity, level=10, needs=()) for name in NAMES)
