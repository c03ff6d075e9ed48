"""Calls of operators whose lowering has cases of its own.

They have extents around the vectors' lengths, unusual geometry, empty tensors, scalars, and every element type with its
extreme values. The kernels' own cases come on top.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.interpreter.cases import CASES as KERNEL_CASES
from tests.interpreter.cases import Case, f32, i32, real, whole
from tests.interpreter.cases_rare import rare
from tests.interpreter.cases_wide import wide

INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 3.7, -7.25, 88.0, -95.0, 1e-3, 60000.0, np.inf, -np.inf, np.nan]


def ends(dtype: str) -> np.ndarray:
    """The numbers at which a type's arithmetic may go wrong."""
    if dtype in FLOATS:
        return np.asarray(SPECIAL, dtype)
    info = np.iinfo(dtype)
    return np.asarray([0, 1, 2, 3, 7, 100, info.max, info.max - 1, info.min, info.min + 1, 0 - (info.min < 0)], dtype)


def unary() -> Iterator[Case]:
    for dtype in FLOATS:
        for name in (
            "exp",
            "tanh",
            "sigmoid",
            "erf",
            "sqrt",
            "rsqrt",
            "log",
            "log10",
            "log2",
            "floor",
            "ceil",
            "trunc",
            "round",
            "sign",
            "abs",
            "negative",
            "copy",
            "isnan",
            "isinf",
            "isfinite",
            "nn.relu",
            "atan",
            "asinh",
            "atanh",
            "fast_exp",
            "fast_tanh",
            "fast_erf",
        ):
            yield name, {}, [ends(dtype)], set()
        near = np.linspace(-12, 12, 1201).astype(dtype)
        for name in ("exp", "tanh", "sigmoid", "erf"):
            yield name, {}, [near], set()
        for name in ("sin", "cos", "sinh", "cosh", "asin", "acos", "atanh"):
            yield name, {}, [real(5, 7, dtype=dtype, low=-0.9, high=0.9)], set()
        yield "acosh", {}, [real(5, 7, dtype=dtype, low=1.1, high=9)], set()
        yield "clip", {"a_min": -1.5, "a_max": 3.0}, [ends(dtype)], set()
        yield "nn.leaky_relu", {"alpha": 0.25}, [ends(dtype)], set()
    for dtype in INTS:
        for name in (
            "abs",
            "negative",
            "sign",
            "copy",
            "bitwise_not",
            "floor",
            "ceil",
            "round",
            "trunc",
            "nn.relu",
            "isnan",
            "isfinite",
        ):
            yield name, {}, [ends(dtype)], set()
        yield "clip", {"a_min": -1e9, "a_max": 1e9}, [ends(dtype)], set()
        yield "clip", {"a_min": 2.0, "a_max": 100.0}, [ends(dtype)], set()
    for name in ("exp", "tanh", "sqrt"):
        yield name, {}, [whole(9, low=0, high=9)], set()
    for name, shape in (("exp", ()), ("abs", (1,)), ("nn.relu", (0, 3)), ("negative", (2, 0)), ("tanh", (1, 1, 1))):
        yield name, {}, [real(*shape) if shape else f32(0.3)], set()


def binary() -> Iterator[Case]:
    for dtype in (*INTS, *FLOATS):
        a = ends(dtype)
        left, right = a[:, None].copy(), a[None, :].copy()
        for name in (
            "add",
            "subtract",
            "multiply",
            "maximum",
            "minimum",
            "equal",
            "not_equal",
            "less",
            "less_equal",
            "greater",
            "greater_equal",
            "logical_and",
            "logical_or",
            "logical_xor",
        ):
            yield name, {}, [left, right], set()
        if dtype in FLOATS:
            for name in ("divide", "floor_divide", "trunc_divide"):
                yield name, {}, [left, right], set()
            plain = np.asarray([-7.5, -2, -0.5, 0.25, 3, 9.75], dtype)
            for name in ("mod", "floor_mod", "trunc_mod"):
                yield name, {}, [plain[:, None].copy(), plain], set()
            base = np.asarray([0.5, 1, 2, 3.5], dtype)
            yield "power", {}, [base[:, None].copy(), plain], set()
            continue
        divisor = right[:, [bool(v) for v in right[0]]].copy()
        for name in ("divide", "floor_divide", "trunc_divide", "mod", "floor_mod", "trunc_mod"):
            yield name, {}, [left, divisor], set()
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
            yield name, {}, [left, right], set()
        count = np.asarray([0, 1, 3, 7, np.dtype(dtype).itemsize * 8 - 1], dtype)
        for name in ("left_shift", "right_shift"):
            yield name, {}, [left, count], set()
        yield "power", {}, [left, np.asarray([0, 1, 2, 3], dtype)], set()
    for one, other in (
        ((), (3, 4)),
        ((3, 1), (1, 4)),
        ((1,), (2, 3)),
        ((5, 1, 3), (4, 1)),
        ((0, 3), (1, 3)),
        ((2, 0), (1,)),
        ((), ()),
        ((1, 1, 1), (7,)),
        ((2, 3, 4, 5), (3, 1, 5)),
    ):
        yield (
            "add",
            {},
            [np.asarray(real(*one) if one else 0.25, np.float32), np.asarray(real(*other) if other else 2, np.float32)],
            set(),
        )
        yield (
            "less",
            {},
            [np.asarray(real(*one) if one else 0.25, np.float32), np.asarray(real(*other) if other else 2, np.float32)],
            set(),
        )
    truth = np.asarray([False, True, True, False])
    for name in ("equal", "maximum", "minimum", "multiply", "bitwise_and", "logical_and"):
        yield name, {}, [truth, truth[[1, 1, 0, 0]].copy()], set()
    yield "where", {}, [truth, f32(1), real(3, 4)], set()
    yield "where", {}, [np.asarray(True), whole(2, 3), whole(3, seed=5)], set()


def casts() -> Iterator[Case]:
    for source in (*INTS, "float32", "float64", "bool"):
        values = np.asarray([True, False]) if source == "bool" else ends(source)
        if values.dtype.kind == "f":
            values = np.asarray([0.0, -0.0, 1.7, -1.7, 99.9, -99.9], source)
        for dtype in (*INTS, *FLOATS, "bool"):
            yield "cast", {"dtype": dtype}, [values], set()
    yield "cast", {"dtype": "float32"}, [f32(2.5)], set()
    yield "cast", {"dtype": "int8"}, [np.zeros((0, 4), np.float32)], set()
    for dtype in ("int32", "uint32"):
        yield "reinterpret", {"dtype": dtype}, [ends("float32")], set()
        yield "reinterpret", {"dtype": "float32"}, [whole(6, dtype=dtype, low=0)], set()
    yield "reinterpret", {"dtype": "int64"}, [ends("float64")], set()


