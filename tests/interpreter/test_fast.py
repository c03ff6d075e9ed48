"""Steps that skip the kernel compute what the kernel does, to the bit and with its element type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang.interpreter.kernels import KERNELS
from relaylang.interpreter.kernels.fast import NAMES, fast_step
from relaylang.ir import Call, IRModule
from relaylang.syntax import parse
from relaylang.typing import infer

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]


def call(text: str) -> Call:
    module = parse(text).module
    assert isinstance(module, IRModule) and infer(module) == []
    found = module["main"].body
    assert isinstance(found, Call)
    return found


def edges(dtype: str) -> list[Any]:
    kind = np.dtype(dtype).type
    if dtype[0] == "f":
        return [kind(v) for v in (0.0, -0.0, 1.5, -3.25, np.inf, -np.inf, np.nan, np.finfo(dtype).max)]
    info = np.iinfo(dtype)
    return [kind(v) for v in (info.min, 0, 1, 5, info.max - 1, info.max)]


def same(found: Any, wanted: Any) -> bool:
    found, wanted = np.asarray(found), np.asarray(wanted)
    return found.dtype == wanted.dtype and found.shape == wanted.shape and found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("name", [n for n in NAMES if n != "cast"])
def test_two_operands(name: str) -> None:
    for dtype in DTYPES:
        node = call(f"def @main(%x: {dtype}, %y: {dtype}) {{ {name}(%x, %y) }}")
        make = fast_step(node)
        assert make is not None
        step = make(2, (0, 1))
        with np.errstate(all="ignore"):
            for x in edges(dtype):
                for y in edges(dtype):
                    slots = [x, y, None]
                    step(slots)
                    assert same(slots[2], KERNELS[name](node.attrs, x, y)), (dtype, x, y)


def test_casts_that_lose_nothing() -> None:
    fast = 0
    for source in DTYPES:
        for target in DTYPES:
            node = call(f'def @main(%x: {source}) {{ cast(%x, dtype="{target}") }}')
            make = fast_step(node)
            if make is None:
                continue
            fast += 1
            step = make(1, (0,))
            for x in edges(source):
                slots = [x, None]
                step(slots)
                assert same(slots[1], KERNELS["cast"](node.attrs, x)), (source, target, x)
    assert fast > 30


@pytest.mark.parametrize(
    "text",
    [
        "def @main(%x: bool, %y: bool) { add(%x, %y) }",
        "def @main(%x: Tensor[(2), int32], %y: int32) { add(%x, %y) }",
        "def @main(%x: float16, %y: float16) { add(%x, %y) }",
        'def @main(%x: float32) { cast(%x, dtype="int32") }',
        'def @main(%x: int64) { cast(%x, dtype="int8") }',
        "def @main(%x: int32, %y: int32) { divide(%x, %y) }",
    ],
)
def test_what_is_left_to_the_kernel(text: str) -> None:
    assert fast_step(call(text)) is None
