"""The pattern language: what a dataflow pattern is made of.

    conv = is_op("qnn.conv2d")(wildcard(), is_constant(), wildcard(), wildcard(), wildcard(), wildcard())
    fused = conv.optional(lambda p: is_op("nn.bias_add")(p, is_constant()))
    fused.match(expr)

Names and signatures are those of `tvm.relay.dataflow_pattern`. A pattern is a value that is never changed; it matches
an expression from its root downwards. Recursion follows the pattern, whose depth its author chose, never the program.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr, Function, TensorType, Tuple, TupleGetItem, Type, Var
from relaylang.ops.record import Op


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


# ---- matching

_COMMUTATIVE = frozenset({"add", "multiply"})


@dataclass(frozen=True)
class Match:
    """What a pattern met.

    `nodes` are the calls, tuples and projections that the pattern names, the root last; `constants` the constants that
    it names; `inputs` what its open ends (wildcards, variables) stand for, each once, in the pattern's order.
    `bindings` has an expression for every part of the pattern that took part.
    """

    root: Expr
    nodes: tuple[Expr, ...]
    constants: tuple[Constant, ...]
    inputs: tuple[Expr, ...]
    bindings: dict[DFPattern, Expr]


def find_match(pattern: DFPattern, expr: Expr) -> Match | None:
    """The match of a pattern at an expression, or None. A part that stands twice in a pattern meets one node."""
    trail: list[tuple[DFPattern, Expr]] = []
    bound: dict[DFPattern, Expr] = {}
    if not _matches(pattern, expr, bound, trail):
        return None
    nodes: dict[int, Expr] = {}
    inputs: dict[int, Expr] = {}
    constants: dict[int, Constant] = {}
    for part, node in trail:
        match part:
            case CallPattern() | TuplePattern() | TupleGetItemPattern():
                nodes[id(node)] = node
                for child in _open_ends(part, node):
                    inputs[id(child)] = child
            case ConstantPattern() if isinstance(node, Constant):
                constants[id(node)] = node
            case WildcardPattern() | VarPattern() | ExprPattern():
                if isinstance(node, Op):
                    continue
                inputs[id(node)] = node
    kept = tuple(n for n in inputs.values() if id(n) not in nodes and id(n) not in constants)
    return Match(expr, tuple(nodes.values()), tuple(constants.values()), kept, bound)


def _matches(pattern: DFPattern, expr: Expr, bound: dict[Any, Expr], trail: list[tuple[DFPattern, Expr]]) -> bool:
    if pattern in bound:
        return bound[pattern] is expr
    mark = len(trail)
    if not _matches_part(pattern, expr, bound, trail):
        for part, _ in trail[mark:]:
            bound.pop(part, None)
        del trail[mark:]
        return False
    bound[pattern] = expr
    trail.append((pattern, expr))
    return True


def _matches_part(
    pattern: DFPattern, expr: Expr, bound: dict[Any, Expr], trail: list[tuple[DFPattern, Expr]]
) -> bool:
    match pattern:
        case WildcardPattern():
            return True
        case ConstantPattern():
            return isinstance(expr, Constant)
        case VarPattern():
            return isinstance(expr, Var) and pattern.name in ("", expr.name_hint)
        case OpNamePattern():
            return isinstance(expr, Op) and expr.name == pattern.name
        case ExprPattern():
            return _same_expr(pattern.expr, expr)
        case AltPattern():
            return _matches(pattern.left, expr, bound, trail) or _matches(pattern.right, expr, bound, trail)
        case CallPattern():
            return isinstance(expr, Call) and _matches_call(pattern, expr, bound, trail)
        case TuplePattern():
            if not isinstance(expr, Tuple):
                return False
            return pattern.fields is None or _match_all(pattern.fields, expr.fields, bound, trail)
        case TupleGetItemPattern():
            if not isinstance(expr, TupleGetItem) or pattern.index not in (None, expr.index):
                return False
            return _matches(pattern.tuple, expr.tuple_value, bound, trail)
        case AttrPattern():
            return _has_attrs(pattern.attrs, expr) and _matches(pattern.pattern, expr, bound, trail)
        case DataTypePattern():
            ty = expr.checked_type
            fits = isinstance(ty, TensorType) and ty.dtype == pattern.dtype
            return fits and _matches(pattern.pattern, expr, bound, trail)
        case ShapePattern():
            ty = expr.checked_type
            fits = isinstance(ty, TensorType) and ty.shape == pattern.shape
            return fits and _matches(pattern.pattern, expr, bound, trail)
        case TypePattern():
            return expr.checked_type == pattern.type and _matches(pattern.pattern, expr, bound, trail)
    raise AssertionError(f"{type(pattern).__name__} is no pattern")


def _matches_call(pattern: CallPattern, call: Call, bound: dict[Any, Expr], trail: list) -> bool:
    if not _matches(pattern.op, call.op, bound, trail):
        return False
    if pattern.args is None:
        return True
    if _match_all(pattern.args, call.args, bound, trail):
        return True
    if isinstance(call.op, Op) and call.op.name in _COMMUTATIVE:
        return _match_all(pattern.args, call.args[::-1], bound, trail)
    return False


def _match_all(parts: tuple[DFPattern, ...], exprs: tuple[Expr, ...], bound: dict[Any, Expr], trail: list) -> bool:
    if len(parts) != len(exprs):
        return False
    mark = len(trail)
    for part, expr in zip(parts, exprs):
        if not _matches(part, expr, bound, trail):
            for done, _ in trail[mark:]:
                bound.pop(done, None)
            del trail[mark:]
            return False
    return True


def _open_ends(part: DFPattern, node: Expr) -> tuple[Expr, ...]:
    """What stands under a matched node where the pattern leaves it open."""
    if isinstance(part, CallPattern) and part.args is None and isinstance(node, Call):
        return node.args
    if isinstance(part, TuplePattern) and part.fields is None and isinstance(node, Tuple):
        return node.fields
    return ()


def _same_expr(wanted: Expr, expr: Expr) -> bool:
    if wanted is expr:
        return True
    if isinstance(wanted, Constant) and isinstance(expr, Constant):
        return wanted.dtype == expr.dtype and np.array_equal(wanted.data, expr.data)
    return isinstance(wanted, Op) and isinstance(expr, Op) and wanted.name == expr.name


def _has_attrs(wanted: dict[str, Any], expr: Expr) -> bool:
    if isinstance(expr, Function):
        return all(key in expr.attrs and _same_value(expr.attrs[key], value) for key, value in wanted.items())
    if not isinstance(expr, Call):
        return False
    attrs = expr.attrs
    return all(hasattr(attrs, key) and _same_value(getattr(attrs, key), value) for key, value in wanted.items())


def _same_value(have: Any, want: Any) -> bool:
    if isinstance(have, (list, tuple)) and isinstance(want, (list, tuple)):
        return len(have) == len(want) and all(_same_value(a, b) for a, b in zip(have, want))
    return bool(have == want)
