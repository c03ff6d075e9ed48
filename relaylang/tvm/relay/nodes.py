"""The nodes of `tvm.relay.expr`, `.function`, `.ty`, `.adt` and `.base`, which stand together here."""

from __future__ import annotations

from relaylang.ir import (
    Any,
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Function,
    FuncType,
    GlobalTypeVar,
    GlobalVar,
    If,
    IncompleteType,
    Let,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    RefCreate,
    RefRead,
    RefType,
    RefWrite,
    ScopeBuilder,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeVar,
    Var,
    const,
    scalar_type,
    var,
)
from relaylang.ir.binding import bind
from relaylang.tvm.ir.nodes import TypeConstraint, TypeRelation
from relaylang.tvm.ir.spans import SequentialSpan, SourceName, Span
from relaylang.tvm.op.build import TupleWrapper
from relaylang.typing.kinds import TypeKind

RelayExpr = ExprWithOp = Expr
BaseFunc = Function


def ShapeVar(name: str) -> TypeVar:
    """A named extent that a function binds."""
    return TypeVar(name, TypeKind.ShapeVar)


__all__ = [
    "Any", "BaseFunc", "Call", "Clause", "Constant", "Constructor", "Expr", "ExprWithOp", "FuncType", "Function", "GlobalTypeVar",
    "GlobalVar", "If", "IncompleteType", "Let", "Match", "Pattern", "PatternConstructor", "PatternTuple", "PatternVar",
    "PatternWildcard", "RefCreate", "RefRead", "RefType", "RefWrite", "RelayExpr", "ScopeBuilder", "SequentialSpan",
    "ShapeVar", "SourceName", "Span", "TensorType", "Tuple", "TupleGetItem", "TupleType", "TupleWrapper", "Type", "TypeCall",
    "TypeConstraint", "TypeData", "TypeKind", "TypeRelation", "TypeVar", "Var", "bind", "const", "scalar_type", "var",
]  # fmt: skip
