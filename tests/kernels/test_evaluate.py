"""What the loop language means: each node on small arrays, and whole kernels of the lowerings against the compiled ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu import lower_module
from relaylang.backends.cpu.isa import BY_NAME
from relaylang.backends.cpu.program import Copy, Run, Slot, View
from relaylang.ir import IRModule
from relaylang.kernels import evaluate, ir
from relaylang.kernels.dtypes import SIZES
from relaylang.kernels.sizes import Sizes
from relaylang.kernels.values import NotEvaluated, OutOfBounds
from tests.backends.cpu.test_ops import FIRST, USED, program
from tests.shared import few

i, j = ir.Var("i"), ir.Var("j")


def result(value: ir.Expr, **arrays: np.ndarray) -> Any:
    """An expression's value, as it is stored."""
    dtype, lanes = ir.vector_of(value.type)
    out = np.zeros(lanes, np.int64 if dtype == ir.INDEX else dtype)
    evaluate.run([ir.Store("out", ir.number(0), value)], {"out": out, **arrays})
    return out if lanes > 1 else out[0]


def f32(value: float) -> ir.Expr:
    return ir.Const(value, "float32")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (ir.op("add", ir.Const(127, "int8"), 1), -128),
        (ir.op("mul", ir.Const(2**31 - 1, "int32"), 2), -2),
        (ir.op("div", ir.Const(-128, "int8"), -1), -128),
        (ir.op("div", ir.Const(5, "int32"), 0), 0),
        (ir.op("floor_div", ir.Const(-128, "int8"), 3), -43),
        (ir.op("floor_div", ir.Const(7, "int16"), 0), 0),
        (ir.op("floor_mod", ir.Const(-7, "int64"), 3), 2),
        (ir.op("left_shift", ir.Const(1, "uint8"), 9), 0),
        (ir.op("pow", ir.Const(3, "uint64"), 2**64 - 1), pow(3, 2**64 - 1, 2**64)),
        (ir.op("sign", f32(float("nan"))), 0),
        (ir.op("saturate", ir.Const(300, "int32"), type="int8"), 127),
        (ir.op("bitcast", f32(1.0), type="int32"), 0x3F800000),
        (ir.op("not", ir.Const(True, "bool")), False),
        (ir.cast(f32(1e10), "int32"), -(2**31)),
        (ir.cast(f32(float("nan")), "uint8"), 0),
        (ir.cast(f32(-1.5), "uint32"), 2**32 - 1),
        (ir.cast(f32(float("nan")), "bool"), False),
        (f32(2**24) + f32(1.0), 2**24),
        (ir.select(f32(1.0) < 2.0, f32(3.0), ir.Load("nothing", ir.number(5), "float32")), 3),
        (ir.Intrinsic("sum", (ir.splat(ir.Const(3, "int32"), 4),), "int32"), 12),
        (ir.lane(ir.mix(ir.splat(f32(1.0), 2), ir.splat(f32(2.0), 2), [3, 0]), 0), 2),
    ],
)
def test_values(value: ir.Expr, expected: Any) -> None:
    assert result(value, nothing=np.zeros(0, "f4")) == expected


def test_fma_rounds_once_where_the_machine_does() -> None:
    x = np.float32(1 + 2**-12)
    value = ir.fma(ir.Load("x", ir.number(0), "float32"), ir.Load("x", ir.number(0), "float32"), f32(-1.0))
    for fused, expected in ((True, np.float64(x) * x - 1), (False, np.float32(x * x) - 1)):
        out = np.zeros(1, "f4")
        evaluate.run([ir.Store("out", ir.number(0), value)], {"out": out, "x": np.asarray([x])}, fused=fused)
        assert out[0] == np.float32(expected)


def test_names_end_with_their_block() -> None:
    out = np.zeros(2, "i4")
    body: ir.Body = [
        ir.Let("t", ir.Const(1, "int32")),
        ir.Block([ir.Let("t", ir.Const(2, "int32")), ir.Store("out", ir.number(0), ir.Var("t", "int32"))]),
        ir.Store("out", ir.number(1), ir.Var("t", "int32")),
    ]
    evaluate.run(body, {"out": out})
    assert out.tolist() == [2, 1]


