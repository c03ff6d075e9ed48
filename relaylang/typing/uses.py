"""The dependencies of a function: the functions of its module that it names, and the type definitions."""

from __future__ import annotations

from collections.abc import Iterator

from relaylang.ir.expr import (
    Call,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    Match,
    MetaRef,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    TypeData,
    Var,
)
from relaylang.ir.types import GlobalTypeVar, TensorType, Type, type_children
from relaylang.ir.visit import post_order


def uses(node: Expr) -> tuple[dict[str, GlobalVar], dict[GlobalTypeVar, None]]:
    """The functions by name and the type definitions that an expression names, in the order of their first mention."""
    functions: dict[str, GlobalVar] = {}
    definitions: dict[GlobalTypeVar, None] = {}
    seen: set[int] = set()

    def look(ty: Type | None) -> None:
        if ty is not None and type(ty) is not TensorType and id(ty) not in seen:
            seen.add(id(ty))
            definitions.update(dict.fromkeys(types_in(ty)))

    for expr in post_order(node):
        if isinstance(expr, GlobalVar):
            functions.setdefault(expr.name_hint, expr)
        elif isinstance(expr, Constructor):
            definitions[expr.belong_to] = None
        elif isinstance(expr, (Var, MetaRef)):
            look(expr.type_annotation)
        elif isinstance(expr, Function):
            look(expr.ret_type)
            for param in expr.params:
                look(param.type_annotation)
        elif isinstance(expr, Call):
            if isinstance(expr.op, Constructor):
                definitions[expr.op.belong_to] = None
            for ty in expr.type_args:
                look(ty)
        elif isinstance(expr, Match):
            for clause in expr.clauses:
                for part in _patterns(clause.lhs):
                    if isinstance(part, PatternConstructor):
                        definitions[part.constructor.belong_to] = None
                    elif isinstance(part, PatternVar):
                        look(part.var.type_annotation)
    return functions, definitions


def types_in(ty: Type) -> Iterator[GlobalTypeVar]:
    """The type definitions that a type names."""
    stack = [ty]
    while stack:
        node = stack.pop()
        if isinstance(node, GlobalTypeVar):
            yield node
        stack.extend(type_children(node))


def definition_uses(data: TypeData) -> dict[GlobalTypeVar, None]:
    """The type definitions that a type definition names."""
    return dict.fromkeys(var for c in data.constructors for ty in c.inputs for var in types_in(ty))


def _patterns(pattern: Pattern) -> Iterator[Pattern]:
    stack = [pattern]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, (PatternConstructor, PatternTuple)):
            stack.extend(node.patterns)


__all__ = ["definition_uses", "types_in", "uses"]
