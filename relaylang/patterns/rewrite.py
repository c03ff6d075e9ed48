"""Rewriting: callbacks that return the replacement of a match.

Example:

    class DropRelu(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.x = wildcard()
            self.pattern = is_op("nn.relu")(is_op("nn.relu")(self.x))

        def callback(self, pre, post, node_map):
            return is_op_call("nn.relu", node_map[self.x][0])

    rewrite(DropRelu(), expr)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relaylang.diagnostics import Diagnostic, Label, RelayError, error
from relaylang.ir import Expr, Function, IRModule, children, node_count, post_order, rebuild, type_text
from relaylang.ir.bulk import gc_paused
from relaylang.ir.structural import structural_equal
from relaylang.passes.context import PassContext, PassInfo
from relaylang.passes.manager import ModulePass, raised_in
from relaylang.patterns.groups import find_groups
from relaylang.patterns.language import DFPattern, needs_types
from relaylang.typing import infer

#: The most rounds over a program, and the most growth of it, before rewriting counts as endless.
ROUNDS = 100
GROWTH = 16


class DFPatternCallback:
    """A pattern and what to put in the place of its matches. Set `pattern` and write `callback`.

    `require_type`: find the types of the program before each round. `rewrite_once`: make one round that changes
    something, not as many as there are changes.
    """

    is_pattern_callback = True
    pattern: DFPattern | None
    require_type = False
    rewrite_once = False

    def __init__(self, require_type: bool = False, rewrite_once: bool = False) -> None:
        self.pattern = None
        self.require_type = require_type
        self.rewrite_once = rewrite_once

    def rewrite(self, expr: Expr) -> Expr:
        """The expression with this callback's rewrites made."""
        return rewrite(self, expr)

    def callback(self, pre: Expr, post: Expr, node_map: Mapping[DFPattern, Sequence[Expr]]) -> Expr:
        """The replacement of a match.

        `pre` is the matched expression, `post` the same with its operands rewritten. `node_map` has, for each part of
        the pattern, the (rewritten) expressions that it met.
        """
        raise RelayError(error("R0520", f"{type(self).__name__} has no method callback"))


class NodeMap(dict):
    """Part of the pattern -> expressions. A part without a match raises `RelayError` (R0520)."""

    def __missing__(self, key: object) -> Any:
        what = "is no part of the pattern, or has no expression in this match"
        raise RelayError(error("R0520", f"node_map: {key!r:.80} {what}"))


def rewrite(callbacks: DFPatternCallback | Sequence[DFPatternCallback], expr: Expr, mod: IRModule | None = None) -> Expr:
    """Rewrite an expression with one callback or several, until nothing changes.

    `mod` holds what the expression refers to. Raises `RelayError` for a callback that raises, returns no expression, or
    never ends (R0523, after 100 rounds). The new nodes have no types: run the checker for them.
    """
    rules = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    for callback in rules:
        pattern = getattr(callback, "pattern", None)
        if pattern is None:
            notes = ["set self.pattern in __init__"]
            raise RelayError(error("R0520", f"{type(callback).__name__} has no pattern", notes=notes))
        if not isinstance(pattern, DFPattern):
            title = f"the pattern of {type(callback).__name__} is a value of type {type(pattern).__name__}, and no pattern"
            raise RelayError(error("R0520", title, notes=['is_op("nn.relu")(wildcard()) is one']))
    with gc_paused():
        return _rounds(rules, expr, mod)


def _rounds(callbacks: list[DFPatternCallback], expr: Expr, mod: IRModule | None) -> Expr:
    done: set[int] = set()
    limit = 0
    for number in range(ROUNDS):
        before = expr
        if number == 2:
            limit = GROWTH * node_count(expr) + 2_000
        elif number > 2 and node_count(expr) > limit:
            break
        for callback in callbacks:
            if id(callback) in done:
                continue
            new = _round(callback, expr, mod)
            if new is not expr and callback.rewrite_once and not structural_equal(new, expr):
                done.add(id(callback))
            expr = new
        if expr is before or structural_equal(expr, before):
            return expr
    names = ", ".join(type(c).__name__ for c in callbacks)
    raise RelayError(
        error(
            "R0523",
            f"rewriting with {names} does not end: each of many rounds changed the program",
            expr.span,
            notes=["the pattern matches its callback's result, or two callbacks undo each other; see rewrite_once"],
        )
    )