def reductions() -> Iterator[Case]:
    for dtype in ("float16", "float32", "float64", "int8", "uint64"):
        for name in ("all", "any"):
            for axis in ([0], [1]):
                yield name, {"axis": axis}, [whole(3, 40, low=0, high=3).astype(dtype)], set()
    for extent in (1, 2, 15, 16, 17, 31, 33, 64, 100):
        for name in ("sum", "max", "argmax", "mean"):
            yield name, {"axis": [1]}, [real(3, extent)], set()
        yield "sum", {"axis": [0]}, [real(extent, 5)], set()
        for axis in (0, 1):
            yield "nn.softmax", {"axis": axis}, [real(4, extent, low=-9, high=9)], set()
        yield "nn.log_softmax", {"axis": -1}, [real(2, extent, low=-9, high=9)], set()
    x = real(2, 3, 4, 5)
    for axis in ([0], [1], [2], [3], [0, 2], [1, 3], [0, 1], [2, 3], [-1, 0], [0, 1, 2, 3]):
        for keepdims in (False, True):
            for name in ("sum", "min", "argmin"):
                yield name, {"axis": axis, "keepdims": keepdims}, [x], set()
            yield "prod", {"axis": axis, "keepdims": keepdims, "exclude": len(axis) < 3}, [x], set()
    for dtype in (*INTS, *FLOATS):
        y = whole(3, 37, dtype=dtype, low=0 if dtype[0] == "u" else -100)
        for name in ("sum", "max", "min", "argmax", "argmin", "mean"):
            yield name, {"axis": [1]}, [y], set()
        yield "prod", {"axis": [0]}, [y], set()
        yield "sum", {}, [y], set()
    for shape in ((6, 1), (4, 5, 1, 1), (3, 1, 4, 1), (1, 7, 1), (1, 1, 1)):
        for axis in range(len(shape)):
            for name in ("sum", "max", "mean", "argmax"):
                yield name, {"axis": [axis], "keepdims": bool(axis % 2)}, [real(*shape)], set()
    y = np.where(real(4, 19) > 0.3, np.float32(np.nan), real(4, 19))
    y[3] = np.nan
    for name in ("max", "min", "sum", "argmax", "argmin"):
        yield name, {"axis": [1]}, [y], set()
        yield name, {"axis": [0]}, [y], set()
    for name in ("sum", "prod"):
        yield name, {"axis": [1]}, [np.zeros((3, 0), np.float32)], set()
        yield name, {"axis": [0]}, [np.zeros((0, 3), np.float32)], set()
        yield name, {"axis": [1]}, [np.zeros((0, 3), np.float32)], set()
    yield "sum", {}, [f32(2.5)], set()
    for name in ("all", "any"):
        for axis in ([0], [1], None):
            yield name, {"axis": axis}, [whole(3, 20, low=0, high=2).astype(bool)], set()
    for dtype in ("float16", "float64"):
        yield "nn.softmax", {"axis": -1}, [real(3, 21, dtype=dtype, low=-5, high=5)], set()
        yield "nn.softmax", {"axis": 1}, [real(3, 21, 2, dtype=dtype, low=-5, high=5)], set()
        yield "nn.log_softmax", {"axis": -1}, [real(3, 21, dtype=dtype, low=-5, high=5)], set()
        yield "nn.layer_norm", {}, [real(3, 21, dtype=dtype), real(21, dtype=dtype), real(21, dtype=dtype)], set()
    yield "nn.softmax", {"axis": -1}, [f32([[1e30, -1e30, 3], [-np.inf, 0, 1]])], set()
    odd = real(6, 37, low=-50, high=50)
    odd[1], odd[2, 3], odd[3, 36], odd[4, 36], odd[5, ::2] = -np.inf, np.nan, np.nan, np.inf, -np.inf
    for name in ("nn.softmax", "nn.log_softmax"):
        yield name, {"axis": -1}, [odd], set()
        yield name, {"axis": -1}, [real(2, 4099, low=-99, high=9)], set()
        yield name, {"axis": 2}, [real(2, 3, 19, 1)], set()
    yield "nn.l2_normalize", {"eps": 1e-5, "axis": [1, 2]}, [real(2, 3, 4)], set()
    yield "nn.layer_norm", {"axis": 1, "epsilon": 1e-3, "scale": False}, [real(2, 5, 3), real(5), real(5)], set()
    yield "nn.group_norm", {"num_groups": 3, "center": False}, [real(2, 6, 3, 5), real(6), real(6)], set()
    yield "collapse_sum_like", {}, [real(2, 3, 4), real(3, 1)], set()
    yield "collapse_sum_like", {}, [real(3, 4), real(3, 4)], set()
    for size in (1, 2, 4, 7):
        yield "nn.lrn", {"size": size, "alpha": 0.3, "beta": 0.6, "bias": 1.5, "axis": 2}, [real(2, 3, 9)], set()


