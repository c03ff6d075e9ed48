"""Passes over layers: factors of channels, parallel products, and the qnn dialect in plain integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Expr, Function, IRModule, TensorType, Tuple, Var, const, post_order
from relaylang.passes.build import op_call
from relaylang.qnn import transform as qnn_transform
from relaylang.transform import InferType, PassContext, Sequential, parse_passes
from tests.passes.programs import keeps_meaning

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


# ---- qnn


def integers(dtype: str, *shape: int, seed: int = 0) -> Any:
    info = np.iinfo(dtype)
    low, high = max(info.min, -1000), min(info.max, 1000) + 1
    return const(np.random.default_rng(seed).integers(low, high, shape).astype(dtype))


def lowered(params: list[Var], body: Expr, rounds: int = 3) -> None:
    mod = InferType()(IRModule.from_expr(Function(params, body)))
    with PassContext(opt_level=4):
        new = InferType()(Sequential(parse_passes("QnnCanonicalizeOps"))(mod))
    assert not any(name.startswith("qnn.") for name in ops(new)), ops(new)
    assert new["main"].checked_type == mod["main"].checked_type
    for seed in range(rounds):
        rng = np.random.default_rng(seed)
        given = []
        for param in params:
            ty: Any = param.type_annotation
            if ty.dtype == "float32":
                given.append(rng.normal(0, 20, ty.shape).astype("float32"))
            else:
                info = np.iinfo(ty.dtype)
                given.append(rng.integers(info.min // 2, info.max // 2 + 1, ty.shape).astype(ty.dtype))
        np.testing.assert_array_equal(evaluate(mod, *given), evaluate(new, *given))


VECTOR = const(np.array([0.5, 0.031, 1.7], "float32"))


@pytest.mark.parametrize("rounding", ["None", "UPWARD", "TONEAREST"])
@pytest.mark.parametrize("scale, axis", [(const(0.37), -1), (VECTOR, 1), (const(3.1), -1)])
@pytest.mark.parametrize("compute", ["None", "float32"])
def test_requantize(rounding: str, scale: Any, axis: int, compute: str) -> None:
    x = Var("x", TensorType((4, 3), "int32"))
    zero = const(np.array([3, -2, 7], "int32")) if scale is VECTOR else const(3)
    small = op_call("right_shift", [x, const(12)])
    attrs = {"axis": axis, "rounding": rounding, "compute_dtype": compute, "out_dtype": "int8"}
    lowered([x], op_call("qnn.requantize", [small, scale, zero, const(0.9), const(-5)], **attrs))


def test_quantize_and_dequantize() -> None:
    x = Var("x", TensorType((4, 3)))
    lowered([x], op_call("qnn.quantize", [x, const(0.3), const(7)], out_dtype="uint8"))
    lowered([x], op_call("qnn.quantize", [x, VECTOR, const(np.array([1, 2, 3], "int32"))], out_dtype="int8", axis=1))
    y = Var("y", TensorType((4, 3), "int8"))
    lowered([y], op_call("qnn.dequantize", [y, VECTOR, const(np.array([1, 2, 3], "int32"))], out_dtype="float32", axis=1))


@pytest.mark.parametrize("layout, kernel", [("NCHW", "OIHW"), ("NHWC", "HWIO")])
def test_convolution(layout: str, kernel: str) -> None:
    shape = (1, 4, 6, 6) if layout == "NCHW" else (1, 6, 6, 4)
    weight = integers("int8", *((5, 4, 3, 3) if kernel == "OIHW" else (3, 3, 4, 5)))
    x = Var("x", TensorType(shape, "uint8"))
    args = [x, weight, const(12), const(-3), const(0.1), const(0.2)]
    options: dict[str, Any] = {"kernel_size": [3, 3], "channels": 5, "data_layout": layout, "kernel_layout": kernel}
    lowered([x], op_call("qnn.conv2d", args, padding=[1, 0], strides=[2, 1], out_dtype="int32", **options))


def test_products() -> None:
    x = Var("x", TensorType((4, 3), "int8"))
    args = [x, integers("int8", 5, 3), const(2), const(1), const(0.1), const(0.2)]
    lowered([x], op_call("qnn.dense", args, units=5, out_dtype="int32"))
    y = Var("y", TensorType((2, 4, 3), "int8"))
    args = [y, integers("int8", 2, 5, 3), const(2), const(1), const(0.1), const(0.2)]
    lowered([y], op_call("qnn.batch_matmul", args, out_dtype="int32", transpose_b=True))


@pytest.mark.parametrize("name", ["qnn.add", "qnn.subtract", "qnn.mul"])
@pytest.mark.parametrize("same", [True, False])
def test_elementwise(name: str, same: bool) -> None:
    x, y = Var("x", TensorType((4, 3), "int8")), Var("y", TensorType((4, 3), "int8"))
    scales = [const(0.2), const(3)] * 3 if same else [const(0.2), const(3), const(0.5), const(-7), const(0.4), const(9)]
    lowered([x, y], op_call(name, [x, y, *scales]))


def test_concatenation_and_real_functions() -> None:
    x = Var("x", TensorType((4, 3), "int8"))
    scales = Tuple([const(0.2), const(0.5)])
    zeros = Tuple([const(1), const(2)])
    lowered([x], op_call("qnn.concatenate", [Tuple([x, x]), scales, zeros, const(0.5), const(2)], axis=1))
    for name in ("qnn.tanh", "qnn.sigmoid", "qnn.exp", "qnn.erf", "qnn.abs"):
        if name in relay.ops.OPS:
            lowered([x], op_call(name, [x, const(0.03), const(1), const(0.02), const(-4)]))


@pytest.mark.parametrize("scales", [(0.03, 1, 0.03, 1), (0.03, 1, 0.02, -4), (0.2, -7, 0.05, 0)])
def test_activations_and_averages(scales: tuple[float, int, float, int]) -> None:
    x, y = Var("x", TensorType((4, 7), "int8")), Var("y", TensorType((1, 2, 6, 6), "int8"))
    z = Var("z", TensorType((1, 6, 6, 2), "uint8"))
    known = [const(v) for v in scales]
    lowered([x], op_call("qnn.leaky_relu", [x, *known], alpha=0.3))
    lowered([x], op_call("qnn.hardswish", [x, *known]))
    for axis in (0, 1, -1):
        lowered([x], op_call("qnn.softmax", [x, known[0], known[1], const(1 / 128), const(-3)], axis=axis))
    pool: dict[str, Any] = {"pool_size": [3, 2], "strides": [2, 1], "padding": [1, 0, 1, 1]}
    for counted in (True, False):
        lowered([y], op_call("qnn.avg_pool2d", [y, *known], count_include_pad=counted, **pool))
        lowered([z], op_call("qnn.avg_pool2d", [z, *known], layout="NHWC", count_include_pad=counted, **pool))


@pytest.mark.parametrize("extents", [(), (3,)])
def test_scales_that_are_operands(extents: tuple[int, ...]) -> None:
    x, z = Var("x", TensorType((4, 3))), Var("z", TensorType(extents, "int8"))
    zero = op_call("cast", [z], dtype="int32")
    scale = op_call("add", [op_call("abs", [op_call("cast", [z], dtype="float32")]), const(0.25)])
    lowered([x, z], op_call("qnn.quantize", [x, scale, zero], out_dtype="int8", axis=1))
    y = Var("y", TensorType((4, 3), "int8"))
    lowered([y, z], op_call("qnn.dequantize", [y, scale, zero], out_dtype="float32", axis=1))
    if not extents:
        args = [y, integers("int8", 5, 3), zero, const(1), const(0.1), const(0.2)]
        lowered([y, z], op_call("qnn.dense", args, units=5, out_dtype="int32"))


def test_calls_with_unknown_scales_stay() -> None:
    x, s = Var("x", TensorType((4, 3), "int32")), Var("s", TensorType((), "float32"))
    mod = IRModule.from_expr(Function([x, s], op_call("qnn.requantize", [x, s, const(0), const(1.0), const(0)], out_dtype="int8")))
    with PassContext(opt_level=4):
        new = Sequential(parse_passes("QnnCanonicalizeOps"))(InferType()(mod))
    assert ops(new) == ["qnn.requantize"]


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


def test_qnn_passes_stand_under_their_names() -> None:
    x = Var("x", TensorType((4, 3), "int8"))
    body = op_call("qnn.dequantize", [x, const(0.5), const(3)], out_dtype="float32")
    mod = InferType()(IRModule.from_expr(Function([x], body)))
    assert not any(name.startswith("qnn.") for name in ops(qnn_transform.CanonicalizeOps()(mod)))
    assert qnn_transform.Legalize()(mod) is mod
