"""SimplifyExpr: what becomes of each form, that it computes the same also for extreme numbers, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Expr, Function, IRModule, TensorType, Var, const, post_order
from relaylang.ops.build import op_call
from relaylang.transform import InferType, SimplifyExpr
from relaylang.typing import infer
from tests.growth import assert_linear

X = "%x: Tensor[(2, 3), float32]"
XY = "%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]"


def ops(mod: IRModule) -> list[str]:
    return [n.op.name for n in post_order(mod["main"]) if isinstance(n, Call) and hasattr(n.op, "name")]


def numbers(ty: TensorType, seed: int) -> np.ndarray:
    """Some of any size, the largest and smallest among whole ones."""
    shape = tuple(d if isinstance(d, int) else 4 for d in ty.shape)
    rng = np.random.default_rng(seed)
    if ty.dtype.startswith("float"):
        return rng.normal(0, 3, shape).astype(ty.dtype)
    info = np.iinfo(ty.dtype)
    made = rng.integers(info.min, info.max, shape, endpoint=True, dtype=ty.dtype)
    if made.size > 3:
        made.flat[:3] = info.min, info.max, 0
    return made


def simplified(mod: IRModule, rounds: int = 3) -> list[str]:
    """The operators that are left; the program computes the same: exactly with whole numbers."""
    mod = InferType()(mod)
    new = SimplifyExpr()(mod)
    assert [d for d in infer(new, fresh=True) if d.severity == "error"] == []
    assert new["main"].checked_type == mod["main"].checked_type
    for seed in range(rounds):
        given = [numbers(p.checked_type, seed + i) for i, p in enumerate(mod["main"].params)]  # type: ignore[arg-type]
        before, after = evaluate(mod, *given), evaluate(new, *given)
        assert before.dtype == after.dtype and before.shape == after.shape
        if before.dtype.kind == "f":
            np.testing.assert_allclose(after, before, rtol=2e-4 if before.dtype.itemsize > 2 else 0.1, atol=1e-3)
        else:
            np.testing.assert_array_equal(after, before)
    return ops(new)


def of(body: str, params: str = X) -> list[str]:
    return simplified(relay.parse(f"def @main({params}) {{ {body} }}"))


@pytest.mark.parametrize(
    "body, left",
    [
        ("reshape(reshape(%x, newshape=[3, 2]), newshape=[6])", ["reshape"]),
        ("contrib_reverse_reshape(reshape(%x, newshape=[3, 2]), newshape=[-1, 6])", ["reshape"]),
        ("reshape(expand_dims(squeeze(%x), axis=0), newshape=[6])", ["reshape"]),
        ("reshape(%x, newshape=[2, 3])", []),
        ("transpose(transpose(%x, axes=[1, 0]), axes=[1, 0])", []),
        ("transpose(transpose(%x, axes=None), axes=None)", []),
        ("transpose(%x, axes=[0, -1])", []),
        ('cast(%x, dtype="float32")', []),
        ('cast(cast(cast(%x, dtype="int8"), dtype="int32"), dtype="float32")', ["cast", "cast"]),
        ("clip(clip(%x, a_min=-1f, a_max=5f), a_min=0f, a_max=9f)", ["clip"]),
        ("clip(clip(%x, a_min=-1f, a_max=1f), a_min=2f, a_max=9f)", ["clip", "clip"]),
        ("clip(%x, a_min=-inff, a_max=inff)", []),
        ("multiply(add(%x, 0f), 1f)", []),
        ("divide(subtract(%x, 0f), 1f)", []),
        ("add(%x, zeros_like(%x))", []),
        ("add(0f, multiply(ones_like(%x), %x))", []),
        ('multiply(%x, ones(shape=[2, 3], dtype="float32"))', []),
        ('add(%x, full(2f, shape=[2, 3], dtype="float32"))', ["add"]),
        ('add(%x, full(2, shape=[2, 3], dtype="float32"))', ["add"]),
        ("maximum(full_like(%x, 2f), %x)", ["maximum"]),
        ('greater(%x, ones(shape=[2, 3], dtype="float32"))', ["greater"]),
        ('subtract(%x, full(2f, shape=[5, 2, 3], dtype="float32"))', ["full", "subtract"]),
        ("add(%x, %x)", ["multiply"]),
        ("add(add(add(%x, 1f), 2f), 3f)", ["add"]),
        ("multiply(2f, multiply(%x, 3f))", ["multiply"]),
        ("multiply(add(%x, 1f), 3f)", ["multiply", "add"]),
        ("multiply(add(multiply(add(multiply(%x, 2f), 3f), 4f), 5f), 6f)", ["multiply", "add"]),
        ("divide(1f, sqrt(exp(%x)))", ["exp", "rsqrt"]),
        ("divide(%x, sqrt(exp(%x)))", ["exp", "rsqrt", "multiply"]),
        ("cast_like(reshape_like(%x, %x), %x)", []),
        ('broadcast_to_like(%x, zeros(shape=[4, 2, 3], dtype="float32"))', ["broadcast_to"]),
        ('collapse_sum_like(%x, zeros(shape=[3], dtype="float32"))', ["collapse_sum_to"]),
        ("full_like(%x, 2f)", ["full"]),
        ("%0 = (%x, exp(%x)); %0.0", []),
    ],
)
def test_forms(body: str, left: list[str]) -> None:
    assert of(body) == left


@pytest.mark.parametrize(
    "body, dtype, left",
    [
        ("add(add(%x, 1000), -7)", "int32", ["add"]),
        ("multiply(multiply(%x, 123456), 654321)", "int32", ["multiply"]),
        ("multiply(add(%x, 2147483647), 3)", "int32", ["multiply", "add"]),
        ("add(%x, %x)", "uint8", ["multiply"]),
        ("add(%x, %x)", "int64", ["multiply"]),
        ('divide(5, sqrt(full(9, shape=[3], dtype="int32")))', "int32", ["full", "sqrt", "divide"]),
        ("clip(%x, a_min=0f, a_max=255f)", "uint8", []),
        ("clip(%x, a_min=-128f, a_max=127f)", "int8", []),
        ("clip(%x, a_min=-128f, a_max=127f)", "int16", ["clip"]),
        ("clip(%x, a_min=-3e9f, a_max=3e9f)", "int32", []),
        ("clip(%x, a_min=0f, a_max=254f)", "uint8", ["clip"]),
        # clips and casts
        ('cast(cast(clip(%x, a_min=0f, a_max=255f), dtype="uint8"), dtype="int32")', "int32", ["clip"]),
        ('cast(cast(clip(%x, a_min=0f, a_max=255f), dtype="uint8"), dtype="int64")', "int32", ["clip", "cast"]),
        ('cast(cast(clip(%x, a_min=0f, a_max=256f), dtype="uint8"), dtype="int32")', "int32", ["clip", "cast", "cast"]),
        ('cast(cast(cast(clip(%x, a_min=-9f, a_max=9f), dtype="int8"), dtype="float16"), dtype="int32")', "int32", ["clip"]),
        (
            'cast(cast(cast(clip(%x, a_min=-9f, a_max=-1f), dtype="uint8"), dtype="int8"), dtype="int32")',
            "int32",
            ["clip", "cast", "cast", "cast"],
        ),
        ('cast(cast(clip(%x, a_min=0f, a_max=9f), dtype="uint8"), dtype="float32")', "float32", ["clip", "cast", "cast"]),
        ('cast(cast(clip(%x, a_min=-99f, a_max=2049f), dtype="float16"), dtype="int32")', "int32", ["clip", "cast", "cast"]),
        # casts of casts
        ('cast(cast(%x, dtype="int32"), dtype="int64")', "int8", ["cast"]),
        ('cast(cast(%x, dtype="int32"), dtype="uint8")', "int8", ["cast"]),
        ('cast(cast(%x, dtype="uint32"), dtype="int64")', "int32", ["cast", "cast"]),
        ('cast(cast(%x, dtype="float32"), dtype="int64")', "int32", ["cast", "cast"]),
        ('cast(cast(%x, dtype="float32"), dtype="float64")', "int16", ["cast"]),
        ('cast(cast(%x, dtype="float64"), dtype="float32")', "float32", []),
        ('cast(cast(%x, dtype="float16"), dtype="float32")', "float32", ["cast", "cast"]),
    ],
)
def test_whole_numbers_stay_exact(body: str, dtype: str, left: list[str]) -> None:
    assert of(body, f"%x: Tensor[(2, 3), {dtype}]") == left


# ---- layouts

BLOCKS = "%x: Tensor[(1, 8, 6, 6), float32]"


@pytest.mark.parametrize(
    "body, left",
    [
        ('layout_transform(%x, src_layout="NCHW", dst_layout="NCHW")', []),
        ('layout_transform(layout_transform(%x, src_layout="NHWC", dst_layout="NCHW"), src_layout="NCHW", dst_layout="NHWC")', []),
        ('transpose(layout_transform(%x, src_layout="NCHW", dst_layout="NHWC"), axes=[0, 3, 1, 2])', []),
        ('transpose(layout_transform(%x, src_layout="NCHW", dst_layout="NHWC"), axes=[0, 2, 1, 3])', ["transpose"]),
        ('layout_transform(transpose(%x, axes=[0, 2, 3, 1]), src_layout="NHWC", dst_layout="NCHW4c")', ["layout_transform"]),
        ('layout_transform(transpose(%x, axes=[0, 3, 1, 2]), src_layout="NCHW", dst_layout="NCHW2c")', ["layout_transform"]),
        ('transpose(layout_transform(%x, src_layout="NCHW", dst_layout="NCHW4c"), axes=[0, 4, 1, 2, 3])', ["layout_transform"]),
        ('layout_transform(layout_transform(%x, src_layout="NCHW", dst_layout="NCHW4c"), src_layout="NCHW4c", dst_layout="NCHW")', []),
        (
            'layout_transform(layout_transform(%x, src_layout="NCHW", dst_layout="NCHW4c"), src_layout="NCHW4c", dst_layout="NHWC")',
            ["transpose"],
        ),
        (
            'layout_transform(layout_transform(%x, src_layout="NCHW", dst_layout="NCHW4c"), src_layout="NCHW4c", dst_layout="NCHW2c")',
            ["layout_transform"],
        ),
    ],
)
def test_layouts(body: str, left: list[str]) -> None:
    assert of(body, BLOCKS) == left


# ---- a x x + b x y + c y y


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype, suffix", [("float32", "f"), ("int32", "")])
@pytest.mark.parametrize(
    "a, b, c, products, sums",
    [(1, 2, 1, 1, 1), (1, 3, 2, 2, 2), (2, 3, 1, 2, 2), (1, 5, 6, 3, 2), (1, 1, -2, 2, 2), (4, 8, 4, 2, 1), (3, -6, 3, 2, 1)],
)
def test_binomials(dtype: str, suffix: str, a: int, b: int, c: int, products: int, sums: int) -> None:
    n = {"a": f"{a}{suffix}", "b": f"{b}{suffix}", "c": f"{c}{suffix}"}
    params = f"%x: Tensor[(2, 3), {dtype}], %y: Tensor[(2, 3), {dtype}]"
    xx, xy, yy = (
        [f"multiply({n['a']}, multiply(%x, %x))", f"multiply(%x, multiply({n['a']}, %x))"],
        [f"multiply({n['b']}, multiply(%x, %y))", f"multiply(%y, multiply({n['b']}, %x))"],
        [f"multiply(multiply(%y, %y), {n['c']})", f"multiply(%y, multiply({n['c']}, %y))"],
    )
    for i in (0, 1):
        for terms in ((xx[i], xy[i], yy[i]), (yy[i], xy[1 - i], xx[i]), (xx[i], yy[1 - i], xy[i])):
            found = of(f"add(add({terms[0]}, {terms[1]}), {terms[2]})", params)
            assert found.count("multiply") == products, found
            assert found.count("add") + found.count("subtract") == sums, found
    assert of(f"add({yy[0]}, add({xx[0]}, {xy[0]}))", params).count("multiply") == products


@pytest.mark.parametrize("a, b, c", [(1, 3, 1), (1, 1, 1), (2, 5, 3)])
def test_binomials_without_exact_factors_stay(a: int, b: int, c: int) -> None:
    body = f"add(add(multiply({a}, multiply(%x, %x)), multiply({b}, multiply(%x, %y))), multiply({c}, multiply(%y, %y)))"
    left = of(body, "%x: Tensor[(2, 3), int32], %y: Tensor[(2, 3), int32]")
    assert left.count("add") == 2 if (a, b, c) != (2, 5, 3) else len(left) <= 8


# ---- what would go wrong


def test_constants_that_say_too_much_or_too_little_stay() -> None:
    for body in (
        "multiply(multiply(%x, 1e30f), 1e30f)",
        "multiply(multiply(%x, 1e-30f), 1e-30f)",
        "multiply(add(%x, 3e38f), 3f)",
        "add(add(%x, 3e38f), 3e38f)",
    ):
        mod = InferType()(relay.parse(f"def @main({X}) {{ {body} }}"))
        assert len(ops(SimplifyExpr()(mod))) == 2, body


def test_a_dimension_that_is_not_known_may_be_one() -> None:
    mod = InferType()(relay.parse("def @main(%x: Tensor[(?), float32], %y: Tensor[(?), float32]) { add(%x, zeros_like(%y)) }"))
    new = InferType()(SimplifyExpr()(mod))
    given = np.ones(1, "float32"), np.ones(4, "float32")
    assert evaluate(new, *given).shape == (4,)
    assert of("add(multiply(add(%x, 1f), 2f), 0f)", "%x: Tensor[(?, 3), float32]") == ["multiply", "add"]
    assert of("cast_like(%x, %y)", "%x: Tensor[(?), int8], %y: Tensor[(?), float32]") == ["cast"]


def test_empty_tensors_keep_their_shape() -> None:
    body = "reshape(expand_dims(%x, axis=0), newshape=[3, -1])"
    mod = InferType()(relay.parse(f"def @main(%x: Tensor[(0, 3), float32]) {{ {body} }}"))
    assert InferType()(SimplifyExpr()(mod))["main"].body.checked_type == mod["main"].body.checked_type


@pytest.mark.parametrize("name", ["argmax", "argmin", "argsort"])
@pytest.mark.parametrize(
    "dtype, scale, zero, real, looked_through",
    [
        ("int8", 0.5, 3, "float32", True),
        ("uint8", 0.5, 200, "float32", True),
        ("int16", 1e-6, 0, "float32", True),
        ("int8", -0.5, 3, "float32", False),
        ("int32", 0.5, 3, "float32", False),
        ("int16", 0.5, 0, "float16", False),
        ("int8", 0.5, 1 << 30, "float32", False),
        ("int8", 1e-44, 0, "float32", False),
    ],
)
def test_the_largest_of_what_was_dequantized(name: str, dtype: str, scale: float, zero: int, real: str, looked_through: bool) -> None:
    x = Var("x", TensorType((4, 50), dtype))
    real_x = op_call("qnn.dequantize", [x, const(scale), const(zero)], out_dtype=real)
    sorts = name == "argsort"
    body = op_call(name, [real_x], axis=1 if sorts else [1], **({"dtype": "int32"} if sorts else {}))
    found = simplified(IRModule.from_expr(Function([x], body)))
    assert found == [name] if looked_through else found == ["qnn.dequantize", name]


def test_fills_of_many_bits_are_exact() -> None:
    big = (1 << 53) + 1
    x = Var("x", TensorType((3,), "int64"))
    filled = op_call("full", [const(big, "int64")], shape=[3], dtype="int64")
    assert simplified(IRModule.from_expr(Function([x], op_call("add", [x, filled])))) == ["add"]


def test_linear() -> None:
    def chain(size: int) -> Callable[[], Any]:
        x = Var("x", TensorType((3,)))
        node: Expr = x
        for i in range(size):
            one = op_call("multiply", [op_call("add", [node, const(0.5)]), const(1.5 if i % 2 else 0.75)])
            node = op_call("nn.relu", [op_call("transpose", [op_call("cast", [one], dtype="float32")], axes=[0])])
        mod = InferType()(IRModule.from_expr(Function([x], node)))
        return lambda: SimplifyExpr()(mod)

    assert_linear(chain, 60)