def movements() -> Iterator[Case]:
    x = real(2, 3, 4, 5)
    for axes in ([3, 1, 0, 2], [0, 1, 3, 2], [-1, 0, 1, 2], [1, 0, 2, 3]):
        yield "transpose", {"axes": axes}, [x], set()
    yield "transpose", {"axes": None}, [real(6)], set()
    for begin, end, strides in (
        ([1, -2, 0], [2, -1, 9], [1]),
        ([-1, 9, 3], [-9, -9, 0], [-1, -2, -1]),
        ([0, 0, 1], [2, 3, 4], [1, 2, 3]),
        ([0, 0], [2, 3, 3, 4], [2]),
        ([1], [2, 2], []),
        ([1, 2], [-3], [-1, -1]),
        ([], [2, 1], None),
    ):
        yield "strided_slice", {"begin": begin, "end": end, "strides": strides, "slice_mode": "end"}, [x], set()
    yield "strided_slice", {"begin": [1], "end": [1], "strides": [1], "axes": [2], "slice_mode": "end"}, [x], set()
    for axis in (0, -1, 2):
        yield "concatenate", {"axis": axis}, [(x, x, x)], set()
        yield "split", {"indices_or_sections": [1], "axis": axis}, [x], set()
        yield "stack", {"axis": axis}, [(x, x)], set()
        yield "reverse", {"axis": axis}, [x], set()
        yield "repeat", {"repeats": 3, "axis": axis}, [x], set()
    yield "concatenate", {"axis": 0}, [(real(3), np.zeros(0, np.float32), real(1))], set()
    yield "concatenate", {"axis": 1}, [(whole(2, 3, dtype="int8"), whole(2, 1, dtype="int8"))], set()
    for reps in ([3], [2, 1, 2], [1, 1]):
        yield "tile", {"reps": reps}, [real(2, 3)], set()
    for dtype in ("int32", "int64", "uint8"):
        yield "take", {"axis": 0}, [x, whole(2, 2, dtype=dtype, low=0, high=2)], set()
        yield "take", {"axis": -1}, [x, np.asarray(3, dtype)], set()
    for mode in ("edge", "reflect"):
        yield "nn.pad", {"pad_width": [[0, 0], [2, 2], [3, 1]], "pad_mode": mode}, [real(2, 3, 4), f32(0)], {1}
        # Wider than the data, by cropping or by mirroring.
        for widths in ([7, 6], [-5, 8], [8, -5]):
            yield "nn.pad", {"pad_width": [[0, 0], widths], "pad_mode": mode}, [real(2, 4), f32(0)], {1}
        yield "nn.pad", {"pad_width": [[2, 1]], "pad_mode": mode}, [real(1), f32(0)], {1}
    for widths in ([-5, 8], [8, -5]):
        yield "nn.pad", {"pad_width": [[1, 0], widths]}, [real(2, 4), f32(0.5)], {1}
    yield "nn.pad", {"pad_width": [[0, 0], [2, 0]]}, [whole(2, 3, dtype="int8"), f32(-7)], {1}
    yield "nn.pad", {"pad_width": [[1, 0], [0, 2]]}, [real(0, 3), f32(2.5)], {1}
    yield "nn.pad", {"pad_width": [[0, 0], [-1, 1], [1, -2]]}, [real(2, 3, 4), f32(2.5)], {1}
    yield "nn.pad", {"pad_width": [[0, 0], [1, 1]]}, [real(2, 3), f32(-np.inf)], set()
    for axis in (0, 1, -1):
        yield "one_hot", {"depth": 5, "axis": axis, "dtype": "int8"}, [i32([[0, 4], [-1, 7]]), np.int8(3), np.int8(-2)], {1, 2}
    yield "full", {"shape": [2, 3], "dtype": "int8"}, [np.int8(-3)], set()
    yield "full_like", {}, [real(2, 3), f32(4)], set()
    for shape in ([0], [2, 0, 3]):
        yield "zeros", {"shape": shape, "dtype": "float32"}, [], set()
    yield "ones", {"shape": [3], "dtype": "int64"}, [], set()
    yield "gather", {"axis": 0}, [x, whole(1, 3, 4, 5, low=0, high=2)], set()
    yield "gather_nd", {}, [x, i32([[0, 1], [1, 2], [3, 0]])], set()
    yield "sequence_mask", {"mask_value": 2.0, "axis": 0}, [real(4, 3, 2), i32([0, 4, 2])], set()
    yield "reverse_sequence", {"seq_axis": 0, "batch_axis": 1}, [real(4, 3), i32([0, 4, 2])], set()
    yield "sliding_window", {"axis": 0, "window_shape": [2, 3], "strides": [2, 1]}, [real(5, 6)], set()
    yield "meshgrid", {"indexing": "ij"}, [(real(3), real(2), real(4))], set()
    yield "meshgrid", {"indexing": "xy"}, [(real(3), real(2))], set()
    for pair in (("NCHW8c", "NHWC"), ("NCHW4c", "NCHW16c"), ("NHWC", "NCHW")):
        size = {"NCHW8c": (1, 2, 2, 3, 8), "NCHW4c": (2, 4, 3, 2, 4), "NHWC": (2, 3, 5, 4)}[pair[0]]
        yield "layout_transform", {"src_layout": pair[0], "dst_layout": pair[1]}, [real(*size)], set()
    yield "layout_transform", {"src_layout": "OIHW", "dst_layout": "OIHW4i8o"}, [real(16, 8, 3, 2)], set()
    yield "nn.space_to_batch_nd", {"block_shape": [2], "paddings": [[1, 2]], "pad_value": 1.5}, [real(2, 5, 3)], set()
    yield "nn.batch_to_space_nd", {"block_shape": [3], "crops": [[1, 0]]}, [real(6, 2)], set()
    for mode in ("DCR", "CDR"):
        yield "nn.depth_to_space", {"block_size": 3, "mode": mode, "layout": "NHWC"}, [real(1, 2, 3, 18)], set()
    yield "nn.space_to_depth", {"block_size": 3, "layout": "NHWC"}, [real(2, 6, 3, 2)], set()
    for strides in ([1, 1, 2], [3, 1, 1]):
        yield "nn.dilate", {"strides": strides, "dilation_value": -1.0}, [real(2, 3, 4)], set()
    yield "nn.fifo_buffer", {"axis": 0}, [real(2, 2), real(3, 2)], set()


