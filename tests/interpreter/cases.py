"""Calls of operators on random inputs, which the kernels' tests share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.interpreter.values import Case, f32, i32, real, whole


def cases() -> Iterator[Case]:
    for name in (
        "exp",
        "sigmoid",
        "tanh",
        "erf",
        "sin",
        "cos",
        "tan",
        "atan",
        "sinh",
        "cosh",
        "asinh",
        "floor",
        "ceil",
    ):
        yield name, {}, [real(3, 4, low=-3, high=3)], set()
    for name in ("trunc", "round", "sign", "abs", "negative", "nn.relu", "isnan", "isfinite", "isinf"):
        yield name, {}, [np.asarray([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, 3.2], np.float32)], set()
    for name in ("log", "log10", "log2", "sqrt", "rsqrt", "acosh"):
        yield name, {}, [real(3, 4, low=1, high=9)], set()
    for name in ("asin", "acos", "atanh"):
        yield name, {}, [real(3, 4, low=-0.9, high=0.9)], set()
    for name in ("exp", "sqrt", "tanh", "sigmoid"):
        yield name, {}, [real(3, 4, dtype="float64", low=0.1)], set()
    for dtype in ("int8", "uint8", "int32", "int64", "float32", "float64", "float16"):
        a, b = whole(2, 3, 4, dtype=dtype, low=-120 if dtype[0] != "u" else 0), whole(3, 1, dtype=dtype, low=1, high=9)
        for name in ("add", "subtract", "multiply", "maximum", "minimum", "less", "equal", "greater_equal"):
            yield name, {}, [a, b], set()
        for name in ("divide", "floor_divide", "floor_mod", "mod", "trunc_divide", "trunc_mod"):
            if not (dtype == "float16" and "mod" in name):
                yield name, {}, [a, b], set()
        if dtype != "float16":
            yield "sum", {"axis": [1]}, [a], set()
            yield "max", {"axis": [0, 2], "keepdims": True}, [a], set()
    for dtype in ("int8", "int32", "int64", "uint8"):
        signed = dtype[0] != "u"
        a, b = whole(5, dtype=dtype, low=-50 if signed else 0), whole(5, dtype=dtype, low=0, high=6, seed=2)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"):
            yield name, {}, [a, b], set()
        yield "bitwise_not", {}, [a], set()
        yield "divide", {}, [-a if signed else a, b + b.dtype.type(1)], set()
    truth = whole(7, low=0, high=2).astype(bool)
    for name in ("logical_and", "logical_or", "logical_xor", "add"):
        yield name, {}, [truth, truth[::-1].copy()], set()
    yield "logical_not", {}, [truth], set()
    yield "power", {}, [real(4, low=0.5, high=2), real(4, low=-2, high=2, dtype="float32")], set()
    floats = np.asarray([1.7, -1.7, 0.5, 127.2, -128.9, 3e9, -3e9, np.nan, 0.0], np.float32)
    for dtype in ("int32", "float16", "float64", "bool", "int64"):
        yield "cast", {"dtype": dtype}, [floats], set()
    for dtype in ("int8", "uint8", "int16", "bool", "float32", "float16"):
        yield "cast", {"dtype": dtype}, [whole(9, low=-70000, high=70000)], set()
    for dtype in ("float32", "int32", "int8", "uint8"):
        yield "clip", {"a_min": 1.7, "a_max": 42.3}, [whole(9, low=0, dtype=dtype)], set()
    yield "clip", {"a_min": -5.0, "a_max": 300.0}, [whole(9, low=0, high=256, dtype="uint8")], set()
    yield "reinterpret", {"dtype": "int32"}, [real(4)], set()
    for shift in (-3, 0, 2):
        yield (
            "fixed_point_multiply",
            {"multiplier": 1395864371, "shift": shift},
            [whole(50, low=-(2**20), high=2**20)],
            set(),
        )
    yield from reductions()
    yield from movements()
    yield from scattered()
    yield from networks()
    yield from quantised()


def reductions() -> Iterator[Case]:
    x = real(3, 4, 5)
    for attrs in ({}, {"axis": [1]}, {"axis": [-1], "keepdims": True}, {"axis": [0], "exclude": True}):
        for name in ("sum", "mean", "max", "min", "prod", "argmax", "argmin"):
            yield name, attrs, [x], set()
        yield "mean", attrs, [whole(3, 4, 5)], set()
    ties = f32([[1, 3, 3, 2], [0, 0, -1, -1]])
    for last in (False, True):
        yield "argmax", {"axis": [1], "select_last_index": last}, [ties], set()
        yield "argmin", {"axis": [1], "select_last_index": last}, [ties], set()
    for name in ("all", "any"):
        yield name, {"axis": [0]}, [whole(3, 4, low=0, high=2).astype(bool)], set()
    yield "variance", {"axis": [1]}, [x, x.mean(axis=1, keepdims=True)], set()
    yield "variance", {"axis": [1], "unbiased": True}, [x, x.mean(axis=1, keepdims=True)], set()


def movements() -> Iterator[Case]:
    x = real(2, 3, 4)
    for shape in ([6, 4], [0, -1], [-2], [-3, 0], [0, -4, 3, 1, 4], [-1]):
        yield "reshape", {"newshape": shape}, [x], set()
    yield "expand_dims", {"axis": 1, "num_newaxis": 2}, [x], set()
    yield "squeeze", {"axis": [1]}, [real(2, 1, 3)], set()
    yield "transpose", {"axes": [2, 0, 1]}, [x], set()
    yield "transpose", {"axes": None}, [x], set()
    yield "concatenate", {"axis": 1}, [(x, real(2, 1, 4))], set()
    yield "stack", {"axis": 1}, [(x, x)], set()
    yield "split", {"indices_or_sections": 2, "axis": 2}, [x], set()
    yield "split", {"indices_or_sections": [1, 3], "axis": 2}, [x], set()
    for mode in ("clip", "wrap"):
        yield "take", {"axis": 1, "mode": mode}, [x, i32([[0, 5], [-1, 2]])], set()
        yield "take", {"mode": mode}, [x, i32([0, 30, -1])], set()
    yield "take", {"batch_dims": 1, "axis": 1}, [x, i32([[0, 2], [1, 1]])], set()
    yield "gather", {"axis": 2}, [x, i32([[[0], [3], [1]], [[2], [2], [0]]])], set()
    yield "gather_nd", {}, [x, i32([[0, 1], [2, 0]])], set()
    yield "gather_nd", {"batch_dims": 1}, [x, i32([[0, 2]])], set()
    begin = {"begin": [0, 2], "end": [2, -5], "strides": [1, -1], "slice_mode": "end", "axes": [0, 1]}
    yield "strided_slice", begin, [x], set()
    size = {"begin": [0, 1], "end": [1, -1], "strides": [1, 1], "slice_mode": "size", "axes": [0, 2]}
    yield "strided_slice", size, [x], set()
    yield "where", {}, [whole(2, 3, 4, low=0, high=2).astype(bool), x, real(2, 1, 4)], set()
    yield "one_hot", {"depth": 4, "axis": -1, "dtype": "float32"}, [i32([0, 3, 7]), f32(1), f32(0)], {1, 2}
    yield "tile", {"reps": [2, 1, 3]}, [x], set()
    yield "repeat", {"repeats": 2, "axis": 1}, [x], set()
    yield "reverse", {"axis": 1}, [x], set()
    yield "reverse_sequence", {"seq_axis": 1, "batch_axis": 0}, [x, i32([2, 3])], set()
    yield "layout_transform", {"src_layout": "NCHW", "dst_layout": "NHWC"}, [real(1, 8, 2, 3)], set()
    yield "layout_transform", {"src_layout": "NCHW", "dst_layout": "NCHW4c"}, [real(1, 8, 2, 3)], set()
    yield "broadcast_to", {"shape": [2, 3, 4]}, [real(3, 1)], set()
    yield "slice_like", {"axes": [0, 2]}, [x, real(1, 9, 2)], set()
    yield "reshape_like", {}, [x, real(4, 6)], set()
    yield "full", {"shape": [2, 2], "dtype": "float32"}, [f32(3.5)], {0}
    yield "sequence_mask", {"mask_value": -1.0, "axis": 1}, [x, i32([1, 2])], set()
    for ascending in (True, False):
        yield "argsort", {"axis": 1, "is_ascend": ascending, "dtype": "int32"}, [x], set()
        yield "sort", {"axis": -1, "is_ascend": ascending}, [x], set()
        yield "topk", {"k": 2, "axis": -1, "is_ascend": ascending, "dtype": "int32"}, [x], set()
    yield "sliding_window", {"axis": 1, "window_shape": [2, 2], "strides": [1, 2]}, [x], set()
    yield "searchsorted", {"right": True}, [f32([1, 2, 2, 5]), f32([0, 2, 6])], set()


def scattered() -> Iterator[Case]:
    x = real(3, 4)
    for how in ("update", "add", "mul", "min", "max"):
        updates = [x, i32([[0, 2, 1, 2]]), real(1, 4)]
        yield "scatter_elements", {"axis": 0, "reduction": how}, updates, set()
        yield "scatter_nd", {"mode": how}, [x, i32([[0, 2], [1, 3]]), real(2)], set()
    for name in ("cumsum", "cumprod"):
        for attrs in ({"axis": 1}, {"axis": 0, "exclusive": True}, {"axis": -1, "dtype": "float64"}):
            yield name, attrs, [x], set()
    for upper in (True, False):
        yield "trilu", {"upper": upper}, [real(4, 5), i32(1)], {1}
    yield "nn.dilate", {"strides": [2, 3], "dilation_value": 0.5}, [x], set()
    yield "unravel_index", {}, [i32([0, 7, 11]), i32([3, 4])], set()
    yield "adv_index", {}, [(x, i32([0, 2]), i32([[1], [3]]))], set()
    yield "sparse_to_dense", {"output_shape": [3, 4]}, [i32([[0, 1], [2, 3]]), real(2), f32(0.5)], {2}
    yield "einsum", {"equation": "ij,jk->ik"}, [(real(3, 4), real(4, 5))], set()


def networks() -> Iterator[Case]:
    x, w = real(2, 4, 9, 8), real(6, 4, 3, 3)
    geometry = {"channels": 6, "kernel_size": [3, 3]}
    for attrs in (
        {"padding": [1, 1, 1, 1]},
        {"strides": [2, 1], "padding": [0, 1, 2, 0]},
        {"dilation": [2, 2], "padding": [2, 2, 2, 2]},
    ):
        yield "nn.conv2d", {**attrs, **geometry}, [x, w], set()
        nhwc = {**attrs, **geometry, "data_layout": "NHWC", "kernel_layout": "HWIO"}
        yield "nn.conv2d", nhwc, [x.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 1, 0).copy()], set()
    yield "nn.conv2d", {**geometry, "groups": 2}, [x, real(6, 2, 3, 3)], set()
    yield "nn.conv2d", {"channels": 4, "kernel_size": [3, 3], "groups": 4}, [x, real(4, 1, 3, 3)], set()
    i8, w8 = whole(1, 4, 6, 6, dtype="int8"), whole(6, 4, 3, 3, dtype="int8", seed=3)
    yield "nn.conv2d", {**geometry, "out_dtype": "int32"}, [i8, w8], set()
    yield "nn.conv1d", {"channels": 5, "kernel_size": [3], "padding": [1, 1]}, [real(1, 3, 8), real(5, 3, 3)], set()
    conv3d = {"channels": 4, "kernel_size": [3, 3, 3], "padding": [1, 1, 1, 1, 1, 1], "strides": [2, 2, 2]}
    yield "nn.conv3d", conv3d, [real(1, 3, 5, 6, 7), real(4, 3, 3, 3, 3)], set()
    up = {"channels": 5, "kernel_size": [3, 3], "strides": [2, 2], "output_padding": [1, 0], "padding": [1, 1, 1, 1]}
    yield "nn.conv2d_transpose", up, [real(1, 4, 5, 6), real(4, 5, 3, 3)], set()
    yield (
        "nn.conv1d_transpose",
        {"channels": 5, "kernel_size": [3], "strides": [2]},
        [real(1, 4, 5), real(4, 5, 3)],
        set(),
    )
    yield "nn.dense", {"units": 5}, [real(3, 4), real(5, 4)], set()
    yield "nn.dense", {"units": 5, "out_dtype": "int32"}, [whole(3, 4, dtype="int8"), whole(5, 4, dtype="int8")], set()
    yield "nn.matmul", {"units": 5, "transpose_a": True}, [real(4, 3), real(4, 5)], set()
    yield "nn.batch_matmul", {"transpose_b": True}, [real(2, 3, 4), real(2, 5, 4)], set()
    yield "nn.batch_matmul", {"transpose_b": True}, [real(1, 3, 4), real(2, 5, 4)], set()
    pool = {"pool_size": [3, 2], "strides": [2, 2], "padding": [1, 1, 1, 0]}
    for name in ("nn.max_pool2d", "nn.avg_pool2d"):
        for ceil in (False, True):
            yield name, {**pool, "ceil_mode": ceil}, [x], set()
            yield name, {**pool, "ceil_mode": ceil, "layout": "NHWC"}, [x.transpose(0, 2, 3, 1).copy()], set()
        yield name, {"pool_size": [2, 2], "dilation": [2, 2], "padding": [1, 1, 1, 1]}, [x], set()
    for ceil in (False, True):
        yield "nn.avg_pool2d", {**pool, "ceil_mode": ceil, "count_include_pad": True}, [x], set()
    yield "nn.avg_pool2d", pool, [whole(1, 2, 6, 6)], set()
    yield "nn.max_pool1d", {"pool_size": [3], "strides": [2], "padding": [1, 1]}, [real(1, 2, 9)], set()
    yield "nn.avg_pool3d", {"pool_size": [2, 2, 2], "padding": [1, 1, 1, 0, 0, 0]}, [real(1, 2, 4, 5, 6)], set()
    for name in ("nn.adaptive_avg_pool2d", "nn.adaptive_max_pool2d"):
        yield name, {"output_size": [4, 3]}, [x], set()
    yield "nn.adaptive_avg_pool3d", {"output_size": [1, 1, 1]}, [real(1, 2, 4, 5, 6)], set()
    for name in ("nn.global_avg_pool2d", "nn.global_max_pool2d"):
        yield name, {}, [x], set()
    channel = [real(4), real(4), real(4), real(4, low=0.5)]
    yield "nn.batch_norm", {"epsilon": 1e-3}, [x, *channel], set()
    yield "nn.batch_norm", {"scale": False, "center": False}, [x, *channel], set()
    yield "nn.layer_norm", {}, [x, real(8), real(8)], set()
    yield "nn.instance_norm", {}, [x, real(4), real(4)], set()
    yield "nn.group_norm", {"num_groups": 2}, [x, real(4), real(4)], set()
    for axis in (1, -1):
        yield "nn.softmax", {"axis": axis}, [x], set()
        yield "nn.log_softmax", {"axis": axis}, [real(3, 7)], set()
    yield "nn.bias_add", {"axis": 1}, [x, real(4)], set()
    yield "nn.bias_add", {"axis": -1}, [x, real(8)], set()
    yield "nn.leaky_relu", {"alpha": 0.1}, [x], set()
    yield "nn.prelu", {"axis": 1}, [x, real(4)], set()
    for size in (3, 5):
        yield "nn.lrn", {"size": size, "alpha": 0.1}, [x], set()
    yield "nn.l2_normalize", {"eps": 1e-5, "axis": [1]}, [x], set()
    yield "nn.batch_flatten", {}, [x], set()
    widths = [[0, 0], [1, 2], [0, 1], [2, 0]]
    yield "nn.pad", {"pad_width": widths}, [x, f32(1.5)], {1}
    yield "nn.pad", {"pad_width": [[1, 1]]}, [whole(5, low=0, dtype="uint8"), f32(114)], {1}
    for mode in ("edge", "reflect"):
        yield "nn.pad", {"pad_width": widths, "pad_mode": mode}, [x, f32(0)], {1}
    for mode in ("constant", "edge", "reflect"):
        for cut in ([-2, 3], [3, -3], [-1, -2], [2, -3]):
            yield "nn.pad", {"pad_width": [[0, 1], cut], "pad_mode": mode}, [real(3, 4), f32(0.5)], {1}
    for mode in ("SYMMETRIC", "REFLECT"):
        yield "nn.mirror_pad", {"pad_width": [[1, 2], [2, 1]], "mode": mode}, [real(4, 5)], set()
    for mode in ("DCR", "CDR", "CRD"):
        yield "nn.depth_to_space", {"block_size": 2, "mode": mode}, [real(1, 8, 2, 3)], set()
    blocks = {"block_shape": [2, 3], "paddings": [[0, 0], [1, 0]]}
    yield "nn.space_to_batch_nd", blocks, [real(2, 4, 5, 3)], set()
    crops = {"block_shape": [2, 3], "crops": [[0, 1], [1, 1]]}
    yield "nn.batch_to_space_nd", crops, [real(12, 3, 2, 4)], set()
    yield "nn.cross_entropy", {}, [real(3, 5, low=0.1), real(3, 5, dtype="float32")], set()
    yield "nn.cross_entropy_with_logits", {}, [real(3, 5), real(3, 5)], set()
    for reduction in ("mean", "sum", "none"):
        loss = {"reduction": reduction, "ignore_index": 2}
        yield "nn.nll_loss", loss, [real(4, 5), i32([0, 2, 4, 1]), real(5, low=0.1)], set()
    yield "nn.fifo_buffer", {"axis": 1}, [real(2, 3), real(2, 7)], set()
    for method, corners in (("nearest_neighbor", False), ("bilinear", False), ("bilinear", True)):
        up = {"scale_h": 2.0, "scale_w": 3.0, "method": method, "align_corners": corners, "layout": "NCHW"}
        yield "nn.upsampling", up, [real(1, 2, 4, 5)], set()
    for method in ("nearest_neighbor", "bilinear", "bicubic"):
        for corners in (False, True):
            for dtype, most in (("float32", 1), ("int32", 50)):
                if method != "nearest_neighbor" and dtype == "int32":
                    continue  # a fused product may lie on the other side of a whole number
                up = {"scale_h": 1.7, "scale_w": 2.0, "method": method, "align_corners": corners, "layout": "NHWC"}
                yield "nn.upsampling", up, [real(1, 4, 5, 3, dtype=dtype, low=-most, high=most)], set()
    for method in ("nearest_neighbor", "trilinear"):
        up = {"scale_d": 2.0, "scale_h": 2.0, "scale_w": 3.0, "method": method, "layout": "NCDHW"}
        yield "nn.upsampling3d", up, [real(1, 2, 3, 4, 5)], set()
        for mode in ("align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn", "tf_crop_and_resize"):
            up = {**up, "scale_w": 1.4, "coordinate_transformation_mode": mode}
            yield "nn.upsampling3d", up, [real(1, 2, 3, 4, 5)], set()
    yield "nn.space_to_depth", {"block_size": 2}, [real(1, 2, 4, 6)], set()


def quantised() -> Iterator[Case]:
    x = real(2, 3, 4, low=-40, high=40)
    for dtype, zero in (("int8", -3), ("uint8", 114), ("int32", 0)):
        yield "qnn.quantize", {"out_dtype": dtype}, [x, f32(0.25), i32(zero)], {1, 2}
    yield "qnn.quantize", {"out_dtype": "int8", "axis": 1}, [x, f32([0.25, 0.3, 1.1]), i32([0, 1, 2])], {1, 2}
    for dtype in ("int8", "uint8", "int32"):
        low = 0 if dtype == "uint8" else -100
        yield "qnn.dequantize", {"out_dtype": "float32"}, [whole(4, 3, dtype=dtype, low=low), f32(0.3), i32(7)], {1, 2}
    channel = [whole(4, 3, dtype="int8"), f32([0.3, 0.1, 2]), i32([7, 0, -1])]
    yield "qnn.dequantize", {"axis": 1, "out_dtype": "float32"}, channel, {1, 2}
    sums = whole(2, 3, 40, low=-(2**20), high=2**20)
    for rounding in ("UPWARD", "TONEAREST"):
        for compute in ("int64", "float32", "float64"):
            how = {"rounding": rounding, "compute_dtype": compute, "out_dtype": "int8"}
            for scale in (0.0123, 0.5, 1.0, 3.7):
                args = [sums if scale < 0.1 else whole(500), f32(scale), i32(3), f32(1.0), i32(-5)]
                yield "qnn.requantize", how, args, {1, 2, 3, 4}
            yield (
                "qnn.requantize",
                {**how, "axis": 1},
                [sums, f32([0.01, 0.0031, 0.5]), i32(0), f32(7), i32(1)],
                {1, 2, 3, 4},
            )
    for dtype in ("uint8", "int32", "int16"):
        args = [sums, f32(5.39136e-05), i32(0), f32(0.0150183), i32(0)]
        yield "qnn.requantize", {"axis": 1, "out_dtype": dtype}, args, {1, 2, 3, 4}
    halves = np.arange(-101, 101).astype(np.int32)
    for rounding in ("UPWARD", "TONEAREST"):
        for compute in ("int64", "float32"):
            how = {"rounding": rounding, "compute_dtype": compute, "out_dtype": "int32"}
            yield "qnn.requantize", how, [halves, f32(1), i32(0), f32(2), i32(0)], {1, 2, 3, 4}
    geometry = {"channels": 6, "kernel_size": [3, 3], "out_dtype": "int32"}
    data, weight = (
        whole(1, 4, 7, 7, low=0, high=256, dtype="uint8"),
        whole(6, 4, 3, 3, dtype="int8", low=-128, high=128),
    )
    for zeros in ((0, 0), (114, 0), (114, 3)):
        for pad in (0, 1):
            attrs = {"padding": [pad] * 4, "strides": [1 + pad, 2], **geometry}
            args = [data, weight, i32(zeros[0]), i32(zeros[1]), f32(0.1), f32(0.2)]
            yield "qnn.conv2d", attrs, args, {2, 3, 4, 5}
    nhwc = {**geometry, "data_layout": "NHWC", "kernel_layout": "HWIO", "padding": [1, 1, 1, 1]}
    args = [data.transpose(0, 2, 3, 1).copy(), weight.transpose(2, 3, 1, 0).copy(), i32(9), i32(0), f32(0.1), f32(0.2)]
    yield "qnn.conv2d", nhwc, args, {2, 3, 4, 5}
    deep = {"channels": 4, "groups": 4, "kernel_size": [3, 3], "padding": [1, 1, 1, 1], "out_dtype": "int32"}
    args = [data, whole(4, 1, 3, 3, dtype="int8"), i32(9), i32(2), f32(0.1), f32(0.2)]
    yield "qnn.conv2d", deep, args, {2, 3, 4, 5}
    up = {"channels": 5, "kernel_size": [3, 3], "strides": [2, 2], "padding": [1, 1, 1, 1], "out_dtype": "int32"}
    args = [whole(1, 4, 5, 6, dtype="int8"), whole(4, 5, 3, 3, dtype="int8"), i32(3), i32(1), f32(0.1), f32(0.2)]
    yield "qnn.conv2d_transpose", up, args, {2, 3, 4, 5}
    for zero in ((0, 0), (5, -3)):
        args = [
            whole(3, 8, dtype="int8"),
            whole(5, 8, dtype="int8", seed=4),
            i32(zero[0]),
            i32(zero[1]),
            f32(1),
            f32(1),
        ]
        yield "qnn.dense", {"units": 5, "out_dtype": "int32"}, args, {2, 3, 4, 5}
        args = [
            whole(2, 3, 8, dtype="int8"),
            whole(2, 5, 8, dtype="int8", seed=4),
            i32(zero[0]),
            i32(zero[1]),
            f32(1),
            f32(1),
        ]
        yield "qnn.batch_matmul", {"transpose_b": True, "out_dtype": "int32"}, args, {2, 3, 4, 5}
    a, b = whole(4, 9, low=0, high=256, dtype="uint8"), whole(4, 9, low=0, high=256, dtype="uint8", seed=5)
    for name in ("qnn.add", "qnn.subtract", "qnn.mul"):
        scales = [f32(0.11), i32(12), f32(0.07), i32(100), f32(0.2), i32(30)]
        yield name, {}, [a, b, *scales], set(range(2, 8))
        same = [f32(0.2), i32(30), f32(0.2), i32(30), f32(0.2), i32(30)]
        yield name, {}, [a, b, *same], set(range(2, 8))
    parts = [(a, b), (f32(0.1), f32(0.3)), (i32(1), i32(9)), f32(0.3), i32(9)]
    yield "qnn.concatenate", {"axis": 1}, parts, {2, 3, 4, 5, 6, 7}
    yield "qnn.leaky_relu", {"alpha": 0.3}, [a, f32(0.1), i32(100), f32(0.15), i32(90)], {1, 2, 3, 4}
    image = whole(1, 3, 6, 6, low=0, high=256, dtype="uint8")
    pool = {"pool_size": [2, 2], "strides": [2, 2], "padding": [1, 1, 1, 1]}
    yield "qnn.avg_pool2d", pool, [image, f32(0.1), i32(100), f32(0.15), i32(90)], {1, 2, 3, 4}
    yield (
        "qnn.softmax",
        {"axis": 1},
        [whole(3, 10, dtype="int8"), f32(0.05), i32(2), f32(1 / 256), i32(-128)],
        {1, 2, 3, 4},
    )
    positive = whole(4, 9, low=20, high=256, dtype="uint8")
    for name in ("abs", "erf", "exp", "hardswish", "log", "rsqrt", "sigmoid", "sqrt", "tanh"):
        yield f"qnn.{name}", {}, [positive, f32(0.0213), i32(10), f32(0.0317), i32(5)], {1, 2, 3, 4}


CASES = list(cases())
