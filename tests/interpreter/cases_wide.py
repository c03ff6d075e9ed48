"""Every operator over element types and attributes: what the other cases leave out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.interpreter.values import Case, f32, i32, real, whole

FLOATS = ("float16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTS = SIGNED + UNSIGNED
#: unary operators on floats, and from where to where they are tried
UNARY = {
    **dict.fromkeys(("exp", "sigmoid", "tanh", "erf", "sin", "cos", "sinh", "cosh", "asinh", "atan"), (-3.0, 3.0)),
    **dict.fromkeys(("fast_exp", "fast_tanh", "fast_erf"), (-3.0, 3.0)),
    **dict.fromkeys(("tan",), (-1.0, 1.0)),
    **dict.fromkeys(("asin", "acos", "atanh"), (-0.9, 0.9)),
    **dict.fromkeys(("log", "log10", "log2", "sqrt", "rsqrt"), (0.1, 9.0)),
    **dict.fromkeys(("acosh",), (1.1, 9.0)),
    **dict.fromkeys(("floor", "ceil", "trunc", "round", "sign", "abs", "negative", "nn.relu", "copy"), (-9.0, 9.0)),
}


def numbers(dtype: str, *shape: int, seed: int = 1, low: int = -100, high: int = 100) -> np.ndarray:
    if dtype == "bool":
        return whole(*shape, low=0, high=2, seed=seed).astype(bool)
    return whole(*shape, dtype=dtype, low=low if dtype[0] != "u" else max(low, 0), high=high, seed=seed)


def elements() -> Iterator[Case]:
    special = [0.0, -0.0, np.inf, -np.inf, np.nan]
    for name, (low, high) in UNARY.items():
        for dtype in FLOATS:
            yield name, {}, [real(3, 5, dtype=dtype, low=low, high=high)], set()
        if not name.startswith("fast"):
            yield name, {}, [f32(special)], set()
    for name in ("isnan", "isfinite", "isinf"):
        for dtype in FLOATS:
            yield name, {}, [np.asarray([*special, 1.5], dtype)], set()
    for dtype in INTS:
        for name in ("copy", "abs", "negative", "sign", "floor", "ceil", "trunc", "round", "nn.relu", "bitwise_not"):
            if dtype not in UNSIGNED or name not in (
                "sign",
                "negative",
            ):  # TVM refuses the one, and makes zeros of the other
                yield name, {}, [numbers(dtype, 7)], set()
        for name in ("zeros_like", "ones_like"):
            yield name, {}, [numbers(dtype, 2, 3)], set()
        yield "full_like", {}, [numbers(dtype, 2, 3), np.asarray(5, dtype)], {1}
        yield "clip", {"a_min": 3.0, "a_max": 50.0}, [numbers(dtype, 9)], set()
    for dtype in (*INTS, *FLOATS, "bool"):
        a, b = numbers(dtype, 3, 4), numbers(dtype, 4, seed=2)
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
            if dtype != "bool":
                yield name, {}, [a, b], set()
        for name in ("maximum", "minimum", "add", "subtract", "multiply"):
            if dtype != "bool":
                yield name, {}, [a, b], set()
        yield "where", {}, [numbers("bool", 3, 4), a, b], set()
    for dtype in (*INTS, *FLOATS):
        a, b = numbers(dtype, 9, low=-90), numbers(dtype, 9, low=1, high=9, seed=3)
        signed = -b if dtype[0] != "u" else b
        for name in ("divide", "floor_divide", "floor_mod", "mod", "trunc_divide", "trunc_mod"):
            if dtype != "float16" or name == "divide":
                yield name, {}, [a, b], set()
                yield name, {}, [a, signed], set()
    for dtype in INTS:
        bits = 8 * np.dtype(dtype).itemsize
        a, b = numbers(dtype, 9), numbers(dtype, 9, low=0, high=bits - 1, seed=2)
        for name in ("left_shift", "right_shift", "bitwise_and", "bitwise_or", "bitwise_xor"):
            yield name, {}, [a, b], set()
    for dtype in ("float32", "float64"):
        yield "power", {}, [real(9, dtype=dtype, low=0.3, high=3), real(9, dtype=dtype, low=-3, high=3)], set()
        yield "power", {}, [real(9, dtype=dtype, low=-3, high=3), np.asarray(2, dtype)], {1}
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield name, {}, [numbers("bool", 3, 1), numbers("bool", 4, seed=2)], set()
    yield "cast_like", {}, [real(5, low=-9, high=9), i32([0])], set()


def casts() -> Iterator[Case]:
    every = (*INTS, *FLOATS, "bool")
    for source in every:
        if source in FLOATS:
            values = np.asarray([1.7, -1.7, 0.5, -0.5, 100.2, 0.0, 65.5], source)
        elif source == "bool":
            values = np.asarray([True, False])
        else:
            info = np.iinfo(source)
            values = np.asarray([info.min, info.max, info.max // 2 + 3, 0, 1, info.min // 3], source)
        for target in every:
            if source == target or (source, target) == ("float64", "float16"):  # TVM has no such conversion on x86
                continue
            if source in FLOATS and target in UNSIGNED:
                values = np.abs(values)
            yield "cast", {"dtype": target}, [values], set()
    for source, target in (("float32", "int32"), ("int32", "uint32"), ("int64", "float64"), ("uint8", "int8")):
        yield "reinterpret", {"dtype": target}, [numbers(source, 6)], set()


def reductions() -> Iterator[Case]:
    for dtype in (*INTS, "float64"):
        x = numbers(dtype, 3, 4, 2, high=30, low=-30)
        for name in ("sum", "max", "min", "prod", "mean", "argmax", "argmin"):
            for attrs in ({"axis": [1]}, {"axis": [0, 2], "keepdims": True}, {"axis": [1], "exclude": True}):
                if name in ("argmax", "argmin") and len(attrs["axis"]) > 1:  # type: ignore[arg-type]
                    continue
                yield name, attrs, [x], set()
        yield "cumsum", {"axis": 1}, [x], set()
        if dtype not in ("int32", "int64", "float64"):
            continue
        yield "sort", {"axis": 1}, [x], set()
        yield "argsort", {"axis": 1, "dtype": "int64"}, [x], set()
        yield "topk", {"k": 3, "axis": 1, "ret_type": "values", "dtype": "int64"}, [x], set()
        yield "topk", {"k": 3, "axis": 1, "ret_type": "indices", "dtype": "int64"}, [x], set()
    for name in ("all", "any"):
        yield name, {"axis": [1], "keepdims": True}, [numbers("bool", 3, 4)], set()
        yield name, {"axis": [0, 1]}, [numbers("bool", 3, 4)], set()
    yield "collapse_sum_like", {}, [real(2, 3, 4), real(3, 1)], set()
    for right in (True, False):
        for dtype in ("int32", "int64"):
            ordered = np.sort(real(2, 6), axis=1)
            yield "searchsorted", {"right": right, "dtype": dtype}, [ordered, real(2, 3)], set()


def movements() -> Iterator[Case]:
    for dtype in ("int8", "uint8", "int64", "float16", "float64", "bool"):
        x = numbers(dtype, 2, 3, 4)
        yield "transpose", {"axes": [1, 2, 0]}, [x], set()
        yield "concatenate", {"axis": -1}, [(x, x)], set()
        yield "strided_slice", {"begin": [0, 3], "end": [2, -5], "strides": [1, -2], "axes": [0, 2]}, [x], set()
        yield "take", {"axis": 1, "mode": "clip"}, [x, np.asarray([0, 2, -1, 7], np.int64)], set()
        yield "gather_nd", {}, [x, np.asarray([[0, 1], [2, 0], [3, 3]], np.int64)], set()
        yield "reverse", {"axis": -1}, [x], set()
        yield "repeat", {"repeats": 3, "axis": -1}, [x], set()
        yield "tile", {"reps": [2, 1]}, [x], set()
        yield "ndarray_size", {"dtype": "int64"}, [x], set()
        yield "shape_of", {"dtype": "int64"}, [x], set()
        if dtype != "bool":
            yield "nn.pad", {"pad_width": [[0, 1], [1, 0], [0, 0]]}, [x, np.asarray(3, dtype)], {1}
    yield "broadcast_to_like", {}, [real(3, 1), real(2, 3, 4)], set()
    yield "contrib_reverse_reshape", {"newshape": [-1, 0]}, [real(2, 3, 4)], set()
    for indexing in ("ij", "xy"):
        yield "meshgrid", {"indexing": indexing}, [(real(3), real(4))], set()
    yield "argwhere", {}, [whole(3, 4, low=0, high=2)], set()
    yield "invert_permutation", {}, [i32([2, 0, 3, 1])], set()
    yield "strided_set", {}, [real(4, 5), real(2, 2, low=3, high=4), i32([0, 1]), i32([4, 5]), i32([2, 2])], set()
    yield "zeros", {"shape": [2, 3], "dtype": "int8"}, [], set()
    yield "ones", {"shape": [2, 3], "dtype": "float64"}, [], set()
    for mode in ("update", "add", "mul", "min", "max", "mean"):
        places = np.asarray([[0, 1, 1], [2, 2, 0]], np.int64)
        yield "scatter_elements", {"axis": 1, "reduction": mode}, [real(2, 3), places, real(2, 3, low=2, high=5)], set()
    yield (
        "sparse_reshape",
        {},
        [np.asarray([[0, 1], [2, 3]], np.int64), np.asarray([3, 4], np.int64), np.asarray([2, -1], np.int64)],
        set(),
    )
    for layout in ("NHWC", "CHWN", "NCHW2c", "NHWC4c"):
        yield "layout_transform", {"src_layout": "NCHW", "dst_layout": layout}, [real(2, 8, 3, 4)], set()
    yield "layout_transform", {"src_layout": "NCHW4c", "dst_layout": "NHWC"}, [real(1, 2, 3, 4, 4)], set()
    yield "layout_transform", {"src_layout": "OIHW", "dst_layout": "OIHW2i4o"}, [real(8, 4, 3, 3)], set()


def networks() -> Iterator[Case]:
    for groups in (1, 2):
        for layout, kernel in (("NCW", "OIW"), ("NWC", "WIO")):
            x = real(2, 4, 9) if layout == "NCW" else real(2, 9, 4)
            w = real(6, 4 // groups, 3) if kernel == "OIW" else real(3, 4 // groups, 6)
            attrs = {"channels": 6, "kernel_size": [3], "padding": [2, 1], "dilation": [2], "groups": groups}
            yield "nn.conv1d", {**attrs, "data_layout": layout, "kernel_layout": kernel}, [x, w], set()
        attrs = {"channels": 6, "kernel_size": [3, 2], "padding": [1, 0, 2, 1], "strides": [2, 1], "groups": groups}
        nhwc = {**attrs, "data_layout": "NHWC", "kernel_layout": "HWIO"}
        yield "nn.conv2d", nhwc, [real(2, 7, 6, 4), real(3, 2, 4 // groups, 6)], set()
        yield (
            "nn.conv2d",
            {**attrs, "out_dtype": "int32"},
            [whole(1, 4, 7, 6, dtype="int8"), whole(6, 4 // groups, 3, 2, dtype="int8", seed=2)],
            set(),
        )
        yield (
            "nn.conv2d",
            {**attrs, "out_dtype": "int32"},
            [whole(1, 4, 7, 6, dtype="uint8", low=0, high=255), whole(6, 4 // groups, 3, 2, dtype="int8", seed=2)],
            set(),
        )
        attrs = {"channels": 4, "kernel_size": [2, 3, 3], "padding": [0, 1, 1], "dilation": [1, 2, 1], "groups": groups}
        yield "nn.conv3d", attrs, [real(1, 4, 4, 6, 5), real(4, 4 // groups, 2, 3, 3)], set()
        up = {"channels": 6, "kernel_size": [3, 3], "strides": [2, 3], "padding": [0, 1], "groups": groups}
        yield "nn.conv2d_transpose", up, [real(1, 4, 3, 4), real(4, 6 // groups, 3, 3)], set()
    multiplied = {"channels": 8, "kernel_size": [3, 3], "groups": 4}
    yield "nn.conv2d", multiplied, [real(1, 4, 6, 6), real(8, 1, 3, 3)], set()
    depth = {**multiplied, "data_layout": "NHWC", "kernel_layout": "HWOI"}
    yield "nn.conv2d", depth, [real(1, 6, 6, 4), real(3, 3, 4, 2)], set()
    for dtype in ("float16", "float64"):
        geometry = {"channels": 3, "kernel_size": [3, 3]}
        yield "nn.conv2d", geometry, [real(1, 2, 6, 6, dtype=dtype), real(3, 2, 3, 3, dtype=dtype)], set()
        yield "nn.dense", {"units": 5}, [real(3, 8, dtype=dtype), real(5, 8, dtype=dtype)], set()
    up3 = {"channels": 3, "kernel_size": [3, 2, 2], "strides": [2, 1, 2], "padding": [1, 0, 1]}
    yield "nn.conv3d_transpose", up3, [real(1, 2, 3, 4, 3), real(2, 3, 3, 2, 2)], set()
    for bits in ("uint8", "int8"):
        x = whole(3, 16, dtype=bits, low=0)
        yield "nn.dense", {"units": 5, "out_dtype": "int32"}, [x, whole(5, 16, dtype="int8", seed=2)], set()
    for a, b in ((False, False), (True, False), (False, True), (True, True)):
        left, right = real(2, 4, 3) if a else real(2, 3, 4), real(2, 5, 4) if b else real(2, 4, 5)
        yield "nn.batch_matmul", {"transpose_a": a, "transpose_b": b}, [left, right], set()
        yield "nn.matmul", {"units": None, "transpose_a": a, "transpose_b": b}, [left[0], right[0]], set()
    for n, layout, tail in ((1, "NCW", (9,)), (1, "NWC", ()), (3, "NCDHW", (5, 6, 4)), (3, "NDHWC", ())):
        shape = (2, 3, *tail) if tail else (2, *((9,) if n == 1 else (5, 6, 4)), 3)
        for kind in ("max", "avg"):
            pool = {"pool_size": [2] * n, "strides": [2] * n, "padding": [1] * 2 * n, "ceil_mode": True}
            yield f"nn.{kind}_pool{n}d", {**pool, "layout": layout}, [real(*shape)], set()
            if layout == "NCDHW" or n == 1:
                size = {"output_size": [3] * n, "layout": layout}
                yield f"nn.adaptive_{kind}_pool{n}d", size, [real(*shape)], set()
    for dtype in ("int8", "uint8", "int32"):
        x = numbers(dtype, 1, 2, 6, 6)
        for kind in ("max", "avg") if dtype == "int32" else ("max",):  # TVM's sums of bytes overflow
            yield f"nn.{kind}_pool2d", {"pool_size": [3, 3], "strides": [2, 2], "padding": [1, 1, 1, 1]}, [x], set()
            yield f"nn.global_{kind}_pool2d", {}, [x], set()
    backward = {"kernel_size": [3, 3], "padding": [1, 1], "channels": 5, "kernel_layout": "NCHW", "out_layout": "OIHW"}
    yield "nn.conv2d_backward_weight", backward, [real(2, 5, 6, 7), real(2, 4, 6, 7)], set()
    backward = {**backward, "strides": [2, 2]}
    yield "nn.conv2d_backward_weight", backward, [real(2, 5, 3, 4), real(2, 4, 6, 7)], set()
    for axis in (0, 1, 2):
        yield "nn.softmax", {"axis": axis}, [real(2, 3, 4)], set()
        yield "nn.fast_softmax", {"axis": axis}, [real(2, 3, 4)], set()
    yield "nn.log_softmax", {"axis": 0}, [real(4, 5)], set()
    for dtype in ("float16", "float64"):
        yield "nn.softmax", {"axis": -1}, [real(3, 5, dtype=dtype)], set()
    scale = [real(3, low=0.5), real(3), real(3), real(3, low=0.3)]
    yield "nn.batch_norm", {"axis": 3, "epsilon": 1e-3}, [real(2, 4, 5, 3), *scale], set()
    yield "nn.layer_norm", {"axis": 1, "epsilon": 1e-3, "center": False}, [real(2, 3, 4), real(3), real(3)], set()
    yield "nn.instance_norm", {"axis": 1, "scale": False}, [real(2, 3, 4, 5), real(3), real(3)], set()
    yield "dft", {"inverse": False}, [real(3, 8), real(3, 8, low=-2)], set()
    yield "dft", {"inverse": True}, [real(3, 8), real(3, 8, low=-2)], set()
    yield (
        "fixed_point_multiply_per_axis",
        {"is_lshift_required": True, "is_rshift_required": True, "axes": [1]},
        [whole(2, 3, low=-5000, high=5000), i32([1395864371, 1073741824, 2**31 - 1]), i32([1, 0, 2]), i32([0, 3, 1])],
        set(),
    )


def quantised() -> Iterator[Case]:
    sums = whole(2, 3, 30, low=-(2**22), high=2**22)
    small = {dtype: numbers(dtype, 2, 3, 30, low=-128, high=128 if dtype == "int8" else 256) for dtype in ("int8", "uint8")}
    for rounding in ("UPWARD", "TONEAREST"):
        for compute in ("int64", "float32", "float64"):
            for out in ("int8", "uint8", "int16", "int32"):
                how = {"rounding": rounding, "compute_dtype": compute, "out_dtype": out}
                plain = [sums, f32(0.00077), i32(11), f32(0.0391), i32(3)]
                yield "qnn.requantize", how, plain, {1, 2, 3, 4}
                channel = [sums, f32([0.0007, 0.0123, 1.5]), i32(0), f32(0.77), i32(-3 if out[0] == "i" else 3)]
                yield "qnn.requantize", {**how, "axis": 1}, channel, {1, 2, 3, 4}
                for data in small.values():
                    yield "qnn.requantize", how, [data, f32(0.31), i32(5), f32(0.13), i32(1)], {1, 2, 3, 4}
    data, weight = (
        numbers("int8", 1, 4, 6, 6, low=-128, high=128),
        numbers("int8", 8, 4, 3, 3, seed=2, low=-128, high=128),
    )
    geometry = {"channels": 8, "kernel_size": [3, 3], "out_dtype": "int32"}
    channel = f32(np.linspace(0.1, 0.9, 8))
    for zeros in ((0, 0), (-7, 0), (-7, 5)):
        for attrs in ({"padding": [1, 2, 0, 1]}, {"strides": [2, 2]}, {"dilation": [2, 1], "padding": [2, 2, 2, 2]}):
            args = [data, weight, i32(zeros[0]), i32(zeros[1]), f32(0.3), channel]
            yield "qnn.conv2d", {**geometry, **attrs}, args, {2, 3, 4, 5}
        grouped = {"channels": 8, "groups": 2, "kernel_size": [3, 3], "out_dtype": "int32", "padding": [1, 1, 1, 1]}
        args = [data, numbers("int8", 8, 2, 3, 3, seed=4), i32(zeros[0]), i32(0), f32(0.3), channel]
        yield "qnn.conv2d", grouped, args, {2, 3, 4, 5}
        args = [numbers("int8", 3, 16), numbers("int8", 5, 16, seed=3), i32(zeros[0]), i32(zeros[1]), f32(1), f32(1)]
        yield "qnn.dense", {"units": 5, "out_dtype": "int32"}, args, {2, 3, 4, 5}
        up = {"channels": 5, "kernel_size": [3, 3], "strides": [2, 2], "padding": [1, 1, 1, 1], "out_dtype": "int32"}
        args = [numbers("int8", 1, 4, 5, 6), numbers("int8", 4, 5, 3, 3), i32(zeros[0]), i32(zeros[1]), f32(1), f32(1)]
        yield "qnn.conv2d_transpose", {**up, "output_padding": [1, 1]}, args, {2, 3, 4, 5}
    for dtype in ("int8", "uint8"):
        a, b = numbers(dtype, 4, 9, high=128), numbers(dtype, 1, 9, seed=5, high=128)
        for name in ("qnn.add", "qnn.subtract", "qnn.mul"):
            scales = [f32(0.011), i32(2), f32(0.7), i32(-10), f32(0.23), i32(5)]
            yield name, {}, [a, b, *scales], set(range(2, 8))
        for name in ("abs", "erf", "exp", "hardswish", "log", "rsqrt", "sigmoid", "sqrt", "tanh"):
            x = numbers(dtype, 40, low=11, high=128)
            yield (
                f"qnn.{name}",
                {},
                [x, f32(0.0713), i32(9), f32(0.0317), i32(-5 if dtype == "int8" else 5)],
                {1, 2, 3, 4},
            )
        for alpha in (0.1, 0.7):
            yield "qnn.leaky_relu", {"alpha": alpha}, [a, f32(0.1), i32(10), f32(0.3), i32(9)], {1, 2, 3, 4}
        pool = {"pool_size": [3, 2], "strides": [2, 1], "padding": [1, 0, 1, 1], "count_include_pad": True}
        image = numbers(dtype, 1, 3, 6, 6)
        yield "qnn.avg_pool2d", pool, [image, f32(0.1), i32(10), f32(0.15), i32(9)], {1, 2, 3, 4}
        yield (
            "qnn.quantize",
            {"out_dtype": dtype, "axis": 0},
            [real(3, 40, low=-200, high=200), f32([0.5, 0.77, 1.3]), i32([1, 2, 3])],
            {1, 2},
        )
    yield "qnn.quantize", {"out_dtype": "int16"}, [real(40, low=-200, high=200), f32(0.01), i32(100)], {1, 2}
    yield (
        "qnn.quantize",
        {"out_dtype": "int8"},
        [f32([0.125, 0.375, -0.125, -0.375, 1e9, -1e9]), f32(0.25), i32(0)],
        {1, 2},
    )
    for out in ("float32", "float16"):
        yield (
            "qnn.dequantize",
            {"out_dtype": out},
            [numbers("int16", 40, low=-3000, high=3000), f32(0.3), i32(7)],
            {1, 2},
        )
    softmax = [numbers("int8", 3, 10, low=-128, high=128), f32(0.11), i32(-4), f32(1 / 256), i32(-128)]
    yield "qnn.softmax", {"axis": -1}, softmax, {1, 2, 3, 4}
    for shift in (-30, -9, -1, 2, 7):
        for multiplier in (2**30, 2**31 - 1, 1, 1518500250):
            attrs = {"multiplier": multiplier, "shift": shift}
            yield "fixed_point_multiply", attrs, [whole(30, low=-(2**23), high=2**23)], set()


def wide() -> Iterator[Case]:
    for family in (elements, casts, reductions, movements, networks, quantised):
        yield from family()
