"""A module that is checked again after every change: only the changed functions and those that they concern."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence

from relaylang.diagnostics import Diagnostic
from relaylang.ir.bulk import gc_paused
from relaylang.ir.expr import Constructor, Function, GlobalVar, Let, TypeData
from relaylang.ir.module import IRModule
from relaylang.ir.types import FuncType, GlobalTypeVar, IncompleteType, Type, type_children
from relaylang.ir.visit import post_order
from relaylang.ops.record import Op
from relaylang.typing.definitions import check_definitions
from relaylang.typing.inference import Inference
from relaylang.typing.program import Program
from relaylang.typing.reuse import Stale
from relaylang.typing.terms import POISON
from relaylang.typing.uses import definition_uses, uses


class Checker:
    """The types of a module, kept up to date.

        checker = Checker(mod)             # checks everything: see `checker.diagnostics`
        checker.update({"f": function})    # checks @f, and those that use it where its type changed

    A function is known by its annotations where these give its parameters and its result. A change inside it then
    concerns no other function. Another function is known by its body, and is checked together with those that it is
    recursive with. Where its parameters are open, it is checked together with its callers. `looked_at` holds the names
    of the functions that the last update checked. As with `infer`, functions with errors get no types, but in a `partial` program,
    whose missing names have been reported.
    """

    def __init__(self, module: IRModule, partial: bool = False) -> None:
        self.module = module
        self._partial = partial
        self.looked_at: list[str] = []
        self._functions: dict[str, Function] = {}
        self._vars: dict[str, GlobalVar] = {}
        self._definitions: dict[GlobalTypeVar, TypeData] = {}
        self._uses: dict[str, list[str]] = {}
        self._names: dict[str, set[GlobalTypeVar]] = {}
        self._users: dict[str, dict[str, None]] = {}
        self._types: dict[str, Type] = {}
        self._said: dict[str, list[Diagnostic]] = {}
        self._definitions_said: list[Diagnostic] = []
        self._together: dict[str, list[str]] = {}  # functions whose diagnostics stand in one list
        self._settled: set[str] = set()  # functions in which no type follows from a later use
        self._typed: dict[str, Sequence[Let]] = {}  # functions whose nodes keep types, and the statements that have none
        self._open: set[str] = set()  # functions whose own bodies do not say what they give
        self.update()

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """The diagnostics of the module as it is, in the order of its functions."""
        return [*self._definitions_said, *(d for name in self._functions for d in self._said.get(name, ()))]

    @property
    def said(self) -> Mapping[str, list[Diagnostic]]:
        """The diagnostics by the function with which they were found."""
        return self._said

    def update(
        self,
        changes: Mapping[str | GlobalVar, Function | None] | None = None,
        again: Iterable[str] = (),
        typed: Mapping[str, Sequence[Let]] | None = None,
    ) -> list[Diagnostic]:
        """Put changed functions into the module (None takes one out) and check the functions that they concern.

        The functions named in `again` are checked whatever changed. In those named in `typed`, nodes of the earlier function
        keep the types of the last update, as long as these hold. The diagnostics of the earlier function must concern other
        nodes, and both use the same functions and definitions. Where the new body has a type, only the named statements of
        the function are checked.

        The module itself may have changed, too: a function or type definition that is another object than before is
        checked. Returns `diagnostics`.
        """
        for key, function in (changes or {}).items():
            if function is not None:
                self.module[key] = function
            elif key in self.module:
                del self.module[key]
        typed = typed or {}
        dirty = self._look(typed)
        dirty.update(n for n in again if n in self._functions)
        dirty.update(n for name in list(dirty) for n in self._together.get(name, ()) if n in self._functions)
        self.looked_at = []
        self._typed = {name: typed[name] for name in self._settled.intersection(typed)}
        self._settled -= dirty
        with gc_paused():
            self._check(dirty)
        return self.diagnostics

    # --- what changed ---

    def _look(self, typed: Collection[str]) -> set[str]:
        """Take over the module's state. Returns the functions that have to be checked at any rate."""
        now = {v.name_hint: f for v, f in self.module.functions.items() if isinstance(f, Function)}
        self._vars = {v.name_hint: v for v in self.module.functions}
        changed = {name for name, f in now.items() if self._functions.get(name) is not f}
        gone = [name for name in self._functions if name not in now]
        dirty = set(changed)
        for name in [*gone, *(n for n in changed if n not in self._functions)]:
            dirty.update(self._users.get(name, ()))  # those for whom a name comes or goes
        for name in [*gone, *changed]:
            dirty.update(
                used for used in self._uses.get(name, ()) if self._takes_open(used)
            )  # it may have known its types by this use
            if name in typed:
                continue
            for used in self._uses.pop(name, ()):
                self._users[used].pop(name, None)
            self._names.pop(name, None)
        for name in gone:
            self._types.pop(name, None)
            self._said.pop(name, None)
        self._functions = now
        self._open -= changed
        for name in changed.difference(typed):
            functions, definitions = uses(now[name])
            self._uses[name] = list(functions)
            self._names[name] = set(definitions)
            for used in functions:
                self._users.setdefault(used, {})[name] = None
        return now.keys() & (dirty | self._look_at_definitions())

    def _look_at_definitions(self) -> set[str]:
        """Take over the type definitions. Returns the functions that name one that changed."""
        now = self.module.type_definitions
        changed = {v for v in {**self._definitions, **now} if self._definitions.get(v) is not now.get(v)}
        if not changed:
            return set()
        self._definitions = dict(now)
        self._definitions_said = check_definitions(self._definitions)
        grown = True
        while grown:  # definitions that name a changed one changed, too
            grown = False
            for var, data in now.items():
                if var not in changed and not changed.isdisjoint(definition_uses(data)):
                    changed.add(var)
                    grown = True
        return {name for name, names in self._names.items() if not changed.isdisjoint(names)}

    # --- whom it concerns ---

    def _known_by_its_body(self, name: str) -> bool:
        function = self._functions.get(name)
        return function is not None and (function.ret_type is None or _has_holes(function.ret_type) or self._takes_open(name))

    def _takes_open(self, name: str) -> bool:
        """Whether a function leaves the type of a parameter to those who call it."""
        function = self._functions.get(name)
        return function is not None and (
            name in self._open or any(p.type_annotation is None or _has_holes(p.type_annotation) for p in function.params)
        )

    def _concerned(self, dirty: Iterable[str]) -> dict[str, None]:
        """The functions whose types a change may reach."""
        concerned = dict.fromkeys(dirty)
        queue = list(concerned)
        first = set(concerned)
        while queue:
            name = queue.pop()
            reached = [used for used in self._uses.get(name, ()) if self._takes_open(used)]
            if name in first or self._known_by_its_body(name):
                reached += self._users.get(name, ())
            for other in reached:
                if other not in concerned and other in self._functions:
                    concerned[other] = None
                    queue.append(other)
        return concerned

    def _leans_on(self, name: str) -> list[str]:
        """The functions whose bodies, or whose callers, a function's type depends on."""
        out = [used for used in self._uses.get(name, ()) if self._known_by_its_body(used)]
        return out + list(self._users.get(name, ())) if self._takes_open(name) else out

    def _check(self, dirty: set[str]) -> None:
        concerned = self._concerned(name for name in self._functions if name in dirty)
        for group in _components(concerned, self._leans_on):
            if dirty.isdisjoint(group):
                continue
            before = {name: self._types.get(name) for name in group}
            self._check_group(group)
            for name in group:
                if self._types[name] != before[name]:
                    for user in self._users.get(name, ()):
                        self._typed.pop(user, None)
                    dirty.update(user for user in self._users.get(name, ()) if user in concerned)

    def _infer(self, group: list[str], inside: set[str]) -> Inference:
        """The inference of a group. Starts from statements that are typed already, if these still hold."""
        signatures = _Given(self._functions, inside, self.type_of)
        program = Program(self._functions, self._definitions, signatures, self._partial)
        inference = Inference(program, fresh=not self._typed.keys() >= inside)
        functions = [(self._vars[name], self._functions[name]) for name in group]
        try:
            inference.run_group(functions, [let for name in group for let in self._typed.get(name, ())])
        except Stale:
            inference = Inference(program)
            inference.run_group(functions)
        return inference

    def _check_group(self, group: list[str]) -> None:
        self.looked_at += group
        for name in group:
            self._types.pop(name, None)
        inside = set(group)
        inference = self._infer(group, inside)
        inference.results.report_unknown()
        if inference.results.settled():
            self._settled.update(group)
        if any(d.code == "R0304" for d in inference.diagnostics):
            callers = dict.fromkeys(user for name in group for user in self._users.get(name, ()))
            more = [user for user in callers if user not in inside]
            self._open.update(group)
            if more:  # what calls these may say what they give
                self._check_group([*group, *more])
                return
        for name in group:
            self._said[name] = []
            self._together[name] = group if inference.diagnostics else []
        self._said[group[0]] = inference.diagnostics
        wrong = _wrong(inference.diagnostics)
        keeps = not wrong or self._partial
        if keeps:
            inference.results.store()
        for name in group:
            function = self._functions[name]
            known = function.checked_type
            self._types[name] = known if known is not None and not wrong else inference.results.seen_type(function)
            if not keeps and known is not None:
                self._forget_types(function)

    def _forget_types(self, function: Function) -> None:
        for node in post_order(function):
            if not isinstance(node, (Op, Constructor)):
                node.checked_type = None

    def type_of(self, name: str) -> Type:
        """A function's type as those who call it see it, whether it has been checked already or not."""
        known = self._types.get(name)
        return known if known is not None else _declared(self._functions[name])


