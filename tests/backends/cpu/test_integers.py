"""Products and scales of integers: the interpreter's bits, whichever instructions multiply."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang import create_executor
from relaylang.backends import compile_module
from relaylang.backends.cpu import emit_c, lower_module
from relaylang.backends.cpu.cc import Compiler
from relaylang.backends.cpu.isa import GENERIC
from relaylang.diagnostics import RelayError
from relaylang.ir import IRModule
from relaylang.runtime.features import this_machine
from relaylang.runtime.packed import ForeignArtifact
from relaylang.syntax import parse
from relaylang.transform import InferType
from tests.shared import few

#: height, width, inputs, outputs, kernel, stride, padding: long and short rows, runs of all lengths, remainders
SHAPES = [
    (14, 14, 64, 64, 3, 1, 1),
    (7, 7, 128, 70, 3, 1, 1),
    (9, 33, 48, 33, 1, 1, 0),
    (20, 5, 96, 32, 3, 2, 1),
    (30, 30, 3, 24, 7, 2, 3),
    (4, 17, 256, 16, 1, 1, 0),
    (6, 3, 32, 32, 5, 1, 2),
]


def module(text: str) -> IRModule:
    found = parse('#[version = "0.0.5"]\n' + text).module
    assert found is not None
    return found


def values(dtype: str, shape: tuple, rng: np.random.Generator) -> np.ndarray:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("dtype", few(["int8", "uint8", "int16"], "int8"))
@pytest.mark.parametrize("kernel, dilation", [((3, 3), (2, 2)), ((3, 1), (1, 1)), ((1, 3), (1, 2))])
def test_taps_of_one_channel_that_are_no_neighbours(kernel: tuple[int, int], dilation: tuple[int, int], dtype: str) -> None:
    mod = module(f"""
def @main(%x: Tensor[(2, 1, 12, 12), {dtype}], %w: Tensor[(8, 1, {kernel[0]}, {kernel[1]}), int8]) {{
  nn.conv2d(%x, %w, channels=8, kernel_size={list(kernel)}, dilation={list(dilation)}, padding=[1, 1, 1, 1], out_dtype="int32")
}}""")
    rng = np.random.default_rng(7)
    x, w = values(dtype, (2, 1, 12, 12), rng), values("int8", (8, 1, *kernel), rng)
    wanted = create_executor("debug", mod).evaluate()(x, w)
    assert np.array_equal(compile_module(mod, "c -num-threads=1").run(x, w), wanted)


@pytest.mark.sample(2)
@pytest.mark.parametrize("march", few(["native", "x86-64-v3", "x86-64-v4", "generic"], "native"))
@pytest.mark.parametrize("dtype", few(["uint8", "int8"], "int8"))
@pytest.mark.parametrize("shape", few(SHAPES, *SHAPES[::2]))
def test_convolutions(shape: tuple, dtype: str, march: str) -> None:
    height, width, inputs, outputs, k, stride, pad = shape
    mod = module(f"""
