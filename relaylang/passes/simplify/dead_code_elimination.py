"""DeadCodeElimination: drop lets whose variables have no use.

What may have an effect (reading or writing references, calls of unknown functions) stays, unless
`ignore_impurity` says otherwise. A recursive function that only calls itself is not needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from relaylang.ir import Expr, Function, GlobalVar, IRModule, Let, Var, children, post_order, rebuild
from relaylang.ir.typed import retype
from relaylang.passes.effects import may_have_effects, pure_functions
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import per_function

_P = TypeVar("_P", IRModule, Expr)


def eliminate_dead_code(program: _P, inline_once: bool = False, ignore_impurity: bool = False) -> _P:
    """A module or expression without lets that nothing needs. With `inline_once` the value of a variable that stands in
    one place is put there. It stays where that would move the value's computation into a function.
    """
    if isinstance(program, IRModule):
        pure = frozenset() if ignore_impurity else pure_functions(program, making=False)
        return per_function(program, lambda f: _eliminate(f, inline_once, ignore_impurity, pure))  # type: ignore[return-value]
    return _eliminate(program, inline_once, ignore_impurity, frozenset())


def _eliminate(expr: Expr, inline_once: bool, ignore_impurity: bool, pure: frozenset[GlobalVar]) -> Expr:
    order = list(post_order(expr))
    lets = [node for node in order if isinstance(node, Let)]
    if not lets:
        return expr
    impure = set() if ignore_impurity else may_have_effects(expr, pure, making=False)
    value_of = {let.variable: let.value for let in lets}
    needed, live, uses = _live(expr, value_of, impure)
    once = _inlined(expr, live, value_of, uses, impure) if inline_once else set()
    done: dict[int, Expr] = {}
    for node in order:
        if isinstance(node, Var):
            done[id(node)] = done[id(value_of[node])] if node in once else node
        elif isinstance(node, Let) and (node.variable not in needed or node.variable in once):
            done[id(node)] = done[id(node.body)]
        else:
            done[id(node)] = retype(rebuild(node, tuple([done[id(c)] for c in children(node)])), node)
    return done[id(expr)]


def _live(expr: Expr, value_of: Mapping[Var, Expr], impure: set[int]) -> tuple[set[Var], set[int], dict[Var, int]]:
    """The variables and the nodes that a result or an effect needs, and how often each variable is used."""
    needed: set[Var] = set()
    live: set[int] = set()
    uses: dict[Var, int] = {}
    stack: list[Expr] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Var):
            uses[node] = uses.get(node, 0) + 1
            if node in value_of and node not in needed:
                needed.add(node)
                stack.append(value_of[node])
            continue
        if id(node) in live:
            continue
        live.add(id(node))
        if isinstance(node, Let):
            stack.append(node.body)
            if id(node.value) in impure:
                needed.add(node.variable)
                stack.append(node.value)
        else:
            stack.extend(children(node))
    return needed, live, uses


def _inlined(expr: Expr, live: set[int], value_of: dict[Var, Expr], uses: dict[Var, int], impure: set[int]) -> set[Var]:
    """The variables that stand in one place, in the same function as their let, with values free of effects. A value
    that reads no reference may be computed later, or not at all.
    """
    once = {v for v, n in uses.items() if n == 1 and v in value_of and id(value_of[v]) not in impure}
    home: dict[Var, set[int]] = {}
    stack: list[tuple[Expr, int]] = [(expr, 0)]
    seen: set[tuple[int, int]] = set()
    while stack:
        node, function = stack.pop()
        if isinstance(node, Var):
            if node in once:
                home.setdefault(node, set()).add(function)
            continue
        if id(node) not in live or (id(node), function) in seen:
            continue
        seen.add((id(node), function))
        if isinstance(node, Let) and node.variable in once:
            home.setdefault(node.variable, set()).add(function)
        inside = id(node) if isinstance(node, Function) else function
        stack.extend([(c, inside) for c in children(node)])
    return {v for v in once if len(home.get(v, ())) == 1 and not _recursive(v, value_of[v])}


def _recursive(var: Var, value: Expr) -> bool:
    return isinstance(value, Function) and any(node is var for node in post_order(value))


@dataclass(frozen=True)
class DeadCodeElimination(Pass):
    """Drop lets whose variables have no use. `inline_once`: substitute variables with one use."""

    inline_once: bool = False
    ignore_impurity: bool = False

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        return eliminate_dead_code(mod, self.inline_once, self.ignore_impurity)
