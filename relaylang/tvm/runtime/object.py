"""`tvm.runtime.Object`, which scripts ask with `isinstance`: nodes, types, modules, attributes, tensors."""

from __future__ import annotations

from relaylang.diagnostics.source import Span
from relaylang.ir import Expr, IRModule, Type
from relaylang.ops.record import Attributes
from relaylang.passes.manager import Pass
from relaylang.tvm.ir.attributes import DictAttrs
from relaylang.tvm.runtime.ndarray import NDArray

_CLASSES = (Expr, Type, IRModule, Attributes, DictAttrs, NDArray, Pass, Span)


class _Objects(type):
    def __instancecheck__(cls, value: object) -> bool:
        return type.__instancecheck__(cls, value) or (cls is Object and isinstance(value, _CLASSES))


class Object(metaclass=_Objects):
    """The class of all nodes, for `isinstance`."""


ObjectBase = Object


class ObjectGeneric:
    """A base for classes of scripts whose method `asobject` gives the node that stands for them."""

    def asobject(self) -> object:
        """The node. Raises `TypeError` where a class has no method of its own."""
        raise TypeError(f"the class {type(self).__name__} has no method asobject")


__all__ = ["Object", "ObjectBase", "ObjectGeneric"]
