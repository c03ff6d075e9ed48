"""Annotations: the types that a program states, checked to be well formed and opened where they leave holes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Expr, TypeData
from relaylang.ir.extents import names_in
from relaylang.ir.typemaps import parts
from relaylang.ir.types import (
    ANY,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    SymbolicDim,
    TensorType,
    Type,
    TypeCall,
    TypeVar,
)
from relaylang.typing.report import Report
from relaylang.typing.solver import Solver
from relaylang.typing.terms import POISON, Unknown, map_type
from relaylang.typing.texts import show
from relaylang.typing.valid_types import unsound


class Annotations:
    """Reads annotations. It remembers which type variables they mention and which are bound."""

    def __init__(self, solver: Solver, report: Report, definitions: Mapping[GlobalTypeVar, TypeData]) -> None:
        self._solver = solver
        self._report = report
        self._definitions = definitions
        self._opened: dict[int, tuple[Type, Type]] = {}  # by the annotation's id, with the annotation to keep the id
        self._holes: dict[int, Unknown] = {}  # by the id of the hole
        self._sound: set[int] = set()  # tensor types that were looked at
        self._bound: set[int] = set()  # type parameters of functions and definitions
        self._mentioned: dict[int, tuple[TypeVar, Span | None]] = {}  # type variables that occur, and where first

    def bind(self, parameters: Iterable[TypeVar]) -> None:
        """Note type parameters that a function or a definition binds."""
        self._bound.update(map(id, parameters))

    def open(self, annotation: Type, owner: Expr) -> Type:
        """An annotation with an unknown for each hole, checked to be well formed. `POISON` where it is not."""
        if type(annotation) is TensorType:
            tensor = self._solver.intern(annotation)
            if id(tensor) not in self._sound and not self._sound_tensor(tensor, annotation.span or owner.span):
                return POISON
            return tensor
        done = self._opened.get(id(annotation))
        if done is not None:
            return done[1]

        def leaf(ty: Type) -> Type:
            if type(ty) is IncompleteType:
                if id(ty) not in self._holes:
                    self._holes[id(ty)] = Unknown(owner)
                return self._holes[id(ty)]
            return self._solver.intern(ty) if type(ty) is TensorType else ty

        opened = map_type(annotation, leaf) if self.well_formed(annotation, owner.span) else POISON
        self._opened[id(annotation)] = (annotation, opened)
        return opened

    def well_formed(self, ty: Type, place: Span | None) -> bool:
        """Kinds: types stand where types are wanted, definitions with their arguments, extents in shapes."""
        stack = [ty]
        seen: set[int] = set()
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            span = place if isinstance(node, TypeVar) else getattr(node, "span", None) or place
            if not self._well_kinded(node, span):
                return False
            stack.extend(reversed(parts(node)))
        return True

    def report_unbound(self) -> None:
        """Report the type variables that nothing binds."""
        for var, span in self._mentioned.values():
            if id(var) not in self._bound:
                self._report.undefined(f"nothing binds the type variable `{var.name_hint}`", span or var.span)

    def _sound_tensor(self, ty: TensorType, span: Span | None) -> bool:
        """Whether each extent of a tensor type is one."""
        say = self._report.say
        for axis, dim in enumerate(ty.shape):
            if isinstance(dim, TypeVar):
                if isinstance(dim, SymbolicDim):
                    self._mentioned.update({id(n): (n, span) for n in names_in(dim) if not isinstance(n, SymbolicDim)})
                    continue
                if dim.kind == "ShapeVar":
                    self._mentioned.setdefault(id(dim), (dim, span))
                    continue
                what = f"`{dim.name_hint}`, which stands for a type"
            elif dim is ANY or isinstance(dim, int):
                continue
            else:
                what = repr(dim)
            say("R0311", f"dimension {axis} of `{show(ty)}` is {what}; it must be an extent", span)
            return False
        wrong = unsound(ty)
        if wrong is not None:
            say("R0311", f"`{show(ty)}` is no type: {wrong}", span)
            return False
        self._sound.add(id(ty))
        return True

    def _well_kinded(self, node: Type, span: Span | None) -> bool:
        """Whether one part of a type stands where its kind may stand."""
        say = self._report.say
        if isinstance(node, TensorType):
            return self._sound_tensor(self._solver.intern(node), span)
        if isinstance(node, TypeVar):
            if node.kind == "ShapeVar":
                say(
                    "R0311",
                    f"`{node.name_hint}` stands for an extent, not for a type",
                    span or node.span,
                    also=[(node.span, "it is bound here")],
                )
                return False
            self._mentioned.setdefault(id(node), (node, span))
        elif isinstance(node, FuncType):
            self.bind(node.type_params)
        elif isinstance(node, GlobalTypeVar):
            count = self._arity(node)
            say(
                "R0311",
                f"`{node.name_hint}` is a type definition; a type is `{node.name_hint}[...]`",
                span,
                f"write `{node.name_hint}[]`" if not count else "its type arguments are missing",
            )
            return False
        elif isinstance(node, TypeCall):
            if not isinstance(node.func, GlobalTypeVar):
                what = f"`{node.func.name_hint}`, a type parameter," if isinstance(node.func, TypeVar) else "this type"
                say("R0311", f"{what} takes no type arguments", span)
                return False
            wanted = self._arity(node.func)
            if wanted is None:
                self._report.undefined(f"the type `{node.func.name_hint}` is not defined", span)
                return False
            if wanted != len(node.args):
                say(
                    "R0311",
                    f"`{node.func.name_hint}` has {wanted} type parameter{'s' * (wanted != 1)}, not {len(node.args)}",
                    span,
                    also=[(self._definitions[node.func].span, "it is defined here")],
                )
                return False
        return True

    def _arity(self, header: GlobalTypeVar) -> int | None:
        data = self._definitions.get(header)
        return None if data is None else len(data.type_vars)


__all__ = ["Annotations"]
