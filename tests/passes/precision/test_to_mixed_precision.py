"""Mixed precision."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Function, IRModule, TensorType, Tuple, Var, const, post_order
from relaylang.ops.build import op_call
from relaylang.testing.generators.programs import Programs, T, inputs
from relaylang.transform import (
    InferType,
    PassContext,
    ToMixedPrecision,
)


def ops(mod: IRModule) -> list[str]:
    return [n.op.name for n in post_order(mod["main"]) if isinstance(n, Call) and hasattr(n.op, "name")]


# ---- mixed precision


def layered() -> IRModule:
    x, w, b = Var("x", T), Var("w", TensorType((4, 3))), Var("b", TensorType((4,)))
    dense = op_call("nn.relu", [op_call("nn.bias_add", [op_call("nn.dense", [x, w], units=4), b])])
    return InferType()(IRModule.from_expr(Function([x, w, b], op_call("nn.softmax", [dense]))))


def test_products_are_in_16_bits_and_softmax_is_not() -> None:
    mod = layered()
    new = InferType()(ToMixedPrecision("float16")(mod))
    types = {n.op.name: n.checked_type.dtype for n in post_order(new["main"]) if isinstance(n, Call)}  # type: ignore
    assert types["nn.dense"] == types["nn.bias_add"] == types["nn.relu"] == "float16"
    assert types["nn.softmax"] == "float32"
    given = inputs(1, mod["main"])
    np.testing.assert_allclose(evaluate(mod, *given), evaluate(new, *given), atol=5e-3)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_stay_near_and_keep_their_type(seed: int) -> None:
    mod = Programs(seed).module()
    key = "relay.ToMixedPrecision.keep_orig_output_dtype"
    with PassContext(config={key: True}):
        new = InferType()(ToMixedPrecision()(mod))
    assert new["main"].checked_type == mod["main"].checked_type
    given = inputs(seed, mod["main"])
    before, after = evaluate(mod, *given), evaluate(new, *given)
    assert before.shape == after.shape and before.dtype == after.dtype


def test_results_are_in_16_bits_but_of_functions_that_others_call() -> None:
    x, w = Var("x", T), Var("w", TensorType((3, 3)))
    dense = Function([x, w], op_call("nn.dense", [x, w], units=3), T)
    alone = InferType()(ToMixedPrecision()(InferType()(IRModule.from_expr(dense))))
    assert alone["main"].body.checked_type.dtype == "float16"
    for seed in range(6):
        mod = Programs(seed).module()
        InferType()(ToMixedPrecision()(mod))


def test_operators_follow_parameters_and_constants() -> None:
    x = Var("x", TensorType((2, 4)))
    first = op_call("nn.bias_add", [x, const(np.ones(4, "float32"))])
    body = Tuple([op_call("rsqrt", [first]), op_call("clip", [first], a_min=-1e9, a_max=1.0), op_call("sum", [first])])
    new = InferType()(ToMixedPrecision()(InferType()(IRModule.from_expr(Function([x], body)))))
    assert [t.dtype for t in new["main"].checked_type.ret_type.fields] == ["float16", "float32", "float32"]


def test_products_in_float64() -> None:
    mod = layered()
    new = InferType()(ToMixedPrecision("float64")(mod))
    types = {n.op.name: n.checked_type.dtype for n in post_order(new["main"]) if isinstance(n, Call)}  # type: ignore
    assert types["nn.dense"] == types["nn.bias_add"] == "float64" and types["nn.softmax"] == "float32"
    given = inputs(1, mod["main"])
    np.testing.assert_allclose(evaluate(mod, *given), evaluate(new, *given), atol=1e-6)


def test_wrong_types_are_told() -> None:
    with pytest.raises(RelayError):
        ToMixedPrecision("int8")(layered())
