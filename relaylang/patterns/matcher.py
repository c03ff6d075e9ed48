"""Matching: does an expression look as a pattern says, and which node stands for which part of it?

Recursion follows the pattern, whose depth its author chose. A dominator's path may be as long as the program: there is
no recursion along it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Constant, Expr, Function, If, Let, TensorType, Tuple, TupleGetItem, Var, children
from relaylang.ops import SYMBOLS
from relaylang.ops.record import Op
from relaylang.patterns.graph import Graph
from relaylang.patterns.language import (
    PRODUCT,
    QUOTIENT,
    REASSOCIATED,
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    OpNamePattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
    all_parts,
)

#: Calls of these operators match with their arguments in either order.
_EITHER_ORDER = frozenset({SYMBOLS["+"], SYMBOLS["*"]})


@dataclass(frozen=True)
class Match:
    """A successful match.

    `nodes` are the calls, tuples and projections that the pattern names, the root last. `constants` are the constants
    that it names. `inputs` are the values of its open ends (wildcards, variables), each once, in the pattern's order.
    `bindings` has an expression for every part of the pattern that took part. `node_map` has all of them: the path of a
    dominator pattern may meet several.
    """

    root: Expr
    nodes: tuple[Expr, ...]
    constants: tuple[Constant, ...]
    inputs: tuple[Expr, ...]
    bindings: dict[DFPattern, Expr]
    node_map: dict[DFPattern, list[Expr]] = field(default_factory=dict)


@dataclass
class Furthest:
    """The failed attempt that met the most of the pattern.

    It has the number of met parts, and the part and node that it failed at. `others` are further parts that would have
    matched there.
    """

    met: int = -1
    pattern: DFPattern | None = None
    expr: Expr | None = None
    trail: list[tuple[DFPattern, Expr]] = field(default_factory=list)
    others: list[DFPattern] = field(default_factory=list)


class Matcher:
    """Matches patterns against nodes of one program. `graph` is that program; without it, the node's own operands."""

    def __init__(self, graph: Graph | None = None, furthest: Furthest | None = None) -> None:
        self.graph = graph
        self.furthest = furthest
        self.memo: dict[DFPattern, list[Expr]] = {}
        self.trail: list[tuple[DFPattern, Expr]] = []
        self.entered: list[tuple[DFPattern, Expr]] = []  # calls whose operator fits and whose arguments are being met
        self.root: Expr | None = None
        self.memoize = True

    def match(self, pattern: DFPattern, expr: Expr) -> bool:
        """Whether the expression matches; `memo` and `trail` then say how. Raises `RelayError` for endless patterns."""
        self.memo = {}
        self.trail = []
        self.entered = []
        self.root = expr
        self.memoize = True
        try:
            return self.part(pattern, expr)
        except RecursionError:
            raise RelayError(error("R0520", "the pattern is nested too deep, or redirected to itself", pattern.span)) from None

    def part(self, pattern: DFPattern, expr: Expr) -> bool:
        if self.memoize and pattern in self.memo:
            return self.memo[pattern][0] is expr or self.fail(pattern, expr)
        mark = len(self.trail)
        if not self.visit(pattern, expr):
            self.undo(mark)
            return False
        self.memo.setdefault(pattern, []).append(expr)
        self.trail.append((pattern, expr))
        return True

    def undo(self, mark: int) -> None:
        for part, _ in self.trail[mark:]:
            matches = self.memo[part]
            matches.pop()
            if not matches:
                del self.memo[part]
        del self.trail[mark:]

    def fail(self, pattern: DFPattern, expr: Expr) -> bool:
        best = self.furthest
        if best is not None and len(self.trail) + len(self.entered) > best.met:
            best.trail = [*self.trail, *self.entered]
            best.met, best.pattern, best.expr = len(best.trail), pattern, expr
            best.others = []
        elif best is not None and expr is best.expr and len(self.trail) + len(self.entered) == best.met:
            best.others.append(pattern)
        return False

    def visit(self, pattern: DFPattern, expr: Expr) -> bool:
        match pattern:
            case CallPattern():
                return self.call(pattern, expr) if isinstance(expr, Call) else self.fail(pattern, expr)
            case WildcardPattern():
                return pattern.pattern is None or self.part(pattern.pattern, expr)
            case AltPattern():
                return self.part(pattern.left, expr) or self.part(pattern.right, expr)
            case TuplePattern():
                if not isinstance(expr, Tuple):
                    return self.fail(pattern, expr)
                return pattern.fields is None or self.all(pattern, pattern.fields, expr.fields, expr)
            case TupleGetItemPattern() | IfPattern() | LetPattern():
                pairs = _operands(pattern, expr)
                return all(self.part(*pair) for pair in pairs) if pairs else self.fail(pattern, expr)
            case FunctionPattern():
                return self.function(pattern, expr)
            case DominatorPattern():
                return self.dominator(pattern, expr)
            case AttrPattern() | DataTypePattern() | ShapePattern() | TypePattern():
                return self.part(pattern.pattern, expr) and (_holds(pattern, expr) or self.fail(pattern, expr))
        return _holds(pattern, expr) or self.fail(pattern, expr)

    def call(self, pattern: CallPattern, call: Call) -> bool:
        mark = len(self.trail)
        op = pattern.op
        if isinstance(op, OpNamePattern) and not (isinstance(call.op, Op) and call.op.name == op.name):
            return self.associated(pattern, call) or self.fail(pattern, call)
        if not self.part(op, call.op):
            self.undo(mark)
            return self.associated(pattern, call)
        if pattern.args is None:
            return True
        args = call.args
        if pattern.rest and len(args) > len(pattern.args):
            args = args[: len(pattern.args)]
        self.entered.append((pattern, call))
        fits = self.all(pattern, pattern.args, args, call)
        if not fits and len(args) == 2 and isinstance(call.op, Op) and call.op.name in _EITHER_ORDER:
            fits = self.all(pattern, pattern.args[::-1], args, call)
        self.entered.pop()
        return fits

    def associated(self, pattern: CallPattern, call: Call) -> bool:
        """`(a * b) / c` also matches `a * (b / c)`, and the other way round."""
        outer, op = _op_name(pattern), call.op.name if isinstance(call.op, Op) else ""
        if pattern.args is None or len(pattern.args) != 2 or {outer, op} != REASSOCIATED:
            return False
        if not any(isinstance(a, Call) and isinstance(a.op, Op) and a.op.name == outer for a in call.args):
            return False
        mark = len(self.trail)
        for regrouped in _regrouped(pattern.op, outer, pattern.args):
            if self.part(regrouped, call):
                return True
            self.undo(mark)
        return False

    def all(self, pattern: DFPattern, wanted: tuple[DFPattern, ...], exprs: tuple[Expr, ...], owner: Expr) -> bool:
        if len(wanted) != len(exprs):
            return self.fail(pattern, owner)
        mark = len(self.trail)
        for part, expr in zip(wanted, exprs):
            if not self.part(part, expr):
                self.undo(mark)
                return False
        return True

    def function(self, pattern: FunctionPattern, expr: Expr) -> bool:
        if not isinstance(expr, Function) or expr.body is None:
            return self.fail(pattern, expr)
        if pattern.params is not None and not self.all(pattern, pattern.params, expr.params, expr):
            return False
        return self.part(pattern.body, expr.body)

    def dominator(self, pattern: DominatorPattern, expr: Expr) -> bool:
        if not self.part(pattern.child, expr):
            return False
        parent = self.up(pattern, expr)
        if parent is None:
            return False
        graph = self.graph
        if graph is None:
            graph = self.graph = Graph(self.root if self.root is not None else expr)
        return graph.dominates(expr, parent) or self.fail(pattern, parent)

    def up(self, pattern: DominatorPattern, child: Expr) -> Expr | None:
        """The parent that every way upwards from the child ends in, or None."""
        parent: Expr | None = None
        seen: set[int] = set()
        stack = [child]
        kept = self.memoize
        while stack:
            node = stack.pop()
            operands = [c for c in children(node) if not (isinstance(node, Call) and c is node.op)]
            if not operands:
                self.fail(pattern, node)
                return None
            for operand in operands:
                if id(operand) in seen or operand is parent:
                    continue
                self.memoize = True
                if parent is None and self.part(pattern.parent, operand):
                    parent = operand
                    continue
                seen.add(id(operand))
                self.memoize = False
                on_path = self.part(pattern.path, operand)
                self.memoize = kept
                if not on_path:
                    return None
                stack.append(operand)
        return parent


