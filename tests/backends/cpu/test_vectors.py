"""Vector loops that are written out: fixed-point products, and floats between short integers."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang import create_executor
from relaylang.backends import compile_module
from relaylang.backends.cpu import emit_c
from relaylang.backends.cpu.isa import AVX2, AVX512, GENERIC
from relaylang.backends.cpu.lower.qnn import quotient
from relaylang.diagnostics import RelayError
from relaylang.kernels import ir
from relaylang.kernels.vectors import written_out
from tests.backends.cpu.test_integers import module, values
from tests.shared import few

MACHINES = ["native", "x86-64-v3", "x86-64-v2"]
#: The same where there are many cases: `make sweeps` has the other machines.
HERE = few(MACHINES, "native")
#: As many columns as a few vectors, with a remainder.
SHAPE = (5, 77)


def same(text: str, march: str, *inputs: np.ndarray) -> None:
    """Compare a program with the interpreter."""
    mod = module(text)
    try:
        found = compile_module(mod, "c" if march == "native" else f"c -march={march}").run(*inputs)
    except RelayError as e:
        pytest.skip(str(e))
    np.testing.assert_array_equal(found, create_executor("graph", mod).evaluate()(*inputs).numpy())


@pytest.mark.sample(4)
@pytest.mark.parametrize("march", HERE)
@pytest.mark.parametrize("scale", few([1e-9, 1e-3, 0.24, 0.3, 0.5, 0.99, 1.0, 1.7, 300.0, 1e7], 0.3, 300.0))
@pytest.mark.parametrize(("dtype", "out"), [("int32", "uint8"), ("uint8", "int8"), ("int8", "int32"), ("uint8", "int32")])
def test_one_scale(dtype: str, out: str, scale: float, march: str) -> None:
    x = values(dtype, SHAPE, np.random.default_rng(0))
    x[0] %= 100
    same(
        f"""
def @main(%x: Tensor[(5, 77), {dtype}]) {{
  qnn.requantize(%x, {scale!r}f, 7, 1f, -3, out_dtype="{out}")
}}""",
        march,
        x,
    )


@pytest.mark.sample(4)
@pytest.mark.parametrize("march", MACHINES)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_floats_to_short_integers(dtype: str, march: str) -> None:
    rng = np.random.default_rng(1)
    x = (rng.standard_normal(SHAPE) * 100).astype("f4")
    below = np.nextafter(np.float32(0.5), np.float32(0))
    edges = [0.5, -0.5, 1.5, 2.5, -2.5, below, -below, np.inf, -np.inf, np.nan, 1e30, -1e30, 127.5, 255.5, 2**22 + 0.5, -0.0]
    x[0, : len(edges)] = edges
    x[1] = np.arange(77) / 2
    if dtype in ("int16", "uint16"):
        text = f'cast(round(%x), dtype="{dtype}")'
        x = np.clip(np.nan_to_num(x), *((-32768, 32767) if dtype == "int16" else (0, 65535))).astype("f4")
    else:
        text = f'qnn.quantize(%x, 1f, 3, out_dtype="{dtype}")'
    same(f"def @main(%x: Tensor[(5, 77), float32]) {{ {text} }}", march, x)


@pytest.mark.sample(3)
@pytest.mark.parametrize("march", MACHINES)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_short_integers_through_floats(dtype: str, march: str) -> None:
    rng = np.random.default_rng(2)
    x, y = (values(dtype, SHAPE, rng) for _ in range(2))
    scales = rng.standard_normal((2, 77)).astype("f4")
    same(
        f"""
def @main(%x: Tensor[(5, 77), {dtype}], %y: Tensor[(5, 77), {dtype}], %a: Tensor[(77), float32], %b: Tensor[(77), float32]) {{
  %0 = qnn.add(%x, %y, 0.3f, 4, 0.7f, 5, 0.6f, 9);
  %1 = multiply(qnn.dequantize(%0, 0.37f, 12), %a);
  qnn.quantize(add(%1, %b), 0.21f, 7, out_dtype="{dtype}")
}}""",
        march,
        x,
        y,
        *scales,
    )


@pytest.mark.sample(3)
@pytest.mark.parametrize("march", MACHINES)
def test_limits_of_floats(march: str) -> None:
    rng = np.random.default_rng(4)
    x, y = (rng.standard_normal(SHAPE).astype("f4") * 5 for _ in range(2))
    x[0, :10] = [np.nan, np.copysign(np.float32(np.nan), -1), np.inf, -np.inf, 0.0, -0.0, 6.0, -1.0, 1e-45, -1e-45]
    for text in ("nn.relu(%x)", "clip(%x, a_min=-1f, a_max=6f)", "add(nn.relu(add(%x, %y)), clip(%x, a_min=0f, a_max=6f))"):
        same(f"def @main(%x: Tensor[(5, 77), float32], %y: Tensor[(5, 77), float32]) {{ {text} }}", march, x, y)


@pytest.mark.parametrize(("march", "has"), [("x86-64-v3", True), ("x86-64-v4", True), ("x86-64-v2", False)])
def test_limits_of_floats_are_vectors(march: str, has: bool) -> None:
    mod = module("def @main(%x: Tensor[(8, 64), float32]) { clip(nn.relu(%x), a_min=-1f, a_max=6f) }")
    assert ("r_lesser_vf(r_splat_vf(6.0f), " in emit_c(mod, options={"march": march})) is has


@pytest.mark.parametrize(("march", "has"), [("x86-64-v3", True), ("x86-64-v4", True), ("x86-64-v2", False)])
def test_fixed_point_products_are_vectors(march: str, has: bool) -> None:
    mod = module("""
