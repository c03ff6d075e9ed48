"""Winograd's convolutions: the sums that they replace, to rounding, for every shape of edges and remainders."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu import emit_c
from relaylang.backends.cpu.lower.winograd import TRANSFORMS
from relaylang.diagnostics import RelayError
from relaylang.syntax import parse
from tests.shared import few

#: batch, height, width, inputs, outputs, padding
SHAPES = [
    (1, 14, 14, 32, 64, (1, 1, 1, 1)),
    (1, 13, 17, 20, 40, (1, 1, 1, 1)),
    (2, 7, 9, 16, 33, (1, 1, 1, 1)),
    (1, 31, 6, 17, 16, (0, 0, 0, 0)),
    (1, 9, 70, 24, 18, (2, 0, 1, 3)),
    (3, 4, 5, 64, 64, (1, 1, 1, 1)),
    (1, 30, 30, 130, 48, (1, 1, 1, 1)),
]


def reference(x: np.ndarray, w: np.ndarray, padding: tuple[int, ...]) -> np.ndarray:
    top, left, bottom, right = padding
    x = np.pad(x.astype(np.float64), ((0, 0), (top, bottom), (left, right), (0, 0)))
    height, width = x.shape[1] - 2, x.shape[2] - 2
    return sum(
        np.einsum("nhwc,ck->nhwk", x[:, i : i + height, j : j + width], w[i, j].astype(np.float64)) for i in range(3) for j in range(3)
    )  # type: ignore[return-value]


def text(shape: tuple, end: str = "") -> str:
    batch, height, width, inputs, outputs, padding = shape
    return f"""#[version = "0.0.5"]
def @main(%x: Tensor[({batch}, {height}, {width}, {inputs}), float32], %w: Tensor[(3, 3, {inputs}, {outputs}), float32],
          %b: Tensor[({outputs}), float32]) {{
  %0 = nn.conv2d(%x, %w, padding=[{", ".join(map(str, padding))}], kernel_size=[3, 3], channels={outputs},
                 data_layout="NHWC", kernel_layout="HWIO");
  nn.relu(add(%0, %b))
}}
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("m", [0, 2, 4])
@pytest.mark.parametrize("march", few(["native", "x86-64-v3", "generic"], "native"))
@pytest.mark.parametrize("shape", few(SHAPES, *SHAPES[1:5:3]))
def test_results_are_the_sums(shape: tuple, march: str, m: int) -> None:
    mod = parse(text(shape)).module
    assert mod is not None
    rng = np.random.default_rng(3)
    x, w, b = (rng.standard_normal(s, np.float32) for s in ((shape[:4]), (3, 3, *shape[3:5]), shape[4:5]))
    options = f"c -winograd={m}" + ("" if march == "native" else f" -march={march}")
    try:
        artifact = compile_module(mod, options, params={"w": w, "b": b})
        found = artifact.run(x)
    except RelayError as e:
        pytest.skip(str(e))
    wanted = np.maximum(reference(x, w, shape[5]) + b, 0)
    # Rounding of sums of up to 9 * 130 products, and for tiles of 4 that of factors up to 8.
    np.testing.assert_allclose(found, wanted, rtol=0, atol={0: 1e-6, 2: 1e-6, 4: 2e-5}[m] * float(wanted.max()))
    if artifact.threads > 1:
        artifact.threads = 1
        np.testing.assert_array_equal(artifact.run(x), found)


@pytest.mark.parametrize("dtypes", [("uint8", "int8", 7, 0), ("int8", "int8", -9, 0), ("uint8", "uint8", 255, 130)])
@pytest.mark.parametrize("shape", few([s for s in SHAPES if s[3] % 2 == 0], SHAPES[4]))
def test_integers_are_exact(shape: tuple, dtypes: tuple) -> None:
    batch, height, width, inputs, outputs, padding = shape
    data, weight, zero, weight_zero = dtypes
    mod = parse(f"""#[version = "0.0.5"]
def @main(%x: Tensor[({batch}, {height}, {width}, {inputs}), {data}], %w: Tensor[(3, 3, {inputs}, {outputs}), {weight}]) {{
  qnn.conv2d(%x, %w, {zero}, {weight_zero}, 0.1f, 0.1f, padding=[{", ".join(map(str, padding))}], kernel_size=[3, 3],
             channels={outputs}, data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32")
}}
""").module
    assert mod is not None
    rng = np.random.default_rng(4)
    x, w = (
        rng.integers(np.iinfo(d).min, np.iinfo(d).max, s, d, endpoint=True)
        for d, s in ((data, shape[:4]), (weight, (3, 3, inputs, outputs)))
    )
    # Extremes: the sums of transformed values are largest where all have them.
    x[:, 1:4], w[..., :2] = np.iinfo(data).max, np.iinfo(weight).min
    try:
        artifact = compile_module(mod, "c -march=x86-64-v3", params={"w": w})
        found = artifact.run(x)
    except RelayError as e:
        pytest.skip(str(e))
    np.testing.assert_array_equal(found, reference(x.astype("i8") - zero, w.astype("i8") - weight_zero, padding))


def test_it_is_taken_where_it_gains_and_left_where_it_does_not() -> None:
    def taken(shape: tuple, **options: int) -> bool:
        mod = parse(text(shape)).module
        assert mod is not None
        return "g_8 = " in emit_c(mod, ["w", "b"], isa="avx2", options=options)

    assert taken((1, 28, 28, 128, 128, (1, 1, 1, 1)))
    assert not taken((1, 28, 28, 128, 128, (1, 1, 1, 1)), winograd=0)
    assert not taken((1, 28, 28, 3, 64, (1, 1, 1, 1)))


def test_another_extent_of_tiles_is_a_mistake() -> None:
    mod = parse(text(SHAPES[0])).module
    assert mod is not None
    with pytest.raises(RelayError, match="-winograd wants 0, 2 or 4, not 3"):
        compile_module(mod, "c -winograd=3")


@pytest.mark.parametrize("m", TRANSFORMS)
def test_the_matrices_filter_exactly(m: int) -> None:
    """In rational numbers: results of one line of `m` are the sums of three products."""
    t = TRANSFORMS[m]
    data = [Fraction(n * n - 3 * n + 1, n + 2) for n in range(m + 2)]
    taps = [Fraction(5, 3), Fraction(-2, 7), Fraction(4)]
    into = [sum(a * b for a, b in zip(row, data)) for row in t.data]
    weights = [sum(a * b for a, b in zip(row, taps)) for row in t.weight]
    back = [sum(a * x * y for a, x, y in zip(row, into, weights)) for row in t.result]
    assert back == [sum(data[n + k] * taps[k] for k in range(3)) for n in range(m)]
