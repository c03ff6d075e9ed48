"""FoldScaleAxis: factors of channels move into weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang.interpreter import evaluate
from relaylang.ir import Function, IRModule, TensorType, Tuple, Var, const
from relaylang.ops.build import op_call
from relaylang.ops.layouts import parts
from relaylang.passes import PASSES
from relaylang.transform import InferType
from tests.growth import Run, assert_linear
from tests.passes.layers import X, after, conv, numbers, ops


def test_factors_behind_a_convolution_go_into_its_weight() -> None:
    x = Var("x", X)
    node = op_call("nn.relu", [op_call("add", [conv(x, 6, 4), numbers(6, 1, 1)])])
    node = op_call("multiply", [node, numbers(6, 1, 1, low=0.1)])
    mod = after("BackwardFoldScaleAxis,FoldConstant", IRModule.from_expr(Function([x], node)))
    assert ops(mod) == ["nn.conv2d", "add", "nn.relu"]


def test_factors_in_front_of_a_convolution_go_into_its_weight() -> None:
    x = Var("x", X)
    node = op_call("nn.relu", [op_call("multiply", [x, numbers(4, 1, 1, low=0.1)])])
    node = conv(op_call("add", [node, numbers(4, 1, 1)]), 6, 4)
    mod = after("ForwardFoldScaleAxis,FoldConstant", IRModule.from_expr(Function([x], node)))
    assert ops(mod) == ["nn.relu", "add", "nn.conv2d"]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: op_call("multiply", [op_call("nn.relu", [conv(x, 6, 4)]), numbers(6, 1, 1)]),  # signs are lost
        lambda x: op_call("multiply", [conv(x, 6, 4), numbers(5, 5)]),  # not along the channels
        lambda x: op_call("add", [(c := conv(x, 6, 4)), op_call("multiply", [c, numbers(6, 1, 1)])]),  # used twice
    ],
)
def test_factors_that_cannot_move_stay(make: Any) -> None:
    x = Var("x", X)
    mod = after("FoldScaleAxis,FoldConstant", IRModule.from_expr(Function([x], make(x))))
    assert "multiply" in ops(mod)


def test_factors_in_front_of_a_kernel_for_each_channel_go_into_it() -> None:
    x = Var("x", X)
    scaled = op_call("multiply", [x, numbers(4, 1, 1, low=0.1)])
    node = op_call("nn.conv2d", [scaled, numbers(4, 1, 3, 3)], kernel_size=[3, 3], channels=4, groups=4)
    assert ops(after("FoldScaleAxis", IRModule.from_expr(Function([x], node)))) == ["nn.conv2d"]


def test_factors_of_dense_layers_and_chains_move() -> None:
    x = Var("x", TensorType((2, 3)))
    node = op_call("nn.dense", [x, numbers(5, 3)], units=5)
    for i in range(3):
        node = op_call("nn.bias_add", [node, numbers(5, seed=i)])
        node = op_call("multiply", [node, numbers(5, seed=i + 9, low=0.2)])
        node = op_call("nn.dense", [node, numbers(5, 5, seed=i + 5)], units=5)
    mod = after("FoldScaleAxis,FoldConstant", IRModule.from_expr(Function([x], node)))
    assert "multiply" not in ops(mod)


@pytest.mark.parametrize("backward", [True, False])
@pytest.mark.parametrize(
    ("data", "kernel", "groups"),
    [
        ("NCHW4c", "OIHW", 1),
        ("NCHW4c", "OIHW2i4o", 1),
        ("NCHW2c", "OIHW4i4o", 1),
        ("NHWC", "HWIO", 1),
        ("NCHW4c", "OIHW1i4o", 8),
        ("NCHW4c", "OIHW", 8),
        ("NHWC4c", "HWIO", 1),
    ],
)
def test_factors_of_blocked_channels(data: str, kernel: str, groups: int, backward: bool) -> None:
    rng = np.random.default_rng(0)
    sizes = {"N": 1, "C": 8, "H": 5, "W": 4, "O": 8, "I": 8 // groups}

    def value(layout: str, **more: int) -> np.ndarray:
        own = {**sizes, **more}
        block = {c.upper(): n for c, n in blocks(layout)}
        return rng.uniform(0.5, 1, [n or own[c] // block.get(c, 1) for c, n in parts(layout)]).astype("float32")

    def blocks(layout: str) -> list[tuple[str, int]]:
        return [(c, n) for c, n in parts(layout) if n]

    x, w = value(data), const(value(kernel, H=3, W=2), "float32")
    scale = const(value(data, N=1, H=1, W=1), "float32")
    p = Var("x", TensorType(x.shape, "float32"))
    attrs = {"data_layout": data, "kernel_layout": kernel, "channels": 8, "kernel_size": [3, 2], "groups": groups}
    if backward:
        body = op_call("multiply", [op_call("nn.relu", [op_call("nn.conv2d", [p, w], **attrs)]), scale])
    else:
        body = op_call("nn.conv2d", [op_call("nn.relu", [op_call("multiply", [p, scale])]), w], **attrs)
    mod = InferType()(IRModule.from_expr(Function([p], body)))
    made = after("BackwardFoldScaleAxis,FoldConstant" if backward else "ForwardFoldScaleAxis,FoldConstant", mod)
    assert ops(made) == (["nn.conv2d", "nn.relu"] if backward else ["nn.relu", "nn.conv2d"])
    np.testing.assert_allclose(evaluate(made, x), evaluate(mod, x), rtol=1e-5)


def test_all_users_of_a_value_take_factors() -> None:
    x = Var("x", X)
    scaled = op_call("nn.relu", [op_call("multiply", [x, numbers(4, 1, 1, low=0.1)])])
    shifted = op_call("add", [scaled, numbers(4, 1, 1, seed=5)])
    two = Tuple([conv(scaled, 6, 4), conv(shifted, 5, 4), conv(shifted, 3, 4)])
    mod = InferType()(IRModule.from_expr(Function([x], two)))
    made = after("ForwardFoldScaleAxis,FoldConstant", mod)
    assert ops(made) == ["nn.relu", "nn.conv2d", "add", "nn.conv2d", "nn.conv2d"]
    value = np.random.default_rng(0).normal(size=X.shape).astype("float32")
    for a, b in zip(evaluate(mod, value), evaluate(made, value), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    # one user that takes none, and the factors stay
    other = IRModule.from_expr(Function([x], Tuple([conv(scaled, 6, 4), op_call("exp", [scaled])])))
    assert "multiply" in ops(after("ForwardFoldScaleAxis", other))


@pytest.mark.parametrize(
    "scale",
    [
        numbers(6, 1, 1, low=0.1),
        const(2.5),
        op_call("reshape", [numbers(6, low=0.1)], newshape=[6, 1, 1]),
    ],
)
def test_sums_of_two_convolutions_take_factors(scale: Any) -> None:
    x = Var("x", X)
    left = op_call("add", [conv(x, 6, 4), numbers(6, 1, 1)])
    body = op_call("multiply", [op_call("nn.relu", [op_call("subtract", [left, conv(x, 6, 4)])]), scale])
    mod = InferType()(IRModule.from_expr(Function([x], body)))
    made = after("BackwardFoldScaleAxis,FoldConstant", mod)
    assert ops(made) == ["nn.conv2d", "add", "nn.conv2d", "subtract", "nn.relu"]
    value = np.random.default_rng(0).normal(size=X.shape).astype("float32")
    np.testing.assert_allclose(evaluate(made, value), evaluate(mod, value), rtol=1e-4, atol=1e-4)


def test_nothing_is_divided_by_zero() -> None:
    x = Var("x", X)
    scale = const(np.array([[[1.0]], [[0.0]], [[2.0]], [[3.0]]], "float32"))
    plain = IRModule.from_expr(Function([x], conv(op_call("multiply", [x, scale]), 6, 4)))
    assert ops(after("ForwardFoldScaleAxis,FoldConstant", plain)) == ["nn.conv2d"]
    shifted = op_call("add", [op_call("multiply", [x, scale]), numbers(4, 1, 1)])
    assert "multiply" in ops(after("ForwardFoldScaleAxis", IRModule.from_expr(Function([x], conv(shifted, 6, 4)))))


@pytest.mark.parametrize("name", ["ForwardFoldScaleAxis", "BackwardFoldScaleAxis"])
def test_folding_is_linear(name: str) -> None:
    def prepare(n: int) -> Run:
        node: Any = Var("x", TensorType((2, 3)))
        x = node
        for i in range(n):
            node = op_call("multiply", [op_call("nn.dense", [node, numbers(3, 3)], units=3), numbers(3, low=0.1)])
            node = op_call("nn.relu", [node]) if i % 2 else node
        mod = InferType()(IRModule.from_expr(Function([x], node)))
        run = PASSES[name]()
        return lambda: run.run(mod)

    assert_linear(prepare, small=50)