def algorithms() -> Iterator[Case]:
    ties = whole(5, 33, low=0, high=6).astype(np.float32)
    odd = np.where(ties == 3, np.float32(np.nan), ties)
    for ascending in (True, False):
        for data in (ties, odd, whole(3, 1), whole(4, 18, dtype="int8"), real(2, 0), np.asarray(ties.T, order="C")):
            for name in ("sort", "argsort"):
                yield name, {"axis": 1, "is_ascend": ascending, "dtype": "int32"}, [data], set()
        yield "argsort", {"axis": 0, "is_ascend": ascending, "dtype": "int64"}, [ties], set()
        for ret in ("both", "values", "indices"):
            yield "topk", {"k": 3, "axis": 0, "is_ascend": ascending, "ret_type": ret, "dtype": "int64"}, [ties], set()
        yield "topk", {"k": 0, "axis": -1, "is_ascend": ascending, "dtype": "int32"}, [real(2, 3, 4)], set()
    for right in (True, False):
        rows = np.sort(real(3, 9), axis=1)
        yield "searchsorted", {"right": right, "dtype": "int64"}, [rows, real(3, 4)], set()
        yield "searchsorted", {"right": right}, [i32([1, 2, 2, 2, 9]), whole(3, 4, low=0, high=11)], set()
    for name in ("cumsum", "cumprod"):
        for exclusive in (False, True):
            for axis in (None, 0, 1, -1):
                yield name, {"axis": axis, "exclusive": exclusive}, [real(3, 4, 5)], set()
        yield name, {"axis": 1, "dtype": "int64"}, [whole(3, 9)], set()
        yield name, {"axis": 0}, [whole(30, dtype="int8")], set()
    for how in ("update", "add", "mul", "min", "max", "mean"):
        yield "scatter_elements", {"axis": 1, "reduction": how}, [real(3, 5), i32([[0, -1, 0], [4, 4, 2]]), real(2, 3)], set()
    for how in ("update", "add", "mul", "min", "max"):
        yield "scatter_nd", {"mode": how}, [real(3, 4, 2), np.asarray([[0, 2, 0]], np.int64), real(3, 4, 2)], set()
        yield "scatter_nd", {"mode": how}, [whole(3, 4), i32([[0, 2, 0], [1, 3, 1]]), whole(3)], set()
    yield "sparse_to_dense", {"output_shape": [5]}, [i32([0, 3]), whole(2), i32(-1)], {2}
    yield "sparse_to_dense", {"output_shape": [3, 4]}, [i32([[0, 3], [2, 2]]), real(2), f32(-1)], set()
    yield "sparse_to_dense", {"output_shape": [3, 4]}, [i32([[0, 3], [2, 2]]), f32(2.5), f32(-1)], set()
    yield "invert_permutation", {}, [i32([3, 0, 2, 1])], set()
    yield "unravel_index", {}, [np.asarray([0, 23, 17], np.int64), np.asarray([2, 3, 4], np.int64)], set()
    yield "adv_index", {}, [(real(4, 3, 2), i32([[0, -1], [2, 1]]))], set()
    yield "adv_index", {}, [(real(4, 3, 2), np.asarray([1, 3, 0], np.int64), np.asarray([2], np.int64))], set()
    for k in (-2, 0, 3):
        for upper in (True, False):
            yield "trilu", {"upper": upper}, [whole(2, 4, 5), i32(k)], set()
    slices = [np.asarray(v, np.int64) for v in ([0, 1], [3, 5], [2, 3])]
    yield "strided_set", {}, [real(3, 6), real(2, 2), *slices], {2, 3, 4}
    for equation, parts in (
        ("ij,kj->ik", (real(3, 4), real(5, 4))),
        ("ii->i", (real(4, 4),)),
        ("ij->ji", (whole(3, 4),)),
        ("bij,bjk,k->bi", (real(2, 3, 4), real(2, 4, 5), real(5))),
        ("ij,ij", (real(3, 4), real(3, 4))),
        ("i,j->ij", (real(3), real(17))),
    ):
        yield "einsum", {"equation": equation}, [parts], set()


def products() -> Iterator[Case]:
    for rows in (1, 2, 3, 4, 5, 17, 29, 65):
        for columns, depth in ((1, 1), (7, 5), (16, 16), (33, 31), (70, 64)):
            yield "nn.dense", {"units": columns}, [real(rows, depth), real(columns, depth)], set()
    for dtype in ("float16", "float64"):
        yield "nn.dense", {"units": 9}, [real(5, 33, dtype=dtype), real(9, 33, dtype=dtype)], set()
        yield "nn.batch_matmul", {"transpose_b": True}, [real(2, 3, 5, dtype=dtype), real(2, 4, 5, dtype=dtype)], set()
        yield (
            "nn.conv2d",
            {"kernel_size": [3, 3], "padding": [1, 1], "channels": 5},
            [real(1, 3, 6, 7, dtype=dtype), real(5, 3, 3, 3, dtype=dtype)],
            set(),
        )
    yield "nn.dense", {"units": 3, "out_dtype": "int32"}, [whole(4, 19), whole(3, 19)], set()
    yield "nn.dense", {"units": 18, "out_dtype": "int32"}, [whole(2, 3, 19, dtype="uint8", low=0), whole(18, 19, dtype="int8")], set()
    yield "nn.dense", {"units": 6}, [real(2, 3, 5), real(6, 5)], set()
    yield "nn.dense", {"units": 4}, [real(0, 5), real(4, 5)], set()
    for a in (False, True):
        for b in (False, True):
            left, right = real(*((9, 3) if a else (3, 9))), real(*((20, 9) if b else (9, 20)))
            yield "nn.matmul", {"units": 20, "transpose_a": a, "transpose_b": b}, [left, right], set()
            left, right = real(2, *((9, 3) if a else (3, 9))), real(2, *((20, 9) if b else (9, 20)))
            yield "nn.batch_matmul", {"transpose_a": a, "transpose_b": b}, [left, right], set()
            for rows, columns, depth in ((1, 300, 5), (1, 40, 70), (2, 37, 9), (3, 33, 19), (3, 5, 40), (2, 1, 1), (1, 16, 0)):
                left = real(2, *((depth, rows) if a else (rows, depth)))
                right = real(2, *((columns, depth) if b else (depth, columns)))
                yield "nn.batch_matmul", {"transpose_a": a, "transpose_b": b}, [left, right], set()
    yield "nn.batch_matmul", {"transpose_b": True}, [real(3, 2, 4), real(1, 5, 4)], set()
    yield "nn.batch_matmul", {}, [real(3, 2, 4), real(1, 4, 20)], set()
    yield "nn.batch_matmul", {}, [real(1, 2, 4), real(3, 4, 20)], set()
    ints = [whole(2, 3, 7, dtype="int8"), whole(2, 5, 7, dtype="int8")]
    yield "nn.batch_matmul", {"transpose_b": True, "out_dtype": "int32"}, ints, set()


