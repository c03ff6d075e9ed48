"""The names of `tvm.ir`: nodes, types and modules, comparing them, and registries."""

from __future__ import annotations

from relaylang.ir import (
    Constant,
    Constructor,
    Expr,
    Function,
    FuncType,
    GlobalTypeVar,
    GlobalVar,
    IncompleteType,
    IRModule,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeVar,
    structural_hash,
)
from relaylang.ops.record import Op
from relaylang.passes.quantize.registered_integer_rules import TensorAffineType, TupleAffineType
from relaylang.tvm.ir.attributes import Attrs, DictAttrs, register_op_attr
from relaylang.tvm.ir.compare import assert_structural_equal, get_first_structural_mismatch, structural_equal
from relaylang.tvm.ir.container import Array, Map
from relaylang.tvm.ir.nodes import CallingConv, EnvFunc, PrimType, Range, TypeConstraint, TypeRelation, make_node
from relaylang.tvm.ir.spans import SequentialSpan, SourceName, Span
from relaylang.tvm.registry import register_object
from relaylang.tvm.tir import PrimExpr
from relaylang.typing.kinds import TypeKind

BaseExpr = RelayExpr = Node = Expr
BaseFunc = Function
RelayRefType = RefType

__all__ = [
    "Array", "Attrs", "BaseExpr", "BaseFunc", "CallingConv", "Constant", "Constructor", "DictAttrs", "EnvFunc", "FuncType", "Function",
    "GlobalTypeVar", "GlobalVar", "IRModule", "IncompleteType", "Map", "Node", "Op", "PrimExpr", "PrimType", "Range", "RelayExpr",
    "RelayRefType", "SequentialSpan", "SourceName", "Span", "TensorAffineType", "TensorType", "TupleAffineType", "TupleType",
    "Type", "TypeCall", "TypeConstraint", "TypeData", "TypeKind", "TypeRelation", "TypeVar", "assert_structural_equal",
    "get_first_structural_mismatch", "make_node", "register_object", "register_op_attr", "structural_equal", "structural_hash",
]  # fmt: skip