def @main(%x: Tensor[(8, 64), int32]) {
  qnn.requantize(%x, 0.001f, 0, 1f, 0, out_dtype="uint8")
}""")
    assert ("r_fixed_vi(" in emit_c(mod, options={"march": march})) == has


def _loop(value: ir.Expr, high: ir.Expr | int, low: ir.Expr | int = 0) -> ir.Body:
    return [ir.loop("i", low, high, [ir.Store("out", ir.Var("i"), value)], ir.VECTOR)]


def _half(dtype: str = "uint8") -> ir.Expr:
    whole = ir.Cast(ir.Load("x", ir.Var("i"), "float32") * 0.5, "int32")
    return ir.op("saturate", whole, type=dtype)


def test_a_remainder_stays_a_loop() -> None:
    main, rest = written_out(_loop(_half(), 40), AVX512.explicit_lanes)
    assert isinstance(main, ir.Loop) and (main.trips, main.step, main.kind) == (1, 32, ir.UNROLLED)
    assert isinstance(rest, ir.Loop) and (ir.constant_of(rest.low), rest.trips, rest.kind) == (32, 8, ir.VECTOR)
    (whole,) = written_out(_loop(_half(), 240), AVX2.explicit_lanes)
    assert isinstance(whole, ir.Loop) and (whole.trips, whole.step, whole.kind) == (15, 16, ir.SERIAL)
    (odd,) = written_out(_loop(_half("int16"), 56), AVX2.explicit_lanes)
    assert isinstance(odd, ir.Loop) and (odd.trips, odd.step) == (7, 8)


def test_ends_may_be_known_late() -> None:
    (block,) = written_out(_loop(_half(), ir.Var("m1"), ir.Var("m0")), AVX2.explicit_lanes)
    assert isinstance(block, ir.Block)
    end, main, rest = block.body
    assert isinstance(end, ir.Let) and isinstance(main, ir.Loop) and isinstance(rest, ir.Loop)
    assert ir.key(main.high) == ir.key(rest.low) == ir.key(end.var) and ir.key(rest.high) == "m1"


@pytest.mark.parametrize(
    "body",
    [
        _loop(_half(), 5),  # less than a vector
        _loop(ir.op("left_shift", _half(), 1), 64),  # no form
        _loop(ir.Load("x", ir.Var("i") * 2, "uint8"), 64),  # not one by one
        _loop(ir.Load("x", ir.Var("i"), "uint8"), 64),  # nothing to gain
    ],
)
def test_other_loops_stay(body: ir.Body) -> None:
    *_, found = written_out(body, AVX2.explicit_lanes)
    assert isinstance(found, ir.Loop) and (found.kind, found.step) == (ir.VECTOR, 1)


def test_other_machines_keep_the_loop() -> None:
    body = _loop(_half(), 64)
    assert written_out(body, GENERIC.explicit_lanes) == body


#: height, width, channels, window, stride, padding before and behind, dilation: vectors of bytes with and without a remainder
POOLS = [(9, 31, 64, 3, 2, 1, 1, 1), (5, 40, 70, 2, 1, 0, 1, 1), (6, 7, 130, 3, 1, 2, 2, 2), (4, 4, 40, 3, 3, 0, 0, 1)]


@pytest.mark.sample(4)
@pytest.mark.parametrize("march", HERE)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("pool", POOLS)
def test_maxima_of_bytes(pool: tuple[int, ...], dtype: str, march: str) -> None:
    height, width, channels, size, stride, before, behind, dilation = pool
    same(
        f"""
def @main(%x: Tensor[(2, {height}, {width}, {channels}), {dtype}]) {{
  %0 = nn.max_pool2d(%x, pool_size=[{size}, {size}], strides=[{stride}, {stride}], dilation=[{dilation}, {dilation}],
                     padding=[{before}, {before}, {behind}, {behind}], layout="NHWC");
  qnn.quantize(qnn.dequantize(%0, 0.3f, 7), 0.2f, 1, out_dtype="{dtype}")
}}""",
        march,
        values(dtype, (2, height, width, channels), np.random.default_rng(3)),
    )


@pytest.mark.sweep
@pytest.mark.sample(4)
@pytest.mark.parametrize("march", HERE)
@pytest.mark.parametrize(
    ("dtype", "zero"),
    [
        ("uint8", 130),
        ("int8", -128),
        *[pytest.param(*case, marks=pytest.mark.sweep) for case in (("uint8", 0), ("uint8", 255), ("int8", 0), ("int8", 127))],
    ],
)
def test_quotients_round_alike(dtype: str, zero: int, march: str) -> None:
    rng = np.random.default_rng(4)
    for scale in (np.float32(s) for s in (0.036, 1 / 3, 1.0, 0.0078125, 3.1e-5, 77.7)):
        # Numbers next to each half, and those that no quotient holds.
        halves = ((np.arange(-300, 300) + 0.5) * scale).astype("f4").view("i4")
        x = np.concatenate([(halves + n).view("f4") for n in range(-3, 4)])
        x = np.concatenate([x, rng.standard_normal(101, np.float32) * scale * 100, [np.nan, np.inf, -np.inf, 3e38, -3e38, 0.0, -0.0]])
        x = x.astype("f4")
        text = f'qnn.quantize(%x, {float(scale)!r}f, {zero}, out_dtype="{dtype}")'
        same(f"def @main(%x: Tensor[({len(x)}), float32]) {{ {text} }}", march, x)


def test_quotients_of_all_scales() -> None:
    for scale in np.float32(10.0) ** np.random.default_rng(5).uniform(-6, 2, 200).astype("f4"):
        found = quotient(float(scale))
        assert found is not None and abs(found.ends[0] / scale - 0.5) < 1e-6
    assert quotient(0.0) is None and quotient(float("nan")) is None and quotient(-1.0) is None and quotient(1e30) is None
