"""The results of an inference: written into the nodes, or reported where a type stayed open."""

from __future__ import annotations

from collections.abc import Container

from relaylang.ir.expr import Expr, Function, GlobalVar, MetaRef, Var
from relaylang.ir.typemaps import parts, with_parts
from relaylang.ir.types import IncompleteType, TensorType, Type
from relaylang.ir.visit import children
from relaylang.typing.program import Found
from relaylang.typing.report import Report
from relaylang.typing.solver import Solver
from relaylang.typing.terms import POISON, OpenTensor, Unknown, find, map_type
from relaylang.typing.texts import name_of


class Results:
    """Stores and reports the types that were found. `parameters` has the ids of those that must be known altogether.

    In a `fragment` an open type is a note, elsewhere an error.
    """

    def __init__(self, solver: Solver, found: Found, report: Report, parameters: Container[int], fragment: bool = False) -> None:
        self._solver = solver
        self._found = found
        self._report = report
        self._parameters = parameters
        self._fragment = fragment
        self._listed: list[Type] = []  # the types in the nodes' order, so that `store` need not look again
        self._closed: dict[int, Type] = {}  # by the id of the type as it was found
        self._keep: list[object] = []  # types whose ids stand in `_closed`

    def store(self) -> None:
        """Write the types that were found into the nodes. What an error leaves unknown gets none."""
        order, types = self._found.order, self._found.types
        listed = self._listed if len(self._listed) == len(order) else [types[node] for node in order]
        for node, ty in zip(order, listed):
            if type(ty) is not TensorType:
                ty = find(ty)
                if ty is POISON:
                    continue
                if type(ty) is not TensorType:
                    ty = self.closed(ty)
            before = node.checked_type
            if before is None or before is not ty:
                node.checked_type = ty

    def seen_type(self, function: Function) -> Type:
        """The type of a function with errors as its callers see it. Its unknown parts agree with every type."""
        ty = self._solver.resolve(self._found.types.get(function, POISON))
        return map_type(ty, lambda part: POISON if isinstance(part, IncompleteType) else part)

    def closed(self, ty: Type) -> Type:
        """A type as nodes carry it, with an `IncompleteType` for each unknown. Each part is looked at once."""
        done = self._closed
        ty = find(ty)
        stack = [ty]
        while stack:
            node = stack[-1]
            if id(node) in done:
                stack.pop()
                continue
            children = [find(part) for part in parts(node)]
            missing = [part for part in children if type(part) is not TensorType and id(part) not in done]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            self._keep.append(node)
            if children:
                new = [part if type(part) is TensorType else done[id(part)] for part in children]
                same = all(a is b for a, b in zip(parts(node), new))
                done[id(node)] = node if same else with_parts(node, new)
            elif isinstance(node, TensorType):
                done[id(node)] = self._solver.close_dims(node)
            else:
                done[id(node)] = IncompleteType() if isinstance(node, IncompleteType) else node
        return done[id(ty)]

    def report_unknown(self) -> None:
        """Report the types that were not found: errors in a module, notes in a fragment."""
        roots, owners = self._open_types()
        excused = self._excused() if roots else set()
        causes = [u for u in roots.values() if not u.derived and id(u) not in excused]
        if not causes and not excused:
            causes = list(roots.values())
        said: set[int] = set()
        for unknown in causes:
            origin = owners.get(id(unknown), unknown.origin) if unknown.free else unknown.origin
            if origin is None or id(origin) in said:
                continue
            said.add(id(origin))
            title, hint = _unknown(origin)
            if self._fragment:
                title += ", and what depends on it is left open"
                self._report.say("R0315", title, origin.span, severity="note")
            else:
                self._report.say("R0304", title, origin.span, hint)

    def settled(self) -> bool:
        """Whether the type of each value was known when it was met, so that none follows from a later use."""
        seen: set[int] = set()
        for node, ty in zip(self._found.order, self._listed):
            stack = [] if type(ty) is TensorType or type(node) in (GlobalVar, Function) else [ty]
            while stack:
                part = stack.pop()
                if type(part) in (Unknown, OpenTensor):
                    return False
                if type(part) is not TensorType and id(part) not in seen:
                    seen.add(id(part))
                    stack.extend(parts(part))
        return True

    def _excused(self) -> set[int]:
        """The ids of unknowns that something wrong uses: without the error they might be known."""
        types, solver = self._found.types, self._solver
        used = list(self._report.refuted)
        for node, ty in zip(self._found.order, self._listed):
            if find(ty) is POISON:
                used += [types[child] for child in children(node) if child in types]
        return {id(unknown) for ty in used for unknown in solver.unknowns_in(ty)}

    def _open_types(self) -> tuple[dict[int, Unknown], dict[int, Var]]:
        """The unknowns that must not stay open, and the parameters that brought them in, by the unknown's id."""
        roots: dict[int, Unknown] = {}
        owners: dict[int, Var] = {}
        seen: tuple[set[int], set[int]] = (set(), set())
        types = self._found.types
        self._listed = [types[node] for node in self._found.order]
        for node, ty in zip(self._found.order, self._listed):
            if type(ty) is TensorType:
                continue
            ty = find(ty)
            strict = id(node) in self._parameters
            if type(ty) is TensorType or id(ty) in seen[strict]:
                continue
            stack = [ty]
            while stack:
                ty = find(stack.pop())
                if type(ty) is Unknown:
                    if strict and isinstance(node, Var):
                        roots[id(ty)] = ty
                        owners.setdefault(id(ty), node)
                    elif not ty.free:
                        roots[id(ty)] = ty
                elif type(ty) is not TensorType and id(ty) not in seen[strict]:
                    seen[strict].add(id(ty))
                    stack.extend(parts(ty))
        return roots, owners


def _unknown(origin: Expr) -> tuple[str, str]:
    """The message about a type that is not known, and the hint at its place."""
    if isinstance(origin, Var):
        return f"the type of {name_of(origin)} is not known", "annotate it"
    if isinstance(origin, MetaRef):
        return f"the type of `{origin.name_hint}` is not known", "its value is missing"
    if isinstance(origin, Function):
        return "the type of this function's result is not known", "annotate it"
    return f"the type of {name_of(origin)} is not known", "no later use determines it"


__all__ = ["Results"]
