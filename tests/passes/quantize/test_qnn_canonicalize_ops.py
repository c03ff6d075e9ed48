"""The qnn dialect in plain integers: to the last bit what the interpreter makes of the operators themselves."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Expr, Function, IRModule, TensorType, Tuple, Var, const, post_order
from relaylang.ir.structural import assert_structural_equal
from relaylang.ops import OPS
from relaylang.ops.build import op_call
from relaylang.qnn import transform as qnn_transform
from relaylang.rules.qnn_legalize import RULES as TABLES
from relaylang.rules.qnn_lowering import RULES as LOWER
from relaylang.transform import InferType, QnnCanonicalizeOps
from tests.growth import assert_linear
from tests.shared import few

#: Makes a body of data, and of numbers that are constants or arrive with the data.
Body = Callable[..., Expr]


def ops(mod: IRModule) -> list[str]:
    return [n.op.name for n in post_order(mod["main"]) if isinstance(n, Call) and hasattr(n.op, "name")]


def array(value: Any) -> np.ndarray:
    made = np.asarray(value)
    return made.astype("float32" if made.dtype.kind == "f" else "int32")


def data(ty: TensorType, seed: int, small: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if ty.dtype.startswith("float"):
        return rng.normal(0, 20, ty.shape).astype(ty.dtype)  # type: ignore[arg-type]
    info = np.iinfo(ty.dtype)
    low, high = (info.min, info.max) if not small else (-small, small)
    return rng.integers(low, high, ty.shape, endpoint=True).astype(ty.dtype)  # type: ignore[arg-type]


def lowered(types: list[TensorType], numbers: list[Any], body: Body, rounds: int = 3, small: int = 0) -> list[str]:
    """The operators that a program becomes with constant numbers. It computes what the program computes, as does what it
    becomes with numbers that arrive."""
    arrays = [array(v) for v in numbers]
    data_vars = [Var(f"x{i}", t) for i, t in enumerate(types)]
    late = [Var(f"n{i}", TensorType(a.shape, a.dtype.name)) for i, a in enumerate(arrays)]
    now = IRModule.from_expr(Function(data_vars, body(*data_vars, *map(const, arrays))))
    then = IRModule.from_expr(Function([*data_vars, *late], body(*data_vars, *late)))
    made = []
    for mod in (InferType()(now), InferType()(then)):
        new = InferType()(QnnCanonicalizeOps()(mod))
        assert not any(name.startswith("qnn.") for name in ops(new)), ops(new)
        assert new["main"].checked_type == mod["main"].checked_type
        made.append(new)
    for seed in range(rounds):
        given = [data(t, seed + 7 * i, small) for i, t in enumerate(types)]
        wanted = evaluate(now, *given)
        np.testing.assert_array_equal(evaluate(made[0], *given), wanted)
        np.testing.assert_array_equal(evaluate(made[1], *given, *arrays), wanted)
    return ops(made[0])


def of(name: str, **attrs: Any) -> Body:
    """A body that is one call of an operator."""
    return lambda *args: op_call(name, list(args), **attrs)


def T(dtype: str, *shape: int) -> TensorType:
    return TensorType(shape, dtype)


SCALES = [0.5, 0.031, 1.7]


def test_every_operator_of_the_dialect_is_lowered() -> None:
    assert {name for name in OPS if name.startswith("qnn.")} == set(LOWER)


# ---- requantize


@pytest.mark.sample(3)
@pytest.mark.parametrize("rounding", ["None", "UPWARD", "TONEAREST"])
@pytest.mark.parametrize("compute", ["None", "int64", "float32", "float64"])
@pytest.mark.parametrize("axis", few([0, 1, 2, -1], 1))
def test_requantize(rounding: str, compute: str, axis: int) -> None:
    x = T("int32", 3, 3, 3)
    attrs = {"axis": axis, "rounding": rounding, "compute_dtype": compute}
    for dtype, scale in itertools.product(("int8", "uint8", "int16", "int32"), (0.37, SCALES)):
        zero = [3, -2, 7] if scale is SCALES else 3
        numbers = [scale, zero, 0.9, -5]
        lowered([x], numbers, of("qnn.requantize", out_dtype=dtype, **attrs), 1, 2**18)


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("scale", [3.1, 700.5, 1e-6, 1e-12, 0.0, 0.9, 2.0**-20])
def test_requantize_far_from_one(dtype: str, scale: float) -> None:
    for rounding in ("UPWARD", "TONEAREST"):
        body = of("qnn.requantize", rounding=rounding, out_dtype="int32")
        lowered([T(dtype, 40)], [scale, 1, 0.9, 0], body, 1)


def test_requantize_of_single_numbers() -> None:
    for shape, scale in (((), 0.4), ((), [0.4]), ((1,), [0.4]), ((2, 1), [0.4])):
        lowered([T("int32", *shape)], [scale, 1, 0.3, 2], of("qnn.requantize", out_dtype="int8"), small=200)


def test_no_factor_is_no_product() -> None:
    body = of("qnn.requantize", out_dtype="int8")
    assert lowered([T("int32", 9)], [0.5, 0, 0.5, 0], body, small=300) == ["cast", "clip", "cast"]
    assert lowered([T("int32", 9)], [0.25, 0, 0.5, 0], body, small=300) == ["cast", "fixed_point_multiply", "clip", "cast"]


@pytest.mark.parametrize("attrs, said", [({"compute_dtype": "int8"}, "int8"), ({}, "is 0")])
def test_what_means_nothing_is_told(attrs: dict[str, str], said: str) -> None:
    x = Var("x", T("int32", 3))
    args = [x, const(0.5), const(0), const(0.5 if attrs else 0.0), const(0)]
    mod = InferType()(IRModule.from_expr(Function([x], op_call("qnn.requantize", args, out_dtype="int8", **attrs))))
    with pytest.raises(RelayError) as wrong:
        QnnCanonicalizeOps()(mod)
    assert wrong.value.diagnostics[0].code == "R0517" and said in wrong.value.diagnostics[0].title


@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
@pytest.mark.parametrize("compute", ["int64", "float32", "float64"])
def test_a_configuration_says_what_the_program_does_not(rounding: str, compute: str) -> None:
    x = Var("x", T("int32", 3, 3))
    args = [x, const(0.5), const(0), const(1.0), const(0)]
    silent = op_call("qnn.requantize", args, out_dtype="int8")
    told = op_call("qnn.requantize", args, out_dtype="int8", rounding=rounding, compute_dtype=compute)
    with relay.qnn.op.requantize_config(rounding=rounding, compute_dtype=compute) as config:
        assert relay.qnn.op.current_requantize_config() is config
        mod = QnnCanonicalizeOps()(InferType()(IRModule.from_expr(Function([x], silent))))
    assert relay.qnn.op.current_requantize_config().rounding == "UPWARD"
    wanted = QnnCanonicalizeOps()(InferType()(IRModule.from_expr(Function([x], told))))
    assert_structural_equal(InferType()(mod), InferType()(wanted))


# ---- quantize and dequantize


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
def test_quantize_and_dequantize(dtype: str) -> None:
    for axis, scale in ((-1, 0.3), (0, SCALES), (1, SCALES)):
        zero = 7 if scale == 0.3 else [1, 2, 3]
        lowered([T("float32", 3, 3)], [scale, zero], of("qnn.quantize", out_dtype=dtype, axis=axis))
        for real in ("float32", "float16"):
            lowered([T(dtype, 3, 3)], [scale, zero], of("qnn.dequantize", out_dtype=real, axis=axis))


def test_quantize_beyond_the_range() -> None:
    x = Var("x", T("float32", 5))
    for dtype in ("int8", "uint16", "int32"):
        mod = InferType()(IRModule.from_expr(Function([x], op_call("qnn.quantize", [x, const(0.1), const(3)], out_dtype=dtype))))
        new = InferType()(QnnCanonicalizeOps()(mod))
        given = np.array([1e30, -1e30, np.inf, -np.inf, np.nan], "float32")
        np.testing.assert_array_equal(evaluate(new, given), evaluate(mod, given))


@pytest.mark.parametrize("code", [0, 1, 2, 3, 9])
def test_simulated_quantization(code: int) -> None:
    for axis, scale, zero in ((-1, 0.3, 7), (0, SCALES, [1, 2, 3]), (1, SCALES, [-4, 5, 6])):
        for name in ("qnn.simulated_quantize", "qnn.simulated_dequantize"):
            extra = {} if name.endswith("_quantize") else {"out_dtype": "float32"}
            body = of(name, axis=axis, **extra)
            lowered([T("float32", 3, 3)], [code, scale, zero], body)


# ---- products


CONVS = [
    ("NCHW", "OIHW", (1, 4, 6, 6), (6, 4, 3, 3), 1),
    ("NHWC", "HWIO", (1, 6, 6, 4), (3, 3, 4, 6), 1),
    ("NCHW", "OIHW", (1, 4, 6, 6), (4, 1, 3, 3), 4),
    ("NHWC", "HWOI", (1, 6, 6, 4), (3, 3, 4, 1), 4),
    ("NCHW", "OIHW", (1, 4, 6, 6), (6, 2, 3, 3), 2),
]


@pytest.mark.parametrize("layout, kernel, shape, weight, groups", CONVS)
@pytest.mark.parametrize("out", ["int32", "int64"])
def test_convolution(layout: str, kernel: str, shape: Any, weight: Any, groups: int, out: str) -> None:
    channels = weight[kernel.index("O")]
    attrs: dict[str, Any] = {"kernel_size": [3, 3], "channels": channels, "data_layout": layout, "kernel_layout": kernel}
    attrs |= {"groups": groups, "out_dtype": out, "padding": [1, 0], "strides": [2, 1]}
    body = of("qnn.conv2d", **attrs)
    for zero, scale in ((-3, 0.2), (list(range(-2, channels - 2)), [0.1 * i for i in range(1, channels + 1)]), (0, 0.2)):
        lowered([T("uint8", *shape), T("int8", *weight)], [12, zero, 0.1, scale], body, 1)


@pytest.mark.parametrize("zero", [-3, list(range(8))])
def test_convolution_of_a_kernel_in_blocks(zero: Any) -> None:
    for weight, kernel, layout, shape in (
        ((2, 1, 3, 3, 4, 4), "OIHW4i4o", "NCHW4c", (1, 1, 6, 6, 4)),
        ((2, 4, 3, 3, 4), "OIHW4o", "NCHW", (1, 4, 6, 6)),
    ):
        body = of("qnn.conv2d", kernel_size=[3, 3], channels=8, data_layout=layout, kernel_layout=kernel, out_dtype="int32")
        lowered([T("uint8", *shape), T("int8", *weight)], [12, zero, 0.1, 0.2], body, 1)


def test_transposed_convolution() -> None:
    attrs: dict[str, Any] = {"kernel_size": [2, 2], "channels": 3, "strides": [2, 2], "kernel_layout": "IOHW"}
    for zero, scale in ((-3, 0.2), ([1, 2, 3], SCALES)):
        body = of("qnn.conv2d_transpose", out_dtype="int32", **attrs)
        lowered([T("uint8", 1, 4, 3, 3), T("int8", 4, 3, 2, 2)], [12, zero, 0.1, scale], body, 1)


@pytest.mark.parametrize("zero", [-3, [1, -2, 3, 4, 0]])
def test_dense(zero: Any) -> None:
    for out, dtype in itertools.product(("int32", "int64"), ("int8", "uint8", "int16")):
        body = of("qnn.dense", units=5, out_dtype=out)
        lowered([T(dtype, 4, 3), T("int8", 5, 3)], [2, zero, 0.1, 0.2], body, 1)


@pytest.mark.parametrize("transposed", [(False, True), (True, False), (False, False), (True, True)])
def test_batch_matmul(transposed: tuple[bool, bool]) -> None:
    a, b = transposed
    x, y = T("int8", 2, *((3, 4) if a else (4, 3))), T("uint8", 2, *((5, 3) if b else (3, 5)))
    body = of("qnn.batch_matmul", out_dtype="int32", transpose_a=a, transpose_b=b)
    lowered([x, y], [2, -1, 0.1, 0.2], body)


@pytest.mark.parametrize("zero", [0, -3, list(range(8))])
def test_dense_with_a_weight_in_tiles(zero: Any) -> None:
    body = of("qnn.contrib_dense_pack", units=8, out_dtype="int32")
    lowered([T("uint8", 3, 6), T("int8", 2, 3, 4, 2)], [12, zero, 0.1, 0.2], body)


# ---- sums, products and joins


BOTH = [
    ([0.2, 3, 0.2, 3, 0.2, 3], -1, -1),
    ([0.2, 3, 0.5, -7, 0.4, 9], -1, -1),
    ([SCALES, [1, 2, 3], SCALES, [0, 5, 0], 0.4, 9], 1, 1),
    ([SCALES, [1, 2, 3], 0.4, 9, 0.4, 9], 0, -1),
    ([SCALES, [1, 2, 3], SCALES, 4, 0.4, 0], 0, 1),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["qnn.add", "qnn.subtract", "qnn.mul"])
@pytest.mark.parametrize("numbers, lhs, rhs", BOTH)
def test_two_operands(name: str, numbers: list[Any], lhs: int, rhs: int) -> None:
    body = of(name, lhs_axis=lhs, rhs_axis=rhs)
    for dtype in ("int8", "uint8", "int32"):
        lowered([T(dtype, 3, 3), T(dtype, 3, 3)], numbers, body, 1, 0 if dtype != "int32" else 5000)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["qnn.add", "qnn.subtract", "qnn.mul"])
@pytest.mark.parametrize("shapes", [((3,), (2, 3)), ((2, 3), (3,)), ((3,), (3,)), ((3,), ()), ((2, 1), (3,))])
def test_two_operands_of_other_ranks(name: str, shapes: Any) -> None:
    body = of(name)
    left, right = ([0.2, SCALES][s[-1:] == (3,)] for s in shapes)
    lowered([T("int8", *s) for s in shapes], [left, 3, right, -7, 0.4, 9], body)


def test_concatenation() -> None:
    def body(x: Expr, y: Expr, *n: Expr) -> Expr:
        return op_call("qnn.concatenate", [Tuple([x, y]), Tuple(n[:2]), Tuple(n[2:4]), *n[4:]], axis=1)

    assert lowered([T("int8", 4, 3), T("int8", 4, 2)], [0.5, 0.5, 2, 2, 0.5, 2], body) == ["concatenate"]
    lowered([T("int8", 4, 3), T("int8", 4, 2)], [0.2, 0.5, 1, 2, 0.5, 2], body)
    lowered([T("uint8", 4, 3), T("uint8", 4, 2)], [0.2, 0.1, 1, 2, 0.3, 7], body)


def test_concatenation_of_tuples_that_are_not_written_out() -> None:
    mod = InferType()(
        relay.parse("""
