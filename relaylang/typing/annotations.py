"""Annotations: the types that a program states, checked to be well formed and opened where they leave holes."""

from __future__ import annotations

from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Constructor, Expr, TypeData
from relaylang.ir.module import IRModule
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
from relaylang.typing.calls import Calls, unsound
from relaylang.typing.report import name_of, show
from relaylang.typing.solver import POISON, Unknown


class Annotations(Calls):
    """The part of an inference that reads annotations."""

    def __init__(self, module: IRModule | None) -> None:
        super().__init__(module)
        self.bound: set[int] = set()  # type parameters of functions and definitions
        self.mentioned: dict[int, tuple[TypeVar, Span | None]] = {}  # type variables that occur, and where first
        self.constructor_names: dict[str, Constructor] = {}

    def open(self, annotation: Type, owner: Expr) -> Type:
        """An annotation with its holes made unknowns, checked to be well formed."""
        if type(annotation) is TensorType:
            tensor = self.intern(annotation)
            if id(tensor) not in self.sound and not self.sound_tensor(tensor, annotation.span or owner.span):
                return POISON
            return tensor
        done = self.opened.get(id(annotation))
        if done is not None:
            return done[1]

        def leaf(ty: Type) -> Type:
            if type(ty) is IncompleteType:
                if id(ty) not in self.holes_by_type:
                    self.holes_by_type[id(ty)] = Unknown(owner)
                return self.holes_by_type[id(ty)]
            return self.intern(ty) if type(ty) is TensorType else ty

        made = self.map_type(annotation, leaf) if self.well_formed(annotation, owner.span) else POISON
        self.opened[id(annotation)] = (annotation, made)
        return made

    def sound_tensor(self, ty: TensorType, span: Span | None) -> bool:
        """Whether each extent of a tensor type is one."""
        for axis, dim in enumerate(ty.shape):
            if isinstance(dim, TypeVar):
                if isinstance(dim, SymbolicDim):
                    continue
                if dim.kind == "ShapeVar":
                    self.mentioned.setdefault(id(dim), (dim, span))
                    continue
                what = f"`{dim.name_hint}`, which stands for a type"
            elif dim is ANY or isinstance(dim, int):
                continue
            else:
                what = repr(dim)
            self.say("R0311", f"dimension {axis} of `{show(ty)}` is {what}; it must be an extent", span)
            return False
        wrong = unsound(ty)
        if wrong is not None:
            self.say("R0311", f"`{show(ty)}` is no type: {wrong}", span)
            return False
        self.sound.add(id(ty))
        return True

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
            if not self.well_kinded(node, span):
                return False
            stack.extend(reversed(parts(node)))
        return True

    def well_kinded(self, node: Type, span: Span | None) -> bool:
        """Whether one part of a type is used as what it is."""
        if isinstance(node, TensorType):
            return self.sound_tensor(self.intern(node), span)
        if isinstance(node, TypeVar):
            if node.kind == "ShapeVar":
                self.say(
                    "R0311", f"`{node.name_hint}` stands for an extent, not for a type", span or node.span,
                    also=[(node.span, "it is bound here")],
                )  # fmt: skip
                return False
            self.mentioned.setdefault(id(node), (node, span))
        elif isinstance(node, FuncType):
            self.bound.update(map(id, node.type_params))
        elif isinstance(node, GlobalTypeVar):
            count = self.arity(node)
            self.say(
                "R0311", f"`{node.name_hint}` is a type definition; a type is `{node.name_hint}[...]`",
                span, f"write `{node.name_hint}[]`" if not count else "its type arguments are missing",
            )  # fmt: skip
            return False
        elif isinstance(node, TypeCall):
            if not isinstance(node.func, GlobalTypeVar):
                what = f"`{node.func.name_hint}`, a type parameter," if isinstance(node.func, TypeVar) else "this type"
                self.say("R0311", f"{what} takes no type arguments", span)
                return False
            wanted = self.arity(node.func)
            if wanted is None:
                self.say("R0312", f"the type `{node.func.name_hint}` is not defined", span)
                return False
            if wanted != len(node.args):
                self.say(
                    "R0311",
                    f"`{node.func.name_hint}` has {wanted} type parameter{'s' * (wanted != 1)}, not {len(node.args)}",
                    span,
                    also=[(self.definitions[node.func].span, "it is defined here")],
                )
                return False
        return True

    def arity(self, header: GlobalTypeVar) -> int | None:
        data = self.definitions.get(header)
        return None if data is None else len(data.type_vars)

    def check_definition(self, data: TypeData) -> None:
        """A type definition: its parameters and constructors are distinct, and what these hold are types."""
        self.bound.update(map(id, data.type_vars))
        name = data.header.name_hint
        for i, var in enumerate(data.type_vars):
            if any(var is other for other in data.type_vars[:i]):
                self.say("R0316", f"`{name}` binds its type parameter `{var.name_hint}` twice", var.span or data.span)
        for constructor in data.constructors:
            before = self.constructor_names.setdefault(constructor.name_hint, constructor)
            if before is not constructor:
                self.say(
                    "R0316", f"the constructor {name_of(constructor)} is defined twice",
                    constructor.span or data.span, also=[(before.span, "it is defined here, too")],
                )  # fmt: skip
            if constructor.belong_to is not data.header:
                self.say(
                    "R0311",
                    f"{name_of(constructor)} stands in `{name}`, but belongs to `{constructor.belong_to.name_hint}`",
                    constructor.span or data.span,
                )
            for ty in constructor.inputs:
                self.well_formed(ty, constructor.span or data.span)

    def check_scopes(self) -> None:
        """Say which names of a module nothing binds."""
        for var, span in self.mentioned.values():
            if id(var) not in self.bound:
                self.say("R0312", f"nothing binds the type variable `{var.name_hint}`", span or var.span)
