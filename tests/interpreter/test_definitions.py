"""Kernels that TVM does not compute on x86-64, against what they are defined by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang.interpreter import KERNELS
from relaylang.interpreter.kernels.common import KernelError
from relaylang.interpreter.kernels.tolerance import EXACT, LOOSER
from relaylang.ops import OPS, make_attrs
from tests.interpreter.values import f32, i32, real, whole


def run(name: str, attrs: dict[str, Any], *args: Any) -> Any:
    known = OPS[name].attrs
    return KERNELS[name](make_attrs(known, attrs) if known is not None else None, *args)


@pytest.mark.parametrize("tile", [2, 3, 4, 6])
def test_winograd_is_the_convolution(tile: int) -> None:
    x, w = real(2, 3, 9, 8), real(5, 3, 3, 3)
    geometry = {"channels": 5, "kernel_size": [3, 3], "padding": [1, 1], "strides": [1, 1]}
    transformed = run("nn.contrib_conv2d_winograd_weight_transform", {"tile_size": tile}, w)
    assert transformed.shape == (tile + 2, tile + 2, 5, 3)
    made = run("nn.contrib_conv2d_winograd_without_weight_transform", {"tile_size": tile, **geometry}, x, transformed)
    np.testing.assert_allclose(made, run("nn.conv2d", geometry, x, w), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("depth", [1, 3])
def test_winograd_3d_is_the_convolution(depth: int) -> None:
    x, w = real(1, 2, 5, 6, 7), real(4, 2, depth, 3, 3)
    geometry = {"channels": 4, "kernel_size": [depth, 3, 3], "padding": [depth // 2, 1, 1]}
    transformed = run("nn.contrib_conv3d_winograd_weight_transform", {"tile_size": 4}, w)
    made = run("nn.contrib_conv3d_winograd_without_weight_transform", {"tile_size": 4, **geometry}, x, transformed)
    np.testing.assert_allclose(made, run("nn.conv3d", geometry, x, w), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_tiled_weight_is_the_convolution(dtype: str) -> None:
    x, w = whole(1, 6, 7, 4, dtype=dtype), whole(3, 3, 4, 6, dtype=dtype)
    geometry = {
        "channels": 6,
        "kernel_size": [3, 3],
        "data_layout": "NHWC",
        "kernel_layout": "HWIO",
        "out_dtype": "int32" if dtype == "int8" else "float32",
    }
    tiles = run("nn.contrib_conv2d_gemm_weight_transform", {"tile_N": 4, "tile_K": 16}, w)
    made = run("nn.contrib_conv2d_gemm_without_weight_transform", geometry, x, tiles)
    np.testing.assert_array_equal(made, run("nn.conv2d", geometry, x, w))


def test_packed_quantized_product_is_the_plain_one() -> None:
    x, w = whole(3, 8, dtype="uint8", low=0), whole(6, 8, dtype="int8")
    packed = w.reshape(3, 2, 2, 4).transpose(0, 2, 1, 3)  # (units / 2, inputs / 4, 2, 4)
    scales = (i32(7), i32(-2), f32(0.5), f32(0.25))
    made = run("qnn.contrib_dense_pack", {"units": 6, "out_dtype": "int32", "weight_layout": "NC2n4c"}, x, packed, *scales)
    np.testing.assert_array_equal(made, run("qnn.dense", {"units": 6, "out_dtype": "int32"}, x, w, *scales))


@pytest.mark.parametrize("weight", ["OIHW4i4o", "OIHW2i4o2i"])
def test_convolution_in_blocks_is_the_plain_one(weight: str) -> None:
    x, w = real(2, 8, 6, 5), real(12, 8, 3, 3)
    geometry = {"channels": 12, "kernel_size": [3, 3], "padding": [1, 0], "strides": [2, 1]}
    plain = run("nn.conv2d", geometry, x, w)
    blocks = [
        run("layout_transform", {"src_layout": "NCHW", "dst_layout": "NCHW4c"}, x),
        run("layout_transform", {"src_layout": "OIHW", "dst_layout": weight}, w),
    ]
    layouts = {"data_layout": "NCHW4c", "kernel_layout": weight, "out_layout": "NCHW6c"}
    made = run("nn.contrib_conv2d_NCHWc", {**geometry, **layouts}, *blocks)
    assert made.shape == (2, 2, *plain.shape[2:], 6)
    back = run("layout_transform", {"src_layout": "NCHW6c", "dst_layout": "NCHW"}, made)
    np.testing.assert_array_equal(back, plain)


def test_depthwise_convolution_in_blocks_is_the_plain_one() -> None:
    x, w = real(1, 8, 6, 5), real(8, 1, 3, 3)
    geometry = {"channels": 8, "groups": 8, "kernel_size": [3, 3]}
    blocks = [
        run("layout_transform", {"src_layout": "NCHW", "dst_layout": "NCHW4c"}, x),
        run("layout_transform", {"src_layout": "OIHW", "dst_layout": "OIHW1i4o"}, w),
    ]
    layouts = {"data_layout": "NCHW4c", "kernel_layout": "OIHW1i4o", "out_layout": "NCHW4c"}
    made = run("nn.contrib_depthwise_conv2d_NCHWc", {**geometry, **layouts}, *blocks)
    back = run("layout_transform", {"src_layout": "NCHW4c", "dst_layout": "NCHW"}, made)
    np.testing.assert_array_equal(back, run("nn.conv2d", geometry, x, w))


def test_padded_sparse_rows_add_nothing() -> None:
    dense, values = real(3, 5), real(6)
    indices, indptr = i32([1, 4, 0, 2, 3, 4]), i32([0, 2, 2, 5, 6])
    plain = run("nn.sparse_dense", {}, dense, values, indices, indptr)
    spread = np.zeros(16, np.float32), np.zeros(16, np.int32)
    for row in range(4):
        count = indptr[row + 1] - indptr[row]
        spread[0][4 * row : 4 * row + count] = values[indptr[row] : indptr[row + 1]]
        spread[1][4 * row : 4 * row + count] = indices[indptr[row] : indptr[row + 1]]
    made = run("nn.internal.sparse_dense_padded", {}, dense, *spread, i32([0, 4, 8, 12, 16]))
    np.testing.assert_allclose(made, plain, rtol=1e-6)


def test_index_map_moves_each_element() -> None:
    x = whole(8, 6)
    made = run("meta_schedule_layout_transform", {"index_map": lambda i, j: (i // 4, j, i % 4)}, x)
    np.testing.assert_array_equal(made, x.reshape(2, 4, 6).transpose(0, 2, 1))


def test_simulated_rounding() -> None:
    x = f32([-9, -1.3, 0.25, 0.74, 5.2])
    made = run("relay.op.annotation.simulated_quantize", {"kind": 1}, x, f32(0.5), f32(-7), f32(6))
    assert made.tolist() == [-3.5, -1.5, 0.5, 0.5, 3.0]
    assert run("relay.op.annotation.simulated_quantize", {"kind": 0}, x, f32(0.5), f32(-7), f32(6)) is x


STATIC = (
    ("dyn.reshape", {"newshape": [3, -1]}, [real(2, 6), np.asarray([3, -1])]),
    ("dyn.broadcast_to", {"shape": [2, 3, 4]}, [real(3, 1), np.asarray([2, 3, 4])]),
    ("dyn.tile", {"reps": [2, 1]}, [real(2, 3), np.asarray([2, 1])]),
    ("dyn.zeros", {"shape": [2, 3], "dtype": "int8"}, [np.asarray([2, 3])]),
    ("dyn.ones", {"shape": [2, 3], "dtype": "int8"}, [np.asarray([2, 3])]),
    ("dyn.full", {"shape": [2, 3], "dtype": "float32"}, [f32(1.5), np.asarray([2, 3])]),
    ("dyn.topk", {"k": 2, "axis": 1, "dtype": "int64"}, [real(3, 4), np.asarray(2)]),
    ("dyn.one_hot", {"depth": 4, "axis": -1, "dtype": "float32"}, [i32([1, 3]), f32(1), f32(0), np.asarray(4)]),
    ("dyn.nn.pad", {"pad_width": [[1, 0], [2, 1]]}, [real(2, 3), np.asarray([[1, 0], [2, 1]]), f32(0.5)]),
    (
        "dyn.image.resize2d",
        {"size": [5, 7], "roi": [0.0] * 4, "rounding_method": ""},
        [real(1, 2, 4, 3), np.asarray([5, 7]), f32([0, 0, 0, 0])],
    ),
    ("dyn.nn.upsampling", {"scale_h": 2.0, "scale_w": 3.0}, [real(1, 2, 4, 3), np.asarray(2.0), np.asarray(3.0)]),
)


@pytest.mark.parametrize("name, attrs, args", STATIC, ids=[c[0] for c in STATIC])
def test_shapes_as_values(name: str, attrs: dict[str, Any], args: list[Any]) -> None:
    static = name.removeprefix("dyn.")
    given = {k: v for k, v in attrs.items() if k in OPS[static].schema}
    kept = [a for a, n in zip(args, OPS[name].args) if n in OPS[static].args]
    expected = run(static, given, *kept)
    dynamic = {k: v for k, v in attrs.items() if k in OPS[name].schema}
    made = run(name, dynamic, *args)
    for ours, theirs in zip(made if isinstance(made, tuple) else (made,), expected if isinstance(made, tuple) else (expected,)):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


def test_machine_operators_pass_values_through() -> None:
    x = real(2, 6)
    for name in ("on_device", "device_copy", "debug", "annotation.checkpoint", "annotation.stop_fusion"):
        assert run(name, {}, x) is x
    assert run("memory.kill", {}, x) == ()
    assert run("vm.shape_of", {"dtype": "int64"}, x).tolist() == [2, 6]
    assert run("vm.reshape_tensor", {"newshape": [3, 4]}, x, np.asarray([3, 4])).shape == (3, 4)


def test_what_cannot_be_computed_is_said() -> None:
    with pytest.raises(KernelError, match="no Winograd transformation of a kernel of 9"):
        run("nn.contrib_conv2d_winograd_weight_transform", {"tile_size": 2}, real(2, 2, 9, 9))
    with pytest.raises(KernelError, match="does not divide into words of 8 bits"):
        run("nn.bitpack", {"bits": 1, "pack_axis": 0, "bit_axis": 1, "pack_type": "uint8"}, i32([1, 0, 1]))
    with pytest.raises(KernelError, match="no coordinate transformation sideways"):
        attrs = {"size": [2], "roi": [0.0, 0.0], "coordinate_transformation_mode": "sideways"}
        run("image.resize1d", attrs, real(1, 1, 4))
    with pytest.raises(KernelError, match="neither avg nor max"):
        attrs = {"pooled_size": [1, 1], "spatial_scale": 1.0, "mode": "median"}
        run("vision.roi_align", attrs, real(1, 1, 4, 4), f32([[0, 0, 0, 1, 1]]))


def test_tolerances_are_of_operators() -> None:
    assert EXACT <= set(OPS)
    assert {name for name, _ in LOOSER} <= set(OPS)
    assert all(reason for _, _, reason in LOOSER.values())


def test_padding_mirrors_as_often_as_it_takes() -> None:
    x = np.arange(4, dtype=np.float32)
    wide = run("nn.pad", {"pad_width": [[7, 6]], "pad_mode": "reflect"}, x, f32(0))
    np.testing.assert_array_equal(wide, np.pad(x, (7, 6), mode="reflect"))
    behind = run("nn.pad", {"pad_width": [[-5, 8]], "pad_mode": "reflect"}, x, f32(0))
    np.testing.assert_array_equal(behind, f32([1, 0, 1, 2, 3, 2, 1]))
    beyond = run("nn.pad", {"pad_width": [[-5, 8]]}, x, f32(0.5))
    np.testing.assert_array_equal(beyond, np.full(7, 0.5, np.float32))
