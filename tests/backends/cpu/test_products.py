"""Products and convolutions of every element type into every other: what the interpreter computes, to the bit."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Expr, Function, IRModule, TensorType, Tuple, Var
from relaylang.ops import get, make_attrs
from relaylang.runtime.features import this_machine
from relaylang.runtime.packed import ForeignArtifact
from relaylang.syntax import parse
from relaylang.typing import check

INTS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool")
FLOATS = ("float16", "float32", "float64")
#: Operator, attributes, shapes of the operands.
FORMS: tuple[tuple[str, dict[str, Any], tuple[int, ...], tuple[int, ...]], ...] = (
    ("nn.dense", {"units": 19}, (5, 21), (19, 21)),
    ("nn.dense", {"units": 3}, (1, 21), (3, 21)),
    ("nn.batch_matmul", {"transpose_b": True}, (3, 5, 21), (3, 19, 21)),
    ("nn.conv2d", {"padding": [1, 1, 1, 1], "channels": 7, "kernel_size": [3, 3]}, (1, 4, 6, 5), (7, 4, 3, 3)),
    ("nn.conv2d", {"padding": [1, 1, 1, 1], "channels": 4, "groups": 4, "kernel_size": [3, 3]}, (1, 4, 6, 5), (4, 1, 3, 3)),
    ("nn.conv2d", {"channels": 7, "kernel_size": [3, 3], "data_layout": "NHWC", "kernel_layout": "HWIO"}, (1, 6, 5, 4), (3, 3, 4, 7)),
    ("nn.conv1d", {"channels": 6, "kernel_size": [2], "groups": 2}, (2, 4, 17), (6, 2, 2)),
)


def operand(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, target: str) -> np.ndarray:
    """Whole numbers from all of an integer type. Sums of floats get small numbers, so the result is exact, or wraps."""
    if dtype == "bool":
        return rng.integers(0, 4, shape) == 0
    if dtype in FLOATS or target in FLOATS:
        return rng.integers(0 if dtype.startswith("u") else -5, 6, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(max(info.min, -(2**62)), min(info.max, 2**62), shape).astype(dtype)


def check_pairs(pairs: list[tuple[str, str]]) -> None:
    rng = np.random.default_rng(11)
    calls: list[Expr] = []
    params: list[Var] = []
    given: list[np.ndarray] = []
    names: list[str] = []
    for (name, attrs, *shapes), (source, target) in product(FORMS, pairs):
        own = [Var(f"x{len(params) + n}", TensorType(s, source)) for n, s in enumerate(shapes)]
        record = get(name)
        call = Call(record, own, make_attrs(record.attrs, {**attrs, "out_dtype": target}))
        check(IRModule.from_expr(Function(own, call)))
        calls.append(call)
        params += own
        given += [operand(rng, s, source, target) for s in shapes]
        names.append(f"{name} from {source} to {target}")
    assert len(names) == len(FORMS) * len(pairs)
    mod = IRModule.from_expr(Function(params, Tuple(calls)))
    ours = compile_module(mod, "c -num-threads=1 -cflags=-O0").run(*given)
    for name, a, b in zip(names, ours, evaluate(mod, *given), strict=True):
        assert a.dtype == b.dtype, name
        np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "uint64", "bool", "float64"])
def test_products_of_a_type(dtype: str) -> None:
    check_pairs([(dtype, "")])


@pytest.mark.parametrize("threads", [1, 2])
def test_weights_of_few_rows_begin_at_lines_of_the_cache_and_are_read_there_and_back(threads: int) -> None:
    x, w, v = (Var(name, TensorType(shape, "float32")) for name, shape in (("x", (1, 512)), ("w", (512, 512)), ("v", (64, 512))))
    dense = get("nn.dense")
    wide, narrow = (Call(dense, [x, weight], make_attrs(dense.attrs, {"units": n})) for weight, n in ((w, 512), (v, 64)))
    rng = np.random.default_rng(3)
    raw = np.zeros(4 * 512 * 512 + 64, np.uint8)
    start = -raw.ctypes.data % 64 + 4
    held = raw[start : start + 4 * 512 * 512].view("float32").reshape(512, 512)
    held[:] = rng.integers(-9, 10, (512, 512))
    other = rng.integers(-9, 10, (64, 512)).astype("float32")
    artifact = compile_module(IRModule.from_expr(Function([x, v, w], Tuple([wide, narrow]))), "c -cflags=-O1", params={"w": held})
    artifact.threads = threads
    assert artifact.manifest["aligned"] == [0]
    assert artifact.params["w"].ctypes.data % 64 == 0
    np.testing.assert_array_equal(artifact.params["w"], held)
    for _ in range(5):
        data = rng.integers(-9, 10, (1, 512)).astype("float32")
        found = artifact.run(data, other)
        np.testing.assert_array_equal(found[0], data @ held.T)
        np.testing.assert_array_equal(found[1], data @ other.T)


@pytest.mark.sweep
def test_narrow_products_in_wider_and_narrower_types() -> None:
    check_pairs([("int8", "int64"), ("uint8", "float32"), ("int32", "int8"), ("int16", "bool"), ("bool", "int32")])


@pytest.mark.sweep
@pytest.mark.parametrize("source", [*INTS, *FLOATS])
def test_products_from_a_type_to_every_other(source: str) -> None:
    pairs = [(source, target) for target in (*INTS, *FLOATS)]
    check_pairs([(a, b) for a, b in pairs if not (a in FLOATS and b in INTS)])


@pytest.mark.parametrize("options", ["", " -march=x86-64-v3", " -march=x86-64"])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_few_rows_by_large_weights(rows: int, options: str) -> None:
    """Weights that come from memory are read one column after the other: whole numbers, whose sums are exact."""
    if options and not this_machine().startswith("x86_64"):
        pytest.skip("the target is for x86-64")
    rng = np.random.default_rng(rows)
    x, w = (rng.integers(-5, 6, shape).astype("float32") for shape in ((rows, 517), (527, 517)))
    mod = parse(
        f"def @main(%x: Tensor[({rows}, 517), float32], %w: Tensor[(527, 517), float32]) {{ nn.dense(%x, %w, units=527) }}"
    ).module
    assert mod is not None
    artifact = compile_module(mod, f"c -num-threads=1{options}")
    if isinstance(artifact, ForeignArtifact):
        pytest.skip("this machine is an older one")
    np.testing.assert_array_equal(artifact.run(x, w), x @ w.T)
