"""Casts between all element types, and complex numbers through every operator that LiteRT gives them to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.frontends.tflite import import_tflite
from tests.frontends.tflite.files import Op, T, const, file
from tests.frontends.tflite.runtime import compare, outputs

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")

TYPES = ["float32", "float16", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool"]
NUMBERS = np.array(
    [
        0,
        1,
        3,
        -1,
        -100,
        0.5,
        -0.5,
        1.5,
        2.7,
        -2.7,
        127,
        128,
        -128,
        -129,
        255,
        256,
        32768,
        7e4,
        1e9,
        -1e9,
        3e9,
        1e15,
        np.nan,
        np.inf,
        -np.inf,
    ]
)
X = np.random.default_rng(0).normal(size=(2, 4, 8), scale=3).astype("float32")
BINS = (2, 4, 5)


def numbers(dtype: str) -> np.ndarray:
    """Numbers of a type: halves, both ends, and numbers beyond the ends of other types."""
    with np.errstate(all="ignore"):
        if dtype.startswith("float"):
            return NUMBERS.astype(dtype)
        if dtype == "bool":
            return np.array([True, False])
        info = np.iinfo(dtype)
        whole = NUMBERS[(NUMBERS == np.round(NUMBERS)) & (NUMBERS >= info.min) & (NUMBERS <= info.max)]
        return np.concatenate([whole.astype(dtype), np.array([info.min, info.max], dtype)])


@pytest.mark.parametrize("start", TYPES)
def test_casts(start: str) -> None:
    x = numbers(start)
    tensors = {"x": T(x.shape, start), **{t: T(x.shape, t) for t in TYPES}}
    ops = [Op("CAST", ["x"], [t], "CastOptions") for t in TYPES]
    data = file(tensors, ops, ["x"], TYPES)
    for found, wanted in zip(run(data, x), outputs(data, [[x]])[0], strict=True):
        np.testing.assert_array_equal(found, wanted)


def run(data: bytes, *inputs: np.ndarray) -> list[np.ndarray]:
    found = relay.create_executor("debug", import_tflite(data).module).evaluate()(*inputs)
    return [np.asarray(f) for f in (found if isinstance(found, tuple) else (found,))]


def spectrum(ops: list[Op], outs: list[str], **tensors: T) -> bytes:
    """A transform, which gives the complex tensor z, and the layers that use it."""
    given = {"x": T(X.shape), "n": const(np.array([4, 8], "int32")), "z": T(BINS, "complex64"), **tensors}
    return file(given, [Op("RFFT2D", ["x", "n"], ["z"], "Rfft2dOptions"), *ops], ["x"], outs)


@pytest.mark.parametrize("dtype", [t for t in TYPES if t not in ("float16", "float64")])
def test_casts_of_complex_numbers(dtype: str) -> None:
    """They keep the real part."""
    data = spectrum([Op("CAST", ["z"], ["y"], "CastOptions")], ["y"], y=T(BINS, dtype))
    compare(data, [X], apart=1 if dtype.startswith(("i", "u")) else 0, close=3e-5)


@pytest.mark.parametrize("dtype", TYPES)
def test_casts_to_complex_numbers(dtype: str) -> None:
    x = numbers(dtype)
    tensors = {"x": T(x.shape, dtype), "z": T(x.shape, "complex64"), **{n: T(x.shape) for n in ("re", "im", "abs", "cast")}}
    tensors["again"] = T(x.shape, "complex64")
    ops = [
        Op("CAST", ["x"], ["z"], "CastOptions"),
        Op("CAST", ["z"], ["again"], "CastOptions"),
        Op("REAL", ["again"], ["re"]),
        Op("IMAG", ["z"], ["im"]),
        Op("COMPLEX_ABS", ["z"], ["abs"]),
        Op("CAST", ["z"], ["cast"], "CastOptions"),
    ]
    data = file(tensors, ops, ["x"], ["re", "im", "abs", "cast"])
    for found, wanted in zip(run(data, x), outputs(data, [[x]])[0], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def i32(values: Any) -> T:
    return const(np.array(values, "int32"))


#: Layers on z: the extents of the result, the options' class and values, operands behind z.
COMPLEX: dict[str, tuple[tuple[int, ...], Op, dict[str, T]]] = {
    "multiply": (BINS, Op("MUL", ["z", "z"], ["w"], "MulOptions"), {}),
    "tile": ((2, 8, 5), Op("TILE", ["z", "m"], ["w"], "TileOptions"), {"m": i32([1, 2, 1])}),
    "expand": ((1, *BINS), Op("EXPAND_DIMS", ["z", "m"], ["w"], "ExpandDimsOptions"), {"m": i32(0)}),
    "transpose": ((5, 4, 2), Op("TRANSPOSE", ["z", "m"], ["w"], "TransposeOptions"), {"m": i32([2, 1, 0])}),
    "slice": ((2, 2, 2), Op("SLICE", ["z", "m", "s"], ["w"], "SliceOptions"), {"m": i32([0, 1, 1]), "s": i32([2, 2, 2])}),
    "select": (
        BINS,
        Op("SELECT", ["c", "z", "k"], ["w"], "SelectOptions"),
        {"c": const(np.arange(40).reshape(BINS) % 3 == 0), "k": const(np.full(BINS, 3 - 2j, "complex64"))},
    ),
    "pad": ((2, 6, 5), Op("MIRROR_PAD", ["z", "m"], ["w"], "MirrorPadOptions", {"Mode": 0}), {"m": i32([[0, 0], [1, 1], [0, 0]])}),
    "update": (
        BINS,
        Op("DYNAMIC_UPDATE_SLICE", ["z", "k", "m"], ["w"], "DynamicUpdateSliceOptions"),
        {"k": const(np.full((2, 2, 2), 1 + 1j, "complex64")), "m": i32([0, 1, 1])},
    ),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_operators_on_complex_numbers(name: str) -> None:
    shape, op, more = COMPLEX[name]
    ops = [op, Op("REAL", ["w"], ["re"]), Op("IMAG", ["w"], ["im"])]
    ops.append(Op("SHAPE", ["w"], ["extents"], "ShapeOptions", {"OutType": 2}))
    results = {"w": T(shape, "complex64"), "re": T(shape), "im": T(shape), "extents": T((len(shape),), "int32")}
    data = spectrum(ops, ["re", "im", "extents"], **results, **more)
    compare(data, [X], close=3e-5)


def test_complex_numbers_where_they_have_no_form() -> None:
    with pytest.raises(RelayError, match="first in w: it has no form for complex numbers"):
        ops = [Op("EXP", ["z"], ["w"], "ExpOptions"), Op("REAL", ["w"], ["y"])]
        import_tflite(spectrum(ops, ["y"], w=T(BINS, "complex64"), y=T(BINS)))
    with pytest.raises(RelayError, match="the output z has complex numbers"):
        import_tflite(spectrum([], ["z"]))
