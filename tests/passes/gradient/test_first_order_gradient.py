"""Gradients against differences of the function itself, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Expr, Function, IRModule, TensorType, Tuple, TupleGetItem, Var, const
from relaylang.ops.build import op_call
from relaylang.transform import FirstOrderGradient, InferType, gradient


def against_differences(params: list[Var], body: Expr, low: float = 0.3, high: float = 0.9) -> None:
    """Each parameter's gradient of the sum of the result."""
    mod = InferType()(IRModule.from_expr(Function(params, body)))
    new = InferType()(FirstOrderGradient()(mod))
    rng = np.random.default_rng(0)
    given = [rng.uniform(low, high, p.type_annotation.shape) for p in params]  # type: ignore[union-attr]
    result, grads = evaluate(new, *given)
    plain = evaluate(mod, *given)

    def total(value: Any) -> float:
        return sum(map(total, value)) if isinstance(value, tuple) else float(np.sum(value))

    assert total(result) == total(plain)
    for number, found in enumerate(grads):
        assert found.shape == given[number].shape
        expected = np.zeros(found.shape)
        for at in np.ndindex(found.shape):
            step = np.zeros(found.shape)
            step[at] = 1e-5
            up = total(evaluate(mod, *[g + step if i == number else g for i, g in enumerate(given)]))
            down = total(evaluate(mod, *[g - step if i == number else g for i, g in enumerate(given)]))
            expected[at] = (up - down) / 2e-5
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-6)


def f64(name: str, *shape: int) -> Var:
    return Var(name, TensorType(shape, "float64"))


@pytest.mark.parametrize(
    "name",
    [
        "log",
        "log10",
        "log2",
        "exp",
        "sqrt",
        "rsqrt",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "asin",
        "acos",
        "atan",
        "asinh",
        "atanh",
        "sigmoid",
        "erf",
        "nn.relu",
        "abs",
        "negative",
        "copy",
    ],
)
def test_functions_of_one_tensor(name: str) -> None:
    x = f64("x", 2, 3)
    against_differences([x], op_call(name, [op_call("multiply", [x, x])]))


def test_acosh_and_leaky_relu() -> None:
    x = f64("x", 2, 3)
    against_differences([x], op_call("acosh", [x]), 1.5, 3)
    against_differences([x], op_call("nn.leaky_relu", [x], alpha=0.2), -0.9, 0.9)
    against_differences([x], op_call("clip", [op_call("exp", [x])], a_min=1.5, a_max=2.0))


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "power", "maximum", "minimum"])
@pytest.mark.parametrize("shape", [(2, 3), (3,), (2, 1), ()])
def test_functions_of_two_tensors(name: str, shape: tuple[int, ...]) -> None:
    x, y = f64("x", 2, 3), f64("y", *shape)
    against_differences([x, y], op_call(name, [x, y]))
    against_differences([x, y], op_call(name, [y, x]))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("attrs", [{"axis": None}, {"axis": [1]}, {"axis": [0], "keepdims": True}, {"axis": [0], "exclude": True}])
def test_reductions(name: str, attrs: dict[str, Any]) -> None:
    x = f64("x", 2, 3)
    against_differences([x], op_call("exp", [op_call(name, [x], **attrs)]))


def test_variance_and_softmax() -> None:
    x = f64("x", 3, 4)
    mean = op_call("mean", [x], axis=[1], keepdims=True)
    against_differences([x], op_call("variance", [x, mean], axis=[1], keepdims=True))
    y = f64("y", 3, 4)
    for name in ("nn.softmax", "nn.log_softmax"):
        against_differences([x, y], op_call("multiply", [op_call(name, [x], axis=1), y]))


def test_shapes() -> None:
    x = f64("x", 2, 3)
    w = const(np.arange(6.0).reshape(3, 2), "float64")
    turned = op_call("transpose", [x], axes=[1, 0])
    against_differences([x], op_call("multiply", [turned, w]))
    against_differences([x], op_call("multiply", [op_call("reshape", [x], newshape=[3, 2]), w]))
    against_differences([x], op_call("exp", [op_call("squeeze", [op_call("expand_dims", [x], axis=1)], axis=[1])]))
    sliced = op_call("strided_slice", [x], begin=[0, 1], end=[2, 3], strides=[1, 1])
    against_differences([x], op_call("exp", [sliced]))


@pytest.mark.parametrize(
    ("begin", "end", "strides"),
    [
        ([0, 0], [5, 7], [2, 3]),
        ([4, 6], [-6, -8], [-1, -2]),
        ([1, -2], [9, 0], [2, -3]),
        ([0, 5], [5, 7], [1, 1]),
    ],
)
def test_slices_with_strides(begin: list[int], end: list[int], strides: list[int]) -> None:
    x = f64("x", 5, 7)
    against_differences([x], op_call("exp", [op_call("strided_slice", [x], begin=begin, end=end, strides=strides)]))
    axes = op_call("strided_slice", [x], begin=begin[1:], end=end[1:], strides=strides[1:], axes=[1])
    against_differences([x], op_call("exp", [axes]))


