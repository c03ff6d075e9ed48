"""SplitArgs: long concatenations."""

from __future__ import annotations

from relaylang.ir import Function, IRModule, Tuple, Var
from relaylang.ir.structural import structural_equal
from relaylang.ops.build import op_call
from relaylang.testing.generators.programs import T
from relaylang.transform import Sequential
from tests.passes.meaning import keeps_meaning
from tests.passes.texts import made, ops


def test_wide_concatenations_are_split() -> None:
    x = Var("x", T)
    mod = IRModule.from_expr(Function([x], op_call("concatenate", [Tuple([x] * 10)], axis=1)))
    new = keeps_meaning(Sequential([made("SplitArgs(4)")]), mod)
    assert ops(new).count("concatenate") == 5
    assert structural_equal(made("SplitArgs(100)")(mod), mod)