def @main(%x: (Tensor[(2, 3), int8], Tensor[(2, 2), int8]), %s: (float32, float32), %z: (int32, int32)) {
  qnn.concatenate(%x, %s, %z, 0.5f, 2, axis=1)
}""")
    )
    new = InferType()(QnnCanonicalizeOps()(mod))
    rng = np.random.default_rng(0)
    x = tuple(rng.integers(-128, 127, (2, n)).astype("int8") for n in (3, 2))
    given = x, tuple(map(np.float32, (0.2, 0.7))), tuple(map(np.int32, (3, -3)))
    np.testing.assert_array_equal(evaluate(new, *given), evaluate(mod, *given))


# ---- functions


FOUR = [[0.03, 1, 0.03, 1], [0.03, 1, 0.02, -4], [0.2, -7, 0.05, 0]]


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("numbers", FOUR)
def test_functions(dtype: str, numbers: list[Any]) -> None:
    for name in ("abs", "erf", "exp", "hardswish", "log", "rsqrt", "sigmoid", "sqrt", "tanh"):
        lowered([T(dtype, 4, 70)], numbers, of(f"qnn.{name}"), 1)
    for alpha in (0.3, 0.0, 1.0, 2.5):
        lowered([T(dtype, 4, 70)], numbers, of("qnn.leaky_relu", alpha=alpha), 1)


@pytest.mark.sample(3)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis: int) -> None:
    for numbers in ([0.03, 1, 1 / 128, -3], [0.2, -7, 1 / 256, -128], [1.0, 0, 1 / 128, 0]):
        lowered([T("int8", 4, 7)], numbers, of("qnn.softmax", axis=axis))
    x = Var("x", T("int8", 4, 7))
    mod = IRModule.from_expr(Function([x], op_call("qnn.softmax", [x, const(5.0), const(0), const(1.0), const(0)], axis=1)))
    with pytest.raises(RelayError, match="above 1"):
        QnnCanonicalizeOps()(InferType()(mod))


@pytest.mark.parametrize("numbers", FOUR)
def test_averages(numbers: list[Any]) -> None:
    pool: dict[str, Any] = {"pool_size": [3, 2], "strides": [2, 1], "padding": [1, 0, 1, 1]}
    for counted, layout in itertools.product((True, False), ("NCHW", "NHWC")):
        shape = (1, 2, 6, 6) if layout == "NCHW" else (1, 6, 6, 2)
        body = of("qnn.avg_pool2d", count_include_pad=counted, layout=layout, **pool)
        lowered([T("int8", *shape)], numbers, body, 1)
        lowered([T("uint8", *shape)], numbers, body, 1)


# ---- whole programs


def test_unknown_extents() -> None:
    mod = InferType()(
        relay.parse("""
