"""Dataflow patterns: shapes of subgraphs that passes and backends look for."""
from relaylang.patterns.language import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    ExprPattern,
    Match,
    OpNamePattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
    find_match,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    wildcard,
)

__all__ = [
    "AltPattern", "AttrPattern", "CallPattern", "ConstantPattern", "DFPattern", "DataTypePattern", "ExprPattern",
    "Match", "OpNamePattern", "ShapePattern", "TupleGetItemPattern", "TuplePattern", "TypePattern", "VarPattern",
    "WildcardPattern", "find_match", "has_attr", "has_dtype", "has_shape", "has_type", "is_constant", "is_expr",
    "is_op", "is_tuple", "is_tuple_get_item", "is_var", "match", "wildcard",
]  # fmt: skip


def match(pattern: DFPattern, expr: object) -> bool:
    """Whether the expression matches the pattern."""
    return pattern.match(expr)  # type: ignore[arg-type]
