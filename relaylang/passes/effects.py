"""What may have an effect. References are Relay's only state, so a program without them has no effects at all."""

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


def may_have_effects(expr: Expr, pure: frozenset[GlobalVar] = frozenset()) -> set[int]:
    """The nodes (by id) whose evaluation may make, read or write a reference, or that hold such a node.

    A call counts if its function is not known: operators, constructors and the functions in `pure` have no effects; a
    function that is called where it stands, or by the name that a let gave it before, has its body's. A function that
    is only made has none.
    """
    found: set[int] = set()
    order = list(post_order(expr))
    bound: dict[Var, Expr] = {}
    # Uses stand before the lets around them in this order: from the outermost in, another name is resolved at once.
    for node in reversed(order):
        if isinstance(node, Let):
            value = node.value
            bound[node.variable] = bound.get(value, value) if isinstance(value, Var) else value
    seen: set[int] = set()
    for node in order:
        if isinstance(node, _REFERENCES):
            found.add(id(node))
        elif isinstance(node, Function):
            seen.add(id(node))
        elif isinstance(node, Call):
            op = bound.get(node.op, node.op) if isinstance(node.op, Var) else node.op
            known = isinstance(op, (Op, Constructor)) or (isinstance(op, GlobalVar) and op in pure)
            if isinstance(op, Function) and op.body is not None:
                known = id(op) in seen and id(op.body) not in found
            if not known or any([id(a) in found for a in node.args]):
                found.add(id(node))
        elif any([id(c) in found for c in children(node)]):
            found.add(id(node))
    return found


def pure_functions(module: IRModule) -> frozenset[GlobalVar]:
    """The module's functions that have no effects, as far as can be told: they use no references, call no function
    values, and call only functions of which the same is true."""
    calls: dict[GlobalVar, set[GlobalVar]] = {}
    impure: list[GlobalVar] = []
    for name, function in module.functions.items():
        called = calls[name] = set()
        if function.body is None:
            impure.append(name)
            continue
        for node in post_order(function):
            if isinstance(node, GlobalVar):
                called.add(node)
            elif isinstance(node, _REFERENCES) or (isinstance(node, Call) and isinstance(node.op, Var)):
                impure.append(name)
                break
    callers: dict[GlobalVar, list[GlobalVar]] = {}
    for name, called in calls.items():
        for callee in called:
            callers.setdefault(callee, []).append(name)
    found = set(impure)
    while impure:
        for caller in callers.get(impure.pop(), ()):
            if caller not in found:
                found.add(caller)
                impure.append(caller)
    return frozenset(g for g in module.functions if g not in found)


__all__ = ["has_references", "may_have_effects", "pure_functions"]