def convolutions() -> Iterator[Case]:
    def conv(data: tuple[int, ...], weight: tuple[int, ...], **attrs: Any) -> Case:
        count = len(data) - 2
        attrs = {"channels": weight[0], "kernel_size": list(weight[2:]), **attrs}
        return f"nn.conv{count}d", attrs, [real(*data), real(*weight)], set()

    for channels in (1, 5, 16, 17, 33):
        yield conv((1, 3, 7, 9), (channels, 3, 3, 3), padding=[1, 1])
        yield conv((2, 5, 6, 6), (channels, 5, 1, 1))
    for width in (1, 2, 5, 13, 14, 15, 27, 28, 29, 57):
        yield conv((1, 4, 3, width), (18, 4, 3, 1), padding=[1, 0, 1, 0])
    yield conv((1, 2, 8, 8), (4, 2, 2, 4), strides=[3, 2], padding=[0, 2, 1, 0])
    yield conv((1, 2, 9, 9), (4, 2, 2, 2), strides=[4, 4])
    yield conv((3, 4, 11, 5), (6, 2, 3, 2), groups=2, dilation=[3, 2], padding=[2, 1, 3, 1])
    yield conv((1, 6, 5, 5), (9, 2, 3, 3), groups=3, padding=[1, 1])
    yield conv((1, 1, 5, 5), (1, 1, 5, 5))
    yield conv((2, 3, 6, 6), (4, 3, 1, 1), strides=[2, 2])
    yield conv((1, 3, 5, 5), (2, 3, 3, 3), padding=[4, 4])
    yield conv((0, 3, 5, 5), (2, 3, 3, 3))
    for stride in (1, 2, 3):
        for pads in ([0, 0], [1, 1], [0, 1, 2, 0]):
            yield conv((2, 5, 9, 10), (5, 1, 3, 3), groups=5, strides=[stride, stride], padding=pads)
    yield conv((1, 3, 9, 40), (3, 1, 5, 5), groups=3, padding=[2, 2])
    yield conv((1, 3, 7, 7), (6, 1, 3, 3), groups=3, padding=[1, 1])
    yield conv((1, 4, 9, 9), (4, 1, 3, 2), groups=4, dilation=[2, 3], padding=[2, 3])
    for stride, dilation in ((1, 1), (2, 1), (1, 3), (3, 2)):
        yield conv((2, 3, 20), (7, 3, 4), strides=[stride], dilation=[dilation], padding=[3, 1])
    yield conv((1, 2, 20), (2, 1, 3), groups=2, padding=[1])
    yield conv((1, 2, 90), (3, 2, 33), dilation=[2], strides=[2], padding=[4, 5])
    yield conv((1, 2, 90), (2, 1, 40), groups=2, padding=[4, 5])
    yield conv((1, 2, 4, 40), (3, 2, 2, 17))
    yield conv((1, 4, 4, 5, 6), (6, 2, 2, 3, 1), groups=2, strides=[1, 2, 1], padding=[1, 0, 1, 0, 1, 0])
    yield conv((1, 3, 4, 5, 6), (3, 1, 2, 3, 3), groups=3, padding=[1, 1, 1])
    nhwc = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    yield "nn.conv2d", {**nhwc, "channels": 33, "kernel_size": [1, 1]}, [real(2, 5, 4, 7), real(1, 1, 7, 33)], set()
    yield (
        "nn.conv2d",
        {**nhwc, "channels": 6, "kernel_size": [3, 3], "groups": 2, "padding": [1, 1]},
        [real(1, 5, 4, 4), real(3, 3, 2, 6)],
        set(),
    )
    deep = {"data_layout": "NHWC", "kernel_layout": "HWOI", "kernel_size": [3, 3], "padding": [1, 0, 0, 1], "strides": [2, 1]}
    yield "nn.conv2d", {**deep, "channels": 5, "groups": 5}, [real(1, 7, 6, 5), real(3, 3, 5, 1)], set()
    yield "nn.conv2d", {**deep, "channels": 10, "groups": 5}, [real(1, 7, 6, 5), real(3, 3, 5, 2)], set()
    yield "nn.conv2d", {"channels": 4, "kernel_size": [3, 3], "kernel_layout": "OHWI"}, [real(1, 3, 6, 6), real(4, 3, 3, 3)], set()
    for source, weights in (("uint8", "int8"), ("int8", "int8"), ("int16", "int16"), ("int32", "int32")):
        low = 0 if source[0] == "u" else -100
        attrs = {"channels": 18, "kernel_size": [3, 3], "padding": [1, 1], "out_dtype": "int32"}
        yield "nn.conv2d", attrs, [whole(1, 3, 6, 7, dtype=source, low=low), whole(18, 3, 3, 3, dtype=weights)], set()
        attrs = {**attrs, "channels": 3, "groups": 3}
        yield "nn.conv2d", attrs, [whole(1, 3, 6, 7, dtype=source, low=low), whole(3, 1, 3, 3, dtype=weights)], set()
    for stride, pads, extra in ((1, [0, 0], 0), (2, [1, 1], 1), (3, [0, 1, 2, 1], 2), (2, [3, 3], 0)):
        attrs = {"channels": 4, "kernel_size": [3, 2], "strides": [stride, stride], "padding": pads, "output_padding": [extra, 0]}
        yield "nn.conv2d_transpose", attrs, [real(2, 3, 4, 5), real(3, 4, 3, 2)], set()
    attrs = {"channels": 6, "kernel_size": [3, 3], "groups": 2, "strides": [2, 2], "dilation": [2, 1]}
    yield "nn.conv2d_transpose", attrs, [real(1, 4, 4, 5), real(4, 3, 3, 3)], set()
    nhwc_up = {"channels": 4, "kernel_size": [2, 3], "strides": [2, 2], "data_layout": "NHWC", "kernel_layout": "IOHW"}
    yield "nn.conv2d_transpose", nhwc_up, [real(1, 4, 5, 3), real(3, 4, 2, 3)], set()
    up = {"channels": 2, "kernel_size": [2, 2, 2], "strides": [2, 1, 2]}
    yield "nn.conv3d_transpose", up, [real(1, 3, 2, 3, 4), real(3, 2, 2, 2, 2)], set()


