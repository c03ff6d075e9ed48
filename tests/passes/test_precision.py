"""Fake quantization in integers, and mixed precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Expr, Function, IRModule, TensorType, Tuple, TupleGetItem, Var, const, post_order
from relaylang.passes.build import op_call
from relaylang.transform import (
    FakeQuantizationToInteger,
    InferType,
    PassContext,
    Sequential,
    ToMixedPrecision,
    parse_passes,
)
from tests.passes.programs import Programs, T, inputs


def ops(mod: IRModule) -> list[str]:
    return [n.op.name for n in post_order(mod["main"]) if isinstance(n, Call) and hasattr(n.op, "name")]


def real(x: Expr, scale: float, zero: int = 0) -> Expr:
    return op_call("qnn.dequantize", [x, const(scale), const(zero)], out_dtype="float32")


def quantized(x: Expr, scale: float, zero: int = 0, dtype: str = "int8") -> Expr:
    return op_call("qnn.quantize", [x, const(scale), const(zero)], out_dtype=dtype)


def integers(*shape: int, seed: int = 0) -> Any:
    return const(np.random.default_rng(seed).integers(-100, 100, shape).astype("int8"))


def in_integers(params: list[Var], body: Expr, off: int = 1, options: str = "") -> list[str]:
    """The operators after the pass; the results are at most `off` apart."""
    mod = InferType()(IRModule.from_expr(Function(params, body)))
    new = InferType()(Sequential(parse_passes(f"FakeQuantizationToInteger({options})"))(mod))
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
    body = quantized(op_call("cosh", [op_call("nn.relu", [real(x, 0.03)])]), 0.5)
    assert in_integers([x], body, off=0) == ["qnn.dequantize", "nn.relu", "cosh", "qnn.quantize"]
    with pytest.raises(RelayError) as wrong:
        in_integers([x], body, options="hard_fail=True")
    assert wrong.value.diagnostics[0].code == "R0516"
    assert "cosh" in wrong.value.diagnostics[0].title
    with pytest.raises(RelayError):
        in_integers([x], body, options="optional_qnn_ops=['sinh']")


def test_softmax_if_asked_for() -> None:
    x = Var("x", TensorType((4, 3), "int8"))
    body = quantized(op_call("nn.softmax", [real(x, 0.03)]), 1 / 256, -128)
    assert in_integers([x], body, off=0) == ["qnn.dequantize", "nn.softmax", "qnn.quantize"]
    assert in_integers([x], body, options="optional_qnn_ops=['nn.softmax']", off=4) == ["qnn.softmax"]


def test_pieces() -> None:
    x, y = Var("x", TensorType((4, 6), "int8")), Var("y", TensorType((4, 6), "int8"))
    joined = op_call("concatenate", [Tuple([real(x, 0.03, 2), real(y, 0.05, -1)])], axis=1)
    assert in_integers([x, y], quantized(joined, 0.06, 4)) == ["qnn.concatenate"]
    same = op_call("concatenate", [Tuple([real(x, 0.03), real(y, 0.03)])], axis=0)
    assert in_integers([x, y], quantized(same, 0.03), off=0) == ["concatenate"]
    parts = op_call("split", [real(x, 0.03, 2)], indices_or_sections=2, axis=1)
    added = op_call("add", [TupleGetItem(parts, 0), TupleGetItem(parts, 1)])
    assert in_integers([x], quantized(added, 0.05, 1), off=2) == ["split", "qnn.add"]


def test_reductions_and_choices() -> None:
    x = Var("x", TensorType((4, 6), "int8"))
    found = in_integers([x], quantized(op_call("mean", [real(x, 0.03, 2)], axis=[1]), 0.02, -3))
    assert found == ["cast", "sum", "qnn.requantize"]
    best = op_call("topk", [real(x, 0.03, 2)], k=2, axis=1, ret_type="values")
    assert in_integers([x], quantized(best, 0.03, 2), off=0) == ["topk"]
    taken = op_call("take", [real(x, 0.03, 2), const(np.array([2, 0], "int32"))], axis=0)
    assert in_integers([x], quantized(taken, 0.03, 2), off=0) == ["take"]


def test_more_products() -> None:
    x = Var("x", TensorType((1, 3, 5, 5), "int8"))
    weight = real(integers(3, 4, 3, 3), 0.01)
    turned = op_call("nn.conv2d_transpose", [real(x, 0.02, 3), weight], kernel_size=[3, 3], channels=4, strides=[2, 2])
    assert in_integers([x], quantized(turned, 0.2, 1)) == ["qnn.conv2d_transpose", "qnn.requantize"]
    a, b = Var("a", TensorType((2, 3, 4), "int8")), Var("b", TensorType((2, 5, 4), "int8"))
    product = op_call("nn.batch_matmul", [real(a, 0.02, 3), real(b, 0.03, -1)], transpose_b=True)
    assert in_integers([a, b], quantized(product, 0.2, 1)) == ["qnn.batch_matmul", "qnn.requantize"]


@pytest.mark.parametrize("name", ["sqrt", "rsqrt", "exp", "erf", "sigmoid", "tanh", "abs", "log"])
def test_functions_of_one_tensor(name: str) -> None:
    x = Var("x", TensorType((4, 6), "int8"))
    assert in_integers([x], quantized(op_call(name, [real(x, 0.02, -129)]), 0.05), off=2) == [f"qnn.{name}"]


def test_without_a_quantize_behind() -> None:
    x = Var("x", TensorType((4, 3), "int8"))
    dense = op_call("nn.dense", [real(x, 0.03, 2), real(integers(5, 3), 0.02)], units=5)
    mod = InferType()(IRModule.from_expr(Function([x], op_call("nn.relu", [dense]))))
    for use_qat, wanted in ((False, ["qnn.dequantize", "qnn.dequantize", "nn.dense", "nn.relu"]),
                            (True, ["qnn.dense", "nn.relu", "qnn.dequantize"])):  # fmt: skip
        new = InferType()(FakeQuantizationToInteger(use_qat=use_qat)(mod))
        assert ops(new) == wanted
        given = inputs(3, mod["main"])
        np.testing.assert_allclose(evaluate(new, *given), evaluate(mod, *given), rtol=1e-5, atol=1e-5)


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


def test_wrong_types_are_told() -> None:
    with pytest.raises(RelayError):
        ToMixedPrecision("int8")(layered())
