"""Rows of millions of elements: the use of the stack is bounded at any shape."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu import emit_c
from relaylang.backends.cpu.lower.geometry import Conv
from relaylang.backends.cpu.lower.tiles import tiles_of
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Expr, Function, IRModule, TensorType, Tuple, Var
from relaylang.ops import get, make_attrs
from tests.shared import few

WIDE = 3_000_000
#: The stack of the thread that runs the program, and what a kernel may take of it.
STACK, KERNEL = 512 << 10, 256 << 10


def op(name: str, *args: Expr, **attrs: Any) -> Call:
    record = get(name)
    return Call(record, list(args), make_attrs(record.attrs, attrs) if record.attrs is not None else None)


def data(name: str, *shape: int, dtype: str = "float32") -> Var:
    return Var(name, TensorType(shape, dtype))


def programs(width: int) -> Iterator[Expr]:
    """Windows over rows of a width, in every layout; what follows them is fused."""
    rows, last = data("rows", 1, 2, 1, width), data("last", 1, 2, 2, width // 4)
    for mode in ("nn.max_pool2d", "nn.avg_pool2d"):
        yield op(mode, rows, pool_size=[1, 3], strides=[1, 1], padding=[0, 1, 0, 1])
        yield op("nn.relu", op(mode, rows, pool_size=[1, 3], strides=[1, 2], dilation=[1, 2], padding=[0, 0, 0, 2]))
        yield op(mode, last, pool_size=[2, 1], strides=[1, 1], padding=[1, 0, 0, 0], layout="NHWC")
    line = data("line", 1, 2, width)
    yield op("nn.max_pool1d", line, pool_size=[2], strides=[1], padding=[0, 0])
    weight = data("weight", 2, 1, 1, 3)
    for stride, padding in ((1, [0, 1, 0, 1]), (2, [0, 0, 0, 0]), (1, [0, 0, 0, 0])):
        conv = op("nn.conv2d", rows, weight, strides=[1, stride], padding=padding, groups=2, channels=2, kernel_size=[1, 3])
        yield op("nn.relu", conv)
    tall = op("reshape", rows, newshape=[1, 2, width // 4, 4])
    yield op("nn.conv2d", tall, weight, padding=[0, 1, 0, 1], groups=2, channels=2, kernel_size=[1, 3])
    bytes_of = data("bytes", 1, 2, 1, width, dtype="int8")
    yield op("nn.avg_pool2d", bytes_of, pool_size=[1, 2], strides=[1, 1])


def program(width: int) -> IRModule:
    body = Tuple(list(programs(width)))
    names = ("rows", "last", "line", "weight", "bytes")
    found: dict[str, Var] = {}
    for call in body.fields:
        stack: list[Expr] = [call]
        while stack:
            node = stack.pop()
            if isinstance(node, Var):
                assert found.setdefault(node.name_hint, node).type_annotation == node.type_annotation
            elif isinstance(node, Call):
                stack.extend(node.args)
    return IRModule.from_expr(Function([found[n] for n in names], body))


def values(mod: IRModule) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    out = {}
    for param in mod["main"].params:
        ty = param.type_annotation
        assert isinstance(ty, TensorType)
        out[param.name_hint] = rng.integers(-9, 9, [int(n) for n in ty.shape]).astype(ty.dtype)  # type: ignore[arg-type]
    return out


def in_small_thread(call: Callable[[], Any]) -> Any:
    """The result of a call in a thread with a small stack."""
    out: list[Any] = []
    before = threading.stack_size(STACK)
    try:
        thread = threading.Thread(target=lambda: out.append(call()))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    return out[0]


@pytest.mark.sweep
@pytest.mark.parametrize("width", few([4100, 200_000, WIDE], 4100))
def test_windows_over_wide_rows_run_on_a_small_stack(width: int) -> None:
    mod = program(width - width % 4)
    given = values(mod)
    artifact = compile_module(mod, "c -num-threads=2 -cflags=-O1")
    ours = in_small_thread(lambda: artifact.run(**given))
    for number, (a, b) in enumerate(zip(ours, evaluate(mod, **given))):
        np.testing.assert_array_equal(a, b, err_msg=str(number))


_ARRAY = re.compile(r"^ +(?:float|double|u?int(?:8|16|32|64)_t) (\w+)\[(\d+)\]", re.M)


def test_no_kernel_holds_much_on_the_stack() -> None:
    text = emit_c(program(WIDE), isa="avx512", options={"num-threads": 1})
    held = [int(size) for _, size in _ARRAY.findall(text)]
    assert held
    assert max(held) * 8 <= KERNEL


def line(size: int, kernel: int, stride: int, dilation: int, before: int, behind: int) -> Conv:
    """Windows along a line."""
    out = (size + before + behind - (kernel - 1) * dilation - 1) // stride + 1
    return Conv(1, 1, 1, 1, [size], [kernel], [stride], [dilation], [before], [behind], [out], [2], 1, False)


@pytest.mark.parametrize("seed", range(100))
def test_tiles_cover_a_line(seed: int) -> None:
    """Equal neighbours stand together, and each tile has the columns of its windows that are data."""
    pick = random.Random(seed)
    conv = line(*[pick.randint(*ends) for ends in ((20, 90), (1, 5), (1, 4), (1, 4), (0, 20), (0, 20))])
    (length,), (size,), (stride,), (before,) = conv.out, conv.size, conv.stride, conv.before
    found = tiles_of(conv, pick.randint(1, 14))
    assert all(one != other for (one, _), (other, _) in pairwise(found))
    first = 0
    for tile in [tile for tile, equal in found for _ in range(equal)]:
        end = (tile.count - 1) * stride + (conv.kernel[0] - 1) * conv.dilation[0] + 1
        assert [j for j in range(end) if 0 <= first * stride - before + j < size] == list(tile.columns)
        first += tile.count
    assert first == length


def test_a_wide_line_has_few_tiles() -> None:
    assert [equal for _, equal in tiles_of(line(WIDE, 3, 1, 1, 1, 1), 10)] == [1, WIDE // 10 - 2, 1]