def _operands(pattern: TupleGetItemPattern | IfPattern | LetPattern, expr: Expr) -> list[tuple[DFPattern, Expr]]:
    """The parts of a pattern, each with the part of the expression that it must match; none for another kind of expression."""
    match pattern, expr:
        case TupleGetItemPattern(), TupleGetItem() if pattern.index in (None, expr.index):
            return [(pattern.tuple, expr.tuple_value)]
        case IfPattern(), If():
            branches = [(pattern.true_branch, expr.true_branch), (pattern.false_branch, expr.false_branch)]
            return [(pattern.cond, expr.cond), *branches]
        case LetPattern(), Let():
            return [(pattern.var, expr.variable), (pattern.value, expr.value), (pattern.body, expr.body)]
    return []


def _holds(pattern: DFPattern, expr: Expr) -> bool:
    """Whether an expression is as a pattern itself says; its parts apart. Raises `RelayError` (R0520) for other classes."""
    ty = expr.checked_type
    match pattern:
        case OpNamePattern():
            return isinstance(expr, Op) and expr.name == pattern.name
        case ConstantPattern():
            return isinstance(expr, Constant)
        case VarPattern():
            return isinstance(expr, Var) and pattern.name in ("", expr.name_hint)
        case ExprPattern():
            return same_expr(pattern.expr, expr)
        case AttrPattern():
            return has_attrs(pattern.attrs, expr)
        case DataTypePattern():
            return isinstance(ty, TensorType) and ty.dtype == pattern.dtype
        case ShapePattern():
            return isinstance(ty, TensorType) and ty.shape == tuple(pattern.shape)
        case TypePattern():
            return ty == pattern.type
    raise RelayError(error("R0520", f"{type(pattern).__name__} is no pattern"))


