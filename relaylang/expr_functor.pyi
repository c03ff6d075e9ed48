"""The names of `relaylang.tvm.expr_functor`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.expr_functor import ExprFunctor as ExprFunctor
from relaylang.tvm.expr_functor import ExprMutator as ExprMutator
from relaylang.tvm.expr_functor import ExprVisitor as ExprVisitor