def pools() -> Iterator[Case]:
    geometry = (
        {"pool_size": [3, 3], "strides": [2, 2], "padding": [1, 1]},
        {"pool_size": [2, 3], "strides": [3, 1], "padding": [0, 1, 1, 2]},
        {"pool_size": [5, 1], "strides": [1, 2]},
        {"pool_size": [2, 2], "strides": [2, 2], "dilation": [3, 2], "padding": [2, 1]},
        {"pool_size": [7, 7]},
        {"pool_size": [1, 1], "strides": [3, 3]},
    )
    for attrs in geometry:
        for dtype in ("float32", "int8", "uint8", "float16", "int32", "float64"):
            data = whole(2, 3, 7, 8, dtype=dtype, low=0 if dtype[0] == "u" else -100)
            yield "nn.max_pool2d", attrs, [data], set()
            for ceil in (False, True):
                for include in (False, True):
                    if dtype in ("float32", "int32", "float64"):
                        yield "nn.avg_pool2d", {**attrs, "ceil_mode": ceil, "count_include_pad": include}, [data], set()
        yield "nn.max_pool2d", {**attrs, "ceil_mode": True, "layout": "NHWC"}, [real(1, 7, 8, 17)], set()
        yield "nn.avg_pool2d", {**attrs, "ceil_mode": True, "layout": "NHWC"}, [real(1, 7, 8, 17)], set()
    for name in ("nn.max_pool1d", "nn.avg_pool1d"):
        for ceil in (False, True):
            yield name, {"pool_size": [4], "strides": [3], "padding": [1, 2], "ceil_mode": ceil}, [real(2, 3, 11)], set()
        yield name, {"pool_size": [2], "strides": [2], "layout": "NWC"}, [real(2, 9, 3)], set()
    for name in ("nn.max_pool3d", "nn.avg_pool3d"):
        attrs = {"pool_size": [2, 3, 2], "strides": [1, 2, 3], "padding": [1, 0, 1, 0, 1, 1], "ceil_mode": True}
        yield name, attrs, [real(1, 2, 5, 6, 7)], set()
        yield name, {**attrs, "layout": "NDHWC"}, [real(1, 5, 6, 7, 3)], set()
    for size in ([1, 1], [5, 6], [7, 8], [3, 1]):
        for name in ("nn.adaptive_avg_pool2d", "nn.adaptive_max_pool2d"):
            yield name, {"output_size": size}, [real(2, 3, 7, 8)], set()
            yield name, {"output_size": size, "layout": "NHWC"}, [real(2, 7, 8, 3)], set()
    for name in ("nn.adaptive_avg_pool1d", "nn.adaptive_max_pool1d"):
        yield name, {"output_size": [3]}, [real(2, 3, 10)], set()
    for name in ("nn.global_avg_pool2d", "nn.global_max_pool2d"):
        yield name, {"layout": "NHWC"}, [real(2, 7, 8, 3)], set()
        yield name, {}, [whole(2, 3, 7, 8)], set()
    for method, corners in (("nearest_neighbor", False), ("bilinear", False), ("bilinear", True)):
        for layout in ("NCHW", "NHWC"):
            up = {"scale_h": 1.5, "scale_w": 2.0, "method": method, "align_corners": corners, "layout": layout}
            yield "nn.upsampling", up, [real(2, 3, 4, 6)], set()
    for mode in ("half_pixel", "align_corners", "asymmetric"):
        up = {"scale_d": 1.0, "scale_h": 2.0, "scale_w": 1.5, "method": "trilinear", "coordinate_transformation_mode": mode}
        yield "nn.upsampling3d", {**up, "layout": "NCDHW"}, [real(1, 2, 3, 4, 6)], set()


def depthwise() -> Iterator[Case]:
    """Channels last: batch, extents, channels, kernel, strides, padding, dilation, results a channel."""
    shapes: list[tuple[int, tuple[int, ...], int, tuple[int, ...], int, list[int], int, int]] = [
        (2, (7, 14), 32, (3, 3), 1, [1, 1, 1, 1], 1, 1),
        (1, (7, 9), 40, (3, 3), 2, [0, 0, 1, 1], 1, 1),
        (1, (5, 33), 5, (3, 3), 1, [1, 1, 1, 1], 1, 1),
        (1, (12, 30), 24, (5, 5), 2, [2, 2, 2, 2], 1, 1),
        (1, (9, 9), 16, (3, 2), 1, [2, 2, 2, 2], 2, 1),
        (1, (3, 4), 273, (7, 7), 1, [3, 3, 3, 3], 1, 1),
        (1, (6, 7), 9, (3, 3), 1, [1, 1, 1, 1], 1, 2),
        (2, (2, 90), 17, (3, 3), 1, [9, 30, 9, 30], 9, 1),
        (1, (2, 20), 16, (1, 17), 1, [0, 8, 0, 8], 1, 1),
        (1, (3, 3), 16, (3, 3), 4, [5, 5, 5, 5], 1, 1),
        (1, (40,), 19, (4,), 1, [2, 1], 1, 1),
        (1, (4, 5, 6), 18, (3, 2, 3), 1, [1, 0, 1, 1, 1, 1], 1, 1),
    ]
    for batch, size, channels, kernel, stride, pads, step, times in shapes:
        space = "DHW"[-len(size) :]
        attrs = {
            "data_layout": f"N{space}C",
            "kernel_layout": f"{space}OI",
            "groups": channels,
            "padding": pads,
            "channels": channels * times,
            "kernel_size": kernel,
            "strides": [stride] * len(size),
            "dilation": [step] * len(size),
        }
        x, w = (batch, *size, channels), (*kernel, channels, times)
        yield f"nn.conv{len(size)}d", attrs, [real(*x), real(*w)], set()
        if len(size) != 2:
            continue
        yield "nn.conv2d", attrs, [real(*x, dtype="float64"), real(*w, dtype="float64")], set()
        for source, weights, zeros in (
            ("uint8", "int8", (131, -3)),
            ("int8", "int8", (-128, 0)),
            ("uint8", "uint8", (0, 255)),
            ("int16", "int8", (0, 1)),
            ("int8", "int8", (1000, -1000)),
        ):
            low, high = (0, 255) if source == "uint8" else (-128, 127)
            args = [
                whole(*x, dtype=source, low=low, high=high),
                whole(*w, dtype=weights, low=0 if weights == "uint8" else -128, high=127, seed=2),
                i32(zeros[0]),
                i32(zeros[1]),
                f32(0.02),
                f32(0.01),
            ]
            more = {**attrs, "out_dtype": "int32"}
            yield "qnn.conv2d", more, args, {2, 3, 4, 5}
            yield "qnn.conv2d", more, args, set()