def @main(%x: Tensor[(1, {height}, {width}, {inputs}), {dtype}], %w: Tensor[({k}, {k}, {inputs}, {outputs}), int8],
          %b: Tensor[({outputs}), int32], %s: Tensor[({outputs}), float32]) {{
  %0 = qnn.conv2d(%x, %w, 5, 0, 0.1f, 0.1f, padding=[{pad}, {pad}, {pad}, {pad}], strides=[{stride}, {stride}],
                  kernel_size=[{k}, {k}], channels={outputs}, data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32");
  %1 = nn.bias_add(%0, %b, axis=3);
  (%0, qnn.requantize(%1, %s, 0, 0.5f, 7, axis=3, out_dtype="{dtype}"))
}}""")
    rng = np.random.default_rng(5)
    x, w = values(dtype, (1, height, width, inputs), rng), values("int8", (k, k, inputs, outputs), rng)
    b, s = values("int32", (outputs,), rng) >> 12, rng.random(outputs, np.float32) * np.float32(1e-3)
    try:
        artifact = compile_module(mod, "c" if march == "native" else f"c -march={march}", params={"w": w, "b": b, "s": s})
        found = artifact.run(x)
    except RelayError as e:
        pytest.skip(str(e))
    wanted = create_executor("graph", mod).evaluate()(x, w, b, s)
    for ours, theirs in zip(found, wanted):
        np.testing.assert_array_equal(ours, theirs.numpy())


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
@pytest.mark.parametrize("most", [1e-9, 1e-3, 1.0, 100.0, 1e8, 3e9, 1e11])
def test_scales_of_channels(most: float, dtype: str) -> None:
    mod = module(f"""
def @main(%x: Tensor[(50, 40), int32], %s: Tensor[(40), float32]) {{
  qnn.requantize(%x, %s, 0, 1f, 3, axis=1, out_dtype="{dtype}")
}}""")
    rng = np.random.default_rng(6)
    x = values("int32", (50, 40), rng)
    x[:10] %= 300
    x[10], x[11] = -(2**31), 2**31 - 1
    s = (rng.random(40) * most + most / 1000).astype("f4")
    found = compile_module(mod, "c", params={"s": s}).run(x)
    np.testing.assert_array_equal(found, create_executor("graph", mod).evaluate()(x, s).numpy())


def test_amx_multiplies_where_the_compiler_has_it() -> None:
    compiler = Compiler({"march": "sapphirerapids"})
    if "amx-int8" not in compiler.isa.features:
        pytest.skip(f"{compiler.command[0]} has no AMX")
    mod = module("""
def @main(%x: Tensor[(1, 14, 14, 64), uint8], %w: Tensor[(3, 3, 64, 64), int8]) {
  qnn.conv2d(%x, %w, 5, 0, 0.1f, 0.1f, padding=[1, 1, 1, 1], kernel_size=[3, 3], channels=64, data_layout="NHWC",
             kernel_layout="HWIO", out_dtype="int32")
}""")
    assert "R_TILE_STEP(a" in emit_c(mod, ["w"], options={"march": "sapphirerapids"})
    assert "R_TILE_STEP(a" not in emit_c(mod, ["w"], options={"march": "icelake-server"})


#: Types of data and weights, a result's type, and zero points of both.
SHORT = [
    ("int16", "int8", "int32", 0, 0),
    ("int16", "int8", "int64", 0, 0),
    ("int16", "uint8", "int64", 0, 128),
    ("int16", "int16", "int32", 0, 0),
    ("int16", "int16", "int64", 0, 0),
    ("int16", "int8", "int32", -300, 3),
    ("int16", "int16", "int32", 32767, 0),
    ("int16", "int8", "int16", 0, 0),
    ("int16", "int16", "int32", 40000, 0),
    ("uint8", "int16", "int32", 300, 0),
    ("uint8", "int8", "int64", 200, 5),
    ("int16", "int8", "int64", 7, 0),
    ("int16", "int16", "int64", 0, 9),
    ("int8", "int16", "int64", -128, 0),
    ("uint8", "uint8", "int64", 255, 255),
]
#: height, width, inputs, outputs, kernel, groups: sums of one product, of odd counts, and of many
PIXELS = [
    (5, 7, 1, 3, 1, 1),
    (6, 6, 5, 20, 3, 1),
    (9, 9, 70, 33, 3, 1),
    (3, 4, 2000, 17, 1, 1),
    (6, 6, 12, 8, 3, 4),
    (6, 6, 8, 8, 3, 8),
]


def extreme(dtype: str, shape: tuple, rng: np.random.Generator) -> np.ndarray:
    """The ends of a type, mostly the lower one; the first channels have nothing else."""
    found = values(dtype, shape, rng)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    found = np.where(rng.random(shape) < 0.5, found, np.where(rng.random(shape) < 0.7, low, high)).astype(dtype)
    found[..., : max(1, shape[-1] // 2)] = low
    return found


def compiled(mod: IRModule, march: str, params: dict[str, np.ndarray] | None = None) -> Any:
    """A program for a processor; the test skips where this machine is another."""
    if march != "native" and not this_machine().startswith("x86_64"):
        pytest.skip("this machine is no x86-64")
    made = compile_module(mod, f"c -mcpu={march}", params=params or {})
    if isinstance(made, ForeignArtifact):
        pytest.skip(f"this machine is no {march}")
    return made


@pytest.mark.sample(6)
@pytest.mark.parametrize("march", few(["native", "x86-64-v3", "skylake-avx512", "x86-64"], "native"))
@pytest.mark.parametrize("kind", few(SHORT, SHORT[1], SHORT[3], SHORT[4]))
@pytest.mark.parametrize("pixels", few(PIXELS, PIXELS[2]))
def test_short_integers(pixels: tuple, kind: tuple, march: str) -> None:
    (height, width, inputs, outputs, k, groups), (data, weight, result, zero, weight_zero) = pixels, kind
    mod = module(f"""
def @main(%x: Tensor[(1, {height}, {width}, {inputs}), {data}], %w: Tensor[({k}, {k}, {inputs // groups}, {outputs}), {weight}]) {{
  qnn.conv2d(%x, %w, {zero}, {weight_zero}, 0.1f, 0.1f, padding=[{k // 2}, {k // 2}, {k // 2}, {k // 2}], kernel_size=[{k}, {k}],
             channels={outputs}, groups={groups}, data_layout="NHWC", kernel_layout="HWIO", out_dtype="{result}")
}}""")
    rng = np.random.default_rng(5)
    x = extreme(data, (1, height, width, inputs), rng)
    w = np.moveaxis(extreme(weight, (k, k, outputs, inputs // groups), rng), 2, 3).copy()
    found = compiled(mod, march, {"w": w}).run(x)
    np.testing.assert_array_equal(found, create_executor("graph", mod).evaluate()(x, w).numpy())


#: A call of %x and %w, and their shapes.
PRODUCTS = {
    "nn.dense": ('nn.dense(%x, %w, units=19, out_dtype="{0}")', (5, 33), (19, 33)),
    "nn.dense of a long sum": ('nn.dense(%x, %w, units=40, out_dtype="{0}")', (9, 3000), (40, 3000)),
    "nn.batch_matmul": ('nn.batch_matmul(%x, %w, transpose_a=True, transpose_b=False, out_dtype="{0}")', (3, 31, 5), (3, 31, 20)),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("march", few(["native", "x86-64-v3", "skylake-avx512", "x86-64"], "native"))
@pytest.mark.parametrize("result", ["int32", "int64"])
@pytest.mark.parametrize("form", PRODUCTS)
def test_products_of_short_integers(form: str, result: str, march: str) -> None:
    body, *shapes = PRODUCTS[form]
    x, w = (f"Tensor[({', '.join(map(str, s))}), int16]" for s in shapes)
    mod = module(f"def @main(%x: {x}, %w: {w}) {{ {body.format(result)} }}")
    rng = np.random.default_rng(7)
    a, b = (extreme("int16", shape, rng) for shape in shapes)
    found = compiled(mod, march).run(a, b)
    assert found.dtype == result
    np.testing.assert_array_equal(found, create_executor("graph", mod).evaluate()(a, b).numpy())


@pytest.mark.sample(2)
@pytest.mark.parametrize("zero", [0, -5])
@pytest.mark.parametrize("weight", ["int8", "uint8"])
def test_dense_of_short_integers_in_64_bits(weight: str, zero: int) -> None:
    mod = module(f"""
def @main(%x: Tensor[(7, 1100), int16], %w: Tensor[(24, 1100), {weight}]) {{
  qnn.dense(%x, %w, {zero}, 0, 0.1f, 0.1f, units=24, out_dtype="int64")
}}""")
    rng = np.random.default_rng(8)
    x, w = extreme("int16", (7, 1100), rng), extreme(weight, (24, 1100), rng)
    found = compile_module(mod, "c", params={"w": w}).run(x)
    np.testing.assert_array_equal(found, create_executor("graph", mod).evaluate()(x, w).numpy())


def test_short_integers_are_multiplied_in_pairs() -> None:
    for data, weight, result, wide in (
        ("int16", "int8", "int32", 0),
        ("int16", "int16", "int32", 0),
        ("int16", "int8", "int64", 1),
        ("int16", "int16", "int64", 1),
    ):
        mod = module(f"""
def @main(%x: Tensor[(1, 8, 8, 64), {data}], %w: Tensor[(3, 3, 64, 32), {weight}]) {{
  qnn.conv2d(%x, %w, 0, 0, 0.1f, 0.1f, kernel_size=[3, 3], channels=32, data_layout="NHWC", kernel_layout="HWIO",
             out_dtype="{result}")
}}""")
        text = emit_c(mod, ["w"], options={"march": "x86-64-v3"})
        assert "= r_dot_pair_vi(" in text and ("r_add_wide(" in text) == bool(wide)


def test_panels_of_bytes_are_whole_vectors() -> None:
    test_convolutions(SHAPES[4], "uint8", "generic")  # weights of 1176 bytes behind sums that are read as vectors


def test_short_weights_of_floats_take_their_type() -> None:
    mod = module("""
def @main(%x: Tensor[(1, 1, 5, 5, 4), float32], %w: Tensor[(1, 1, 3, 3, 1, 4), int16]) {
  nn.contrib_depthwise_conv2d_NCHWc(%x, %w, channels=4, groups=4, kernel_size=[3, 3], data_layout="NCHW4c",
                                    kernel_layout="OIHW1i4o")
}""")
    assert lower_module(InferType()(mod), "main", (), GENERIC)
