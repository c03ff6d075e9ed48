"""LambdaLift: inner functions become the module's."""

from __future__ import annotations

from relaylang.ir import Function, post_order
from tests.passes.texts import after, main


def test_lambdas_are_lifted() -> None:
    text = main(
        "let %f = fn (%y: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {\n"
        "  if (less(sum(%y), 9f)) { %f(add(%y, add(%x, 9f))) } else { %y } };\n%f(abs(%x))",
    )
    mod = after("LambdaLift", text)
    assert len(mod.functions) == 2 and mod["lifted_name0"].attrs["Closure"] == 1
    plain = after("LambdaLift", main("let %f = fn (%y: Tensor[(2, 3), float32]) { exp(%y) }; %f(%f(%x))"))
    assert not any(isinstance(n, Function) for n in post_order(plain["main"].body))