def images() -> Iterator[Case]:
    modes = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn", "tf_crop_and_resize")
    for mode in modes:
        for method in ("nearest_neighbor", "linear", "cubic"):
            for size, layout in (([9, 4], "NCHW"), ([3, 12], "NHWC"), ([1, 6], "NCHW")):
                attrs = {
                    "size": size,
                    "layout": layout,
                    "method": method,
                    "coordinate_transformation_mode": mode,
                    "roi": [0.1, -0.2, 0.8, 1.1] if mode[:2] == "tf" else [0.0, 0.0, 0.0, 0.0],
                    "rounding_method": "",
                    "cubic_alpha": -0.75,
                    "cubic_exclude": 0,
                    "extrapolation_value": 2.5,
                }
                yield "image.resize2d", attrs, [real(2, 3, 5, 6) if layout == "NCHW" else real(2, 5, 6, 3)], set()
    attrs = {
        "size": [7],
        "layout": "NCW",
        "method": "cubic",
        "coordinate_transformation_mode": "half_pixel",
        "roi": [0.0, 0.0],
        "rounding_method": "",
        "cubic_alpha": -0.5,
        "cubic_exclude": 1,
        "extrapolation_value": 0.0,
    }
    yield "image.resize1d", attrs, [real(1, 2, 5)], set()
    attrs = {**attrs, "size": [3, 5, 4], "layout": "NCDHW", "method": "linear", "roi": [0.0] * 6}
    yield "image.resize3d", attrs, [real(1, 2, 4, 3, 6)], set()
    attrs = {**attrs, "size": [9, 4], "layout": "NCHW", "roi": [0.0] * 4, "out_dtype": "uint8"}
    yield "image.resize2d", attrs, [whole(1, 2, 5, 6, dtype="uint8", low=0)], set()


def quantised() -> Iterator[Case]:
    held = {1, 2, 3, 4}
    for dtype in ("int8", "uint8", "int16", "int32"):
        x = f32([-1e9, -300, -0.75, -0.25, 0, 0.25, 0.74999, 0.75, 127.6, 1e9, np.nan, np.inf, -np.inf])
        yield "qnn.quantize", {"out_dtype": dtype}, [x, f32(0.5), i32(3)], {1, 2}
    for axis, shape in ((0, (3, 1, 1, 1)), (1, (1, 3, 1, 1)), (-1, (1, 1, 1, 3))):
        x = whole(*[3 if d == np.argmax(shape) else 4 for d in range(4)], low=-30000, high=30000)
        scale, zero = f32([0.01, 0.5, 3.3]), i32([0, 5, -9])
        for dtype in ("int8", "uint8"):
            yield "qnn.requantize", {"axis": axis, "out_dtype": dtype}, [x, scale, zero, f32(0.7), i32(-3)], held
            yield "qnn.requantize", {"axis": axis, "out_dtype": dtype}, [x, scale, zero, f32(0.7), i32(-3)], set()
        y = whole(*[3 if d == np.argmax(shape) else 4 for d in range(4)], dtype="int8")
        yield "qnn.dequantize", {"axis": axis, "out_dtype": "float32"}, [y, scale, zero], {1, 2}
        yield "qnn.dequantize", {"axis": axis, "out_dtype": "float32"}, [y, scale, zero], set()
        z = real(*[3 if d == np.argmax(shape) else 4 for d in range(4)], low=-9, high=9)
        yield "qnn.quantize", {"axis": axis, "out_dtype": "int8"}, [z, scale, zero], set()
    top = i32([2**31 - 1, -(2**31), 2**30, -(2**30), 0, 1, -1])
    for scale in (1e-8, 0.25, 0.9999999, 1.0):
        yield "qnn.requantize", {"out_dtype": "int8"}, [top, f32(scale), i32(0), f32(1), i32(7)], held
    geometry = {"channels": 18, "kernel_size": [3, 3], "out_dtype": "int32", "padding": [1, 0, 0, 1]}
    data, weight = whole(2, 3, 7, 9, dtype="uint8", low=0, high=256), whole(18, 3, 3, 3, dtype="uint8", low=0, high=256)
    for zeros in ((128, 120), (0, 255), (7, 0)):
        args = [data, weight, i32(zeros[0]), i32(zeros[1]), f32(0.1), f32(0.2)]
        yield "qnn.conv2d", {**geometry, "dilation": [2, 1], "strides": [1, 2]}, args, {2, 3, 4, 5}
        yield "qnn.conv2d", geometry, args, set()
    deep = {**geometry, "channels": 6, "groups": 3}
    args = [data, whole(6, 1, 3, 3, dtype="int8"), i32(5), i32(-3), f32(0.1), f32(0.2)]
    yield "qnn.conv2d", deep, args, {2, 3, 4, 5}
    args = [data, whole(18, 3, 3, 3, dtype="int8"), i32(5), whole(18, low=-9, high=9), f32(0.1), real(18, low=0.1)]
    yield "qnn.conv2d", geometry, args, {2, 3, 4, 5}
    nhwc = {"data_layout": "NHWC", "kernel_layout": "HWOI", "groups": 4, "channels": 4, "kernel_size": [3, 3], "out_dtype": "int32"}
    args = [whole(1, 6, 5, 4, dtype="int8"), whole(3, 3, 4, 1, dtype="int8"), i32(5), i32(0), f32(0.1), f32(0.2)]
    yield "qnn.conv2d", {**nhwc, "padding": [1, 1]}, args, {2, 3, 4, 5}
    for rows, units, depth in ((1, 10, 33), (5, 17, 64), (2, 1, 3)):
        args = [whole(rows, depth, dtype="uint8", low=0, high=256), whole(units, depth, dtype="int8"), i32(100)]
        yield "qnn.dense", {"units": units, "out_dtype": "int32"}, [*args, i32(-4), f32(0.1), f32(0.1)], {2, 3, 4, 5}
        zero = whole(units, low=-9, high=9)
        yield "qnn.dense", {"units": units, "out_dtype": "int32"}, [*args, zero, f32(0.1), real(units, low=0.1)], {2, 3, 4, 5}
    for dtype in ("int8", "uint8"):
        info = np.iinfo(dtype)
        a, b = (whole(3, 1, 50, dtype=dtype, low=info.min, high=info.max + 1, seed=s) for s in (1, 2))
        for name in ("qnn.add", "qnn.subtract", "qnn.mul"):
            scales = [f32(0.9), i32(info.min), f32(0.3), i32(5), f32(0.05), i32(info.max)]
            yield name, {}, [a, b[:, :, :1].copy(), *scales], set(range(2, 8))
            yield name, {}, [a, b, *scales], set()
        yield (
            "qnn.avg_pool2d",
            {"pool_size": [3, 2], "strides": [2, 1], "padding": [1, 0], "ceil_mode": True},
            [whole(1, 2, 6, 6, dtype=dtype, low=0, high=info.max), f32(0.1), i32(3), f32(0.1), i32(3)],
            held,
        )
        yield "qnn.leaky_relu", {"alpha": 0.01}, [a, f32(0.1), i32(4), f32(0.02), i32(9)], set()
        for name in ("tanh", "sigmoid", "hardswish"):
            yield f"qnn.{name}", {}, [a, f32(0.05), i32(3), f32(0.01), i32(1)], held
    for shift in (-20, 5):
        yield "fixed_point_multiply", {"multiplier": -(2**30), "shift": shift}, [whole(9, low=-1000, high=1000)], set()
    per_axis = [whole(4, 3, 5, low=-(2**20), high=2**20), whole(3, low=2**29, high=2**30), i32([0, 2, 1]), i32([3, 0, 7])]
    yield "fixed_point_multiply_per_axis", {"axes": [1]}, per_axis, set()
    up = {"channels": 3, "kernel_size": [2, 2], "strides": [2, 2], "out_dtype": "int32", "kernel_layout": "IOHW"}
    args = [whole(1, 4, 3, 3, dtype="uint8", low=0), whole(4, 3, 2, 2, dtype="int8"), i32(7), i32(-2), f32(1), f32(1)]
    yield "qnn.conv2d_transpose", up, args, set()


