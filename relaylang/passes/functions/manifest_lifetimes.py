"""ManifestLifetimes: say behind which binding of a program in A-normal form a variable's value is needed no more.

    let %y = add(%x, %x);
    let %_ = memory.kill(%x);
    %y

A value that a branch returns, or that is needed behind the branch, is not ended in it. A value that one branch alone uses
is ended in that branch. Functions that are values keep what they use.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from relaylang.ir import (
    Expr,
    Function,
    If,
    IRModule,
    Let,
    Match,
    TupleType,
    Var,
    children,
    free_vars,
    pattern_vars,
    rebuild,
)
from relaylang.ir.typed import retype, typed, typed_var
from relaylang.ops.build import op_call
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import per_function


@dataclass
class _Block:
    """Lets in a row and their result, read from the last to the first. `made` is the block from the present let on."""

    lets: list[Let]
    made: Expr
    #: The let of another block whose value holds this one, and the variables that are first needed in this block.
    parent: tuple[_Block, Let] | None
    first: list[Var] = field(default_factory=list)
    #: The branches of the present let's value: those to do, and what those became that are done.
    todo: list[Expr] | None = None
    branches: list[Expr] = field(default_factory=list)
    needed: list[Var] = field(default_factory=list)


def _used(expr: Expr) -> list[Var]:
    """The variables that an expression needs before its branches, if it has some."""
    if isinstance(expr, If):
        return _used(expr.cond)
    if isinstance(expr, Match):
        return _used(expr.data)
    if isinstance(expr, Var):
        return [expr]
    return free_vars(expr) if isinstance(expr, Function) else [v for c in children(expr) for v in free_vars(c)]


def _branches(expr: Expr) -> list[Expr]:
    if isinstance(expr, If):
        return [expr.true_branch, expr.false_branch]
    return [c.rhs for c in expr.clauses] if isinstance(expr, Match) else []


def _own(func: Function) -> set[Var]:
    """The variables that the function binds outside of other functions."""
    variables, stack = set(func.params), [func.body]
    while stack:
        node = stack.pop()
        if isinstance(node, Let):
            variables.add(node.variable)
            stack += (node.body, node.value)
        elif isinstance(node, Match):
            variables.update(v for c in node.clauses for v in pattern_vars(c.lhs))
        stack += _branches(node)
    return variables


def manifest_lifetimes(func: Function) -> Expr:
    """A typed function with `memory.kill` behind the last uses of its variables."""
    own = _own(func)
    live: set[Var] = set()

    def need(block: _Block, variables: list[Var]) -> list[Var]:
        """Those of the variables that nothing behind needs."""
        new = [v for v in dict.fromkeys(variables) if v in own and v not in live]
        live.update(new)
        block.first += new
        return new

    def opened(expr: Expr, parent: tuple[_Block, Let] | None) -> _Block:
        lets = []
        while isinstance(expr, Let):
            lets.append(expr)
            expr = expr.body
        block = _Block(lets, expr, parent)
        need(block, free_vars(expr))
        return block

    stack = [opened(func.body, None)]
    result = func.body
    while stack:
        block = stack[-1]
        if not block.lets:
            stack.pop()
            if block.parent is None:
                result = block.made
            else:
                outer = block.parent[0]
                outer.branches.append(block.made)
                outer.needed += block.first
                live.difference_update(block.first)
            continue
        let = block.lets[-1]
        if block.todo is None:
            block.todo, block.branches, block.needed = _branches(let.value)[::-1], [], []
        if block.todo:
            stack.append(opened(block.todo.pop(), (block, let)))
            continue
        need(block, block.needed)  # a branch ended these
        value = retype(rebuild(let.value, (children(let.value)[0], *block.branches)), let.value) if block.branches else let.value
        for var in reversed(need(block, _used(let.value))):
            ended = op_call("memory.kill", [var], TupleType([]))
            block.made = typed(Let(typed_var("_", TupleType([])), ended, block.made), block.made.checked_type)
        block.made = retype(Let(let.variable, value, block.made, let.span), let)
        block.lets.pop()
        block.todo = None
    return retype(Function(func.params, result, func.ret_type, func.type_params, func.attrs, func.span), func)


@dataclass(frozen=True)
class ManifestLifetimes(Pass):
    """End each value of a program in A-normal form, by `memory.kill`, behind the last binding that needs it."""

    def run(self, mod: IRModule) -> IRModule:
        return per_function(mod, lambda func: manifest_lifetimes(func) if isinstance(func.body, Let) else func)