def _regrouped(op: DFPattern, outer: str, args: tuple[DFPattern, ...]) -> Iterator[CallPattern]:
    """The patterns `a * (b / c)` and `b * (a / c)` of the arguments of `(a * b) / c`; or of `a * (b / c)`: `(b * a) / c`."""
    for i, factor in enumerate(args):
        inner = args[0] if outer == QUOTIENT else factor
        if not isinstance(inner, CallPattern) or _op_name(inner) != (PRODUCT if outer == QUOTIENT else QUOTIENT):
            continue
        if inner.args is None or len(inner.args) != 2:
            continue
        if outer == QUOTIENT:
            yield CallPattern(inner.op, [inner.args[1 - i], CallPattern(op, [inner.args[i], args[1]])])
        else:
            yield CallPattern(inner.op, [CallPattern(op, [inner.args[0], args[1 - i]]), inner.args[1]])


def _op_name(pattern: DFPattern) -> str:
    return pattern.op.name if isinstance(pattern, CallPattern) and isinstance(pattern.op, OpNamePattern) else ""


def find_match(pattern: DFPattern, expr: Expr, graph: Graph | None = None) -> Match | None:
    """The match of a pattern at an expression, or None. A part that stands twice in a pattern meets one node.

    `graph` is the program around the expression, which dominator patterns need. The default is the expression alone.
    """
    matcher = Matcher(graph)
    if not matcher.match(pattern, expr):
        return None
    return to_match(pattern, expr, matcher)


def to_match(pattern: DFPattern, expr: Expr, matcher: Matcher) -> Match:
    """The match of a matcher that has just succeeded."""
    memo = matcher.memo
    nodes: dict[int, Expr] = {}
    constants: dict[int, Constant] = {}
    for part, node in matcher.trail:
        if isinstance(part, (CallPattern, TuplePattern, TupleGetItemPattern, IfPattern, LetPattern)):
            nodes[id(node)] = node
        elif isinstance(part, ConstantPattern) and isinstance(node, Constant):
            constants[id(node)] = node
    inputs: dict[int, Expr] = {}
    for part in all_parts(pattern):
        for node in memo.get(part, ()):
            for child in open_ends(part, node):
                inputs[id(child)] = child
    kept = tuple(n for n in inputs.values() if id(n) not in nodes and id(n) not in constants)
    bindings = {part: nodes[0] for part, nodes in memo.items()}
    return Match(expr, tuple(nodes.values()), tuple(constants.values()), kept, bindings, dict(memo))


def open_ends(part: DFPattern, node: Expr) -> tuple[Expr, ...]:
    """The nodes that a matched part of a pattern leaves open.

    A wildcard leaves the node itself, a call pattern the arguments that it does not name.
    """
    match part:
        case CallPattern() if isinstance(node, Call):
            return node.args if part.args is None else node.args[len(part.args) :] if part.rest else ()
        case TuplePattern() if isinstance(node, Tuple) and part.fields is None:
            return node.fields
        case WildcardPattern() if part.pattern is None and not isinstance(node, Op):
            return (node,)
        case VarPattern() | ExprPattern() if not isinstance(node, Op):
            return (node,)
    return ()


def same_expr(wanted: Expr, expr: Expr) -> bool:
    if wanted is expr:
        return True
    if isinstance(wanted, Constant) and isinstance(expr, Constant):
        return wanted.dtype == expr.dtype and np.array_equal(wanted.data, expr.data)
    return isinstance(wanted, Op) and isinstance(expr, Op) and wanted.name == expr.name


def has_attrs(wanted: dict[str, Any], expr: Expr) -> bool:
    """Whether a call's, a function's or an operator's attributes have these values. An operator's are TVM's
    `TOpPattern` and `TOpIsStateful`."""
    if isinstance(expr, Op):
        have = {"TOpPattern": int(expr.pattern), "TOpIsStateful": expr.stateful, "TNonComputational": False}
        return all(key in have and same_value(have[key], value) for key, value in wanted.items())
    if isinstance(expr, Function):
        return all(key in expr.attrs and same_value(expr.attrs[key], value) for key, value in wanted.items())
    if not isinstance(expr, Call):
        return False
    attrs = expr.attrs
    if isinstance(attrs, Mapping):  # those of a call of no operator
        return all(key in attrs and same_value(attrs[key], value) for key, value in wanted.items())
    return all(hasattr(attrs, key) and same_value(getattr(attrs, key), value) for key, value in wanted.items())


def same_value(have: Any, want: Any) -> bool:
    if isinstance(have, (list, tuple)) and isinstance(want, (list, tuple)):
        return len(have) == len(want) and all(same_value(a, b) for a, b in zip(have, want))
    return bool(have == want)
