"""Why a pattern does not match: how far it came, and at which node it failed."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.diagnostics import Diagnostic, error
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    type_text,
)
from relaylang.ops.record import Op
from relaylang.patterns.graph import Graph
from relaylang.patterns.groups import find_types
from relaylang.patterns.language import (
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
    all_parts,
    needs_types,
)
from relaylang.patterns.matcher import Furthest, Match, Matcher, same_value, to_match


@dataclass(frozen=True)
class Explanation:
    """The result of matching one pattern at one node.

    `match` is the match, or None. Otherwise `failed_at` is the node at which the attempt that came furthest ended.
    `wanted` is the part of the pattern that failed there, and `reason` a sentence. `met` counts the nodes matched
    before, of `parts` in the whole pattern.
    """

    match: Match | None
    failed_at: Expr | None = None
    wanted: DFPattern | None = None
    reason: str = ""
    met: tuple[Expr, ...] = ()
    parts: int = 0

    def __bool__(self) -> bool:
        return self.match is not None

    def __str__(self) -> str:
        return "it matches" if self.match is not None else self.reason

    def diagnostic(self) -> Diagnostic | None:
        """The failure with its place in the program and the nodes met before it; None for a match."""
        if self.match is not None:
            return None
        span = self.failed_at.span if self.failed_at is not None else None
        shown = [(n.span, "met") for n in self.met if isinstance(n, Call) and n is not self.failed_at][:8]
        wants = f"`{self.wanted}` is wanted here" if self.wanted is not None else ""
        return error("R0524", f"the pattern does not match: {self.reason}", span, wants, also=shown)


def explain_match(pattern: DFPattern, expr: Expr, graph: Graph | None = None) -> Explanation:
    """Match a pattern at an expression, and say how far it came where it does not match.

    Of several alternatives, the result has the one with the most matched nodes.
    """
    if needs_types(pattern):
        find_types(expr)
    furthest = Furthest()
    matcher = Matcher(graph, furthest)
    if matcher.match(pattern, expr):
        return Explanation(to_match(pattern, expr, matcher))
    assert furthest.pattern is not None and furthest.expr is not None
    met = {id(n): n for _, n in furthest.trail if not isinstance(n, Op)}
    reason = _either(furthest) or _another(furthest) or reason_of(furthest.pattern, furthest.expr)
    return Explanation(
        None,
        furthest.expr,
        furthest.pattern,
        reason.replace(" is wanted, and it is ", f" is wanted{_as_operand(furthest)}, and it is ", 1),
        tuple(met.values()),
        len(all_parts(pattern)),
    )


def _either(furthest: Furthest) -> str | None:
    """What several alternatives wanted at the same node, where they wanted calls and constants."""
    assert furthest.expr is not None
    wanted_ops = [p.name for p in (furthest.pattern, *furthest.others) if isinstance(p, OpNamePattern)]
    if len(set(wanted_ops)) > 1 and len(wanted_ops) == len(furthest.others) + 1:
        return f"{' or '.join(dict.fromkeys(wanted_ops))} is wanted, and it is {describe(furthest.expr)}"
    names: list[str] = []
    constant = False
    for part in (furthest.pattern, *furthest.others):
        if isinstance(part, CallPattern) and isinstance(part.op, OpNamePattern):
            names.append(part.op.name)
        elif isinstance(part, ConstantPattern):
            constant = True
        else:
            return None
    expr = furthest.expr
    own = expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else ""
    names = list(dict.fromkeys(names))
    if len(names) + constant < 2 or own in names:
        return None
    shown = names[:4] + ([f"{len(names) - 4} others"] if len(names) > 4 else [])
    wanted = [f"a call of {' or '.join([', '.join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)}"] if shown else []
    wanted += ["a constant"] if constant else []
    return f"{' or '.join(wanted)} is wanted, and it is {describe(expr)}"


def _another(furthest: Furthest) -> str | None:
    """Of a part that stands twice in the pattern and met another node before: both nodes."""
    assert furthest.expr is not None
    for part, node in furthest.trail:
        if part is furthest.pattern and node is not furthest.expr:
            here = describe(furthest.expr)
            return f"one node is wanted in both places of `{part}`: it was {describe(node)}, and here it is {here}"
    return None


def _as_operand(furthest: Furthest) -> str:
    """As what the node was met: ` as bias of nn.bias_add`."""
    for _, owner in reversed(furthest.trail):
        if isinstance(owner, Call) and isinstance(owner.op, Op):
            for i, argument in enumerate(owner.args):
                if argument is furthest.expr and not owner.op.variadic and i < len(owner.op.args):
                    return f" as {owner.op.args[i]} of {owner.op.name}"
    return ""


def progress(explanation: Explanation) -> int:
    """How much of the program a failed attempt had met: to tell which of several patterns came nearest."""
    return sum(1 for n in explanation.met if isinstance(n, (Call, Tuple, TupleGetItem)))


def describe(expr: Expr) -> str:
    """A node in a few words."""
    match expr:
        case Call(op=Op(name)):
            return f"a call of {name}"
        case Call(op=GlobalVar(name)):
            return f"a call of @{name}"
        case Call():
            return "a call of a function"
        case Op(name):
            return name
        case Var(name):
            return f"the variable %{name}"
        case Constant():
            return "a constant"
        case Tuple(fields):
            return f"a tuple of {len(fields)}"
        case TupleGetItem():
            return f"field {expr.index} of a tuple"
        case Function():
            return "a function"
        case If():
            return "a branch"
        case Let():
            return "a let"
    return f"a {type(expr).__name__}"


def _typed(expr: Expr) -> str:
    ty = expr.checked_type
    return "of unknown type" if ty is None else f"`{type_text(ty)}`"


def reason_of(pattern: DFPattern, expr: Expr) -> str:
    """Why a part of a pattern did not meet a node."""
    it = describe(expr)
    wanted = _wanted(pattern)
    if wanted is not None:
        return f"{wanted} is wanted, and it is {it}"
    match pattern:
        case CallPattern():
            return _call_reason(pattern, expr, it)
        case ExprPattern():
            return f"{describe(pattern.expr)} is wanted, and it is {'another' if type(expr) is type(pattern.expr) else it}"
        case AttrPattern():
            return _attr_reason(pattern, expr, it)
        case DataTypePattern():
            ty = expr.checked_type
            have = ty.dtype if isinstance(ty, TensorType) else _typed(expr)
            return f"{pattern.dtype} is wanted, and {it} is {have}"
        case ShapePattern():
            return f"the shape {tuple(pattern.shape)} is wanted, and {it} is {_typed(expr)}"
        case TypePattern():
            return f"the type {type_text(pattern.type)} is wanted, and {it} is {_typed(expr)}"
        case FunctionPattern():
            if isinstance(expr, Function) and pattern.params is not None:
                count = f"{len(pattern.params)} parameter{'' if len(pattern.params) == 1 else 's'}"
                return f"a function of {count} is wanted, and it has {len(expr.params)}"
            return f"a function is wanted, and it is {it}"
        case DominatorPattern():
            return f"{it} is not on a path from the parent, or is used beside the path"
    return f"{it} is another node than the one that this part met before"


def _wanted(pattern: DFPattern) -> str | None:
    """The kind of node that a pattern asks for; None where it asks for more."""
    match pattern:
        case OpNamePattern():
            return pattern.name
        case ConstantPattern():
            return "a constant"
        case VarPattern():
            return f"the variable %{pattern.name}" if pattern.name else "the variable"
        case TuplePattern():
            return "a tuple" if pattern.fields is None else f"a tuple of {len(pattern.fields)}"
        case TupleGetItemPattern():
            return "a field of a tuple" if pattern.index is None else f"field {pattern.index} of a tuple"
        case IfPattern():
            return "a branch"
        case LetPattern():
            return "a let"
    return None


def _call_reason(pattern: CallPattern, expr: Expr, it: str) -> str:
    wanted = pattern.op.name if isinstance(pattern.op, OpNamePattern) else "something"
    if isinstance(expr, Call) and pattern.args is not None:
        if not isinstance(pattern.op, OpNamePattern) or (isinstance(expr.op, Op) and expr.op.name == wanted):
            count = f"{len(pattern.args)} argument{'' if len(pattern.args) == 1 else 's'}"
            return f"a call with {count} is wanted, and {it} has {len(expr.args)}"
    return f"a call of {wanted} is wanted, and it is {it}"


def _attr_reason(pattern: AttrPattern, expr: Expr, it: str) -> str:
    have = expr.attrs if isinstance(expr, (Call, Function)) else None
    for key, value in pattern.attrs.items():
        known = have.get(key) if isinstance(have, dict) else getattr(have, key, None)
        missing = key not in have if isinstance(have, dict) else not hasattr(have, key)
        if missing:
            return f"{it} has no attribute {key}"
        if not same_value(known, value):
            return f"{key}={value!r} is wanted, and {it} has {key}={known!r}"
    return f"the attributes of {it} are others"
