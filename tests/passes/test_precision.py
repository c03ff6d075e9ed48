"""Fake quantization in integers, and mixed precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Expr, Function, IRModule, TensorType, Var, const, post_order
from relaylang.passes.build import op_call
from relaylang.transform import InferType, PassContext, Sequential, ToMixedPrecision, parse_passes
from tests.passes.programs import Programs, T, inputs


def ops(mod: IRModule) -> list[str]:
    return [n.op.name for n in post_order(mod["main"]) if isinstance(n, Call) and hasattr(n.op, "name")]


def real(x: Expr, scale: float, zero: int = 0) -> Expr:
    return op_call("qnn.dequantize", [x, const(scale), const(zero)], out_dtype="float32")


def quantized(x: Expr, scale: float, zero: int = 0, dtype: str = "int8") -> Expr:
    return op_call("qnn.quantize", [x, const(scale), const(zero)], out_dtype=dtype)


def integers(*shape: int, seed: int = 0) -> Any:
    return const(np.random.default_rng(seed).integers(-100, 100, shape).astype("int8"))


def in_integers(params: list[Var], body: Expr, off: int = 1) -> list[str]:
    """The operators after the pass; the results are at most `off` apart."""
    mod = InferType()(IRModule.from_expr(Function(params, body)))
    new = InferType()(Sequential(parse_passes("FakeQuantizationToInteger"))(mod))
    assert new["main"].checked_type == mod["main"].checked_type
    for seed in range(3):
        rng = np.random.default_rng(seed)
        given = [rng.integers(-128, 128, p.type_annotation.shape).astype("int8") for p in params]  # type: ignore
        before, after = evaluate(mod, *given).astype(int), evaluate(new, *given).astype(int)
        assert np.abs(before - after).max() <= off
    return ops(new)


def test_a_convolution_with_its_surroundings() -> None:
    x = Var("x", TensorType((1, 3, 6, 6), "int8"))
    padded = op_call("nn.pad", [real(x, 0.02, 3), const(0.0)], pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])
    conv = op_call("nn.conv2d", [padded, real(integers(4, 3, 3, 3), 0.01)], kernel_size=[3, 3], channels=4)
    biased = op_call("nn.bias_add", [conv, const(np.array([1, -2, 0.5, 0.25], "float32"))])
    pooled = op_call("nn.max_pool2d", [op_call("nn.relu", [biased])], pool_size=[2, 2], strides=[2, 2])
    found = in_integers([x], quantized(op_call("reshape", [pooled], newshape=[1, -1]), 0.1, -5))
    assert found == ["nn.pad", "qnn.conv2d", "nn.bias_add", "nn.relu", "nn.max_pool2d", "reshape", "qnn.requantize"]


@pytest.mark.parametrize("name", ["add", "subtract", "multiply"])
def test_elementwise(name: str) -> None:
    x, y = Var("x", TensorType((4, 3), "int8")), Var("y", TensorType((4, 3), "int8"))
    body = quantized(op_call(name, [real(x, 0.03, 2), real(y, 0.05, -1)]), 0.08, 4)
    assert in_integers([x, y], body, off=2) == [{"multiply": "qnn.mul"}.get(name, "qnn." + name)]


def test_dense_clip_and_average() -> None:
    x = Var("x", TensorType((4, 3), "int8"))
    dense = op_call("nn.dense", [real(x, 0.03, 2), real(integers(5, 3), 0.02)], units=5)
    clipped = op_call("clip", [dense], a_min=-1.0, a_max=6.0)
    assert in_integers([x], quantized(clipped, 0.05, 0)) == ["qnn.dense", "clip", "qnn.requantize"]
    y = Var("y", TensorType((1, 2, 4, 4), "int8"))
    pool = op_call("nn.avg_pool2d", [real(y, 0.03, 2)], pool_size=[2, 2], strides=[2, 2])
    assert in_integers([y], quantized(pool, 0.03, 2)) == ["cast", "nn.avg_pool2d", "qnn.requantize"]


def test_what_has_no_integer_form_stays_in_floats() -> None:
    x = Var("x", TensorType((4, 3), "int8"))
    found = in_integers([x], quantized(op_call("exp", [op_call("nn.relu", [real(x, 0.03)])]), 0.5), off=0)
    assert found == ["qnn.dequantize", "nn.relu", "exp", "qnn.quantize"]


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


def test_wrong_types_are_told() -> None:
    with pytest.raises(RelayError):
        ToMixedPrecision("int8")(layered())
