"""Passes over layers: factors of channels, parallel products, and rules that replace operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Expr, Function, IRModule, TensorType, Tuple, Var, const, post_order
from relaylang.ops.build import op_call
from relaylang.ops.layouts import parts
from relaylang.transform import InferType, PassContext, Sequential, parse_passes
from tests.passes.meaning import keeps_meaning

X = TensorType((1, 4, 5, 5))


def after(names: str, mod: IRModule) -> IRModule:
    with PassContext(opt_level=4):
        return keeps_meaning(Sequential(parse_passes(names)), InferType()(mod))


def ops(mod: IRModule) -> list[str]:
    return [n.op.name for n in post_order(mod["main"]) if isinstance(n, Call) and hasattr(n.op, "name")]


def numbers(*shape: int, low: float = -1.0, seed: int = 0) -> Any:
    return const(np.random.default_rng(seed).uniform(low, 1.0, shape).astype("float32"))


def conv(x: Expr, out: int, inputs: int, seed: int = 0) -> Expr:
    return op_call("nn.conv2d", [x, numbers(out, inputs, 3, 3, seed=seed)], kernel_size=[3, 3], channels=out, padding=[1])


# ---- FoldScaleAxis


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


# ---- CombineParallel


def test_parallel_convolutions_are_combined() -> None:
    x = Var("x", X)
    branches = [op_call("nn.relu", [conv(x, n, 4, seed=n)]) for n in (2, 3, 4)] + [conv(op_call("exp", [x]), 2, 4)]
    mod = after("CombineParallelConv2D,FoldConstant", IRModule.from_expr(Function([x], Tuple(branches))))
    assert ops(mod).count("nn.conv2d") == 2 and ops(mod).count("strided_slice") == 3
    few = after("CombineParallelConv2D(min_num_branches=4)", IRModule.from_expr(Function([x], Tuple(branches))))
    assert ops(few).count("nn.conv2d") == 4


@pytest.mark.parametrize("to_batch", [True, False])
def test_parallel_dense_layers_are_combined(to_batch: bool) -> None:
    x = Var("x", TensorType((2, 3)))
    units = [4, 4, 4] if to_batch else [4, 2, 3]
    branches = [op_call("nn.dense", [x, numbers(u, 3, seed=i)], units=u) for i, u in enumerate(units)]
    mod = IRModule.from_expr(Function([x], Tuple(branches)))
    new = after(f"CombineParallelDense(to_batch={to_batch}),FoldConstant", mod)
    assert ops(new).count("nn.batch_matmul") + ops(new).count("nn.dense") == 1


def test_parallel_batch_products_are_combined() -> None:
    x = Var("x", TensorType((2, 3, 4)))
    branches = [op_call("nn.batch_matmul", [x, numbers(2, n, 4, seed=n)], transpose_b=True) for n in (1, 2, 3)]
    mod = after("CombineParallelBatchMatmul,FoldConstant", IRModule.from_expr(Function([x], Tuple(branches))))
    assert ops(mod).count("nn.batch_matmul") == 1


def test_a_branch_that_needs_another_is_not_combined() -> None:
    x = Var("x", TensorType((3, 3)))
    first = op_call("nn.dense", [x, numbers(3, 3)], units=3)
    second = op_call("nn.dense", [x, first], units=3)
    third = op_call("nn.dense", [x, second], units=3)
    mod = after("CombineParallelDense(min_num_branches=2)", IRModule.from_expr(Function([x], third)))
    assert ops(mod).count("nn.dense") == 3


# ---- Legalize


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


@pytest.mark.parametrize("backward", [True, False])
@pytest.mark.parametrize(("data", "kernel", "groups"), [
    ("NCHW4c", "OIHW", 1), ("NCHW4c", "OIHW2i4o", 1), ("NCHW2c", "OIHW4i4o", 1), ("NHWC", "HWIO", 1), ("NCHW4c", "OIHW1i4o", 8),
    ("NCHW4c", "OIHW", 8), ("NHWC4c", "HWIO", 1),
])  # fmt: skip
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
