"""What `tvm.relay` has beside relaylang's public face."""

from __future__ import annotations

from relaylang.passes.context import PassContext
from relaylang.tvm.ir.nodes import TypeConstraint, TypeRelation
from relaylang.tvm.ir.spans import SequentialSpan, SourceName, Span
from relaylang.tvm.relay.nodes import ShapeVar
from relaylang.tvm.relay.optimising import optimize
from relaylang.tvm.relay.parser import SpanCheck, fromtext, parse, parse_expr
from relaylang.tvm.relay.type_functor import TypeFunctor, TypeMutator, TypeVisitor

#: Its earlier name.
build_config = PassContext

__all__ = [
    "SequentialSpan",
    "ShapeVar",
    "SourceName",
    "Span",
    "SpanCheck",
    "TypeConstraint",
    "TypeFunctor",
    "TypeMutator",
    "TypeRelation",
    "TypeVisitor",
    "build_config",
    "fromtext",
    "optimize",
    "parse",
    "parse_expr",
]