def test_an_access_outside_is_refused() -> None:
    with pytest.raises(OutOfBounds, match=r"out\[3\] of 1 float32 lies outside 3 elements"):
        evaluate.run([ir.loop("i", 0, 4, [ir.Store("out", i, f32(0.0))])], {"out": np.zeros(3, "f4")})


def test_neither_long_nor_deep_programs_recurse() -> None:
    out = np.zeros(1, "i4")
    value: ir.Expr = ir.Const(0, "int32")
    body: ir.Body = [ir.Store("out", ir.number(0), ir.Load("out", ir.number(0), "int32") + 1)]
    for _ in range(20_000):
        value = value + 1
        body = [ir.Block(body)]
    evaluate.run([*body, ir.Reduce("add", "out", ir.number(0), value)], {"out": out})
    assert out[0] == 20_001


def test_sizes() -> None:
    n, m = Sizes([11, 13]).sizes
    for size, number in ((n * m + 2, 37), (n // 2, 2), ((n + m) % 4, 0), (n * 4 // 3, 6)):
        assert evaluate.extent(size, {"size0": 5, "size1": 7}) == number


def outputs(mod: IRModule, values: dict[str, np.ndarray]) -> list[np.ndarray]:
    """A program's results by the evaluator: its kernels on its memory."""
    made = lower_module(mod, "main", {}, BY_NAME["avx2"])
    memory = {False: np.zeros(made.arena_bytes, np.uint8), True: np.zeros(made.fixed_bytes, np.uint8)}
    out: dict[int, np.ndarray] = {}

    def array(place: Slot | View) -> np.ndarray:
        slot = place.slot if isinstance(place, View) else place
        if slot.kind == "input":
            data = np.ascontiguousarray(values[made.inputs[slot.number][0]]).reshape(-1)
        elif slot.kind == "param":
            name = made.params[slot.number][0]
            data = np.ascontiguousarray(made.constants[name] if name in made.constants else values[name]).reshape(-1)
        elif slot.kind == "output":
            data = out.setdefault(slot.number, np.zeros(slot.shape, slot.dtype).reshape(-1))
        else:
            size = int(np.prod(slot.shape)) * SIZES[slot.dtype]
            data = memory[slot.fixed][slot.offset : slot.offset + size].view(slot.dtype)
        if not isinstance(place, View):
            return data.reshape(slot.shape)
        steps = [s * data.itemsize for s in place.strides]
        return np.lib.stride_tricks.as_strided(data[place.start :], place.shape, steps)

    for item in [*made.prepare, *made.run]:
        if isinstance(item, Run):
            for place, data in zip(item.results, evaluate.kernel(item.kernel, [array(view) for view in item.inputs])):
                array(place)[...] = data
        elif isinstance(item, Copy):
            array(item.outputs[0])[...] = array(item.source).reshape(item.outputs[0].shape)
    return [out[n] for n in sorted(out)]


#: Operators with kernels of every kind: plain nests, reductions, pools, products, and bytes.
NAMES = ("add", "nn.dense", "nn.conv2d", "sum", "nn.softmax", "nn.max_pool2d", "transpose", "take", "cast", "nn.layer_norm")
NUMBERS = [next(n for n in FIRST if USED[n][0] == name) for name in NAMES]


@pytest.mark.parametrize("number", few(sorted(FIRST), *NUMBERS))
def test_lowered_kernels_give_what_the_compiled_ones_give(number: int) -> None:
    mod, values = program([(number, USED[number])])
    try:
        found = outputs(mod, values)
    except NotEvaluated as e:
        pytest.skip(f"the lowering has a part outside of the language: {e}")
    expected: Sequence[np.ndarray] = compile_module(mod, "c").run(**values)
    results = [np.asarray(e) for part in expected for e in (part if isinstance(part, tuple) else (part,))]
    for one, two in zip(found, results, strict=True):
        close = np.testing.assert_allclose if two.dtype.kind not in "iub" else lambda a, b, **_: np.testing.assert_array_equal(a, b)
        close(one.reshape(two.shape).astype("f8"), two.astype("f8"), rtol=3e-6, atol=1e-6)
