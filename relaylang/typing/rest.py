"""What can be said of a module of which the reader could not make sense everywhere.

A function with an unknown name or attribute in it is left out. Where its header says its type, those that call it are
checked against that; where it does not, they are left out as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.diagnostics import Diagnostic
from relaylang.ir import Call, Function, GlobalVar, IncompleteType, IRModule, post_order
from relaylang.typing import infer


def check_rest(module: IRModule, wrong: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Errors in the types of those functions that the reader's errors `wrong` do not touch.

    Nothing where an error stands outside of all functions: the names that it takes away are not known.
    """
    if any(d.code == "R0090" for d in wrong):  # there are errors that are not told
        return []
    places = [_place(d) for d in wrong if d.severity == "error"]
    functions = {g: f for g, f in module.functions.items() if isinstance(f, Function)}
    broken: dict[GlobalVar, list[int]] = {}
    for place in places:
        inside = [g for g, f in functions.items() if f.span is not None and f.span.start <= place < f.span.end]
        if not inside:
            return []
        broken.setdefault(inside[0], []).append(place)
    users: dict[GlobalVar, list[GlobalVar]] = {}
    for var, function in functions.items():
        if var in broken:
            continue
        for node in post_order(function):
            if isinstance(node, GlobalVar):
                if node not in functions:
                    broken.setdefault(var, [])
                users.setdefault(node, []).append(var)
    kept = dict(module.functions)
    away = list(broken)
    seen = set(away)
    while away:
        var = away.pop()
        function = functions[var]
        del kept[var]
        if _declared(function, broken.get(var, ())):
            kept[var] = known_by_header(var, function)
            continue
        for user in users.get(var, ()):
            if user not in seen:
                seen.add(user)
                away.append(user)
    # a type that is not known may have been said where something is wrong
    said = infer(IRModule(kept, module.type_definitions, module.attrs))
    return [d for d in said if d.severity != "note" and d.code != "R0304"]


def known_by_header(var: GlobalVar, function: Function) -> Function:
    """A function of the same type that says nothing else."""
    call = Call(var, list(function.params))
    return Function(function.params, call, function.ret_type, function.type_params, function.attrs)


def _place(diagnostic: Diagnostic) -> int:
    """Where its primary place begins; -1 where it has none."""
    return next((label.span.start for label in diagnostic.labels if label.primary), -1)


def declares_its_type(function: Function) -> bool:
    """Whether a function's header says its type."""
    types = [p.type_annotation for p in function.params] + [function.ret_type]
    return not any(t is None or isinstance(t, IncompleteType) for t in types)


def _declared(function: Function, wrong: Sequence[int]) -> bool:
    """A function's header says its type, and nothing is wrong in it."""
    if not declares_its_type(function):
        return False
    body = function.body.span if function.body is not None else None
    return not wrong or (body is not None and min(wrong) >= body.start)
