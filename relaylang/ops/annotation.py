"""Marks on a program that compute nothing."""

from __future__ import annotations

from relaylang.ops.record import Op, attrs_class
from relaylang.ops.relations import identity


@attrs_class("relay.attrs.CompilerAttrs", in_metadata=True)
class CompilerAttrs:
    compiler: str


@attrs_class("relay.attrs.CastHintAttrs", in_metadata=True)
class CastHintAttrs:
    dtype: str


ATTRS = {
    "bitpack_end": None,
    "bitpack_start": None,
    "cast_hint": CastHintAttrs,
    "checkpoint": None,
    "compiler_begin": CompilerAttrs,
    "compiler_end": CompilerAttrs,
    "stop_fusion": None,
}

OPS = tuple(Op(f"annotation.{name}", ("data",), attrs, identity, level=10, needs=()) for name, attrs in ATTRS.items())