def @main(%x: Tensor[(?, 3), int32], %s: Tensor[(3), float32], %z: Tensor[(3), int32]) {
  qnn.requantize(%x, %s, %z, 0.5f, 2, axis=1, out_dtype="int8")
}""")
    )
    new = InferType()(QnnCanonicalizeOps()(mod))
    given = data(T("int32", 5, 3), 0, 500), array(SCALES), array([1, 2, 3])
    np.testing.assert_array_equal(evaluate(new, *given), evaluate(mod, *given))


def test_rules_of_others_go_first() -> None:
    @relay.qnn.op.register_qnn_canonicalize("qnn.abs")
    def nothing_to_do(attrs: Any, inputs: Any, types: Any) -> Expr | None:
        return inputs[0] if types[0].shape == (2, 2) else None

    try:
        for shape, wanted in (((2, 2), 0), ((3, 2), 1)):
            x = Var("x", T("int8", *shape))
            body = op_call("qnn.abs", [x, const(0.5), const(0), const(0.5), const(0)])
            new = QnnCanonicalizeOps()(InferType()(IRModule.from_expr(Function([x], body))))
            assert ops(new).count("abs") == wanted and "qnn.abs" not in ops(new)
    finally:
        relay.passes.quantize.legalize.MAPS["FTVMQnnCanonicalize"].clear()


def test_the_pass_stands_under_both_names() -> None:
    x = Var("x", T("int8", 4, 3))
    body = op_call("qnn.dequantize", [x, const(0.5), const(3)], out_dtype="float32")
    mod = InferType()(IRModule.from_expr(Function([x], body)))
    assert not any(name.startswith("qnn.") for name in ops(qnn_transform.CanonicalizeOps()(mod)))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", [n.removeprefix("qnn.") for n in TABLES])
def test_functions_as_tables(dtype: str, name: str) -> None:
    x = Var("x", T(dtype, 256))
    for numbers in FOUR:
        mod = IRModule.from_expr(Function([x], op_call(f"qnn.{name}", [x, *[const(array(v)) for v in numbers]])))
        new = InferType()(qnn_transform.Legalize()(InferType()(mod)))
        assert set(ops(new)) <= {"reinterpret", "take"} and len(ops(new)) == 1 + (dtype == "int8")
        every = np.arange(256, dtype="uint8").view(dtype)
        np.testing.assert_array_equal(evaluate(new, every), evaluate(mod, every))


def test_tables_of_others_go_first() -> None:
    relay.qnn.op.register_qnn_legalize("qnn.abs", lambda attrs, inputs, types: inputs[0] if types[0].shape == (2,) else None)
    try:
        for shape, wanted in (((2,), []), ((3,), ["reinterpret", "take"])):
            x = Var("x", T("int8", *shape))
            body = op_call("qnn.abs", [x, const(0.5), const(0), const(0.5), const(0)])
            assert ops(qnn_transform.Legalize()(InferType()(IRModule.from_expr(Function([x], body))))) == wanted
    finally:
        relay.passes.quantize.legalize.MAPS["FTVMQnnLegalize"].clear()


def test_functions_of_unknown_scales_have_no_table() -> None:
    x, s = Var("x", T("int8", 4)), Var("s", T("float32"))
    body = op_call("qnn.tanh", [x, s, const(0), s, const(0)])
    mod = InferType()(IRModule.from_expr(Function([x, s], body)))
    assert ops(qnn_transform.Legalize()(mod)) == ["qnn.tanh"]


def test_linear() -> None:
    def chain(size: int) -> Callable[[], object]:
        x = Var("x", T("int8", 4))
        node: Expr = x
        for i in range(size):
            node = op_call("qnn.add", [node, x, const(0.5), const(1), const(0.2), const(0), const(0.4), const(i % 3)])
        mod = InferType()(IRModule.from_expr(Function([x], node)))
        return lambda: QnnCanonicalizeOps()(mod)

    assert_linear(chain, 60)
