"""Layers that the U85 alone has, or has units of its own for: the simulator gives LiteRT's integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.backends.ethosu.simulator.test_tflite import NONE, U85, apart
from tests.frontends.tflite.files import T, const
from tests.frontends.tflite.test_quantized import layer, stored
from tests.shared import few

SHAPE = (1, 6, 7, 10)
rng = np.random.default_rng(1)


def numbers(dtype: str, *shape: int) -> np.ndarray:
    if dtype == "bool":
        return rng.random(shape) < 0.5
    most = min(np.iinfo(dtype).max, 1 << 29)  # sums have 32 bits
    return rng.integers(-most - 1, most + 1, shape).astype(dtype)


def quantised(dtype: str, *shape: int, scale: float | None = None) -> T:
    """A tensor of a usual scale; those of 8 bits have a zero point."""
    if dtype not in ("int8", "int16"):
        return T(shape, dtype)
    return stored(shape, dtype, scale or (0.05 if dtype == "int8" else 0.0005), 3 if dtype == "int8" else 0)


def ints(*values: Any) -> T:
    return const(np.array(values, np.int32))


def made(name: str, kind: str, given: list[T], out: T, *constants: T, **options: Any) -> tuple[bytes, list[np.ndarray]]:
    """A layer, and numbers for its operands."""
    return layer(name, kind, given, out, *constants, **options), [numbers(t.dtype, *t.shape) for t in given]


def kept(axes: list[int]) -> tuple[int, ...]:
    return tuple([1 if i in axes else n for i, n in enumerate(SHAPE)])


def resized(name: str, size: tuple[int, int], align: bool, half: bool, dtype: str = "int8") -> Any:
    kind = "ResizeBilinearOptions" if "BILINEAR" in name else "ResizeNearestNeighborOptions"
    out = quantised(dtype, 1, *size, 5)
    return made(name, kind, [quantised(dtype, 1, 9, 11, 5)], out, ints(*size), AlignCorners=align, HalfPixelCenters=half)


def compared(name: str) -> Any:
    kind = f"{name.title().replace('_', '')}Options"
    data, (x, y) = made(name, kind, [quantised("int8", *SHAPE)] * 2, T(SHAPE, "bool"))
    return data, [x, np.where(y > 0, x, y)]


X, X16 = quantised("int8", *SHAPE), quantised("int16", *SHAPE)
LAYERS = {
    **{
        f"{n} {a}": made(n, "ReducerOptions", [X], quantised("int8", *kept(a)), ints(*a), KeepDims=True)
        for n in ("REDUCE_MAX", "REDUCE_MIN")
        for a in ([1, 2], [3], [1])
    },
    **{
        f"SUM {a}": made("SUM", "ReducerOptions", [X], quantised("int8", *kept([a]), scale=0.31), ints(a), KeepDims=True)
        for a in (1, 2, 3)
    },
    **{
        f"ARG_MAX {a}": made(
            "ARG_MAX", "ArgMaxOptions", [X], T(tuple([n for i, n in enumerate(SHAPE) if i != a]), "int32"), ints(a), OutputType=2
        )
        for a in (1, 2, 3)
    },
    **{
        f"TRANSPOSE {p} {d}": made(
            "TRANSPOSE", "TransposeOptions", [quantised(d, *SHAPE)], quantised(d, *[SHAPE[i] for i in p]), ints(*p)
        )
        for p in ((0, 2, 1, 3), (0, 3, 1, 2), (0, 2, 3, 1), (0, 1, 3, 2), (0, 3, 2, 1))
        for d in ("int8", "int16", "int32")
    },
    **{f"REVERSE {a}": made("REVERSE_V2", "ReverseV2Options", [X], X, ints(a)) for a in (1, 2, 3)},
    **{n: compared(n) for n in ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")},
    **{
        n: made(n, f"{n.title().replace('_', '')}Options", [T(SHAPE, "bool")] * 2, T(SHAPE, "bool"))
        for n in ("LOGICAL_AND", "LOGICAL_OR")
    },
    "SELECT": made("SELECT_V2", "SelectV2Options", [T(SHAPE, "bool"), X, X], X),
    **{
        f"{n} {s} {a} {h}": resized(n, s, a, h)
        for n in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
        for s, a, h in (((17, 21), True, False), ((36, 44), False, True), ((72, 88), False, True))
    },
    "RESIZE_BILINEAR int16": resized("RESIZE_BILINEAR", (18, 22), False, True, "int16"),
    **{
        f"BATCH_MATMUL {d}": made(
            "BATCH_MATMUL",
            "BatchMatMulOptions",
            [quantised(d, 1, 2, 9, 30), quantised(d, 1, 2, 30, 20)],
            quantised(d, 1, 2, 9, 20, scale={"int8": 1.0, "int16": 0.02}[d]),
            AdjX=False,
            AdjY=False,
        )
        for d in ("int8", "int16")
    },
    "FULLY_CONNECTED": made(
        "FULLY_CONNECTED",
        "FullyConnectedOptions",
        [quantised("int8", 3, 70), stored((33, 70), "int8", 0.01, 0)],
        quantised("int8", 3, 33, scale=0.4),
        **NONE,
    ),
    "ADD int32": made("ADD", "AddOptions", [T(SHAPE, "int32")] * 2, T(SHAPE, "int32"), **NONE),
    "MUL along axes": made(
        "MUL",
        "MulOptions",
        [quantised("int8", 1, 6, 1, 10), quantised("int8", 1, 1, 7, 1)],
        quantised("int8", *SHAPE, scale=0.19),
        **NONE,
    ),
    "ADD a number": made(
        "ADD", "AddOptions", [X], quantised("int8", *SHAPE, scale=0.09), const(np.array([7], "int8"), scale=[0.02], zero=[1]), **NONE
    ),
    "QUANTIZE to 16 bits": made("QUANTIZE", "QuantizeOptions", [X], quantised("int16", *SHAPE, scale=0.0007)),
    "QUANTIZE to 8 bits": made("QUANTIZE", "QuantizeOptions", [X16], quantised("int8", *SHAPE, scale=0.13)),
    "MIRROR_PAD": made(
        "MIRROR_PAD", "MirrorPadOptions", [X], quantised("int8", 1, 9, 8, 10), ints((0, 0), (1, 2), (1, 0), (0, 0)), Mode=0
    ),
    "LEAKY_RELU int16": made("LEAKY_RELU", "LeakyReluOptions", [X16], quantised("int16", *SHAPE, scale=0.0004), Alpha=0.3),
    "SOFTMAX int16": made(
        "SOFTMAX", "SoftmaxOptions", [quantised("int16", 16, 40)], stored((16, 40), "int16", 1 / 32768, 0), Beta=1.0
    ),
    "SQUARED_DIFFERENCE": made(
        "SQUARED_DIFFERENCE",
        "SquaredDifferenceOptions",
        [X, quantised("int8", *SHAPE, scale=0.03)],
        stored(SHAPE, "int8", 0.217, -100),
    ),
    "PRELU": made("PRELU", "", [X], quantised("int8", *SHAPE, scale=0.04), const(numbers("int8", 1, 1, 10), scale=[0.01], zero=[0])),
    "MAX_POOL_2D of large strides": made(
        "MAX_POOL_2D",
        "Pool2DOptions",
        [quantised("int8", 1, 27, 13, 3)],
        quantised("int8", 1, 7, 3, 3),
        Padding=0,
        StrideW=5,
        StrideH=4,
        FilterWidth=6,
        FilterHeight=9,
        **NONE,
    ),
    "AVERAGE_POOL_2D of all": made(
        "AVERAGE_POOL_2D",
        "Pool2DOptions",
        [quantised("int8", 1, 12, 13, 5)],
        quantised("int8", 1, 1, 1, 5),
        Padding=1,
        StrideW=1,
        StrideH=1,
        FilterWidth=13,
        FilterHeight=12,
        **NONE,
    ),
}
INDICES = np.array([[3, 0, 5, 5, 1]], np.int32)
LAYERS["GATHER"] = (
    layer(
        "GATHER", "GatherOptions", [quantised("int8", 1, 6, 10), T((1, 5), "int32")], quantised("int8", 1, 5, 10), Axis=1, BatchDims=1
    ),
    [numbers("int8", 1, 6, 10), INDICES],
)


@pytest.mark.parametrize("accelerator", few(U85, "ethos-u85-256"))
@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_the_u85(name: str, accelerator: str) -> None:
    different = apart(*LAYERS[name], accelerator)
    halves = name in ("SQUARED_DIFFERENCE", "PRELU")  # several scales, of which each rounds halves
    assert np.abs(different).max() <= halves and np.count_nonzero(different) <= 8 * halves


@pytest.mark.parametrize("accelerator", few(U85, "ethos-u85-256"))
@pytest.mark.parametrize("name", ["TANH", "LOGISTIC"])
def test_functions_of_16_bits(name: str, accelerator: str) -> None:
    """LiteRT has the same table, but for scales that are powers of two."""
    x = np.arange(-(1 << 15), 1 << 15).astype("int16").reshape(1, 256, 256, 1)
    for scale in (0.00003, 0.0002, 0.0005):
        data = layer(name, "", [stored(x.shape, "int16", scale, 0)], stored(x.shape, "int16", 1 / 32768, 0))
        assert not apart(data, [x], accelerator).any()