def _round(callback: DFPatternCallback, expr: Expr, mod: IRModule | None) -> Expr:
    pattern = callback.pattern
    assert pattern is not None
    if callback.require_type or needs_types(pattern):
        diagnostics = infer(expr, fragment=True, module=mod)
        if any(d.severity == "error" for d in diagnostics):
            name = type(callback).__name__
            raise RelayError([error("R0522", f"the program is not well-typed before {name} is used"), *diagnostics])
    groups = {id(group.root): group for group in find_groups(pattern, expr)}
    if not groups:
        return expr
    new: dict[int, Expr] = {}
    for node in post_order(expr):
        rewritten = rebuild(node, tuple([new[id(c)] for c in children(node)]))
        group = groups.get(id(node))
        if group is not None:
            new[id(node)] = rewritten
            node_map = NodeMap({p: [new.get(id(n), n) for n in met] for p, met in group.node_map.items()})
            rewritten = _called(callback, node, rewritten, node_map)
        new[id(node)] = rewritten
    return new[id(expr)]


def _called(callback: DFPatternCallback, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
    name = type(callback).__name__
    try:
        result = callback.callback(pre, post, node_map)
    except RelayError as wrong:
        raise RelayError([_at(d, pre, name) for d in wrong.diagnostics]) from wrong
    except (KeyboardInterrupt, MemoryError, SystemExit):
        raise
    except Exception as problem:
        raise RelayError(_at(raised_in(name, problem, "the callback of"), pre, name)) from problem
    if not isinstance(result, Expr):
        what = "nothing (None)" if result is None else f"a {type(result).__name__}"
        notes = ["return post where nothing is to change"]
        raise RelayError(error("R0521", f"the callback of {name} returned {what}, not an expression", pre.span, notes=notes))
    if result.span is None and result is not post:
        _give_span(result, pre)
    return result


def _give_span(root: Expr, pre: Expr) -> None:
    """The first new nodes get the places of the nodes that they replace. So errors in them have a place."""
    stack = [root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen or node.span is not None or not hasattr(node, "span"):
            continue
        seen.add(id(node))
        try:
            node.span = pre.span
        except AttributeError:
            continue  # an operator's record
        if len(seen) < 16:
            stack.extend(children(node))


def _at(diagnostic: Diagnostic, pre: Expr, name: str) -> Diagnostic:
    """The diagnostic with the matched node's place beside it."""
    labels = diagnostic.labels
    if pre.span is not None:
        labels = (*labels, Label(pre.span, f"{name} matched here", primary=not labels))
    return Diagnostic(diagnostic.code, diagnostic.title, labels, diagnostic.notes, diagnostic.fix, diagnostic.severity)


def rewrite_module(callbacks: DFPatternCallback | Sequence[DFPatternCallback], mod: IRModule) -> IRModule:
    """Every function of a module rewritten, and its types found. Raises `RelayError`, also where a rewrite made the
    module ill-typed."""
    rules = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    new: dict[Any, Any] = {}
    for gv, func in mod.functions.items():
        if func.body is None or "Compiler" in func.attrs:
            new[gv] = func
            continue
        rewritten = rewrite(rules, func, mod)
        if not isinstance(rewritten, Function):
            names = ", ".join(type(c).__name__ for c in rules)
            raise RelayError(error("R0521", f"{names} replaced @{gv.name_hint} by an expression that is not a function", func.span))
        new[gv] = rewritten
    if all(new[gv] is f for gv, f in mod.functions.items()):
        return mod
    result = mod.with_functions(new)
    diagnostics = infer(result)
    if any(d.severity == "error" for d in diagnostics):
        names = ", ".join(type(c).__name__ for c in rules)
        raise RelayError([error("R0522", f"{names} made a program that is not well-typed"), *diagnostics])
    for gv, func in result.functions.items():
        old, now = mod.functions[gv].checked_type, func.checked_type
        if old is not None and now is not None and old != now and func.ret_type is None:
            names = ", ".join(type(c).__name__ for c in rules)
            text = f"{names} changed the type of @{gv.name_hint} from {type_text(old)} to {type_text(now)}"
            raise RelayError(error("R0522", text, func.span))
    return result


def callback_pass(callbacks: DFPatternCallback | Sequence[DFPatternCallback]) -> ModulePass:
    """A pass that rewrites with callbacks."""
    rules = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    name = "+".join(type(c).__name__ for c in rules)

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return rewrite_module(rules, mod)

    return ModulePass(run, PassInfo(0, name))
