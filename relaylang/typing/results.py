"""What an inference found: written into the nodes, or told where it stayed open."""

from __future__ import annotations

from relaylang.diagnostics import error
from relaylang.ir.expr import Function, GlobalVar, MetaRef, Var
from relaylang.ir.typemaps import parts, with_parts
from relaylang.ir.types import IncompleteType, TensorType, Type
from relaylang.typing.branches import Branches
from relaylang.typing.report import name_of, plain
from relaylang.typing.solver import Unknown, find
from relaylang.typing.steps import Stale


class Results(Branches):
    """The part of an inference that stores and tells what came out."""

    def store(self) -> None:
        """Write the types that were found into the nodes."""
        found = self.found if len(self.found) == len(self.order) else [self.types[id(node)] for node in self.order]
        for node, ty in zip(self.order, found):
            if type(ty) is not TensorType:
                ty = find(ty)
                if type(ty) is not TensorType:
                    ty = self.closed(ty)
            before = node.checked_type
            if before is None or before is not ty:
                node.checked_type = ty

    def check_stale(self) -> None:
        """A function of the module that got another type than its name has elsewhere."""
        for node in self.order:
            if type(node) is GlobalVar and node.checked_type is not None:
                if node.checked_type != self.resolve(self.types[id(node)]):
                    raise Stale

    def closed(self, ty: Type) -> Type:
        """A type as nodes carry it: what is still unknown is an `IncompleteType`. Each part is looked at once."""
        done = self.closed_types
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
            self.keep.append(node)
            if children:
                new = [part if type(part) is TensorType else done[id(part)] for part in children]
                same = all(a is b for a, b in zip(parts(node), new))
                done[id(node)] = node if same else with_parts(node, new)
            elif isinstance(node, TensorType):
                done[id(node)] = self.close_dims(node)
            else:
                done[id(node)] = IncompleteType() if isinstance(node, IncompleteType) else node
        return done[id(ty)]

    def report_unknown(self) -> None:
        """Say which types were not found: errors in a module, notes in a fragment."""
        roots: dict[int, Unknown] = {}
        owners: dict[int, Var] = {}  # parameters must be known altogether
        seen: tuple[set[int], set[int]] = (set(), set())
        types = self.types
        self.found = found = [types[id(node)] for node in self.order]  # so that `store` need not look again
        for node, ty in zip(self.order, found):
            if type(ty) is TensorType:
                continue
            ty = find(ty)
            strict = id(node) in self.parameters
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
        causes = [u for u in roots.values() if not u.derived] or list(roots.values())
        said: set[int] = set()
        for unknown in causes:
            origin = owners.get(id(unknown), unknown.origin) if unknown.free else unknown.origin
            if origin is None or id(origin) in said:
                continue
            said.add(id(origin))
            if isinstance(origin, Var):
                title = f"the type of {name_of(origin)} is not known"
                hint = "annotate it"
            elif isinstance(origin, MetaRef):
                title, hint = f"the type of `{origin.name_hint}` is not known", "its value is missing"
            elif isinstance(origin, Function):
                title, hint = "the type of this function's result is not known", "annotate it"
            else:
                title, hint = f"the type of {name_of(origin)} is not known", "nothing that follows says what it is"
            if self.fragment:
                self.diagnostics.append(
                    error("R0315", title + ", and what depends on it is left open", plain(origin.span), severity="note")
                )
            else:
                self.say("R0304", title, origin.span, hint)
