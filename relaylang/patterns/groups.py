"""Groups: all matches of a pattern in a program that do not overlap, each of which can become a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relaylang.diagnostics import RelayError
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    FuncType,
    If,
    Let,
    Match,
    Tuple,
    TupleGetItem,
    bound_vars,
    children,
    post_order,
    rebuild,
)
from relaylang.ir.bulk import gc_paused
from relaylang.ir.typed import retype, typed, typed_var
from relaylang.ops.record import Op
from relaylang.patterns.graph import Graph
from relaylang.patterns.language import (
    AltPattern,
    CallPattern,
    ConstantPattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    TuplePattern,
    all_parts,
    parts,
    root_operators,
)
from relaylang.patterns.matcher import Matcher, has_attrs, same_expr
from relaylang.typing import infer


@dataclass
class Group:
    """One match: its root, the nodes by part of the pattern, the nodes between root and inputs, and the inputs."""

    root: Expr
    node_map: dict[DFPattern, list[Expr]]
    inputs: list[Expr]
    body: list[Expr]  # operands first, the root last; constants and operators included

    @property
    def name(self) -> str:
        """The operators' names in order, each with a `_` behind it, as TVM names a partition."""
        return "".join(_part_name(node) for node in self.body)

    def function(self, names: Sequence[str], attrs: Mapping[str, Any]) -> Function:
        """The group as a function of its inputs, with a name for each. Nodes that stand for others keep their types."""
        new: dict[int, Expr] = {}
        params = []
        for name, node in zip(names, self.inputs, strict=True):
            param = typed_var(name, node.checked_type, node.span)
            params.append(param)
            new[id(node)] = param
        for node in self.body:
            new[id(node)] = retype(rebuild(node, tuple([new.get(id(c), c) for c in children(node)])), node)
        function = Function(params, new[id(self.root)], self.root.checked_type, (), attrs, self.root.span)
        types = [p.checked_type for p in params if p.checked_type is not None]
        if function.ret_type is not None and len(types) == len(params):
            typed(function, FuncType(types, function.ret_type))
        return function


def _part_name(node: Expr) -> str:
    match node:
        case Call(op=Op(name)):
            return name + "_"
        case Call():
            return "Call_"
        case Tuple():
            return "Tuple_"
        case TupleGetItem():
            return f"TupleGetItem{node.index}_"
        case Function():
            return "Function"
        case Let():
            return "Let_"
        case If():
            return "If_"
        case Match():
            return "Match_"
    return ""


def find_groups(pattern: DFPattern, expr: Expr, graph: Graph | None = None) -> list[Group]:
    """The matches of a pattern in an expression, from its result upwards, those that overlap an earlier one left out.

    A match also needs its inner nodes for itself: a use outside must lead back to its root.
    Functions that come from a pattern themselves are not looked into.
    """
    graph = graph if graph is not None else Graph(expr)
    operators = root_operators(pattern)
    closed = inside_partitions(graph)
    matcher = Matcher(graph)
    taken: set[int] = set()
    groups: list[Group] = []
    for node in reversed(graph.order):
        if id(node) in taken or id(node) in closed:
            continue
        if operators is not None and not (isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in operators):
            continue
        if not matcher.match(pattern, node):
            continue
        group = make_group(pattern, node, matcher, graph, taken)
        if group is not None:
            groups.append(group)
            taken.update([id(n) for n in group.body if not isinstance(n, (Op, Constant))])
    return groups


def inside_partitions(graph: Graph) -> set[int]:
    closed: set[int] = set()
    for node in graph.order:
        if isinstance(node, Function) and "PartitionedFromPattern" in node.attrs and node.body is not None:
            closed.add(id(node))
            closed.update([id(n) for n in post_order(node.body) if not isinstance(n, Op)])
    return closed


def make_group(pattern: DFPattern, root: Expr, matcher: Matcher, graph: Graph, taken: set[int]) -> Group | None:
    """The group of a match; None where it overlaps one of the `taken` nodes, or others use its values."""
    memo = matcher.memo
    inputs = _inputs(pattern, memo)
    inputs.pop(id(root), None)
    body = _between(root, inputs)
    inside = {id(node) for node in body}
    for node in body:
        if isinstance(node, (Op, Function, Constant)) or id(node) in inputs:
            continue
        if id(node) in taken:
            return None
        if node is root:
            continue
        for user in graph.users[id(node)]:
            if id(user) not in inside and not graph.dominates(root, user):
                return None
    return Group(root, {p: list(n) for p, n in memo.items()}, list(inputs.values()), body)


def _inputs(pattern: DFPattern, memo: Mapping[DFPattern, Sequence[Expr]]) -> dict[int, Expr]:
    """What the open ends of a matched pattern stand for, by identity."""
    inner = _inner(pattern, memo)
    inputs: dict[int, Expr] = {}
    for part in all_parts(pattern):
        for node in memo.get(part, ()):
            for end in _open_ends(part, node):
                if id(end) not in inner and not isinstance(end, (Op, Function)) and not _embedded(end, part):
                    inputs.setdefault(id(end), end)
    return inputs


