"""Calls of every operator that has a gradient, over the values of its attributes that change its meaning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from relaylang.ir import Call, Expr, TensorType, Tuple, Var, const
from relaylang.ops.build import op_call


class Case(NamedTuple):
    """A call of `op` on float64 parameters; `operands` are shapes (parameters), arrays (constants) or lists (tuples)."""

    op: str
    operands: tuple[Any, ...]
    attrs: dict[str, Any] = {}
    low: float = 0.2
    high: float = 0.9

    def __repr__(self) -> str:
        shapes = ["x".join(map(str, o)) if isinstance(o, tuple) else "" for o in self.operands]
        return ":".join([self.op, *shapes, *[n if isinstance(v, Expr) else f"{n}={v}" for n, v in self.attrs.items()]])

    def build(self) -> tuple[list[Var], Call]:
        """The parameters and the call."""
        params: list[Var] = []

        def operand(given: Any) -> Expr:
            if isinstance(given, Expr):
                return given
            if isinstance(given, list):
                return Tuple([operand(g) for g in given])
            if isinstance(given, tuple):
                params.append(Var(f"p{len(params)}", TensorType(given, "float64")))
                return params[-1]
            return const(given, str(given.dtype))

        args = [operand(o) for o in self.operands]
        return params, op_call(self.op, args, **self.attrs)


UNARY = (
    "log log10 log2 exp sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan asinh atanh sigmoid erf nn.relu abs negative "
    "copy ones_like zeros_like floor ceil round sign"
).split()
BINARY = "add subtract multiply divide power maximum minimum".split()
AXES: list[dict[str, Any]] = [
    {},
    {"axis": None, "keepdims": True},
    {"axis": [1]},
    {"axis": [-1, 0]},
    {"axis": [2, 0], "keepdims": True},
    {"axis": [0], "exclude": True},
    {"axis": [-1, 1], "exclude": True},
    {"axis": [1], "exclude": True, "keepdims": True},
    {"axis": [0, 1, 2], "exclude": True},
    {"axis": None, "exclude": True},
    {"axis": [], "exclude": True},
    {"axis": []},
    {"axis": [0, 1, 2], "keepdims": True},
]
PADDINGS: list[Any] = [[0, 0], [1], [1, 0], [0, 1, 1, 0], [1, 0, 0, 1]]
"""How pads are given: of all sides, of two, of four."""


def _i32(values: Any) -> np.ndarray:
    return np.asarray(values, "int32")


def _elementwise() -> Iterator[Case]:
    for name in UNARY:
        yield Case(name, ((2, 3),))
        yield Case(name, ((),))
    yield Case("annotation.checkpoint", ((2, 3),))
    for name in ("abs", "nn.relu", "negative", "sin", "atan", "erf"):
        yield Case(name, ((3, 4),), {}, -0.9, 0.9)
    yield Case("acosh", ((2, 3),), {}, 1.5, 3)
    for alpha in (0.0, 0.1, 0.25, 2.0):
        yield Case("nn.leaky_relu", ((3, 4),), {"alpha": alpha}, -1, 1)
    yield Case("clip", ((3, 4),), {"a_min": -0.4, "a_max": 0.3}, -1, 1)
    yield Case("clip", ((3, 4),), {"a_min": 2.0, "a_max": 3.0}, -1, 1)
    for name in BINARY:
        for left, right in (((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 3)), ((3,), (4, 1, 3)), ((), ())):
            yield Case(name, (left, right))
    for dtype in ("float64",):
        yield Case("cast", ((2, 3),), {"dtype": dtype})
    yield Case("cast_like", ((2, 3), (4,)))
    yield Case("where", (np.array([[True], [False]]), (2, 3), (3,)))
    yield Case("where", (np.array([True, False, True]), (2, 1), ()))
    for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
        yield Case(name, ((2, 3), (3,)))


def _reductions() -> Iterator[Case]:
    for name in ("sum", "mean", "max", "min", "argmax", "argmin"):
        for attrs in AXES:
            yield Case(name, ((2, 3, 2),), attrs)
    for attrs in AXES:
        for unbiased in (False, True):
            axes = attrs.get("axis")
            if attrs.get("exclude") and axes:
                kept = [a % 3 for a in axes]
            else:
                kept = [a for a in range(3) if axes and a not in [b % 3 for b in axes]]
            number = int(np.prod([n for i, n in enumerate((2, 3, 2)) if i not in kept]))
            if number == 1 and unbiased:
                continue
            mean = tuple(n if i in kept else 1 for i, n in enumerate((2, 3, 2)))
            yield Case("variance", ((2, 3, 2), mean), {**attrs, "unbiased": unbiased})
            yield Case("variance", ((2, 3, 2), (2, 3, 2)), {**attrs, "unbiased": unbiased})
    for name in ("nn.softmax", "nn.log_softmax"):
        for axis in (-1, 0, 1, 2, -3):
            yield Case(name, ((2, 3, 4),), {"axis": axis})


def _shapes() -> Iterator[Case]:
    for shape in ([3, 2], [-1], [0, -1], [-2], [-1, 3], [1, 2, 3], [-4, 1, 2, -2], [-3]):
        yield Case("reshape", ((2, 3),), {"newshape": shape})
    yield Case("reshape", ((2, 3),), {"newshape": [3, 2], "allowzero": True})
    yield Case("contrib_reverse_reshape", ((2, 3, 4),), {"newshape": [-1, 0]})
    yield Case("contrib_reverse_reshape", ((2, 3, 4),), {"newshape": [-3, 0]})
    yield Case("reshape_like", ((2, 3), (3, 2)))
    yield Case("reshape_like", ((6, 4), (2, 3)), {"lhs_begin": 0, "lhs_end": 1, "rhs_begin": 0, "rhs_end": 2})
    yield Case("reshape_like", ((2, 6), (5, 2, 3)), {"lhs_begin": 1, "lhs_end": None, "rhs_begin": 1, "rhs_end": None})
    yield Case("dyn.reshape", ((2, 3), np.array([3, 2], "int64")), {"newshape": []})
    yield Case("nn.batch_flatten", ((2, 3, 4),))
    for axis in (None, [0], [-1], [0, 2]):
        yield Case("squeeze", ((1, 3, 1),), {"axis": axis} if (axis is not None and len(axis) != 1) or axis else {})
    for axis, number in ((0, 1), (-1, 1), (1, 2), (-2, 3)):
        yield Case("expand_dims", ((2, 3),), {"axis": axis, "num_newaxis": number})
    for axes in (None, [0, 2, 1], [-1, 0, 1], [2, 1, 0], [1, -1, 0]):
        yield Case("transpose", ((2, 3, 4),), {"axes": axes})
    for source, target, shape in (
        ("NCHW", "NHWC", (1, 4, 2, 3)),
        ("NCHW", "NCHW2c", (1, 4, 2, 3)),
        ("NCHW2c", "NHWC", (1, 2, 2, 3, 2)),
        ("OIHW", "OIHW2i4o", (4, 2, 1, 2)),
    ):
        yield Case("layout_transform", (shape,), {"src_layout": source, "dst_layout": target})
    yield Case("broadcast_to", ((1, 3),), {"shape": [4, 2, 3]})
    yield Case("broadcast_to", ((),), {"shape": [2, 3]})
    yield Case("broadcast_to_like", ((2, 1), (3, 2, 4)))
    yield Case("collapse_sum_like", ((2, 3, 4), (3, 1)))
    yield Case("collapse_sum_to", ((2, 3, 4), _i32([3, 1])), {"shape": [3, 1]})
    for axis in (0, 1, -1):
        yield Case("concatenate", ([(2, 3), (2, 3)],), {"axis": axis})
        yield Case("stack", ([(2, 3), (2, 3), (2, 3)],), {"axis": axis})
    yield Case("concatenate", ([(2, 3), (2, 1), (2, 4)],), {"axis": -1})
    yield Case("stack", ([(), ()],), {"axis": 0})
    yield Case("stack", ([(2,), (2,)],), {"axis": -2})
    for how in (2, [1], [1, 3], [1, 2]):
        for axis in (1, -1):
            yield Case("split", ((3, 4),), {"indices_or_sections": how, "axis": axis})
    for axis in (1, 0, -1, -2):
        shape = (2, 3, 4)
        yield Case("nn.bias_add", (shape, (shape[axis],)), {"axis": axis})


def _slices() -> Iterator[Case]:
    for begin, end, strides in (
        ([1, 0], [3, 7], [1, 1]),
        ([0, 0], [5, 7], [2, 3]),
        ([4, 6], [-6, -8], [-1, -2]),
        ([1, -2], [9, 0], [2, -3]),
        ([-9], [9], [1]),
        ([1], [4], None),
        ([3], [1], [-1]),
        ([0, 0], [4, 6], [2]),
        ([1, 1], [5, 7], []),
    ):
        yield Case("strided_slice", ((5, 7),), {"begin": begin, "end": end, "strides": strides})
    for axes in ([1], [-1], [0]):
        yield Case("strided_slice", ((5, 7),), {"begin": [1], "end": [4], "strides": [2], "axes": axes})
    yield Case("strided_slice", ((5, 7),), {"begin": [1, 2], "end": [5, 6], "strides": [1, 2], "axes": [1, 0]})
    yield Case("strided_slice", ((5, 7),), {"begin": [1, 2], "end": [3, -1], "strides": [1, 1], "slice_mode": "size"})
    yield Case("strided_slice", ((5, 7),), {"begin": [-3], "end": [2], "strides": [1], "slice_mode": "size"})
    yield Case("strided_slice", ((5, 7),), {"begin": [1], "end": [2], "strides": [1], "slice_mode": "size", "axes": [1]})
    for picked in ([[0, 2], [2, 1]], [1, 1, 9], 2, -1, [-2, 5]):
        for axis in (None, 0, 1, -1):
            for mode in ("clip", "wrap"):
                yield Case("take", ((3, 4, 3), _i32(picked)), {"axis": axis, "mode": mode})
    for picked in ([0, 2, 2], [[1], [0]]):
        yield Case("take", ((3, 4), _i32(picked)), {"axis": 1, "mode": "fast"})
    yield Case("gather_nd", ((3, 4), _i32([[0, 1, 1], [3, 0, 0]])))
    yield Case("gather_nd", ((3, 4), _i32([[2, 2]])))
    yield Case("gather_nd", ((3, 4), _i32([[0, 1, 1], [3, 0, 0]])), {"index_rank": 2})


def _creation() -> Iterator[Case]:
    yield Case("full", ((),), {"shape": [2, 3], "dtype": "float64"})
    for axis in (-1, 0, 1, 2):
        yield Case("one_hot", (_i32([[0, 2, 1], [4, -1, 0]]), (), ()), {"depth": 4, "axis": axis, "dtype": "float64"})
    yield Case("one_hot", (_i32([1, 0]), (), ()), {"depth": 2, "axis": -1, "dtype": "float64"})
    for step in (1.5, -0.5):
        numbers = [const(n, "float64") for n in (2.0, 2.0 + 6.9 * step, step)]
        names = dict(zip(("start", "stop", "step"), numbers))
        yield Case("arange", tuple(numbers), {**names, "dtype": "float64"})
    yield Case("zeros", (), {"shape": [2], "dtype": "float64"})
    yield Case("ones", (), {"shape": [2], "dtype": "float64"})
    yield Case("shape_of", ((2, 3),), {"dtype": "int32"})
    yield Case("ndarray_size", ((2, 3),), {"dtype": "int32"})


def _products() -> Iterator[Case]:
    for shape in ((2, 3), (3,), (2, 2, 3), (1, 2, 1, 3)):
        yield Case("nn.dense", (shape, (4, 3)))
    yield Case("nn.dense", ((2, 3), (4, 3)), {"units": 4, "out_dtype": "float64"})
    for ta in (False, True):
        for tb in (False, True):
            sides = {"transpose_a": ta, "transpose_b": tb}
            left, right = (4, 3) if ta else (3, 4), (5, 4) if tb else (4, 5)
            yield Case("nn.matmul", (left, right), {**sides, "units": 5})
            for a, b in ((2, 2), (1, 2), (2, 1), (1, 1)):
                yield Case("nn.batch_matmul", ((a, *left), (b, *right)), {**sides, "out_dtype": "float64"})
    yield Case("nn.cross_entropy", ((3, 4), (3, 4)))
    yield Case("nn.cross_entropy_with_logits", ((3, 4), (3, 4)))


def _convolutions() -> Iterator[Case]:
    def conv(data: tuple[int, ...] = (2, 4, 6, 5), weight: tuple[int, ...] = (6, 4, 3, 2), **attrs: Any) -> Case:
        return Case("nn.conv2d", (data, weight), attrs)

    yield conv()
    yield conv(kernel_size=[3, 2], channels=6, out_dtype="float64")
    for padding in (*PADDINGS, [3, 3], [2, 1, 0, 3]):
        for strides in ([1, 1], [2, 1], [2, 3]):
            for dilation in ([1, 1], [2, 1], [2, 3]):
                for groups in (1, 2, 4):
                    weight = (8, 4 // groups, 3, 2)
                    if (dilation, padding) == ([2, 3], [0, 0]) and strides == [2, 3] and groups == 4:
                        continue
                    yield conv((2, 4, 6, 5), weight, padding=padding, strides=strides, dilation=dilation, groups=groups)
    yield conv((1, 4, 5, 5), (4, 1, 3, 3), groups=4, channels=4, kernel_size=[3, 3], padding=[1, 1])
    yield conv((1, 2, 5, 5), (3, 2, 1, 1), strides=[3, 3])
    for data, kernel in (("NHWC", "HWIO"), ("NHWC", "OHWI"), ("NCHW", "HWIO"), ("HWCN", "HWIO"), ("NHWC", "OIHW")):
        for attrs in ({}, {"padding": [1, 0, 2, 1], "strides": [2, 1]}, {"groups": 2, "dilation": [1, 2]}):
            sizes = {"N": 2, "C": 4, "H": 6, "W": 5, "O": 4, "I": 4 // attrs.get("groups", 1)}
            weight_sizes = {**sizes, "H": 3, "W": 2}
            shapes = [tuple(sizes[c] for c in data), tuple(weight_sizes[c] for c in kernel)]
            yield conv(*shapes, data_layout=data, kernel_layout=kernel, channels=4, kernel_size=[3, 2], **attrs)
    yield conv(out_layout="NHWC", channels=6, kernel_size=[3, 2], padding=[1, 1])
    yield conv((2, 2, 6, 5, 2), (6, 4, 3, 2), data_layout="NCHW2c", channels=6, kernel_size=[3, 2])
    yield conv(
        (2, 2, 6, 5, 2),
        (3, 2, 3, 2, 2, 2),
        data_layout="NCHW2c",
        kernel_layout="OIHW2i2o",
        channels=6,
        kernel_size=[3, 2],
        strides=[2, 1],
    )


def _pools() -> Iterator[Case]:
    more: list[dict[str, Any]]
    for name in ("nn.max_pool2d", "nn.avg_pool2d"):
        counts = (False, True) if name == "nn.avg_pool2d" else (None,)
        for padding in (*PADDINGS, [0, 0, 2, 1]):
            for strides in ([1, 1], [2, 3], [3, 2]):
                for ceil in (False, True):
                    for count in counts:
                        attrs = {"pool_size": [3, 2], "strides": strides, "padding": padding, "ceil_mode": ceil}
                        if count is not None:
                            attrs["count_include_pad"] = count
                        yield Case(name, ((1, 2, 5, 6),), attrs)
        more = [{"dilation": [2, 1]}, {"dilation": [2, 2], "padding": [1, 0, 2, 1], "strides": [2, 1]}]
        for attrs in more:
            yield Case(name, ((1, 2, 6, 7),), {"pool_size": [2, 2], **attrs})
        yield Case(name, ((1, 5, 6, 2),), {"pool_size": [3, 2], "layout": "NHWC", "padding": [1, 0]})
        yield Case(name, ((5, 6, 2, 1),), {"pool_size": [3, 2], "layout": "HWCN", "padding": [0, 1], "strides": [2, 2]})
        yield Case(name, ((1, 1, 5, 6, 2),), {"pool_size": [3, 2], "layout": "NCHW2c", "padding": [1, 0], "ceil_mode": True})
        yield Case(name, ((1, 2, 5, 6),), {"pool_size": [3, 2], "out_layout": "NHWC", "padding": [1, 0]})
        yield Case(name, ((1, 2, 5, 6),), {"pool_size": [2, 2], "strides": [2, 2]})
    for attrs in ({}, {"layout": "NHWC"}, {"layout": "NCHW2c"}, {"out_layout": "NHWC"}):
        shape = (1, 2, 3, 4, 2) if attrs.get("layout") == "NCHW2c" else (1, 2, 3, 4)
        yield Case("nn.global_avg_pool2d", (shape,), attrs)


def cases() -> list[Case]:
    """All of them."""
    families = (_elementwise, _reductions, _shapes, _slices, _creation, _products, _convolutions, _pools)
    return [case for family in families for case in family()]


BEYOND = [
    Case("take", ((2, 3, 4), _i32([[0, 1], [2, 2]])), {"axis": 1, "batch_dims": 1}),
    Case("take", ((2, 3, 4), _i32([[0, 3], [2, 2]])), {"axis": -1, "batch_dims": -1, "mode": "wrap"}),
    Case("gather_nd", ((2, 3, 4), _i32([[2, 1], [0, 1]])), {"batch_dims": 1}),
    Case("sort", ((3, 4),), {"axis": 1}),
]
"""Calls that no rule covers."""
