"""The pattern language: what a dataflow pattern is made of.

    conv = is_op("qnn.conv2d")(wildcard(), is_constant(), wildcard(), wildcard(), wildcard(), wildcard())
    fused = conv.optional(lambda p: is_op("nn.bias_add")(p, is_constant()))
    fused.match(expr)

Names and signatures are those of `tvm.relay.dataflow_pattern`. A pattern is a value that is never changed; it matches
an expression from its root downwards. Recursion follows the pattern, whose depth its author chose, never the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from relaylang.ir import Expr, Type
from relaylang.ops import SYMBOLS

if TYPE_CHECKING:
    from relaylang.diagnostics.source import Span


#: Set by `relaylang.patterns`: what finds matches and divides programs stands above the language.
_ABOVE: dict[str, Callable[..., Any]] = {}
#: How often a wildcard was redirected. A redirection invalidates everything computed from patterns before.
_REDIRECTED = [0]


class DFPattern:
    """A pattern. Calling one makes the pattern of a call with that callee.

    `span` is its place in a text where it was read from one. Patterns joined by `+ - * /` are calls of those operators.
    """

    __slots__ = ("_order", "span")
    span: Span | None
    _order: tuple[int, tuple[DFPattern, ...]]

    def __new__(cls, *_: Any, **__: Any) -> DFPattern:
        pattern = super().__new__(cls)
        pattern.span = None
        return pattern

    def __call__(self, *args: DFPattern | Sequence[DFPattern] | None) -> CallPattern:
        """A pattern of calls of the expressions that this pattern matches. A single None leaves the arguments open."""
        if len(args) == 1 and args[0] is None:
            return CallPattern(self, None)
        if len(args) == 1 and isinstance(args[0], (list, tuple)):
            args = tuple(args[0])
        return CallPattern(self, args)  # type: ignore[arg-type]

    def __or__(self, other: DFPattern) -> AltPattern:
        return AltPattern(self, other)

    def __add__(self, other: DFPattern) -> CallPattern:
        return is_op(SYMBOLS["+"])(self, other)

    def __sub__(self, other: DFPattern) -> CallPattern:
        return is_op(SYMBOLS["-"])(self, other)

    def __mul__(self, other: DFPattern) -> CallPattern:
        return is_op(SYMBOLS["*"])(self, other)

    def __truediv__(self, other: DFPattern) -> CallPattern:
        return is_op(SYMBOLS["/"])(self, other)

    def dominates(self, parent: DFPattern, path: DFPattern | None = None) -> DominatorPattern:
        """This pattern, where every way from `parent` leads through nodes of the pattern `path` to it and nowhere else."""
        return DominatorPattern(parent, path if path is not None else wildcard(), self)

    def partition(self, expr: Expr, attrs: Mapping[str, Any] | None = None, check: Callable[[Expr], bool] = lambda _: True) -> Expr:
        """The expression with each match as a call of a function of its own; see `patterns.partition`."""
        partitioned: Expr = _ABOVE["partition"](self, expr, attrs, check)
        return partitioned

    def __str__(self) -> str:
        return str(_ABOVE["pattern_text"](self))

    def __repr__(self) -> str:
        return f"<pattern {self}>"

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
        return bool(_ABOVE["match"](self, expr))


class WildcardPattern(DFPattern):
    """Anything; or, once redirected, another pattern, which may hold this one (a pattern for chains of any length)."""

    __slots__ = ("pattern",)

    def __init__(self) -> None:
        self.pattern: DFPattern | None = None

    def redirect_to(self, pattern: DFPattern) -> None:
        """Stand for another pattern from here on."""
        self.pattern = pattern
        _REDIRECTED[0] += 1


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
    """A call; `args` is None where any arguments will do. Arguments of `add` and `multiply` match in either order.

    With `rest` there may be further arguments.
    """

    __slots__ = ("args", "op", "rest")

    def __init__(self, op: DFPattern, args: Sequence[DFPattern] | None, rest: bool = False) -> None:
        self.op = op
        self.args = None if args is None else tuple(args)
        self.rest = rest


class FunctionPattern(DFPattern):
    """A function; `params` is None where any parameters will do."""

    __slots__ = ("body", "params")

    def __init__(self, params: Sequence[DFPattern] | None, body: DFPattern) -> None:
        self.params = None if params is None else tuple(params)
        self.body = body


class IfPattern(DFPattern):
    """A branch."""

    __slots__ = ("cond", "false_branch", "true_branch")

    def __init__(self, cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> None:
        self.cond = cond
        self.true_branch = true_branch
        self.false_branch = false_branch


class LetPattern(DFPattern):
    """A let."""

    __slots__ = ("body", "value", "var")

    def __init__(self, var: DFPattern, value: DFPattern, body: DFPattern) -> None:
        self.var = var
        self.value = value
        self.body = body


class DominatorPattern(DFPattern):
    """`child`, where every way upwards from it leads through nodes of `path` to one node of `parent`.

    Every way downwards from that node leads to the child.
    """

    __slots__ = ("child", "parent", "path")

    def __init__(self, parent: DFPattern, path: DFPattern, child: DFPattern) -> None:
        self.parent = parent
        self.path = path
        self.child = child


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
    """A node with certain attributes: see `has_attr`."""

    __slots__ = ("attrs", "pattern")

    def __init__(self, pattern: DFPattern, attrs: dict[str, Any]) -> None:
        self.pattern = pattern
        self.attrs = attrs


class DataTypePattern(DFPattern):
    """A tensor of one element type: see `has_dtype`."""

    __slots__ = ("dtype", "pattern")

    def __init__(self, pattern: DFPattern, dtype: str) -> None:
        self.pattern = pattern
        self.dtype = dtype


class ShapePattern(DFPattern):
    """A tensor of one shape: see `has_shape`."""

    __slots__ = ("pattern", "shape")

    def __init__(self, pattern: DFPattern, shape: tuple[int, ...]) -> None:
        self.pattern = pattern
        self.shape = shape


class TypePattern(DFPattern):
    """An expression of one type: see `has_type`."""

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


def is_if(cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> DFPattern:
    """A branch."""
    return IfPattern(cond, true_branch, false_branch)


def is_let(var: DFPattern, value: DFPattern, body: DFPattern) -> DFPattern:
    """A let."""
    return LetPattern(var, value, body)


def function_pattern(params: Sequence[DFPattern] | None, body: DFPattern) -> DFPattern:
    """A function with these parameters, or any for None."""
    return FunctionPattern(params, body)


def dominates(parent: DFPattern, path: DFPattern, child: DFPattern) -> DFPattern:
    """The child, dominated by the parent along the path; see `DominatorPattern`."""
    return DominatorPattern(parent, path, child)


# ---- what a pattern is made of


def parts(pattern: DFPattern) -> tuple[DFPattern, ...]:
    """The patterns that stand directly inside one, in the order in which TVM lists them."""
    match pattern:
        case CallPattern():
            return (pattern.op, *(pattern.args or ()))
        case TuplePattern():
            return pattern.fields or ()
        case TupleGetItemPattern():
            return (pattern.tuple,)
        case AltPattern():
            return (pattern.left, pattern.right)
        case FunctionPattern():
            return (*(pattern.params or ()), pattern.body)
        case IfPattern():
            return (pattern.cond, pattern.true_branch, pattern.false_branch)
        case LetPattern():
            return (pattern.var, pattern.value, pattern.body)
        case DominatorPattern():
            return (pattern.parent, pattern.path, pattern.child)
        case AttrPattern() | DataTypePattern() | ShapePattern() | TypePattern():
            return (pattern.pattern,)
        case WildcardPattern() if pattern.pattern is not None:
            return (pattern.pattern,)
    return ()


def all_parts(pattern: DFPattern) -> tuple[DFPattern, ...]:
    """A pattern's parts, each once, inner ones first, itself last."""
    known: tuple[int, tuple[DFPattern, ...]] | None = getattr(pattern, "_order", None)
    if known is not None and known[0] == _REDIRECTED[0]:
        return known[1]
    order: list[DFPattern] = []
    seen: set[int] = set()
    stack: list[tuple[DFPattern, bool]] = [(pattern, False)]
    while stack:
        part, ready = stack.pop()
        if ready:
            order.append(part)
            continue
        if id(part) in seen:
            continue
        seen.add(id(part))
        stack.append((part, True))
        stack.extend([(p, False) for p in reversed(parts(part))])
    ordered = tuple(order)
    pattern._order = (_REDIRECTED[0], ordered)
    return ordered


