"""What `tvm.relay` has beside relaylang's public face."""

from __future__ import annotations

from relaylang.diagnostics.source import Span
from relaylang.tvm.relay.nodes import ShapeVar
from relaylang.tvm.relay.optimising import optimize
from relaylang.tvm.relay.parser import SpanCheck, fromtext, parse, parse_expr
from relaylang.tvm.relay.type_functor import TypeFunctor, TypeMutator, TypeVisitor

__all__ = ["ShapeVar", "Span", "SpanCheck", "TypeFunctor", "TypeMutator", "TypeVisitor", "fromtext", "optimize", "parse", "parse_expr"]
