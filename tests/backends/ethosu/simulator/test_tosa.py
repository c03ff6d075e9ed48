"""Operators of TOSA on the U85, one by one: the simulator gives the reference model's integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tosa_reference_model", reason="needs relaylang[ethosu]")
pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

from relaylang.backends.ethosu import tosa
from relaylang.backends.ethosu.driver import _place
from relaylang.backends.ethosu.flatbuffer import serialize
from relaylang.backends.ethosu.reference import run_tosa
from relaylang.backends.ethosu.simulator.region import run_stream
from relaylang.backends.ethosu.tosa import Graph, Tensor
from relaylang.backends.ethosu.vela import compile_model, settings
from relaylang.runtime.artifact import TensorSpec
from tests.backends.ethosu.simulator.test_tflite import U85
from tests.shared import few

SHAPE = (1, 6, 7, 10)
#: `RoundingMode` of the schema.
DOUBLE_ROUND = 3
INT32 = (4, "uint32", tosa.DTYPES["int32"])
rng = np.random.default_rng(0)
Case = tuple[list[np.ndarray], Callable[..., Tensor]]


def numbers(dtype: str, shape: tuple[int, ...] = SHAPE, low: int | None = None, high: int | None = None) -> np.ndarray:
    if dtype == "bool":
        return rng.random(shape) < 0.5
    info = np.iinfo(dtype)
    return rng.integers(info.min if low is None else low, (info.max if high is None else high) + 1, shape).astype(dtype)


def plain(op: str, *operands: np.ndarray, dtype: str = "", shape: tuple[int, ...] = SHAPE, **attribute: int | bool) -> Case:
    """An operator of an output like its last operand, and at most one attribute of a kind."""
    attributes = [(i, kind, value) for i, (kind, value) in enumerate(attribute.items())]

    def build(graph: Graph, *given: Tensor) -> Tensor:
        return graph._emit(op, given, shape, dtype or given[-1].dtype, *attributes)

    return list(operands), build


def reduced(op: str, dtype: str, axis: int) -> Case:
    shape = tuple([1 if i == axis else n for i, n in enumerate(SHAPE)])
    nan = {"uint32": 1} if op in ("REDUCE_MAX", "REDUCE_MIN") else {}
    x = numbers(dtype, low=-(10**6), high=10**6) if op == "REDUCE_SUM" else numbers(dtype)
    return plain(op, x, shape=shape, int32=axis, **nan)


def rescaled(dtype: str, to: str, channels: int = 1, kind: int = tosa.SINGLE_ROUND) -> Case:
    x = numbers(dtype, low=-(10**7), high=10**7) if dtype == "int32" else numbers(dtype)
    multiplier = rng.integers(1 << 30, 1 << 31, channels)
    shift = np.full(channels, {"int8": 46, "int16": 38, "int32": 33}[to] - (14 if dtype != "int32" else 0))

    def build(graph: Graph, x: Tensor) -> Tensor:
        constants = graph.constant(multiplier.astype(np.int32)), graph.constant(shift.astype(np.int8))
        zeros = graph._zero_point(-7 if x.dtype == "int8" else 0, x.dtype), graph._zero_point(5 if to == "int8" else 0, to)
        attributes = ((0, "bool", True), (1, "uint32", kind), (2, "bool", channels > 1))
        return graph._emit("RESCALE", (x, *constants, *zeros), x.shape, to, *attributes)

    return [x], build


def convolution(size: tuple[int, int], stride: int, dilation: int, pad: int, is_given: bool = False) -> Case:
    """A convolution whose weights and bias are constants, or given."""
    weight, bias = numbers("int8", (20, 3, 3, 12), -127), numbers("int32", (20,), -999, 999)

    def build(graph: Graph, x: Tensor, *given: Tensor) -> Tensor:
        constants = given or (graph.constant(weight), graph.constant(bias))
        pads = (pad, 0, pad, 0)
        height, width = (tosa.exact_output(n, 3, pad, stride, dilation) for n in size)
        return graph._emit(
            "CONV2D",
            (x, *constants, graph._zero_point(3, "int8"), graph._zero_point(0, "int8")),
            (1, height, width, 20),
            "int32",
            (0, "int32s", pads),
            (1, "int32s", (stride,) * 2),
            (2, "int32s", (dilation,) * 2),
            INT32,
        )

    return [numbers("int8", (1, *size, 12)), *([weight, bias] if is_given else [])], build


def resized(mode: int, dtype: str, to: str, scale: tuple[int, int, int, int], offset: tuple[int, int]) -> Case:
    size = (9, 11)
    steps = [((n - 1) * scale[2 * i] - offset[i], scale[2 * i + 1]) for i, n in enumerate(size)]
    border = [-span % step for span, step in steps]
    shape = (1, *[(span + more) // step + 1 for (span, step), more in zip(steps, border)], 5)

    def build(graph: Graph, x: Tensor) -> Tensor:
        operands = (x, graph.shape(scale), graph.shape(offset), graph.shape(border))
        return graph._emit("RESIZE", operands, shape, to, (0, "uint32", mode))

    return [numbers(dtype, (1, *size, 5))], build


def product(dtype: str, shift: int) -> Case:
    most = 40_000 if dtype == "int32" else None
    operands = [numbers(dtype, low=most and -most, high=most) for _ in range(2)]

    def build(graph: Graph, a: Tensor, b: Tensor) -> Tensor:
        return graph._emit("MUL", (a, b, graph.constant(np.array([shift], np.int8))), SHAPE, "int32")

    return operands, build


def matrices(rows: int, inner: int, columns: int) -> Case:
    def build(graph: Graph, a: Tensor, b: Tensor) -> Tensor:
        zeros = graph._zero_point(3, "int8"), graph._zero_point(-4, "int8")
        return graph._emit("MATMUL", (a, b, *zeros), (2, rows, columns), "int32")

    return [numbers("int8", (2, rows, inner)), numbers("int8", (2, inner, columns))], build


def table() -> Case:
    entries = np.sort(numbers("int16", (513,)))
    return [numbers("int16")], lambda graph, x: graph._emit("TABLE", (x, graph.constant(entries)), SHAPE, "int32")


def average(zero: int) -> Case:
    def build(graph: Graph, x: Tensor) -> Tensor:
        window = ((0, "int32s", (3, 3)), (1, "int32s", (2, 2)), (2, "int32s", (1, 0, 1, 0)), (3, "uint32", INT32[2]))
        zeros = graph._zero_point(zero, "int8"), graph._zero_point(zero, "int8")
        return graph._emit("AVG_POOL2D", (x, *zeros), (1, 6, 6, 5), "int8", *window)

    return [numbers("int8", (1, 12, 12, 5))], build


WIDTHS = {"int8": 7, "int16": 15, "int32": 31}
PLACES = np.stack([rng.permutation(9)[:5] for _ in range(2)]).astype(np.int32)
CASES: dict[str, Case] = {
    **{
        f"{op} {d}": plain(op, numbers(d), numbers(d, low=0, high=b))
        for d, b in WIDTHS.items()
        for op in ("LOGICAL_RIGHT_SHIFT", "LOGICAL_LEFT_SHIFT")
    },
    **{
        f"ARITHMETIC_RIGHT_SHIFT {d} {r}": plain("ARITHMETIC_RIGHT_SHIFT", numbers(d), numbers(d, low=r, high=b), bool=bool(r))
        for d, b in WIDTHS.items()
        for r in (0, 1)
    },
    **{f"{op} {d}": plain(op, numbers(d), numbers(d)) for d in WIDTHS for op in ("BITWISE_AND", "BITWISE_OR", "BITWISE_XOR")},
    **{f"BITWISE_NOT {d}": plain("BITWISE_NOT", numbers(d)) for d in WIDTHS},
    **{f"SELECT {d}": plain("SELECT", numbers("bool"), numbers(d), numbers(d)) for d in WIDTHS},
    **{f"REVERSE {d} {a}": plain("REVERSE", numbers(d), int32=a) for d in WIDTHS for a in (1, 2, 3)},
    **{f"{op} {d} {a}": reduced(op, d, a) for op in ("REDUCE_MAX", "REDUCE_MIN") for d in WIDTHS for a in (1, 2, 3)},
    **{f"REDUCE_SUM {a}": reduced("REDUCE_SUM", "int32", a) for a in (1, 2, 3)},
    **{f"{op} {a}": reduced(op, "bool", a) for op in ("REDUCE_ALL", "REDUCE_ANY") for a in (1, 2)},
    **{f"CAST {d} {t}": plain("CAST", numbers(d), dtype=t) for d in WIDTHS for t in (*WIDTHS, "bool") if d != t},
    **{
        op: plain(op, numbers("int32", low=-3, high=3), numbers("int32", low=-3, high=3), dtype="bool")
        for op in ("EQUAL", "GREATER", "GREATER_EQUAL")
    },
    **{
        f"GATHER {d}": plain("GATHER", numbers(d, (2, 9, 10)), numbers("int32", (2, 5), 0, 8), dtype=d, shape=(2, 5, 10))
        for d in WIDTHS
    },
    **{f"SCATTER {d}": plain("SCATTER", numbers(d, (2, 9, 10)), PLACES, numbers(d, (2, 5, 10)), shape=(2, 9, 10)) for d in WIDTHS},
    **{f"RESCALE {d} {t} {n}": rescaled(d, t, n) for d in WIDTHS for t in WIDTHS for n in (1, 10)},
    "RESCALE twice": rescaled("int32", "int8", kind=DOUBLE_ROUND),
    "INTDIV": plain("INTDIV", numbers("int32", low=-(10**6), high=10**6), numbers("int32", low=1, high=999)),
    "CLZ": plain("CLZ", numbers("int32")),
    "ABS": plain("ABS", numbers("int32", low=-(10**9))),
    **{f"MUL {d} {s}": product(d, s) for d, s in (("int8", 0), ("int16", 0), ("int32", 0), ("int32", 5), ("int32", 31))},
    "TABLE": table(),
    "MATMUL": matrices(9, 30, 20),
    "MATMUL of many blocks": matrices(70, 300, 140),
    "CONV2D of given weights": convolution((11, 12), 1, 1, 0, True),
    "CONV2D of given weights and stride 2": convolution((11, 13), 2, 1, 0, True),
    "CONV2D of stride 5": convolution((23, 28), 5, 1, 0),
    "CONV2D of stride 5 with padding": convolution((22, 27), 5, 1, 1),
    "CONV2D of dilation 5": convolution((23, 28), 1, 5, 0),
    "AVG_POOL2D": average(3),
    **{
        f"RESIZE {d} {t} {s}": resized(m, d, t, s, o)
        for m, d, t in ((1, "int8", "int8"), (1, "int16", "int16"), (2, "int8", "int32"))
        for s, o in (((2, 1, 2, 1), (0, 0)), ((4, 2, 4, 2), (-1, -1)), ((3, 2, 5, 3), (0, 1)), ((16, 7, 8, 3), (-3, 2)))
    },
}


def simulated(content: bytes, accelerator: str, inputs: list[np.ndarray], output: Tensor) -> Any:
    made = compile_model(content, settings({"accelerator": accelerator}))
    driver = {
        "weights_region": made.weights_region,
        "scratch": {"region": made.scratch_region, "bytes": made.scratch_size},
        "scratch_fast": {"region": made.scratch_fast_region, "bytes": made.scratch_fast_size},
        "inputs": [_place(t) for t in made.inputs],
        "outputs": [_place(t) for t in made.outputs],
    }
    return run_stream(made.command_stream, made.weights, driver, inputs, [TensorSpec(output.shape, output.dtype)])[0]


@pytest.mark.parametrize("accelerator", few(U85, "ethos-u85-256"))
@pytest.mark.parametrize("name", CASES)
def test_operators(name: str, accelerator: str) -> None:
    inputs, build = CASES[name]
    graph = Graph()
    output = build(graph, *[graph.input(f"x{i}", x.shape, x.dtype.name) for i, x in enumerate(inputs)])
    graph.output(output)
    content = serialize(graph)
    (wanted,) = run_tosa(content, inputs)
    np.testing.assert_array_equal(simulated(content, accelerator, inputs, output), wanted)
