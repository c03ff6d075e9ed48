"""The names of `relaylang.tvm.expr_functor`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.expr_functor import Call as Call
from relaylang.tvm.expr_functor import Clause as Clause
from relaylang.tvm.expr_functor import Constant as Constant
from relaylang.tvm.expr_functor import Constructor as Constructor
from relaylang.tvm.expr_functor import ExprFunctor as ExprFunctor
from relaylang.tvm.expr_functor import ExprMutator as ExprMutator
from relaylang.tvm.expr_functor import ExprVisitor as ExprVisitor
from relaylang.tvm.expr_functor import Function as Function
from relaylang.tvm.expr_functor import GlobalVar as GlobalVar
from relaylang.tvm.expr_functor import If as If
from relaylang.tvm.expr_functor import Let as Let
from relaylang.tvm.expr_functor import Match as Match
from relaylang.tvm.expr_functor import Op as Op
from relaylang.tvm.expr_functor import RefCreate as RefCreate
from relaylang.tvm.expr_functor import RefRead as RefRead
from relaylang.tvm.expr_functor import RefWrite as RefWrite
from relaylang.tvm.expr_functor import Tuple as Tuple
from relaylang.tvm.expr_functor import TupleGetItem as TupleGetItem
from relaylang.tvm.expr_functor import Var as Var