def needs_types(pattern: DFPattern) -> bool:
    """Whether a pattern looks at types."""
    return any(isinstance(p, (DataTypePattern, ShapePattern, TypePattern)) for p in all_parts(pattern))


#: `(a * b) / c` is `a * (b / c)`: a pattern of one form matches calls of the other, too.
PRODUCT, QUOTIENT = SYMBOLS["*"], SYMBOLS["/"]
REASSOCIATED = frozenset({PRODUCT, QUOTIENT})


def root_operators(pattern: DFPattern) -> frozenset[str] | None:
    """The operators whose calls alone the pattern can match; None where it can match something else."""
    names: set[str] = set()
    stack = [pattern]
    seen: set[int] = set()
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        match part:
            case CallPattern():
                callees = [part.op]
                while callees:
                    callee = callees.pop()
                    if isinstance(callee, OpNamePattern):
                        names.add(callee.name)
                    elif isinstance(callee, AltPattern):
                        callees += [callee.left, callee.right]
                    else:
                        return None
                if names & REASSOCIATED:
                    names |= REASSOCIATED
            case AltPattern():
                stack += [part.left, part.right]
            case AttrPattern() | DataTypePattern() | ShapePattern() | TypePattern():
                stack.append(part.pattern)
            case DominatorPattern():
                stack.append(part.child)
            case _:
                return None
    return frozenset(names)
