"""Dense layers whose weights have four bits in blocks: kernels read two of them from a byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu import emit
from relaylang.backends.cpu.bisect import bisect
from relaylang.backends.target import Target
from relaylang.interpreter import evaluate
from relaylang.ir import Expr, Function, IRModule, TensorType, Tuple, Var
from relaylang.ir.typed import typed_constant
from relaylang.ops.build import op_call
from relaylang.rules.quantization.blocks import Blocks


def blocks(rows: int, columns: int, size: int = 32, bits: int = 4, seed: int = 3) -> Blocks:
    """A weight of whole numbers and quarters: sums of its products with small whole numbers are exact."""
    rng = np.random.default_rng(seed)
    count = -(-columns // size)
    codes = rng.integers(0, 1 << bits, (rows, count, size)).astype("uint8")
    codes[0, 0, :2] = 0, (1 << bits) - 1
    scales = rng.choice([0.25, 0.5, 1, 2], (rows, count)).astype("float32")
    return Blocks(codes, scales, rng.integers(0, 1 << bits, (rows, count)).astype("int32"), columns)


def expr(weight: Blocks) -> Expr:
    return weight.expr(lambda name, *args, **attrs: op_call(name, list(args), **attrs), typed_constant)


def matrix(weight: Blocks) -> np.ndarray:
    real = (weight.codes.astype("float64") - weight.zeros[..., None]) * weight.scales[..., None]
    return real.reshape(len(real), -1)[:, : weight.columns]


def dense(shape: tuple[int, ...], weight: Expr, units: int) -> IRModule:
    x = Var("x", TensorType(shape, "float32"))
    return IRModule.from_expr(Function([x], op_call("nn.dense", [x, weight], units=units)))


def numbers(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(8).integers(-9, 10, shape).astype("float32")


def is_packed(mod: IRModule, isa: str = "avx512") -> bool:
    """Whether a kernel takes the codes apart."""
    return "right_shift" in emit(mod, "fused", isa=isa)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "shape, units, size",
    [((1, 96), 37, 32), ((3, 70), 33, 32), ((16, 128), 5, 64), ((2, 3, 64), 66, 64), ((1, 7, 40), 1, 32)],
)
def test_products_are_those_of_the_weights_in_floats(shape: tuple[int, ...], units: int, size: int, threads: int) -> None:
    weight, x = blocks(units, shape[-1], size), numbers(shape)
    mod = dense(shape, expr(weight), units)
    assert is_packed(mod)
    artifact = compile_module(mod, f"c -num-threads={threads}")
    assert np.array_equal(artifact.run(x), x @ matrix(weight).T)
    # Nothing is made when the program is loaded.
    assert artifact.manifest["fixed"] == 0
    assert {(p.nbytes, p.dtype.name) for p in artifact.params.values()} == {
        (weight.codes.size // 2, "uint8"),
        (weight.scales.nbytes, "float32"),
        (weight.zeros.size, "uint8"),
    }


@pytest.mark.parametrize("mcpu", ["x86-64", "haswell"])
def test_narrower_vectors(mcpu: str) -> None:
    features = compile_module(dense((1, 4), typed_constant(np.ones((2, 4), "float32")), 2), "c").manifest
    if features["isa"] not in ("avx2", "avx512"):
        pytest.skip("the machine does not run this code")
    weight, x = blocks(35, 80, 16), numbers((5, 80))
    artifact = compile_module(dense((5, 80), expr(weight), 35), f"c -mcpu={mcpu}")
    assert artifact.manifest["fixed"] == 0
    assert np.array_equal(artifact.run(x), x @ matrix(weight).T)


def test_operators_behind_are_in_the_kernel() -> None:
    weight, x, bias = blocks(40, 64), Var("x", TensorType((2, 64), "float32")), numbers((40,))
    product = op_call("nn.dense", [x, expr(weight)], units=40)
    mod = IRModule.from_expr(Function([x], op_call("nn.relu", [op_call("nn.bias_add", [product, typed_constant(bias)])])))
    assert emit(mod, "fused", isa="avx512").count("Primitive=1") == 1
    data = numbers((2, 64))
    assert np.array_equal(compile_module(mod, "c").run(data), np.maximum(data @ matrix(weight).T + bias, 0))


def test_results_agree_after_every_stage() -> None:
    rng = np.random.default_rng(1)
    mod = dense((2, 70), expr(blocks(33, 70)), 33)
    x = rng.normal(size=(2, 70)).astype("float32")
    assert not any(d.is_fault for d in bisect(mod, Target("c", {}), {}, "main", {"x": x}))


def test_signed_codes_with_one_scale() -> None:
    codes = np.random.default_rng(2).integers(-8, 8, (6, 64)).astype("int8")
    operands: list[Expr] = [typed_constant(part) for part in (codes, np.float32(0.5).reshape(()), np.int32(-3).reshape(()))]
    mod = dense((1, 64), op_call("qnn.dequantize", operands, out_dtype="float32"), 6)
    x = numbers((1, 64))
    assert is_packed(mod)
    assert np.array_equal(compile_module(mod, "c").run(x), x @ ((codes + 3.0) * 0.5).T)


def _other(**changed: Any) -> IRModule:
    """A layer, changed in one respect."""
    weight = blocks(8, 64, changed.get("size", 32), changed.get("bits", 4))
    weight.zeros[0, 0] += changed.get("zero", 0)
    weight.scales[0, 0] *= changed.get("scale", 1)
    return dense((changed.get("rows", 1), 64), expr(weight), 8)


@pytest.mark.parametrize(
    "changed", [{"rows": 17}, {"bits": 5}, {"size": 16}, {"zero": 256}, {"zero": -20}, {"scale": np.inf}], ids=lambda c: next(iter(c))
)
def test_other_layers_have_floats(changed: dict[str, Any]) -> None:
    assert is_packed(_other()) and not is_packed(_other(**changed))
    mod, x = _other(**changed), numbers((changed.get("rows", 1), 64))
    assert np.array_equal(compile_module(mod, "c").run(x), evaluate(mod, x), equal_nan=True)


def test_a_weight_of_two_layers_is_packed_once() -> None:
    weight = blocks(64, 64)
    x, w = Var("x", TensorType((1, 64), "float32")), expr(weight)
    twice = op_call("nn.dense", [op_call("nn.dense", [x, w], units=64), w], units=64)
    artifact = compile_module(IRModule.from_expr(Function([x], twice)), "c")
    assert len(artifact.params) == 3
    data = np.eye(1, 64, dtype="float32")
    assert np.array_equal(artifact.run(data), data @ matrix(weight).T @ matrix(weight).T)


def test_a_weight_that_is_a_result_too() -> None:
    weight = blocks(8, 64)
    x, w = Var("x", TensorType((1, 64), "float32")), expr(weight)
    mod = IRModule.from_expr(Function([x], Tuple([op_call("nn.dense", [x, w], units=8), w])))
    data = numbers((1, 64))
    product, floats = compile_module(mod, "c").run(data)
    assert np.array_equal(product, data @ matrix(weight).T) and np.array_equal(floats, matrix(weight))


@pytest.mark.parametrize("isa", ["avx512", "avx2", "neon", "generic"])
def test_loops_read_bytes(isa: str) -> None:
    loops = emit(dense((1, 64), expr(blocks(8, 64)), 8), "loops", isa=isa)
    assert "in arg1: uint8[16, 16]" in loops and "pairs" in loops
