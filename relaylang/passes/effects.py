"""Effects: the nodes that may have one. References are Relay's state, and storage that stateful operators change."""

from __future__ import annotations

from relaylang.ir import (
    Call,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Let,
    RefCreate,
    RefRead,
    RefType,
    RefWrite,
    Var,
    children,
    post_order,
)
from relaylang.ops.record import Op

_REFERENCES = (RefCreate, RefRead, RefWrite)


def has_references(expr: Expr) -> bool:
    """Whether an expression makes, reads or writes a reference, or is given one."""
    for node in post_order(expr):
        if isinstance(node, _REFERENCES):
            return True
        if isinstance(node, Var) and isinstance(node.checked_type or node.type_annotation, RefType):
            return True
    return False


def may_have_effects(expr: Expr, pure: frozenset[GlobalVar] = frozenset(), making: bool = True) -> set[int]:
    """The nodes (by id) whose evaluation may make, read or write a reference, or that hold such a node.

    Without `making`, to make one is no effect: so it is where nobody needs the reference.

    A call counts if its function is not known, and so does one of a stateful operator. Other operators, constructors and
    the functions in `pure` have no effects. A function called where it stands, or by the name that a let gave it, has its
    body's effects. Where it calls itself, the other effects of its body count. A function that is only made has none.
    """
    order = list(post_order(expr))
    bound: dict[Var, Expr] = {}
    # Uses stand before the lets around them in this order: from the outermost in, another name is resolved at once.
    for node in reversed(order):
        if isinstance(node, Let):
            value = node.value
            bound[node.variable] = bound.get(value, value) if isinstance(value, Var) else value
    # Functions that call themselves count as pure at first. Where one turns out not to be, the walk is repeated.
    wrong: set[int] = set()
    for _ in range(_ROUNDS):
        effectful, itself = _effects(order, bound, pure, making, wrong)
        more = {at for at, body in itself.items() if body in effectful and at not in wrong}
        if not more:
            return effectful
        wrong |= more
    return _effects(order, bound, pure, making, None)[0]


#: How often functions that call themselves, inside one another, are looked at before they all count as unknown.
_ROUNDS = 4


def _effects(
    order: list[Expr], bound: dict[Var, Expr], pure: frozenset[GlobalVar], making: bool, wrong: set[int] | None
) -> tuple[set[int], dict[int, int]]:
    """The nodes with effects, and the functions that call themselves, each with its body. Those in `wrong` (all, where
    it is None) are unknown to themselves."""
    effectful: set[int] = set()
    itself: dict[int, int] = {}
    seen: set[int] = set()
    effects = _REFERENCES if making else _REFERENCES[1:]
    for node in order:
        if isinstance(node, effects):
            effectful.add(id(node))
        elif isinstance(node, Function):
            seen.add(id(node))
        elif isinstance(node, Call):
            op = bound.get(node.op, node.op) if isinstance(node.op, Var) else node.op
            known = isinstance(op, Constructor) or (isinstance(op, GlobalVar) and op in pure)
            known = known or (isinstance(op, Op) and not op.stateful)
            if isinstance(op, Function) and op.body is not None:
                if id(op) in seen:
                    known = id(op.body) not in effectful
                else:
                    itself[id(op)] = id(op.body)
                    known = wrong is not None and id(op) not in wrong
            if not known or any([id(a) in effectful for a in node.args]):
                effectful.add(id(node))
        elif any([id(c) in effectful for c in children(node)]):
            effectful.add(id(node))
    return effectful, itself


def pure_functions(module: IRModule, making: bool = True) -> frozenset[GlobalVar]:
    """The module's functions that are known to have no effects. They use no references; without `making`, they may make
    some. They call known functions only, and mention only functions of which the same is true.
    """
    calls: dict[GlobalVar, set[GlobalVar]] = {}
    impure: list[GlobalVar] = []
    all_of_them = frozenset(module.functions)
    for name, function in module.functions.items():
        called = calls[name] = set()
        if function.body is None:
            impure.append(name)
            continue
        called.update([n for n in post_order(function) if isinstance(n, GlobalVar)])
        if id(function.body) in may_have_effects(function.body, all_of_them, making):
            impure.append(name)
    callers: dict[GlobalVar, list[GlobalVar]] = {}
    for name, called in calls.items():
        for callee in called:
            callers.setdefault(callee, []).append(name)
    impure_callers = set(impure)
    while impure:
        for caller in callers.get(impure.pop(), ()):
            if caller not in impure_callers:
                impure_callers.add(caller)
                impure.append(caller)
    return frozenset(g for g in module.functions if g not in impure_callers)


__all__ = ["has_references", "may_have_effects", "pure_functions"]