def _open_ends(part: DFPattern, node: Expr) -> tuple[Expr, ...]:
    """The values of a node that a part of a pattern leaves open."""
    if isinstance(part, TuplePattern):
        return node.fields if part.fields is None and isinstance(node, Tuple) else ()
    if isinstance(part, CallPattern) and isinstance(node, Call) and (part.args is None or part.rest):
        return node.args[len(part.args or ()) :]
    return () if parts(part) else (node,)


def _inner(pattern: DFPattern, memo: Mapping[DFPattern, Sequence[Expr]]) -> set[int]:
    """The nodes that are inside whatever open end they match: those on a dominator's paths, and in functions."""
    inner: set[int] = set()
    for part in all_parts(pattern):
        if isinstance(part, DominatorPattern):
            inner.update([id(n) for p in (part.parent, part.path) for n in memo.get(p, ())])
        elif isinstance(part, FunctionPattern):
            inner.update([id(n) for p in parts(part) for n in memo.get(p, ())])
            for function in memo.get(part, ()):
                inner.update(_of_own_variables(function))
    return inner


def _of_own_variables(function: Expr) -> set[int]:
    """Nodes that cannot leave a function: its variables and the values made of them."""
    own = {id(v) for v in bound_vars(function)}
    for node in post_order(function):
        if any(id(c) in own for c in children(node)):
            own.add(id(node))
    own.discard(id(function))
    return own


def _between(root: Expr, inputs: Mapping[int, Expr]) -> list[Expr]:
    """The nodes from the root up to the inputs, operands first; operators are left out."""
    order: list[Expr] = []
    done: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif id(node) not in done and id(node) not in inputs and not isinstance(node, Op):
            done.add(id(node))
            stack.append((node, True))
            stack.extend([(c, False) for c in reversed(children(node))])
    return order


def _embedded(node: Expr, part: DFPattern) -> bool:
    """Whether a constant belongs into the group: the pattern asks for a constant there."""
    if not isinstance(node, Constant):
        return False
    while isinstance(part, AltPattern):
        left = part.left
        fits = isinstance(left, ConstantPattern) or (isinstance(left, ExprPattern) and same_expr(left.expr, node))
        part = left if fits else part.right
    return isinstance(part, ConstantPattern) or (isinstance(part, ExprPattern) and isinstance(part.expr, Constant))


def partition(
    pattern: DFPattern,
    expr: Expr,
    attrs: Mapping[str, Any] | None = None,
    check: Callable[[Expr], bool] | None = None,
) -> Expr:
    """The expression with each match as a call of a function of its own. The function has the attribute
    `PartitionedFromPattern` and those of `attrs`. `check` is asked about each match's root and may refuse it.

    Matches do not overlap; those nearest to the result come first. New nodes have the types of those that they stand
    for.
    """
    if isinstance(pattern, FunctionPattern):
        return expr
    with gc_paused():
        groups = find_groups(pattern, expr)
        if not groups:
            return expr
        return replace_groups(expr, groups, attrs, check)


def replace_groups(
    expr: Expr,
    groups: list[Group],
    attrs: Mapping[str, Any] | None = None,
    check: Callable[[Expr], bool] | None = None,
) -> Expr:
    """The expression with calls of functions in place of groups."""
    calls = {}
    for number, group in enumerate([g for g in groups if check is None or check(g.root)]):
        names = [f"FunctionVar_{number}_{i}" for i in range(len(group.inputs))]
        calls[id(group.root)] = (group, group.function(names, {"PartitionedFromPattern": group.name, **(attrs or {})}))
    return replace_with(expr, calls)[0] if calls else expr


def replace_with(expr: Expr, made: Mapping[int, tuple[Group, Function]]) -> tuple[Expr, dict[int, Expr]]:
    """The expression with calls of functions in place of groups, which are given by their roots' ids.

    The second result has the new nodes, by the old nodes' ids.
    """
    done: dict[int, Expr] = {}
    for node in post_order(expr):
        entry = made.get(id(node))
        new: Expr
        if entry is not None:
            group, function = entry
            new = Call(function, [done[id(i)] for i in group.inputs], None, (), node.span)
        else:
            new = rebuild(node, tuple([done[id(c)] for c in children(node)]))
        done[id(node)] = retype(new, node)
    return done[id(expr)], done


def find_types(expr: Expr, mod: Any = None) -> None:
    """Find the types of an expression for patterns that look at them. Raises `RelayError`."""
    if expr.checked_type is None:
        diagnostics = infer(expr, fragment=True, module=mod)
        if any(d.severity == "error" for d in diagnostics):
            raise RelayError(diagnostics)


__all__ = ["Group", "find_groups", "find_types", "has_attrs", "partition", "replace_groups"]
