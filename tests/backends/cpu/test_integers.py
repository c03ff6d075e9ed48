"""Products and scales of integers: the interpreter's bits, whichever instructions multiply."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang import create_executor
from relaylang.backends import compile_module
from relaylang.backends.cpu import emit_c
from relaylang.backends.cpu.cc import Compiler
from relaylang.diagnostics import RelayError
from relaylang.ir import IRModule
from relaylang.syntax import parse
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


@pytest.mark.parametrize("march", few(["native", "x86-64-v3", "x86-64-v4", "generic"], "native"))
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("shape", SHAPES)
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
