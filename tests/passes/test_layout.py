"""ConvertLayout: the same values, few transpositions."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Expr, Function, IRModule, TensorType, Tuple, Var, const, post_order
from relaylang.passes.build import op_call
from relaylang.transform import ConvertLayout, InferType, PassContext, Sequential
from tests.passes.programs import keeps_meaning


def numbers(*shape: int, seed: int = 0) -> Expr:
    return const(np.random.default_rng(seed).uniform(-1, 1, shape).astype("float32"))


def conv(x: Expr, out: int, inputs: int, groups: int = 1) -> Expr:
    weight = numbers(out, inputs // groups, 3, 3, seed=out)
    return op_call("nn.conv2d", [x, weight], kernel_size=[3, 3], channels=out, padding=[1, 1], groups=groups)


def converted(body: Expr, x: Var, layouts: dict[str, list[str]]) -> IRModule:
    mod = InferType()(IRModule.from_expr(Function([x], body)))
    with PassContext(opt_level=3):
        return keeps_meaning(Sequential([ConvertLayout(layouts)]), mod)


def ops(mod: IRModule) -> list[str]:
    return [n.op.name for n in post_order(mod["main"]) if isinstance(n, Call) and hasattr(n.op, "name")]


X = Var("x", TensorType((1, 4, 6, 6)))
NHWC = {"nn.conv2d": ["NHWC", "default"]}


def test_a_network_is_turned_at_its_ends_only() -> None:
    node = op_call("nn.relu", [op_call("nn.bias_add", [conv(X, 8, 4), numbers(8)])])
    node = op_call("add", [op_call("nn.max_pool2d", [node], pool_size=[2, 2], strides=[2, 2]), numbers(8, 1, 1)])
    node = op_call("nn.pad", [node, const(0.5)], pad_width=[[0, 0], [0, 0], [1, 0], [0, 1]])
    node = op_call("concatenate", [Tuple([node, conv(node, 3, 8)])], axis=1)
    node = op_call("multiply", [node, const(2.0)])
    node = op_call("nn.batch_flatten", [op_call("nn.global_avg_pool2d", [conv(node, 5, 11)])])
    mod = converted(node, X, NHWC)
    data = [n for n in post_order(mod["main"]) if isinstance(n, Call) and getattr(n.op, "name", "") == "layout_transform"]
    assert [n.attrs.dst_layout for n in data if isinstance(n.args[0], Var)] == ["NHWC"]
    assert sum(n.attrs.src_layout == "NCHW" for n in data) == 2  # the input and a bias
    assert sum(n.attrs.src_layout == "NHWC" for n in data) == 1
    assert all(n.attrs.data_layout == "NHWC" for n in post_order(mod["main"])
               if isinstance(n, Call) and getattr(n.op, "name", "") == "nn.conv2d")  # fmt: skip


def test_and_back_again() -> None:
    node = op_call("nn.relu", [conv(X, 8, 4)])
    there = converted(node, X, NHWC)
    with PassContext(opt_level=3):
        back = keeps_meaning(Sequential([ConvertLayout({"nn.conv2d": ["NCHW", "default"]})]), there)
    assert any(getattr(n.attrs, "data_layout", "") == "NCHW" for n in post_order(back["main"]) if isinstance(n, Call))


def test_depthwise_kernels_and_residuals() -> None:
    node = conv(X, 4, 4, groups=4)
    node = op_call("add", [op_call("nn.relu", [node]), X])
    mod = converted(node, X, NHWC)
    kernels = [n.attrs.kernel_layout for n in post_order(mod["main"])
               if isinstance(n, Call) and hasattr(n.attrs, "kernel_layout")]  # fmt: skip
    assert kernels == ["HWOI"]
    explicit = converted(conv(X, 8, 4), X, {"nn.conv2d": ["NHWC", "OHWI"]})
    assert "layout_transform" in ops(explicit)


def test_what_has_other_shapes_is_turned_back() -> None:
    node = op_call("add", [conv(X, 8, 4), numbers(6, 6)])
    node = op_call("sum", [op_call("transpose", [node], axes=[0, 2, 3, 1])], axis=[1])
    assert ops(converted(node, X, NHWC)).count("layout_transform") >= 2


@pytest.mark.parametrize("layouts", [{"nn.conv2d": ["NCHW4c", "default"]}, {"nn.dense": ["NHWC"]}, {"nn.conv2d": []}])
def test_other_layouts_are_refused(layouts: dict[str, list[str]]) -> None:
    with pytest.raises(RelayError) as wrong:
        ConvertLayout(layouts)(InferType()(IRModule.from_expr(Function([X], conv(X, 8, 4)))))
    assert wrong.value.diagnostics[0].code == "R0501"
