"""Dataflow patterns: shapes of subgraphs that passes and backends look for."""

from relaylang.ir import Expr
from relaylang.patterns import language
from relaylang.patterns.graph import Graph
from relaylang.patterns.groups import Group, find_groups, find_types, partition
from relaylang.patterns.language import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    OpNamePattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
    dominates,
    function_pattern,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    needs_types,
    wildcard,
)
from relaylang.patterns.matcher import Match, Matcher, find_match
from relaylang.patterns.mismatch import Explanation, explain_match
from relaylang.patterns.notation import parse_pattern, pattern_text
from relaylang.patterns.rewrite import DFPatternCallback, callback_pass, rewrite, rewrite_module

__all__ = [
    "AltPattern", "AttrPattern", "CallPattern", "ConstantPattern", "DFPattern", "DFPatternCallback", "DataTypePattern",
    "DominatorPattern", "Explanation", "ExprPattern", "FunctionPattern", "Graph", "Group", "IfPattern", "LetPattern",
    "Match", "Matcher", "OpNamePattern", "ShapePattern", "TupleGetItemPattern", "TuplePattern", "TypePattern",
    "VarPattern", "WildcardPattern", "callback_pass", "dominates", "explain_match", "find_groups", "find_match",
    "function_pattern", "has_attr", "has_dtype", "has_shape", "has_type", "is_constant", "is_expr", "is_if", "is_let",
    "is_op", "is_tuple", "is_tuple_get_item", "is_var", "match", "parse_pattern", "partition", "pattern_text",
    "rewrite", "rewrite_module", "wildcard",
]  # fmt: skip


def match(pattern: DFPattern, expr: Expr) -> bool:
    """Whether the expression matches the pattern. Types are found where the pattern asks for them."""
    if needs_types(pattern):
        find_types(expr)
    return find_match(pattern, expr) is not None


language._ABOVE.update(match=match, partition=partition, pattern_text=pattern_text)