def places() -> Iterator[Case]:
    """Pixels at computed places in other layouts and element types, and with nothing in them."""
    x, moves, w = real(1, 7, 8, 4), real(1, 6, 7, 36, low=-2, high=2), real(3, 3, 2, 6)
    conv = {"deformable_groups": 2, "groups": 2, "channels": 6, "kernel_size": [3, 3], "padding": [0, 0, 1, 1]}
    attrs = {**conv, "data_layout": "NHWC", "kernel_layout": "HWIO"}
    yield "nn.deformable_conv2d", attrs, [x, moves, w], set()
    rois = np.asarray([[0, 0, 0, 6, 5], [1, 2.3, 1.2, 9.4, 7.7]])
    for dtype in ("float16", "float64"):
        data = real(2, 3, 8, 9, dtype=dtype)
        yield "vision.roi_pool", {"pooled_size": [2, 3], "spatial_scale": 1.0}, [data, rois.astype(dtype)], set()
        yield "image.affine_grid", {"target_shape": [1, 5]}, [real(2, 2, 3, dtype=dtype)], set()
        grid = real(1, 2, 4, 5, dtype=dtype, low=-1.6, high=1.6)
        yield "image.grid_sample", {}, [real(1, 3, 6, 7, dtype=dtype), grid], set()
        yield "vision.multibox_prior", {"sizes": [0.5, 0.2], "ratios": [1.0, 2.0]}, [real(1, 3, 4, 5, dtype=dtype)], set()
        yield "dft", {"inverse": dtype == "float16"}, [real(2, 3, 12, dtype=dtype), real(2, 3, 12, dtype=dtype)], set()
    numbers = f32([3, -0.0, np.nan, 3, 0, 7, np.nan, -1])
    for ordered in (True, False):
        yield "unique", {"sorted": ordered, "return_counts": True}, [numbers], set()
        yield "unique", {"sorted": ordered}, [i32([])], set()
    pool = {"pool_size": [3, 2], "strides": [2, 1], "padding": [1, 0, 1, 1], "layout": "NHWC"}
    for kind in ("max", "avg"):
        yield f"nn.{kind}_pool2d_grad", pool, [real(1, 4, 8, 3), real(1, 7, 8, 3)], set()
    yield "nn.max_pool2d_grad", {"pool_size": [2, 2], "strides": [1, 1]}, [whole(1, 2, 3, 3), whole(1, 2, 4, 4)], set()
    packed = [whole(3, 10, dtype="int8"), whole(2, 5, 4, 2, dtype="int8"), i32(3), i32(-2), f32(1), f32(1)]
    yield "qnn.contrib_dense_pack", {"units": 8, "weight_layout": "NK4n2k", "out_dtype": "int32"}, packed, set()
    yield "nn.contrib_dense_pack", {"units": 8, "weight_layout": "NK4n2k"}, [real(3, 10), real(2, 5, 4, 2)], set()
    for length in (1, 2, 7, 30, 64):
        yield "dft", {"inverse": length == 7}, [real(2, length), real(2, length, low=-2)], set()
    yield "stft", {"n_fft": 6, "hop_length": 2, "win_length": 4, "onesided": False, "normalized": True}, [real(13), real(4)], set()
    yield "vision.roi_align", {"pooled_size": [2, 2], "spatial_scale": 1.0}, [real(1, 3, 4, 4), np.zeros((0, 5), np.float32)], set()
    yield (
        "image.crop_and_resize",
        {"crop_size": [1, 3], "method": "bilinear"},
        [whole(1, 2, 5, 6, dtype="uint8", low=0, high=255), f32([[0.2, 0, 0.9, 1]]), i32([0])],
        set(),
    )
    for dtype in ("int8", "uint16", "float64"):
        yield (
            "image.dilation2d",
            {"padding": [1, 1]},
            [whole(2, 3, 5, 6, low=0, high=99).astype(dtype), whole(3, 2, 2, low=0).astype(dtype)],
            set(),
        )
    yield "matrix_set_diag", {"k1": -3, "k2": -1}, [whole(4, 3), whole(3, 3, low=9, high=20)], set()
    for new in ([3, -1], [6], [2, 3, 1], [2, 3]):
        yield "sparse_reshape", {}, [np.int64([[0, 1], [1, 2], [1, 0]]), np.int64([2, 3]), np.int64(new)], set()
    key = np.asarray([0, 7, 0, 0, 0, 0, 0, 0, 1 << 63, 0], np.uint64)
    yield "random.multinomial", {"num_samples": 4}, [key, real(2, 3, 5, low=0)], set()


def rest() -> Iterator[Case]:
    """What the interpreter has cases for, of operators that have none here."""
    known = {case[0] for case in [*KERNEL_CASES, *cases()]}
    yield from (case for case in [*rare(), *wide()] if case[0] not in known)


def cases() -> Iterator[Case]:
    for family in (
        unary,
        binary,
        casts,
        reductions,
        movements,
        algorithms,
        products,
        convolutions,
        depthwise,
        pools,
        images,
        quantised,
    ):
        yield from family()


CASES: list[Case] = [*KERNEL_CASES, *cases(), *rest(), *places()]

__all__ = ["CASES", "Case"]
