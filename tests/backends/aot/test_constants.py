"""The constants of C source: short integers stay short, and what nothing reads is left out."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang.backends.aot import compile_aot
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir import IRModule
from relaylang.syntax import parse
from tests.shared import few

#: The bytes of a channel besides its weights: a bias, a number in fixed point, a vector's end.
CHANNEL = 4 + 4 + 1 + 4
#: Constants begin at multiples of this.
LINE = 64


def module(text: str) -> IRModule:
    found = parse(text).module
    assert found is not None
    return found


def conv(data: str, weight: str, shape: tuple[int, ...], zero: int, weight_zero: int, total: str, groups: int = 1) -> IRModule:
    """A quantised convolution with channels last; a weight's `shape` is (height, width, inputs, outputs)."""
    inputs = groups if groups > 1 else shape[2]
    layout = "HWOI" if groups > 1 else "HWIO"
    return module(f"""
    def @main(%x: Tensor[(1, 5, 6, {inputs}), {data}], %w: Tensor[{shape}, {weight}]) {{
      qnn.conv2d(%x, %w, {zero}, {weight_zero}, 0.5f, 0.25f, padding=[1, 1, 1, 1], channels={groups if groups > 1 else shape[3]},
        groups={groups}, kernel_size=[{shape[0]}, {shape[1]}], data_layout="NHWC", kernel_layout="{layout}", out_dtype="{total}")
    }}""")


def numbers(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Random numbers with both ends of the type."""
    info = np.iinfo(dtype)
    found = np.random.default_rng(seed).integers(info.min, info.max, shape, dtype, endpoint=True)
    found.flat[: found.size // 3] = info.min
    found.flat[-(found.size // 4) :] = info.max
    return found


#: Data, weights, the zero points of both, the sum's type, and the bytes of a weight in memory.
PRODUCTS = [
    ("int8", "int8", 0, 0, "int32", 1),
    ("int8", "int8", -128, 0, "int32", 1),
    ("uint8", "uint8", 128, 128, "int32", 1),
    ("uint8", "uint8", 255, 0, "int32", 1),
    ("uint8", "int8", 3, 7, "int32", 2),
    ("int8", "int8", 1000, 0, "int32", 1),
    ("int16", "int8", 0, 0, "int32", 1),
    ("int16", "int8", 0, 0, "int64", 1),
    ("int16", "int16", 0, 0, "int64", 4),
]


def agrees(mod: IRModule, params: dict[str, np.ndarray], *args: np.ndarray) -> int:
    """The bytes of the constants of a program that gives what the interpreter gives."""
    program = compile_aot(mod, "c", params)
    np.testing.assert_array_equal(program.run(*args), Evaluator(mod).call("main", (*args, *params.values())))
    return program.constant_bytes


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", few(PRODUCTS, *PRODUCTS[1:6:2], *PRODUCTS[7:]), ids=str)
def test_weights_stay_short(case: tuple[str, str, int, int, str, int]) -> None:
    """Sums of the greatest products are exact, too: 3 * 3 * 96 of them."""
    data, weight, zero, weight_zero, total, size = case
    w = numbers(weight, (3, 3, 96, 8), 1)
    found = agrees(conv(data, weight, w.shape, zero, weight_zero, total), {"w": w}, numbers(data, (1, 5, 6, 96), 2))
    assert w.size * size <= found <= w.size * size + 8 * CHANNEL + LINE


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", [PRODUCTS[n] for n in (1, 2, 4, 7)], ids=str)
@pytest.mark.parametrize("channels", few([3, 22], 22))
def test_depthwise_weights_stay_short(channels: int, case: tuple[str, str, int, int, str, int]) -> None:
    data, weight, zero, weight_zero, total, size = case
    w = numbers(weight, (3, 3, channels, 1), 1)
    mod = conv(data, weight, w.shape, zero, weight_zero, total, channels)
    assert w.size * size <= agrees(mod, {"w": w}, numbers(data, (1, 5, 6, channels), 2)) < w.size * size + LINE


def test_a_dense_layer_keeps_its_weights_once() -> None:
    mod = module("""
    def @main(%x: Tensor[(2, 64), int8], %w: Tensor[(10, 64), int8], %b: Tensor[(10), int32], %s: Tensor[(10), float32]) {
      %0 = nn.bias_add(qnn.dense(%x, %w, -3, 0, 0.5f, %s, units=10, out_dtype="int32"), %b);
      qnn.requantize(%0, multiply(%s, 0.5f), 0, 20f, 4, axis=1, out_dtype="int8")
    }""")
    rng = np.random.default_rng(3)
    w, x = rng.integers(-128, 128, (10, 64)).astype("int8"), rng.integers(-128, 128, (2, 64)).astype("int8")
    b, s = rng.integers(-9999, 9999, 10).astype("int32"), rng.random(10).astype("float32")
    # Columns fill vectors of four; the scales are there as numbers in fixed point alone.
    assert 12 * 64 <= agrees(mod, {"w": w, "b": b, "s": s}, x) <= 12 * (64 + CHANNEL) + 5 * LINE


def test_weights_in_another_order_are_there_once() -> None:
    """The given order is read when the C is made, and not when it runs."""
    mod = module("""
    def @main(%x: Tensor[(8, 32), float32], %w: Tensor[(32, 16), float32]) {
      nn.dense(%x, exp(transpose(%w, axes=[1, 0])), units=16)
    }""")
    w, x = (np.random.default_rng(n).random(shape).astype("float32") for n, shape in enumerate([(32, 16), (8, 32)]))
    program = compile_aot(mod, "c", {"w": w})
    np.testing.assert_allclose(program.run(x), x @ np.exp(w), rtol=1e-5)
    assert program.constant_bytes == w.nbytes