@pytest.mark.sample(3)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("picked", [[[0, 2], [2, 1]], [1, 1, 9], 2])
def test_what_is_taken(axis: int | None, picked: Any) -> None:
    x = f64("x", 3, 4, 3)
    indices = const(np.array(picked, "int32"))
    for mode in ("clip", "wrap"):
        against_differences([x], op_call("exp", [op_call("take", [x, indices], axis=axis, mode=mode)]))


def test_gather_nd() -> None:
    x = f64("x", 3, 4)
    for picked in ([[0, 1, 1], [3, 0, 0]], [[2, 2]]):
        against_differences([x], op_call("exp", [op_call("gather_nd", [x, const(np.array(picked, "int32"))])]))


def test_tuples() -> None:
    x, y = f64("x", 2, 3), f64("y", 2, 3)
    joined = op_call("concatenate", [Tuple([op_call("exp", [x]), y])], axis=1)
    against_differences([x, y], op_call("multiply", [joined, joined]))
    stacked = op_call("stack", [Tuple([x, y])], axis=1)
    against_differences([x, y], op_call("multiply", [stacked, stacked]))
    parts = op_call("split", [op_call("exp", [x])], indices_or_sections=3, axis=1)
    against_differences([x], op_call("multiply", [TupleGetItem(parts, 0), TupleGetItem(parts, 2)]))
    against_differences([x, y], Tuple([op_call("exp", [x]), op_call("multiply", [x, y])]))
    mask = op_call("less", [x, const(0.6, "float64")])
    against_differences([x, y], op_call("where", [mask, x, op_call("exp", [y])]))


def test_products() -> None:
    x, w, b = f64("x", 2, 3), f64("w", 4, 3), f64("b", 4)
    against_differences([x, w, b], op_call("tanh", [op_call("nn.bias_add", [op_call("nn.dense", [x, w]), b])]))
    for ta in (False, True):
        for tb in (False, True):
            a = f64("a", 2, *((4, 3) if ta else (3, 4)))
            c = f64("c", 2, *((5, 4) if tb else (4, 5)))
            product = op_call("nn.batch_matmul", [a, c], transpose_a=ta, transpose_b=tb)
            against_differences([a, c], op_call("exp", [op_call("multiply", [product, const(0.1, "float64")])]))
            a, c = f64("a", *((4, 3) if ta else (3, 4))), f64("c", *((5, 4) if tb else (4, 5)))
            against_differences([a, c], op_call("tanh", [op_call("nn.matmul", [a, c], transpose_a=ta, transpose_b=tb)]))


@pytest.mark.sample(2)
@pytest.mark.parametrize("attrs", [{}, {"strides": [2, 2], "padding": [1, 1]}, {"padding": [1, 0, 2, 1]}, {"groups": 2}])
def test_convolution(attrs: dict[str, Any]) -> None:
    x, w = f64("x", 1, 2, 5, 5), f64("w", 4, 2 // attrs.get("groups", 1), 3, 3)
    conv = op_call("nn.conv2d", [x, w], kernel_size=[3, 3], channels=4, **attrs)
    against_differences([x, w], op_call("multiply", [conv, conv]))


def test_pools_and_losses() -> None:
    x = f64("x", 1, 2, 4, 4)
    for name in ("nn.max_pool2d", "nn.avg_pool2d"):
        pool = op_call(name, [x], pool_size=[2, 2], strides=[2, 2])
        against_differences([x], op_call("multiply", [pool, pool]))
    against_differences([x], op_call("exp", [op_call("nn.global_avg_pool2d", [x])]))
    p, q = f64("p", 2, 3), f64("q", 2, 3)
    for name in ("nn.cross_entropy", "nn.cross_entropy_with_logits"):
        against_differences([p, q], op_call(name, [p, q]))


def test_lets_and_shared_values() -> None:
    text = "def @main(%x: Tensor[(2, 3), float64]) { let %a = exp(%x); let %b = multiply(%a, %x); add(%b, multiply(%b, %a)) }"
    mod = InferType()(relay.parse(text))
    against_differences(list(mod["main"].params), mod["main"].body)


def test_what_has_no_gradient_is_told() -> None:
    text = "def @main(%x: Tensor[(2, 3), float64]) { if (less(sum(%x), sum(%x))) { %x } else { exp(%x) } }"
    for body in (text, "def @main(%x: Tensor[(2, 3), float64]) { sort(%x) }"):
        with pytest.raises(RelayError) as wrong:
            FirstOrderGradient()(InferType()(relay.parse(body)))
        assert wrong.value.diagnostics[0].code == "R0511"
    with pytest.raises(RelayError):
        gradient(relay.parse(text)["main"], mode="second_order")