class _Given(Mapping[str, Type]):
    """The types of the functions outside of a group, looked up when they are asked for."""

    def __init__(self, functions: Mapping[str, Function], inside: Container[str], type_of: Callable[[str], Type]) -> None:
        self._functions = functions
        self._inside = inside
        self._type_of = type_of

    def __contains__(self, name: object) -> bool:
        return name not in self._inside and name in self._functions

    def __getitem__(self, name: str) -> Type:
        return self._type_of(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._functions if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _wrong(diagnostics: Iterable[Diagnostic]) -> bool:
    return any(d.severity == "error" for d in diagnostics)


def _has_holes(ty: Type) -> bool:
    stack = [ty]
    while stack:
        node = stack.pop()
        if isinstance(node, IncompleteType):
            return True
        stack.extend(type_children(node))
    return False


def _declared(function: Function) -> FuncType:
    """A function's type from its annotations. An open part agrees with every type."""
    params = [POISON if p.type_annotation is None else p.type_annotation for p in function.params]
    result = POISON if function.ret_type is None else function.ret_type
    return FuncType(params, result, function.type_params)


def _components(names: Iterable[str], follow: Callable[[str], Iterable[str]]) -> list[list[str]]:
    """The strongly connected components of a graph, each behind those that it leads to (Tarjan, without recursion)."""
    inside = dict.fromkeys(names)
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    open_names: list[str] = []
    is_open: set[str] = set()
    out: list[list[str]] = []
    for root in inside:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        open_names.append(root)
        is_open.add(root)
        work = [(root, iter(follow(root)))]
        while work:
            name, rest = work[-1]
            for other in rest:
                if other not in inside:
                    continue
                if other not in number:
                    number[other] = low[other] = len(number)
                    open_names.append(other)
                    is_open.add(other)
                    work.append((other, iter(follow(other))))
                    break
                if other in is_open:
                    low[name] = min(low[name], number[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == number[name]:
                    group = []
                    while True:
                        member = open_names.pop()
                        is_open.discard(member)
                        group.append(member)
                        if member == name:
                            break
                    out.append(group[::-1])
    return out


__all__ = ["Checker"]
