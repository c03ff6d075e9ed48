"""What operators compute, as functions of numpy arrays under the names of `tvm.topi.testing`.

The interpreter's kernels compute it. Names and parameters are TVM's. Padding is one number, one for each axis, or one for
each side (first those before, then those after).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir import Function, IRModule, TensorType, Var
from relaylang.tvm.op.namespace import builder
from relaylang.typing import check

Array = np.ndarray
Numbers = int | Sequence[int]


def value(path: str, *arrays: Any, **attrs: Any) -> Array:
    """The result of a call of an operator's function (`nn.conv2d`) for arrays and attributes."""
    inputs = [np.asarray(a) for a in arrays]
    params = [Var(f"x{i}", TensorType(a.shape, a.dtype.name)) for i, a in enumerate(inputs)]
    mod = IRModule.from_expr(Function(params, builder(path)(*params, **attrs)))
    check(mod)
    return np.asarray(Evaluator(mod).call("main", tuple(inputs), {}))


def _axes(numbers: Numbers, count: int) -> tuple[int, ...]:
    """A number for each axis."""
    return (numbers,) * count if isinstance(numbers, int) else tuple(int(n) for n in numbers)


def _sides(padding: Numbers | str, count: int, kernel: Sequence[int], strides: Sequence[int], data: Sequence[int]) -> tuple[int, ...]:
    """A padding for each side."""
    if padding == "VALID":
        return (0,) * (2 * count)
    if padding == "SAME":
        totals = [max((-(-d // s) - 1) * s + k - d, 0) for k, s, d in zip(kernel, strides, data)]
        return (*[n // 2 for n in totals], *[n - n // 2 for n in totals])
    assert not isinstance(padding, str)
    axes = _axes(padding, count)
    return axes if len(axes) == 2 * count else axes * 2


def _conv(
    path: str, layout: str, kernel_layout: str, a: Any, w: Any, stride: Numbers, padding: Any, groups: int = 1, **more: Any
) -> Array:
    """A convolution of data and weights in these layouts."""
    count = len(layout) - 2
    places = [layout.index(c) for c in layout if c in "DHW"]
    kernel = [w.shape[kernel_layout.index(c)] for c in layout if c in "DHW"]
    strides = _axes(stride, count)
    sides = _sides(padding, count, kernel, strides, [a.shape[p] for p in places])
    names: dict[str, Any] = {"data_layout": layout, "kernel_layout": kernel_layout, "channels": w.shape[kernel_layout.index("O")]}
    if "transpose" in path:
        names["channels"] *= groups
    names |= {"strides": strides, "padding": sides, "groups": groups, "kernel_size": kernel, "out_dtype": a.dtype.name}
    return value(path, a, w, **names, **more)


def conv1d_ncw_python(a_np: Any, w_np: Any, stride: Numbers, padding: Any, dilation: Numbers) -> Array:
    return _conv("nn.conv1d", "NCW", "OIW", a_np, w_np, stride, padding, dilation=_axes(dilation, 1))


def conv2d_nchw_python(a_np: Any, w_np: Any, stride: Numbers, padding: Any, groups: int = 1) -> Array:
    return _conv("nn.conv2d", "NCHW", "OIHW", a_np, w_np, stride, padding, groups)


def conv2d_nhwc_python(a_np: Any, w_np: Any, stride: Numbers, padding: Any, groups: int = 1) -> Array:
    return _conv("nn.conv2d", "NHWC", "HWIO", a_np, w_np, stride, padding, groups)


def conv3d_ncdhw_python(a_np: Any, w_np: Any, stride: Numbers, padding: Any, groups: int = 1) -> Array:
    return _conv("nn.conv3d", "NCDHW", "OIDHW", a_np, w_np, stride, padding, groups)


def conv3d_ndhwc_python(a_np: Any, w_np: Any, stride: Numbers, padding: Any, groups: int = 1) -> Array:
    return _conv("nn.conv3d", "NDHWC", "DHWIO", a_np, w_np, stride, padding, groups)


def conv1d_transpose_ncw_python(a_np: Any, w_np: Any, stride: Numbers, padding: Any, output_padding: Numbers) -> Array:
    more = _axes(output_padding, 1)
    return _conv("nn.conv1d_transpose", "NCW", "IOW", a_np, w_np, stride, padding, output_padding=more)


def conv2d_transpose_nchw_python(
    a_np: Any, w_np: Any, stride: Numbers, padding: Any, output_padding: Numbers, groups: int = 1
) -> Array:
    more = _axes(output_padding, 2)
    return _conv("nn.conv2d_transpose", "NCHW", "IOHW", a_np, w_np, stride, padding, groups, output_padding=more)


def conv2d_transpose_nhwc_python(
    a_nhwc: Any, weight: Any, weight_format: str, stride: Numbers, padding: Any, output_padding: Numbers = (0, 0)
) -> Array:
    w = np.transpose(weight, [weight_format.index(c) for c in "IOHW"])
    out = conv2d_transpose_nchw_python(np.transpose(a_nhwc, (0, 3, 1, 2)), w, stride, padding, output_padding)
    return np.transpose(out, (0, 2, 3, 1))


def conv3d_transpose_ncdhw_python(
    a_np: Any, w_np: Any, stride: Numbers, padding: Any, output_padding: Numbers, groups: int = 1
) -> Array:
    more = _axes(output_padding, 3)
    return _conv("nn.conv3d_transpose", "NCDHW", "IODHW", a_np, w_np, stride, padding, groups, output_padding=more)


def conv2d_backward_weight_python(
    dy_np: Any,
    x_np: Any,
    kernel_size: Numbers,
    stride: Numbers,
    padding: Any,
    layout: str = "NCHW",
    groups: int = 1,
    channels: int | None = None,
) -> Array:
    last = layout == "NHWC"
    dy, x = [np.transpose(v, (0, 3, 1, 2)) if last else v for v in (dy_np, x_np)]
    sizes = {"kernel_size": _axes(kernel_size, 2), "strides": _axes(stride, 2), "padding": _axes(padding, 2)}
    layouts = {"grad_layout": "NCHW", "data_layout": "NCHW", "kernel_layout": "OIHW"}
    out = value("nn.conv2d_backward_weight", dy, x, groups=groups, channels=channels, **sizes, **layouts)
    return np.transpose(out, (0, 2, 3, 1)) if last else out


def _deformable(
    layout: str, kernel: str, a: Any, offset: Any, w: Any, stride: Any, padding: Any, dilation: Any, deformable: int, groups: int
) -> Array:
    size = [w.shape[kernel.index(c)] for c in "HW"]
    sizes = {"strides": _axes(stride, 2), "padding": _axes(padding, 2), "dilation": _axes(dilation, 2), "kernel_size": size}
    channels = w.shape[kernel.index("O")]
    return value(
        "nn.deformable_conv2d",
        a,
        offset,
        w,
        deformable_groups=deformable,
        groups=groups,
        channels=channels,
        data_layout=layout,
        kernel_layout=kernel,
        **sizes,
    )


def deformable_conv2d_nchw_python(
    a_np: Any, offset_np: Any, w_np: Any, stride: Any, padding: Any, dilation: Any, deformable_groups: int, groups: int
) -> Array:
    return _deformable("NCHW", "OIHW", a_np, offset_np, w_np, stride, padding, dilation, deformable_groups, groups)


def deformable_conv2d_nhwc_python(
    a_np: Any, offset_np: Any, w_np: Any, stride: Any, padding: Any, dilation: Any, deformable_groups: int, groups: int
) -> Array:
    return _deformable("NHWC", "HWIO", a_np, offset_np, w_np, stride, padding, dilation, deformable_groups, groups)


def poolnd_python(
    np_data: Any,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    padding_before: Sequence[int],
    padding_after: Sequence[int],
    pool_type: str,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
    dtype: str = "float32",
    layout: str | None = None,
) -> Array:
    count = np.ndim(np_data) - 2
    more: dict[str, Any] = {"count_include_pad": count_include_pad} if pool_type == "avg" else {}
    layout = layout or "NC" + "DHW"[-count:]
    out = value(
        f"nn.{pool_type}_pool{count}d",
        np_data,
        pool_size=tuple(kernel),
        strides=tuple(strides),
        dilation=tuple(dilation),
        padding=(*padding_before, *padding_after),
        layout=layout,
        ceil_mode=ceil_mode,
        **more,
    )
    return out.astype(dtype)


def pool_grad_nchw(
    a_np: Any,
    out_grad_np: Any,
    pool_size: Numbers,
    strides: Numbers,
    padding: Numbers,
    pool_type: str,
    ceil_mode: bool,
    count_include_pad: bool = True,
) -> Array:
    more: dict[str, Any] = {"count_include_pad": count_include_pad} if pool_type == "avg" else {}
    return value(
        f"nn.{pool_type}_pool2d_grad",
        out_grad_np,
        a_np,
        pool_size=_axes(pool_size, 2),
        strides=_axes(strides, 2),
        padding=_sides(padding, 2, (), (), ()),
        ceil_mode=ceil_mode,
        **more,
    )


def adaptive_pool(np_data: Any, out_size: Numbers, pool_type: str, layout: str) -> Array:
    count = len(layout) - 2
    return value(f"nn.adaptive_{pool_type}_pool{count}d", np_data, output_size=_axes(out_size, count), layout=layout)


def _resize(path: str, data: Any, scale: Sequence[float], layout: str, method: str, mode: str) -> Array:
    spatial = [layout.index(c) for c in layout if c in "DHW"]
    size = [round(np.shape(data)[p] * s) for p, s in zip(spatial, scale)]
    how = {"method": method, "coordinate_transformation_mode": mode, "cubic_alpha": -0.5, "rounding_method": ""}
    return value(path, data, size=size, layout=layout, **how)


def resize1d_python(
    data: Any,
    scale: Sequence[float],
    layout: str = "NCW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "align_corners",
) -> Array:
    return _resize("image.resize1d", data, scale, layout, method, coordinate_transformation_mode)


def resize2d_python(
    data: Any,
    scale: Sequence[float],
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "align_corners",
) -> Array:
    return _resize("image.resize2d", data, scale, layout, method, coordinate_transformation_mode)


def resize3d_python(
    data: Any,
    scale: Sequence[float],
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "align_corners",
) -> Array:
    return _resize("image.resize3d", data, scale, layout, method, coordinate_transformation_mode)


def crop_and_resize_python(
    image: Any,
    boxes: Any,
    box_indices: Any,
    crop_size: Sequence[int],
    layout: str,
    method: str = "bilinear",
    extrapolation_value: float = 0,
) -> Array:
    return value(
        "image.crop_and_resize",
        image,
        boxes,
        box_indices,
        crop_size=tuple(crop_size),
        layout=layout,
        method=method,
        extrapolation_value=extrapolation_value,
    )


def _roi_align(layout: str, a: Any, rois: Any, pooled: Numbers, scale: float, ratio: int, mode: bytes | str) -> Array:
    said = mode.decode() if isinstance(mode, bytes) else mode
    size = _axes(pooled, 2)
    return value("vision.roi_align", a, rois, pooled_size=size, spatial_scale=scale, sample_ratio=ratio, layout=layout, mode=said)


def roi_align_nchw_python(
    a_np: Any, rois_np: Any, pooled_size: Numbers, spatial_scale: float, sample_ratio: int, mode: bytes | str = b"avg"
) -> Array:
    return _roi_align("NCHW", a_np, rois_np, pooled_size, spatial_scale, sample_ratio, mode)


def roi_align_nhwc_python(
    a_np: Any, rois_np: Any, pooled_size: Numbers, spatial_scale: float, sample_ratio: int, mode: bytes | str = b"avg"
) -> Array:
    return _roi_align("NHWC", a_np, rois_np, pooled_size, spatial_scale, sample_ratio, mode)


def roi_pool_nchw_python(a_np: Any, rois_np: Any, pooled_size: Numbers, spatial_scale: float) -> Array:
    return value("vision.roi_pool", a_np, rois_np, pooled_size=_axes(pooled_size, 2), spatial_scale=spatial_scale)


def reorg_python(a_np: Any, stride: int) -> Array:
    return value("vision.yolo_reorg", a_np, stride=stride)


def depth_to_space_python(data: Any, block_size: int, mode: str = "DCR") -> Array:
    return value("nn.depth_to_space", data, block_size=block_size, layout="NCHW", mode=mode)


def space_to_depth_python(data: Any, block_size: int) -> Array:
    return value("nn.space_to_depth", data, block_size=block_size, layout="NCHW")


def space_to_batch_nd_python(
    data: Any, block_shape: Sequence[int], pad_before: Sequence[int], pad_after: Sequence[int], pad_value: float = 0
) -> Array:
    paddings = [list(p) for p in zip(pad_before, pad_after)]
    return value("nn.space_to_batch_nd", data, block_shape=list(block_shape), paddings=paddings, pad_value=pad_value)


def batch_to_space_nd_python(
    data: Any, block_shape: Sequence[int], crop_begin_list: Sequence[int], crop_end_list: Sequence[int]
) -> Array:
    crops = [list(c) for c in zip(crop_begin_list, crop_end_list)]
    return value("nn.batch_to_space_nd", data, block_shape=list(block_shape), crops=crops)


def affine_grid_python(data: Any, target_shape: Sequence[int]) -> Array:
    return value("image.affine_grid", data, target_shape=tuple(target_shape))


def grid_sample_python(
    data: Any, grid: Any, method: str = "bilinear", layout: str = "NCHW", padding_mode: str = "zeros", align_corners: bool = True
) -> Array:
    return value("image.grid_sample", data, grid, method=method, layout=layout, padding_mode=padding_mode, align_corners=align_corners)


def correlation_nchw_python(
    data1: Any, data2: Any, kernel_size: int, max_displacement: int, stride1: int, stride2: int, padding: Numbers, is_multiply: bool
) -> Array:
    return value(
        "nn.correlation",
        data1,
        data2,
        kernel_size=kernel_size,
        max_displacement=max_displacement,
        stride1=stride1,
        stride2=stride2,
        padding=padding,
        is_multiply=is_multiply,
        layout="NCHW",
    )


def batch_matmul(x: Any, y: Any, out_dtype: str | None = None, trans_x: bool = False, trans_y: bool = True) -> Array:
    a = np.swapaxes(x, 1, 2) if trans_x else np.asarray(x)
    b = np.swapaxes(y, 1, 2) if trans_y else np.asarray(y)
    dtype = np.dtype(out_dtype or a.dtype)
    return np.matmul(a.astype(dtype), b.astype(dtype))


def one_hot(indices: Any, on_value: float, off_value: float, depth: int, axis: int, dtype: str) -> Array:
    places = np.asarray(indices)
    at = places.ndim if axis == -1 else axis
    shape = [1] * (places.ndim + 1)
    shape[at] = depth
    hot = np.expand_dims(places, at) == np.arange(depth).reshape(shape)
    return np.where(hot, on_value, off_value).astype(dtype)


def dilate_python(input_np: Any, strides: Sequence[int], dilation_value: float = 0.0, out_dtype: Any = None) -> Array:
    data = np.asarray(input_np)
    out = np.full([(n - 1) * s + 1 for n, s in zip(data.shape, strides)], dilation_value, out_dtype or data.dtype)
    out[tuple([slice(None, None, s) for s in strides])] = data
    return out


def _slices(rank: int, begin: Any, end: Any, strides: Any, slice_mode: str, axes: Any) -> tuple[slice, ...]:
    slices = [slice(None)] * rank
    for place, axis in enumerate(range(rank) if axes is None else axes):
        low = begin[place] if place < len(begin) else None
        high = end[place] if place < len(end) else None
        step = strides[place] if strides is not None and place < len(strides) else None
        if slice_mode == "size" and high is not None:
            high, step = (None if high < 0 else low + high), None
        slices[axis] = slice(low, high, step)
    return tuple(slices)


def strided_slice_python(data: Any, begin: Any, end: Any, strides: Any, slice_mode: str = "end", axes: Any = None) -> Array:
    return np.asarray(data)[_slices(np.ndim(data), begin, end, strides, slice_mode, axes)]


def strided_set_python(data: Any, v: Any, begin: Any, end: Any, strides: Any) -> Array:
    out = np.array(data)
    out[_slices(out.ndim, begin, end, strides, "end", None)] = v
    return out


def gather_python(data: Any, axis: int, indices: Any) -> Array:
    return np.take_along_axis(np.asarray(data), np.asarray(indices).astype("int64"), axis)


def sequence_mask(data: Any, valid_length: Any, mask_value: float, axis: int) -> Array:
    return value("sequence_mask", data, valid_length, mask_value=mask_value, axis=axis)


def matrix_set_diag(input_np: Any, diagonal: Any, k: Any = 0, align: str = "RIGHT_LEFT") -> Array:
    return value("matrix_set_diag", input_np, diagonal, k=k, align=align)


def nll_loss(predictions: Any, targets: Any, weights: Any, reduction: str = "mean", ignore_index: int = -100) -> Array:
    return value("nn.nll_loss", predictions, targets, weights, reduction=reduction, ignore_index=ignore_index)


def softmax_python(a_np: Any, axis: int = 1) -> Array:
    return value("nn.softmax", a_np, axis=axis)


def log_softmax_python(a_np: Any, axis: int = 1) -> Array:
    return value("nn.log_softmax", a_np, axis=axis)


def lrn_python(a_np: Any, size: int, axis: int, bias: float, alpha: float, beta: float) -> Array:
    return value("nn.lrn", a_np, size=size, axis=axis, bias=bias, alpha=alpha, beta=beta)


def l2_normalize_python(a_np: Any, eps: float, axis: Any = None) -> Array:
    axes = list(range(np.ndim(a_np))) if axis is None else np.atleast_1d(axis).tolist()
    return value("nn.l2_normalize", a_np, eps=eps, axis=axes)


def searchsorted_ref(sorted_sequence: Any, values: Any, right: bool, out_dtype: str) -> Array:
    return value("searchsorted", sorted_sequence, values, right=right, dtype=out_dtype)


__all__ = [
    "adaptive_pool", "affine_grid_python", "batch_matmul", "batch_to_space_nd_python", "conv1d_ncw_python",
    "conv1d_transpose_ncw_python", "conv2d_backward_weight_python", "conv2d_nchw_python", "conv2d_nhwc_python",
    "conv2d_transpose_nchw_python", "conv2d_transpose_nhwc_python", "conv3d_ncdhw_python", "conv3d_ndhwc_python",
    "conv3d_transpose_ncdhw_python", "correlation_nchw_python", "crop_and_resize_python", "deformable_conv2d_nchw_python",
    "deformable_conv2d_nhwc_python", "depth_to_space_python", "dilate_python", "gather_python", "grid_sample_python",
    "l2_normalize_python", "log_softmax_python", "lrn_python", "matrix_set_diag", "nll_loss", "one_hot", "pool_grad_nchw",
    "poolnd_python", "reorg_python", "resize1d_python", "resize2d_python", "resize3d_python", "roi_align_nchw_python",
    "roi_align_nhwc_python", "roi_pool_nchw_python", "searchsorted_ref", "sequence_mask", "softmax_python", "space_to_batch_nd_python",
    "space_to_depth_python", "strided_set_python", "strided_slice_python",
]  # fmt: skip
