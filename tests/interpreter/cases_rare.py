"""Calls of the operators beyond ordinary networks: images, detection, random numbers, sparse and prepared weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.interpreter.values import Case, f32, i32, real, whole

#: What of a result is defined, where not all of it is.
DEFINED: dict[str, Callable[[Any], Any]] = {
    "vision.multibox_transform_loc": lambda r: (r[1], *[rows[:n] for rows, n in zip(r[0], r[1])]),
    "vision.all_class_non_max_suppression": lambda r: (r[0][: int(r[1][0])], r[1]) if len(r) == 2 else r,
    # TVM declares the classes as floats and writes integers
    "vision.regular_non_max_suppression": lambda r: (r[0], *r[2:]),
    "unique": lambda r: tuple(part[: int(r[3][0])] if i in (0, 4) else part for i, part in enumerate(r)),
}


def boxes(*shape: int, seed: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 0.6, (*shape, 2))
    return np.concatenate([low, low + rng.uniform(0.1, 0.4, (*shape, 2))], axis=-1).astype(np.float32)


def images() -> Iterator[Case]:
    x = real(1, 2, 5, 6)
    modes = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn")
    for mode in modes:
        for method, rounding in (
            ("nearest_neighbor", "floor"),
            ("nearest_neighbor", ""),
            ("linear", ""),
            ("cubic", ""),
        ):
            for size in ((7, 9), (3, 4)):
                attrs = {"size": list(size), "roi": [0.0, 0.0, 1.0, 1.0], "method": method, "rounding_method": rounding}
                yield "image.resize2d", {**attrs, "coordinate_transformation_mode": mode}, [x], set()
    for rounding in ("round", "ceil", "round_prefer_floor", "round_prefer_ceil"):
        attrs = {"size": [7, 9], "roi": [0.0, 0.0, 1.0, 1.0], "method": "nearest_neighbor", "rounding_method": rounding}
        yield "image.resize2d", attrs, [x], set()
    attrs = {"size": [10, 12], "roi": [0.0] * 4, "method": "nearest_neighbor", "rounding_method": "floor"}
    yield "image.resize2d", {**attrs, "coordinate_transformation_mode": "asymmetric"}, [x], set()
    attrs = {"size": [4, 7], "roi": [0.1, 0.2, 1.2, 0.9], "method": "linear", "extrapolation_value": 3.0}
    yield "image.resize2d", {**attrs, "coordinate_transformation_mode": "tf_crop_and_resize"}, [x], set()
    nhwc = {"size": [7, 9], "roi": [0.0] * 4, "layout": "NHWC", "method": "linear"}
    yield "image.resize2d", nhwc, [real(2, 5, 6, 3)], set()
    yield "image.resize2d", {**nhwc, "layout": "NCHW"}, [whole(1, 2, 5, 6, dtype="uint8", low=0, high=255)], set()
    cubic = {"size": [7, 9], "roi": [0.0] * 4, "method": "cubic", "cubic_alpha": -0.75, "cubic_exclude": 1}
    yield "image.resize2d", cubic, [x], set()
    for method in ("linear", "cubic", "nearest_neighbor"):
        one = {"size": [9], "roi": [0.0, 0.0], "method": method, "rounding_method": "floor"}
        yield "image.resize1d", one, [real(1, 2, 5)], set()
        three = {"size": [4, 7, 5], "roi": [0.0] * 6, "method": method, "rounding_method": "floor"}
        yield "image.resize3d", three, [real(1, 2, 3, 4, 5)], set()
    for method in ("bilinear", "nearest_neighbor"):
        for layout in ("NCHW", "NHWC"):
            crop = {"crop_size": [4, 3], "method": method, "layout": layout, "extrapolation_value": 0.5}
            data = real(2, 3, 6, 7) if layout == "NCHW" else real(2, 6, 7, 3)
            part = f32([[0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], [0.5, -0.2, 1.3, 0.7]])
            yield "image.crop_and_resize", crop, [data, part, i32([0, 1, 1])], set()
    for attrs in ({}, {"strides": [2, 1], "padding": [1, 0, 1, 2]}, {"dilations": [2, 2], "padding": [2, 2, 2, 2]}):
        yield "image.dilation2d", attrs, [real(1, 3, 7, 8), real(3, 3, 2)], set()
        nhwc = {**attrs, "data_layout": "NHWC", "kernel_layout": "HWI"}
        yield "image.dilation2d", nhwc, [real(1, 7, 8, 3), real(3, 2, 3)], set()
    yield "image.affine_grid", {"target_shape": [4, 5]}, [real(2, 2, 3)], set()
    grid, deep = real(2, 2, 4, 5, low=-1.6, high=1.6), real(1, 3, 2, 4, 3, low=-1.6, high=1.6)
    for padding in ("zeros", "border", "reflection"):
        for corners in (True, False):
            for method in ("bilinear", "nearest", "bicubic"):
                sample = {"method": method, "padding_mode": padding, "align_corners": corners}
                yield "image.grid_sample", sample, [real(2, 3, 6, 7), grid], set()
                if method != "bicubic":
                    yield "image.grid_sample", {**sample, "layout": "NCDHW"}, [real(1, 2, 4, 5, 6), deep], set()


def detection() -> Iterator[Case]:
    yield "vision.multibox_prior", {"sizes": [0.3, 0.5], "ratios": [1.0, 2.0, 0.5]}, [real(1, 3, 4, 5)], set()
    more = {"sizes": [0.7], "ratios": [1.0, 3.0], "steps": [0.2, 0.3], "offsets": [0.4, 0.6], "clip": True}
    yield "vision.multibox_prior", more, [real(1, 3, 3, 2)], set()
    rng = np.random.default_rng(3)
    probability = rng.dirichlet([1, 1, 1], (2, 6)).transpose(0, 2, 1).astype(np.float32)
    for attrs in ({}, {"clip": False, "threshold": 0.5}, {"keep_background": True}):
        args = [probability, real(2, 24), boxes(1, 6)]
        yield "vision.multibox_transform_loc", attrs, args, set()
    scores = rng.permutation(24).reshape(2, 12, 1).astype(np.float32) / 24
    classes = rng.integers(-1, 3, (2, 12, 1)).astype(np.float32)
    rows = np.concatenate([classes, scores, boxes(2, 12)], axis=-1)
    for attrs in ({}, {"id_index": -1}, {"id_index": 0, "score_index": 1}):
        yield "vision.get_valid_counts", attrs, [rows, f32(0.3)], {1}
    counts, indices = i32([12, 7]), np.tile(np.arange(12, dtype=np.int32), (2, 1))
    for attrs in (
        {"return_indices": False},
        {"return_indices": False, "force_suppress": True, "top_k": 5},
        {"return_indices": False, "id_index": -1, "invalid_to_bottom": True},
        {"return_indices": True},
        {"return_indices": True, "top_k": 4},
    ):
        for limit, threshold in ((-1, 0.3), (2, 0.5)):
            args = [np.abs(rows), counts, indices, i32(limit), f32(threshold)]
            yield "vision.non_max_suppression", attrs, args, set()
    table = rng.permutation(2 * 3 * 7).reshape(2, 3, 7).astype(np.float32) / 42
    for output in ("onnx", "tensorflow"):
        args = [boxes(2, 7), table, np.asarray(3, np.int64), f32(0.2), f32(0.1)]
        yield "vision.all_class_non_max_suppression", {"output_format": output}, args, set()
    regular = {
        "max_detections_per_class": 2,
        "max_detections": 5,
        "num_classes": 3,
        "iou_threshold": 0.3,
        "score_threshold": 0.2,
    }
    yield "vision.regular_non_max_suppression", regular, [boxes(2, 7), real(2, 7, 4, low=0)], set()
    rois = f32([[0, 0, 0, 6, 5], [1, 2.3, 1.2, 9.4, 7.7], [0, 3, 3, 3, 3], [1, -2, -3, 12, 11]])
    for layout, data in (("NCHW", real(2, 3, 8, 9)), ("NHWC", real(2, 8, 9, 3))):
        for mode in ("avg", "max"):
            for ratio in (-1, 2):
                align = {"pooled_size": [2, 3], "spatial_scale": 0.7, "sample_ratio": ratio, "mode": mode}
                yield "vision.roi_align", {**align, "layout": layout}, [data, rois], set()
    yield "vision.roi_pool", {"pooled_size": [2, 3], "spatial_scale": 0.7}, [real(2, 3, 8, 9), rois], set()
    region = {"scales": [2.0, 4.0], "ratios": [0.5, 1.0], "feature_stride": 4, "rpn_min_size": 2}
    for loss in (False, True):
        args = [real(1, 8, 5, 6, low=0), real(1, 16, 5, 6, low=-0.3, high=0.3), f32([[20, 24, 1]])]
        tops = {"rpn_pre_nms_top_n": 60, "rpn_post_nms_top_n": 12, "threshold": 0.6, "iou_loss": loss}
        yield "vision.proposal", {**region, **tops}, args, set()
    yield "vision.yolo_reorg", {"stride": 2}, [real(1, 8, 4, 6)], set()


def randomness() -> Iterator[Case]:
    fresh = np.asarray([0, 7, 0, 0, 0, 0, 0, 0, 1 << 63, 0], np.uint64)
    used = np.asarray([3, 2**64 - 5, 2**63 + 1, 9, 5, 6, 0, 17, 0, 1 << 40], np.uint64)
    spent = np.asarray([1, 2, 3, 4, 5, 6, 0, 99, 0, 0], np.uint64)
    full = np.asarray([1, 2, 3, 4, 5, 6, 0, 2**64 - 4, 1, 0], np.uint64)
    for key in (fresh, used, spent, full):
        for shape in ([12], [3, 5], [2], [4, 2]):
            yield "random.threefry_generate", {"out_shape": shape}, [key], set()
        yield "random.threefry_split", {}, [key], set()
    for dtype in ("float32", "float64"):
        bounds = [np.asarray(-1.5, dtype), np.asarray(2.5, dtype)]
        yield "random.uniform", {"out_shape": [3, 7], "out_dtype": dtype}, [fresh, *bounds], set()
        bounds = [np.asarray(1.5, dtype), np.asarray(0.5, dtype)]
        yield "random.normal", {"out_shape": [3, 7], "out_dtype": dtype}, [used, *bounds], set()
    yield "random.multinomial", {"num_samples": 9}, [fresh, real(3, 5, low=-0.2)], set()


def sparse() -> Iterator[Case]:
    rng = np.random.default_rng(11)
    indptr, indices = i32([0, 2, 2, 5, 6]), i32([1, 4, 0, 2, 3, 4])
    for dtype in ("float32",):
        dense = rng.normal(size=(3, 5)).astype(dtype)
        yield "nn.sparse_dense", {}, [dense, rng.normal(size=6).astype(dtype), indices, indptr], set()
        yield "nn.sparse_dense", {"sparse_lhs": True}, [dense, rng.normal(size=6).astype(dtype), indices, indptr], set()
    blocks = [rng.normal(size=(4, 16, 1)).astype(np.float32), i32([1, 3, 0, 2]), i32([0, 2, 4])]
    yield "nn.sparse_dense", {}, [rng.normal(size=(3, 4)).astype(np.float32), *blocks], set()
    square = [real(6), i32([0, 3, 1, 2, 0, 3]), i32([0, 2, 3, 4, 6])]
    yield "nn.sparse_transpose", {}, square, set()
    yield "nn.sparse_add", {}, [real(4, 5), real(6), indices, indptr], set()
    yield "nn.sparse_conv2d", {}, [real(1, 3, 3, 4), *blocks], set()
    yield "nn.sparse_conv2d", {"layout": "NCHW"}, [real(1, 4, 3, 3), *blocks], set()
    wide = [rng.normal(size=(4, 16, 1)).astype(np.float32), i32([1, 30, 0, 17]), i32([0, 2, 4])]
    yield "nn.sparse_conv2d", {"kernel_size": [3, 3]}, [real(1, 5, 4, 4), *wide], set()
    yield (
        "sparse_fill_empty_rows",
        {},
        [
            np.asarray([[1, 0], [1, 2], [3, 1]], np.int64),
            np.asarray([4, 5, 6], np.int64),
            np.asarray([5, 3], np.int64),
            np.asarray([9], np.int64),
        ],
        set(),
    )
    for attrs in (
        {"sorted": True},
        {"sorted": False},
        {"sorted": True, "return_counts": True},
        {"sorted": False, "return_counts": True},
    ):
        yield "unique", attrs, [i32([4, 5, 1, 2, 3, 3, 4, 5])], set()


def prepared() -> Iterator[Case]:
    data, weight = whole(1, 32, 5, 6, dtype="uint32", low=0, high=4), whole(6, 32, 3, 3, dtype="uint32", low=0, high=2)
    for unipolar in (True, False):
        conv = {
            "channels": 6,
            "kernel_size": [3, 3],
            "padding": [1, 1],
            "strides": [2, 1],
            "activation_bits": 2,
            "weight_bits": 1,
            "pack_dtype": "uint32",
            "out_dtype": "int32",
            "unipolar": unipolar,
        }
        yield "nn.bitserial_conv2d", conv, [data, weight], set()
        nhwc = {**conv, "data_layout": "NHWC", "kernel_layout": "HWIO"}
        turned = [data.transpose(0, 2, 3, 1).copy(), weight.transpose(2, 3, 1, 0).copy()]
        yield "nn.bitserial_conv2d", nhwc, turned, set()
        dense = {"units": 5, "data_bits": 2, "weight_bits": 2, "pack_dtype": "uint32", "out_dtype": "int16"}
        args = [whole(3, 32, dtype="uint32", low=0, high=4), whole(5, 32, dtype="uint32", low=0, high=4, seed=2)]
        yield "nn.bitserial_dense", {**dense, "unipolar": unipolar}, args, set()
    pack = {"bits": 2, "pack_axis": 1, "bit_axis": 2, "pack_type": "uint8"}
    yield "nn.bitpack", pack, [whole(3, 16, low=0, high=4)], set()
    for tile in (2, 4, 6):
        transform = "nn.contrib_conv2d_winograd_weight_transform"
        yield transform, {"tile_size": tile}, [real(5, 4, 3, 3)], set()
        yield "nn.contrib_conv3d_winograd_weight_transform", {"tile_size": tile}, [real(2, 3, 3, 3, 3)], set()
    yield "nn.contrib_conv3d_winograd_weight_transform", {"tile_size": 4}, [real(2, 3, 1, 3, 3)], set()
    yield "nn.contrib_conv2d_gemm_weight_transform", {"tile_N": 4, "tile_K": 2}, [real(3, 3, 4, 6)], set()
    i8 = whole(3, 3, 4, 6, dtype="int8")
    yield "nn.contrib_conv2d_gemm_weight_transform", {"tile_N": 4, "tile_K": 16}, [i8], set()
    yield "nn.contrib_dense_pack", {"units": 8, "weight_layout": "NC4n"}, [real(3, 5), real(2, 5, 4)], set()
    for attrs in (
        {},
        {"kernel_size": 3, "max_displacement": 2, "stride2": 2, "padding": [2, 2]},
        {"kernel_size": 1, "max_displacement": 2, "stride1": 2, "padding": [1, 2, 2, 1], "is_multiply": False},
    ):
        yield "nn.correlation", attrs, [real(1, 3, 7, 8), real(1, 3, 7, 8, low=-2)], set()
    for groups, attrs in ((1, {}), (2, {"strides": [2, 1], "padding": [1, 2], "dilation": [2, 1]})):
        x, w = real(1, 4, 7, 8), real(3, 4, 3, 3)
        pad, step, reach = attrs.get("padding", [0, 0]), attrs.get("strides", [1, 1]), attrs.get("dilation", [1, 1])
        out = [(n + 2 * p - 2 * d - 1) // s + 1 for n, p, d, s in zip((7, 8), pad, reach, step)]
        moves = real(1, 18 * groups, *out, low=-2, high=2)
        conv = {**attrs, "deformable_groups": groups, "channels": 3, "kernel_size": [3, 3]}
        yield "nn.deformable_conv2d", conv, [x, moves, w], set()
    yield "auto_scheduler_layout_transform", {"src_layout": "2A8B3C", "dst_layout": "4B2A3C2B"}, [real(2, 8, 3)], set()
    for code in (0, 1, 2, 3):
        for scale, zero in (([0.1], [3]), ([0.1, 0.2, 0.05], [0, 1, -2])):
            args = [real(2, 3, low=-40, high=40), i32(code), f32(scale), i32(zero)]
            yield "qnn.simulated_quantize", {"axis": -1}, args, set()
            yield "qnn.simulated_dequantize", {"axis": -1, "out_dtype": "float32"}, args, set()
    for kind in (0, 1):
        args = [real(2, 3, low=-9, high=9), f32(0.5), f32(-7), f32(6)]
        yield "relay.op.annotation.simulated_quantize", {"kind": kind, "sign": True, "rounding": "round"}, args, set()


def gradients() -> Iterator[Case]:
    x = real(2, 3, 7, 8)
    for attrs in (
        {"pool_size": [2, 2], "strides": [2, 2]},
        {"pool_size": [3, 2], "strides": [2, 1], "padding": [1, 1, 0, 1]},
    ):
        pads = attrs.get("padding", [0, 0, 0, 0])
        out = [(n + a + b - k) // s + 1 for n, a, b, k, s in zip((7, 8), pads[:2], pads[2:], attrs["pool_size"], attrs["strides"])]
        attrs = {**attrs, "padding": pads}
        yield "nn.max_pool2d_grad", attrs, [real(2, 3, *out), x], set()
        for include in (True, False):
            yield "nn.avg_pool2d_grad", {**attrs, "count_include_pad": include}, [real(2, 3, *out), x], set()
    for right, left in ((True, False), (False, True)):
        diagonal = {"k1": -2, "k2": 1, "super_diag_right_align": right, "sub_diag_right_align": left}
        yield "matrix_set_diag", diagonal, [real(2, 4, 5), real(2, 4, 4, low=5, high=9)], set()
    yield "matrix_set_diag", {"k1": 1, "k2": 1}, [real(2, 4, 5), real(2, 4, low=5, high=9)], set()
    for normalized in (True, False):
        for onesided in (True, False):
            stft = {"n_fft": 8, "hop_length": 3, "win_length": 8, "normalized": normalized, "onesided": onesided}
            yield "stft", stft, [real(2, 30), real(8)], set()


def rare() -> Iterator[Case]:
    for family in (images, detection, randomness, sparse, prepared, gradients):
        yield from family()
