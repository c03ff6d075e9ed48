"""The pattern language: what a dataflow pattern is made of.

    conv = is_op("qnn.conv2d")(wildcard(), is_constant(), wildcard(), wildcard(), wildcard(), wildcard())
    fused = conv.optional(lambda p: is_op("nn.bias_add")(p, is_constant()))
    fused.match(expr)

Names and signatures are those of `tvm.relay.dataflow_pattern`. A pattern is a value that is never changed; it matches
an expression from its root downwards (see `relaylang.patterns.matcher`).
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relaylang.ir import Expr
from relaylang.ir.types import Type


class DFPattern:
    """A pattern. Calling one makes the pattern of a call with that callee."""

    __slots__ = ()

    def __call__(self, *args: DFPattern | Sequence[DFPattern] | None) -> CallPattern:
        """A call of what this pattern matches. A single None leaves the arguments open."""
        if len(args) == 1 and args[0] is None:
            return CallPattern(self, None)
        if len(args) == 1 and isinstance(args[0], (list, tuple)):
            args = tuple(args[0])
        return CallPattern(self, args)  # type: ignore[arg-type]

    def __or__(self, other: DFPattern) -> AltPattern:
        return AltPattern(self, other)

    def optional(self, option_constructor: Callable[[DFPattern], DFPattern]) -> DFPattern:
        """This pattern, or what the function makes of it; the larger one is tried first."""
        return AltPattern(option_constructor(self), self)

    def has_attr(self, attrs: Mapping[str, Any]) -> AttrPattern:
        """This pattern, on a call or a function whose attributes have these values."""
        return AttrPattern(self, dict(attrs))

    def has_dtype(self, dtype: str) -> DataTypePattern:
        """This pattern, on a tensor of the element type."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[int]) -> ShapePattern:
        """This pattern, on a tensor of the shape."""
        return ShapePattern(self, tuple(shape))

    def has_type(self, ttype: Type) -> TypePattern:
        """This pattern, on an expression of the type."""
        return TypePattern(self, ttype)

    def match(self, expr: Expr) -> bool:
        """Whether the expression matches. Types and attributes are those that the checker has found."""
        from relaylang.patterns.matcher import find_match

        return find_match(self, expr) is not None


class WildcardPattern(DFPattern):
    """Anything."""

    __slots__ = ()


class ConstantPattern(DFPattern):
    """A constant."""

    __slots__ = ()


class VarPattern(DFPattern):
    """A variable; of that name where one is given."""

    __slots__ = ("name",)

    def __init__(self, name_hint: str = "") -> None:
        self.name = name_hint


class ExprPattern(DFPattern):
    """Exactly this expression: the same operator, the same node, or a constant with the same value."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        self.expr = expr


class OpNamePattern(DFPattern):
    """The operator of that name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class CallPattern(DFPattern):
    """A call; `args` is None where any arguments will do. Arguments of `add` and `multiply` match in either order."""

    __slots__ = ("args", "op")

    def __init__(self, op: DFPattern, args: Sequence[DFPattern] | None) -> None:
        self.op = op
        self.args = None if args is None else tuple(args)


class TuplePattern(DFPattern):
    """A tuple; `fields` is None where any fields will do."""

    __slots__ = ("fields",)

    def __init__(self, fields: Sequence[DFPattern] | None) -> None:
        self.fields = None if fields is None else tuple(fields)


class TupleGetItemPattern(DFPattern):
    """A field of a tuple; of any number where `index` is None."""

    __slots__ = ("index", "tuple")

    def __init__(self, tuple_value: DFPattern, index: int | None = None) -> None:
        self.tuple = tuple_value
        self.index = index


class AltPattern(DFPattern):
    """Either pattern, the left one first."""

    __slots__ = ("left", "right")

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left = left
        self.right = right


class AttrPattern(DFPattern):
    __slots__ = ("attrs", "pattern")

    def __init__(self, pattern: DFPattern, attrs: dict[str, Any]) -> None:
        self.pattern = pattern
        self.attrs = attrs


class DataTypePattern(DFPattern):
    __slots__ = ("dtype", "pattern")

    def __init__(self, pattern: DFPattern, dtype: str) -> None:
        self.pattern = pattern
        self.dtype = dtype


class ShapePattern(DFPattern):
    __slots__ = ("pattern", "shape")

    def __init__(self, pattern: DFPattern, shape: tuple[int, ...]) -> None:
        self.pattern = pattern
        self.shape = shape


class TypePattern(DFPattern):
    __slots__ = ("pattern", "type")

    def __init__(self, pattern: DFPattern, ttype: Type) -> None:
        self.pattern = pattern
        self.type = ttype


def wildcard() -> DFPattern:
    """Anything."""
    return WildcardPattern()


def is_constant() -> DFPattern:
    """A constant."""
    return ConstantPattern()


def is_var(name: str = "") -> DFPattern:
    """A variable; of that name where one is given."""
    return VarPattern(name)


def is_expr(expr: Expr) -> DFPattern:
    """Exactly this expression."""
    return ExprPattern(expr)


def is_op(op_name: str) -> DFPattern:
    """The operator of that name; call it for a call of it: `is_op("add")(wildcard(), wildcard())`."""
    return OpNamePattern(op_name)


def is_tuple(fields: Sequence[DFPattern] | None) -> DFPattern:
    """A tuple of these fields, or any tuple for None."""
    return TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> DFPattern:
    """A field of a tuple."""
    return TupleGetItemPattern(tuple_value, index)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> DFPattern:
    """The pattern (anything, if none is given) with these attribute values."""
    return (pattern or wildcard()).has_attr(attrs)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DFPattern:
    """The pattern (anything, if none is given) on a tensor of the element type."""
    return (pattern or wildcard()).has_dtype(dtype)


def has_shape(shape: Sequence[int], pattern: DFPattern | None = None) -> DFPattern:
    """The pattern (anything, if none is given) on a tensor of the shape."""
    return (pattern or wildcard()).has_shape(shape)


def has_type(ttype: Type, pattern: DFPattern | None = None) -> DFPattern:
    """The pattern (anything, if none is given) on an expression of the type."""
    return (pattern or wildcard()).has_type(ttype)
