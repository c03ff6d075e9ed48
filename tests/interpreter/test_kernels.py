"""The kernels against the operators: which there are, and that each result has the type that the checker gives it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang.interpreter import KERNELS, evaluate
from relaylang.interpreter.kernels import FAMILIES as KERNEL_FAMILIES
from relaylang.interpreter.kernels import NO_VALUE
from relaylang.interpreter.kernels.common import KernelError
from relaylang.ir import Call, Function, TensorType, Tuple, TupleType, Type, Var
from relaylang.ops import FAMILIES, OPS, get, make_attrs
from relaylang.syntax import parse_expr
from tests.interpreter.every_case import EVERY, KEYS
from tests.interpreter.values import Case
from tests.shared import check_each


def test_every_operator_has_a_kernel_or_a_reason() -> None:
    assert set(OPS) - set(KERNELS) == set(NO_VALUE)
    assert set(KERNELS) <= set(OPS)


def test_kernels_stand_in_their_families_files() -> None:
    for module in KERNEL_FAMILIES:
        family = module.__name__.rsplit(".", 1)[1]
        assert set(module.KERNELS) <= {op.name for op in FAMILIES[family]}


def variable(name: str, value: np.ndarray) -> Var:
    return Var(name, TensorType(value.shape, value.dtype.name))


def assert_has_type(value: Any, ty: Type) -> None:
    if isinstance(ty, TupleType):
        assert isinstance(value, tuple) and len(value) == len(ty.fields)
        for part, field in zip(value, ty.fields):
            assert_has_type(part, field)
        return
    assert isinstance(ty, TensorType) and isinstance(value, np.ndarray)
    assert value.dtype.name == ty.dtype
    assert len(value.shape) == len(ty.shape)
    assert all(d == n for d, n in zip(ty.shape, value.shape) if isinstance(d, int))


def has_the_checked_type(case: Case) -> None:
    name, attrs, args, _ = case
    params: list[Var] = []
    operands: list[Any] = []
    for arg in args:
        parts = [variable(f"p{len(params) + i}", p) for i, p in enumerate(arg if isinstance(arg, tuple) else (arg,))]
        params += parts
        operands.append(Tuple(parts) if isinstance(arg, tuple) else parts[0])
    op = get(name)
    function = Function(params, Call(op, operands, make_attrs(op.attrs, attrs) if op.attrs is not None else None))
    inputs = [p for arg in args for p in (arg if isinstance(arg, tuple) else (arg,))]
    found = evaluate(function, *inputs)
    assert function.body.checked_type is not None
    assert_has_type(found, function.body.checked_type)


@pytest.mark.sweep
def test_results_have_the_checked_type() -> None:
    check_each(has_the_checked_type, EVERY, KEYS)


def kernel(name: str, *args: Any, **attrs: Any) -> Any:
    op = get(name)
    with np.errstate(all="ignore"):
        return KERNELS[name](make_attrs(op.attrs, attrs) if op.attrs is not None else None, *args)


def naive_conv(x: np.ndarray, w: np.ndarray, stride: int, dilation: int, groups: int) -> np.ndarray:
    n, _, h, width = x.shape
    o, share, kh, kw = w.shape
    oh, ow = (h - (kh - 1) * dilation - 1) // stride + 1, (width - (kw - 1) * dilation - 1) // stride + 1
    out = np.zeros((n, o, oh, ow))
    for f in range(o):
        group = f // (o // groups)
        for i in range(oh):
            for j in range(ow):
                rows = slice(i * stride, i * stride + (kh - 1) * dilation + 1, dilation)
                columns = slice(j * stride, j * stride + (kw - 1) * dilation + 1, dilation)
                patch = x[:, group * share : (group + 1) * share, rows, columns]
                out[:, f, i, j] = (patch * w[f]).sum(axis=(1, 2, 3))
    return out


@pytest.mark.parametrize("stride, dilation, groups", [(1, 1, 1), (2, 1, 2), (1, 2, 4), (3, 2, 1)])
def test_convolution_against_the_definition(stride: int, dilation: int, groups: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (2, 4, 9, 10)).astype(np.float32)
    w = np.random.default_rng(1).integers(-9, 9, (8, 4 // groups, 3, 2)).astype(np.float32)
    found = kernel("nn.conv2d", x, w, strides=(stride,) * 2, dilation=(dilation,) * 2, groups=groups)
    assert found.dtype == np.float32
    assert (found == naive_conv(x, w, stride, dilation, groups)).all()


def test_blocked_layouts_are_the_plain_ones_in_blocks() -> None:
    x, w = np.random.rand(1, 8, 6, 6).astype(np.float32), np.random.rand(16, 8, 3, 3).astype(np.float32)
    plain = kernel("nn.conv2d", x, w)
    blocked_x = kernel("layout_transform", x, src_layout="NCHW", dst_layout="NCHW4c")
    blocked_w = kernel("layout_transform", w, src_layout="OIHW", dst_layout="OIHW4i8o")
    found = kernel("nn.conv2d", blocked_x, blocked_w, data_layout="NCHW4c", kernel_layout="OIHW4i8o", out_layout="NCHW8c")
    back = kernel("layout_transform", found, src_layout="NCHW8c", dst_layout="NCHW")
    np.testing.assert_allclose(back, plain, rtol=1e-5)


def test_integer_products_are_exact_beyond_what_doubles_hold() -> None:
    big = np.full((1, 4), 2**30, np.int32)
    found = kernel("nn.dense", big, big, out_dtype="int64")
    assert found.tolist() == [[2**62]]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_integers_wrap(dtype: str) -> None:
    info = np.iinfo(dtype)
    top = np.asarray([info.max], dtype)
    assert kernel("add", top, np.asarray([1], dtype)) == info.min
    assert kernel("cast", np.asarray([info.max + 1 if dtype != "int64" else 0], np.int64), dtype=dtype) == (
        info.min if dtype != "int64" else 0
    )


def test_casts_of_floats_beyond_the_range() -> None:
    x = np.asarray([3e9, -3e9, np.nan, 1.9, -1.9], np.float32)
    assert kernel("cast", x, dtype="int32").tolist() == [-(2**31)] * 3 + [1, -1]
    assert kernel("cast", x, dtype="bool").tolist() == [True, True, False, True, True]
    assert kernel("cast", np.asarray([300.0], np.float32), dtype="uint8").tolist() == [44]


def test_nan_loses_comparisons() -> None:
    nan, one = np.asarray([np.nan], np.float32), np.asarray([1], np.float32)
    assert kernel("nn.relu", nan) == 0
    assert kernel("maximum", nan, one) == 1 and np.isnan(kernel("maximum", one, nan))


def test_requantize_rounds_halves_as_it_is_told() -> None:
    x = np.asarray([-3, -1, 1, 3], np.int32)
    scales = [np.float32(0.5), np.int32(0), np.float32(1), np.int32(0)]
    assert kernel("qnn.requantize", x, *scales, out_dtype="int8").tolist() == [-1, 0, 1, 2]
    assert kernel("qnn.requantize", x, *scales, rounding="TONEAREST", out_dtype="int8").tolist() == [-2, -1, 1, 2]


def test_bfloat16_and_float16_stay_what_they_are() -> None:
    import ml_dtypes

    for dtype in (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)):
        x = np.random.rand(2, 4, 6, 6).astype(dtype)
        w = np.random.rand(4, 4, 3, 3).astype(dtype)
        for found in (
            kernel("nn.conv2d", x, w),
            kernel("nn.softmax", x),
            kernel("sum", x),
            kernel("mean", x),
            kernel("erf", x),
            kernel("nn.layer_norm", x, x[0, 0, 0], x[0, 0, 0]),
            kernel("nn.avg_pool2d", x, pool_size=(2, 2)),
            kernel("nn.max_pool2d", x, pool_size=(2, 2), padding=(1, 1)),
            kernel("round", x),
            kernel("clip", x, a_min=0.2, a_max=0.5),
        ):
            assert found.dtype == dtype


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_means_of_whole_numbers_are_cut_towards_zero(dtype: str) -> None:
    """TVM adds in the element type: 100, 100 and 27 of int8 make -9 there."""
    for values, mean in (([100, 100, 27], 75), ([127] * 4, 127), ([1, 2, 2], 1), ([3, -4, -4], -1), ([-1, -1, 0], 0)):
        if dtype == "uint8" and min(values) < 0:
            continue
        found = kernel("mean", np.asarray(values, dtype))
        assert found == mean and found.dtype == dtype


@pytest.mark.parametrize("rank", [1, 3])
def test_rows_without_entries_are_filled_in_any_rank(rank: int) -> None:
    places = np.zeros((2, rank), np.int64)
    places[:, 0], places[:, 1:] = [1, 3], 7
    extents = np.asarray([4, 9, 9][:rank], np.int64)
    filled, values, empty = kernel("sparse_fill_empty_rows", places, np.int64([5, 6]), extents, np.int64([9]))
    assert filled[:, 0].tolist() == [0, 1, 2, 3] and values.tolist() == [9, 5, 9, 6] and empty.tolist() == [1, 0, 1, 0]
    assert (filled[[1, 3]] == places).all() and not filled[[0, 2], 1:].any()
    filled, values, empty = kernel("sparse_fill_empty_rows", places[:0], np.int64([]), extents, np.int64([9]))
    assert filled.shape == (4, rank) and values.tolist() == [9] * 4 and empty.all()


def test_dynamic_operators_go_on_as_static_ones() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    ints = lambda *n: np.asarray(n, np.int64)  # noqa: E731
    assert kernel("dyn.reshape", x, ints(4, -1), newshape=None).shape == (4, 6)
    assert kernel("dyn.broadcast_to", x[:, :1], ints(2, 5, 4), shape=None).shape == (2, 5, 4)
    assert kernel("dyn.zeros", ints(2, 2), shape=None, dtype="int8").dtype == np.int8
    assert kernel("dyn.full", np.float32(3), ints(2), shape=None, dtype="float32").tolist() == [3, 3]
    assert kernel("dyn.tile", x, ints(2, 1, 1), reps=None).shape == (4, 3, 4)
    assert kernel("dyn.tile", x, np.float32([2, 1, 1]), reps=None).shape == (4, 3, 4)
    assert kernel("dyn.topk", x, ints(2), k=None, ret_type="values", dtype="int32").shape == (2, 3, 2)
    cut = kernel("dyn.strided_slice", x, ints(0, 1), ints(2, 3), ints(1, 1), begin=None, end=None, strides=None, axes=None)
    assert cut.shape == (2, 2, 4)
    bounds = {"begin": [0, 0], "end": [2, 3, 3], "axes": None, "slice_mode": "end"}
    assert kernel("strided_slice", x, strides=[2], **bounds).shape == (1, 3, 3)  # one stride is the first axis'
    with pytest.raises(KernelError, match="stride of 0"):
        kernel("dyn.strided_slice", x, ints(0), ints(2), ints(0), begin=None, end=None, strides=None, axes=None)
    assert kernel("dyn.expand_dims", x, np.int64(1), num_newaxis=2).shape == (2, 1, 1, 3, 4)
    assert kernel("dyn.squeeze", x[:, :1], ints(1)).shape == (2, 4)
    padded = kernel("dyn.nn.pad", x, np.asarray([[0, 0], [1, 0], [0, 2]]), np.float32(7), pad_width=None)
    assert padded.shape == (2, 4, 6) and padded[0, 0, 0] == 7


@pytest.mark.parametrize("index", [-(2**63), -(2**40), -(2**31), -5, 3, 300, 2**31, 2**40, 2**63 - 1, 2**64 - 1])
@pytest.mark.parametrize("batch_dims", [0, 1])
def test_take_counts_any_index_round_at_once(index: int, batch_dims: int) -> None:
    extent = 200  # more than an int8 holds
    data = np.arange(2 * extent, dtype="float32").reshape(2, extent)
    for dtype in ("int8", "int32", "int64", "uint8", "uint64"):
        if not np.iinfo(dtype).min <= index <= np.iinfo(dtype).max:
            continue
        indices = np.full((2, 1), index, dtype)
        for mode, place in (("wrap", index % extent), ("clip", min(max(index, 0), extent - 1))):
            attrs = make_attrs(get("take").attrs, {"axis": 1, "batch_dims": batch_dims, "mode": mode})
            found = KERNELS["take"](attrs, data, indices)
            assert (found.reshape(2, -1)[:, 0] == data[:, place]).all()


def test_take_of_a_huge_index_ends_in_a_program() -> None:
    numbers = 'arange(0f, 8f, 1f, start=0f, stop=8f, step=1f, dtype="float32")'
    program = parse_expr(f'take({numbers}, 4611686018427387907i64, axis=0, mode="wrap")')
    assert evaluate(program) == 3
