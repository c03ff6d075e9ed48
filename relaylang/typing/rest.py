"""Checks of a module in which the reader found errors: the functions that these do not touch.

A function with an unknown name or attribute in it is left out. Its callers are checked against the type in its header.
Where the header leaves the type open, the callers are left out as well.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from relaylang.diagnostics import Diagnostic
from relaylang.ir import Call, Function, GlobalVar, IncompleteType, IRModule, post_order
from relaylang.typing import infer

_K = TypeVar("_K", bound=Hashable)


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
    names = {var: [n for n in post_order(f) if isinstance(n, GlobalVar)] for var, f in functions.items()}
    users: dict[GlobalVar, list[GlobalVar]] = {}
    for var, used in names.items():
        for node in used:
            if node not in functions:
                broken.setdefault(var, [])
            users.setdefault(node, []).append(var)

    def header(var: GlobalVar) -> Function | None:
        function = functions[var]
        return known_by_header(var, function) if _declared(function, broken.get(var, ())) else None

    away = stand_ins(broken, users, header)
    kept = {var: away.get(var, function) for var, function in module.functions.items()}
    found = {var: function for var, function in kept.items() if function is not None}
    said = infer(IRModule(found, module.type_definitions, module.attrs))
    unknown = {d.span.text for d in wrong if d.code == "R0207" and d.span is not None}
    unheard = [span for var in reached(broken, names) if (span := functions[var].span if var in functions else None)]
    return [
        d
        for d in said
        if d.severity != "note"
        and not (d.code == "R0312" and d.span is not None and d.span.text.partition("[")[0] in unknown)
        and not (d.code == "R0304" and any(s.start <= _place(d) < s.end for s in unheard))
    ]


def stand_ins(
    wrong: Iterable[_K], users: Mapping[_K, Iterable[_K]], header: Callable[[_K], Function | None]
) -> dict[_K, Function | None]:
    """Stand-ins for wrong functions: what `header` gives, or None.

    A user of a function whose stand-in is None has a stand-in, too."""
    found: dict[_K, Function | None] = {}
    away = list(wrong)
    while away:
        name = away.pop()
        if name not in found:
            found[name] = header(name)
            if found[name] is None:
                away += users.get(name, ())
    return found


def reached(start: Iterable[_K], uses: Mapping[_K, Iterable[_K]]) -> set[_K]:
    """The functions that these use, directly or through others.

    A function that leaves its type open may know it by such a use. It is not reported as open while the user is wrong.
    """
    found: set[_K] = set()
    todo = list(start)
    while todo:
        new = [name for name in uses.get(todo.pop(), ()) if name not in found]
        found.update(new)
        todo += new
    return found


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
