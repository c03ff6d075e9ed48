"""Values of the interpreter as `tvm.relay.backend.interpreter` makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.interpreter import values
from relaylang.interpreter.values import Closure, RefValue
from relaylang.ir import Constructor


class _Constructed(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, values.ConstructorValue)


class ConstructorValue(metaclass=_Constructed):
    """A constructed value, made of a tag, fields and a constructor. The tag is the constructor's own."""

    def __new__(cls, tag: int, fields: Sequence[Any], constructor: Constructor) -> Any:
        return values.ConstructorValue(constructor, tuple(fields))


__all__ = ["Closure", "ConstructorValue", "RefValue"]
