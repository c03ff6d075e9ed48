"""Legalize: rules replace operators."""

from __future__ import annotations

from typing import Any

import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.ir import Expr, Function, IRModule, TensorType, Var, const
from relaylang.ops.build import op_call
from relaylang.transform import InferType
from tests.passes.layers import after, ops


def test_rules_replace_operators() -> None:
    from_rule = relay.transform.register_legalize

    @from_rule("nn.relu", attr_name="toy")
    def maximum(attrs: Any, inputs: Any, types: Any) -> Expr | None:
        return op_call("maximum", [inputs[0], const(0.0)]) if types[0].shape == (2, 3) else None

    x, y = Var("x", TensorType((2, 3))), Var("y", TensorType((3,)))
    body = op_call("add", [op_call("nn.relu", [x]), op_call("nn.relu", [y])])
    mod = after("Legalize('toy')", IRModule.from_expr(Function([x, y], body)))
    assert ops(mod) == ["maximum", "nn.relu", "add"]
    assert ops(after("Legalize", mod)) == ops(mod)


@pytest.mark.parametrize("rule", [lambda *_: 3, lambda *_: const(1.0), lambda *_: 1 // 0])
def test_wrong_rules_are_told(rule: Any) -> None:
    relay.transform.register_legalize("exp", rule, "toy wrong")
    x = Var("x", TensorType((2, 3)))
    mod = InferType()(IRModule.from_expr(Function([x], op_call("exp", [x]))))
    with pytest.raises(RelayError) as wrong:
        relay.transform.Legalize("toy wrong")(mod)
    assert wrong.value.diagnostics[0].code in ("R0502", "R0503", "R0504")
