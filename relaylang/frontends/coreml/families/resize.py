"""Pictures of another size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported, nn
from relaylang.frontends.common.resample import affine_grid, resample, stretch
from relaylang.frontends.common.resize import Method
from relaylang.frontends.coreml.node import Ints, Node
from relaylang.ir import Expr

#: How grids of points are laid -> the coordinates of Resize. `OFFSET_CORNERS` has none there.
GRIDS = {
    "DEFAULT": "asymmetric",
    "STRICT_ALIGN_CORNERS": "align_corners",
    "ALIGN_CORNERS": "align_corners",
    "UNALIGN_CORNERS": "half_pixel",
}
#: All grids.
_ALL = (*GRIDS, "OFFSET_CORNERS")
#: A result has at most so many elements along an axis.
_LARGEST = 1 << 24


def resized(n: Node, x: Expr, sizes: Mapping[int, int], method: Method) -> Expr:
    """Axes of other extents. The places of results follow from both extents."""
    b = n.b
    if any(not 0 < size < _LARGEST for size in sizes.values()):
        raise Malformed(f"its result has {list(sizes.values())} places")
    b.arrays.reserve([*sizes.values()], "resizing its operand", 1)
    return resample(b, x, {axis: stretch(b, x, axis, size=size) for axis, size in sizes.items()}, method)


def _last_two(n: Node, x: Expr, sizes: Sequence[int]) -> dict[int, int]:
    rank = n.b.rank(x)
    if rank < 2:
        raise Malformed("its operand is no picture")
    return {rank - 2: int(sizes[0]), rank - 1: int(sizes[1])}


def _scaled(n: Node, x: Expr, scales: Sequence[float]) -> dict[int, int]:
    """The extents of a picture, each times a factor and rounded down."""
    if not all(0 < scale < _LARGEST for scale in scales):
        raise Malformed(f"its factors are {list(scales)}")
    return _last_two(n, x, [int(n.b.extent(x, axis - 2) * scale) for axis, scale in enumerate(scales)])


def nearest(n: Node, x: Expr, sizes: Mapping[int, int], coordinates: str = "tf_half_pixel_for_nn") -> Any:
    """Each element several times where extents are multiples, else the element in which each place of a grid lies."""
    b, repeated = n.b, x
    rest = {}
    for axis, size in sizes.items():
        extent = b.extent(x, axis)
        if not 0 < size < _LARGEST:
            raise Malformed(f"its result has {size} places")
        if extent and size % extent == 0:
            b.arrays.reserve(size, "resizing its operand", 1)
            repeated = repeated if size == extent else b.op("repeat", repeated, repeats=size // extent, axis=axis)
        else:
            rest[axis] = size
    return resized(n, repeated, rest, Method("nearest", coordinates, "floor")) if rest else repeated


def linear(n: Node, x: Expr, sizes: Mapping[int, int], mode: str) -> Any:
    """The weighted mean of the elements around each place of a grid."""
    if mode not in _ALL:
        raise Unsupported(f"its grid is {mode[:40]}")
    single = any(size == 1 != n.b.shape(x)[axis] for axis, size in sizes.items())
    if mode == "OFFSET_CORNERS" or (mode == "ALIGN_CORNERS" and single):
        return _by_weights(n, x, sizes, mode)
    return resized(n, x, sizes, Method("linear", GRIDS[mode]))


def _by_weights(n: Node, x: Expr, sizes: Mapping[int, int], mode: str) -> Expr:
    """Axes of other extents as products with the weights of each place."""
    b, sized = n.b, x
    for axis, size in sizes.items():
        extent, last = b.extent(x, axis), b.rank(x) - 1
        if not 0 < size < _LARGEST:
            raise Malformed(f"its result has {size} places")
        b.arrays.reserve((size, max(extent, 1)), "resizing its operand", 16)
        own = b.const(np.array([[0.0, extent - 1]], b.dtype(x)))
        weights = _weights(b, _places(b, own, size, mode), extent)
        order = [i for i in range(last + 1) if i != axis] + [axis]
        turned = nn.matmul(b, b.transpose(sized, order), b.transpose(b.squeeze(weights, [0]), [1, 0]))
        sized = b.transpose(turned, np.argsort(order).tolist())
    return sized


def _places(b: Builder, ends: Expr, count: int, mode: str) -> Expr:
    """The points of grids (boxes, count) between the first and the last elements (boxes, 2) of boxes."""
    dtype = b.dtype(ends)
    first, last = (b.slice(ends, [i], [i + 1], [1]) for i in (0, 1))
    length = b.op("subtract", last, first)
    numbers = b.const(b.arrays.arange(count)[None].astype(dtype))
    if mode in ("STRICT_ALIGN_CORNERS", "ALIGN_CORNERS"):
        begin = b.op("multiply", length, 0.5) if count == 1 and mode == "ALIGN_CORNERS" else b.op("zeros_like", length)
        return b.op("add", first, b.op("add", begin, b.op("multiply", numbers, b.op("divide", length, float(max(count - 1, 1))))))
    offset = mode == "OFFSET_CORNERS"
    step = b.op("divide", b.op("maximum", length, 1.0) if offset else b.op("add", length, 1.0), float(count))
    half = b.op("multiply", step, 0.5)
    begin = half if offset else b.op("subtract", half, 0.5) if mode == "UNALIGN_CORNERS" else b.op("zeros_like", step)
    inside = b.op("add", begin, b.op("multiply", numbers, step))
    return b.op("add", first, b.op("minimum", b.op("maximum", inside, 0.0), length))


def _weights(b: Builder, places: Expr, extent: int) -> Expr:
    """The weights (boxes, count, extent) of the elements around each place."""
    at = b.const(b.arrays.arange(extent).astype(b.dtype(places)))
    return b.op(
        "maximum", b.op("subtract", b.const(1.0, b.dtype(places)), b.op("abs", b.op("subtract", b.unsqueeze(places, [2]), at))), 0.0
    )


def upsample_nearest(n: Node, x: Expr, scale_factor_height: float = 1.0, scale_factor_width: float = 1.0) -> Any:
    return nearest(n, x, _scaled(n, x, [scale_factor_height, scale_factor_width]), "asymmetric")


def resize_nearest(n: Node, x: Expr, target_size_height: int, target_size_width: int) -> Any:
    return nearest(n, x, _last_two(n, x, [target_size_height, target_size_width]))


def upsample_bilinear(
    n: Node,
    x: Expr,
    scale_factor_height: float = 1.0,
    scale_factor_width: float = 1.0,
    align_corners: bool = True,
    half_pixel_centers: bool | None = None,
) -> Any:
    half = not align_corners if half_pixel_centers is None else half_pixel_centers
    mode = "STRICT_ALIGN_CORNERS" if align_corners else "UNALIGN_CORNERS" if half else "DEFAULT"
    return linear(n, x, _scaled(n, x, [scale_factor_height, scale_factor_width]), mode)


def resize_bilinear(n: Node, x: Expr, target_size_height: int = 1, target_size_width: int = 1, sampling_mode: str = "DEFAULT") -> Any:
    return linear(n, x, _last_two(n, x, [target_size_height, target_size_width]), sampling_mode)


def resize(
    n: Node, x: Expr, shape: Expr, resized_dims: int, interpolation_mode: str = "LINEAR", sampling_mode: str = "DEFAULT"
) -> Any:
    """The last axes have the last extents of a shape; 0 keeps one."""
    b = n.b
    wanted, rank = b.need_ints(shape, "its shape"), b.rank(x)
    if not 0 <= resized_dims <= min(len(wanted), rank):
        raise Malformed(f"it resizes {resized_dims} axes to {wanted[:8]}")
    first = rank - resized_dims
    sizes = {first + i: int(v) for i, v in enumerate(wanted[len(wanted) - resized_dims :]) if v}
    if interpolation_mode == "LINEAR":
        return linear(n, x, sizes, sampling_mode)
    if interpolation_mode != "NEAREST_NEIGHBOR" or sampling_mode != "DEFAULT":
        raise Unsupported(f"it resizes by {interpolation_mode[:40]} on the grid {sampling_mode[:40]}")
    return nearest(n, x, sizes)


def crop(n: Node, x: Expr, crop_height: Ints, crop_width: Ints) -> Any:
    """A picture without some rows and columns before and behind."""
    b, rank = n.b, n.b.rank(x)
    if len(crop_height) != 2 or len(crop_width) != 2 or rank < 2:
        raise Malformed(f"it cuts off {list(crop_height)[:4]} rows and {list(crop_width)[:4]} columns")
    axes = [rank - 2, rank - 1]
    begins, ends = zip(*[(int(a), b.extent(x, axis) - int(z)) for axis, (a, z) in zip(axes, (crop_height, crop_width))])
    if min(begins) < 0 or any(not first <= end <= b.extent(x, axis) for first, end, axis in zip(begins, ends, axes)):
        raise Malformed(f"it keeps the places {list(begins)} to {list(ends)} of its operand")
    return b.slice(x, list(begins), list(ends), axes)


def crop_resize(
    n: Node,
    x: Expr,
    boxes: Expr | None = None,
    box_indices: Expr | None = None,
    target_height: int = 1,
    target_width: int = 1,
    normalized_coordinates: bool = False,
    spatial_scale: float = 1.0,
    box_coordinate_mode: str = "CORNERS_HEIGHT_FIRST",
    sampling_mode: str = "DEFAULT",
    pad_value: float = 0.0,
    roi: Expr | None = None,
) -> Any:
    """Parts of pictures in one size: (boxes, channels, rows, columns). Boxes are (boxes, 4).

    As `roi` they are (boxes, 1, 4, 1, 1) of every picture, or have the number of their picture before the four. The result
    is (boxes, pictures, channels, rows, columns) then, with one picture in the second form.
    """
    b, pictures = n.b, 1
    if roi is not None:
        boxes, box_indices, pictures = _regions(n, x, roi)
    if boxes is None:
        raise Malformed("its boxes are missing")
    if sampling_mode not in _ALL:
        raise Unsupported(f"its grid is {sampling_mode[:40]}")
    if not (0 < target_height < _LARGEST and 0 < target_width < _LARGEST):
        raise Malformed(f"its result has {target_height} x {target_width} places")
    high, wide = (b.extent(b.of_rank(x, 4), axis) for axis in (2, 3))
    parts = _sides(b, boxes, box_coordinate_mode)
    aligned = sampling_mode.endswith("ALIGN_CORNERS") and sampling_mode != "UNALIGN_CORNERS" and min(target_height, target_width) > 1
    lasts = [max(high - 1, 1), max(wide - 1, 1)] * 2
    scales = [1.0 if normalized_coordinates else spatial_scale / last for last in lasts]  # to shares of the picture
    if not aligned:
        scales = [scale * last for scale, last in zip(scales, lasts)]
    parts = [b.op("multiply", v, scale) if scale != 1 else v for v, scale in zip(parts, scales)]
    count = b.extent(parts[0], 0, "the number of boxes")
    places = b.cast(box_indices, "int32") if box_indices is not None else b.const(b.arrays.zeros(count, "int32"))
    if pictures > 1:  # all boxes of each picture
        parts = [b.op("repeat", v, repeats=pictures, axis=0) for v in parts]
        places = b.const(b.arrays.tile(b.arrays.arange(pictures), (count,)), "int32")
    if aligned:
        how = {"layout": "NCHW", "method": "bilinear", "extrapolation_value": pad_value}
        cropped = b.op("image.crop_and_resize", x, b.concat(parts, 1), places, crop_size=[target_height, target_width], **how)
    else:
        cropped = _parts(b, x, parts, places, (target_height, target_width), sampling_mode, pad_value)
    if roi is None:
        return cropped
    channels = b.extent(x, 1, "the channels")
    return b.reshape_exactly(cropped, [count, pictures, channels, target_height, target_width])


def _sides(b: Builder, boxes: Expr, mode: str) -> list[Expr]:
    """Columns of top, left, bottom and right of boxes (boxes, 4)."""
    parts = [b.slice(b.of_rank(boxes, 2), [i], [i + 1], [1]) for i in range(4)]
    if mode.startswith("CENTER_SIZE"):
        half = [b.op("multiply", v, 0.5) for v in parts[2:]]
        parts = [b.op(op, v, h) for op in ("subtract", "add") for v, h in zip(parts[:2], half)]
    elif not mode.startswith("CORNERS"):
        raise Malformed(f"its boxes are {mode[:40]!r}")
    if mode.endswith("WIDTH_FIRST"):
        parts = [parts[i] for i in (1, 0, 3, 2)]
    return parts


def _parts(b: Builder, x: Expr, sides: Sequence[Expr], pictures: Expr, sizes: tuple[int, int], mode: str, value: float) -> Expr:
    """Parts of pictures on a grid; `sides` are columns of top, left, bottom and right. Places beyond a picture have `value`."""
    extents = [b.extent(x, 2), b.extent(x, 3)]
    b.arrays.reserve((b.extent(pictures, 0), *sizes, sum(extents)), "resizing its operand", 1)
    places = [_places(b, b.concat([sides[i], sides[i + 2]], 1), sizes[i], mode) for i in (0, 1)]
    weights = [b.unsqueeze(_weights(b, p, e), [1]) for p, e in zip(places, extents)]
    sampled = nn.matmul(b, nn.matmul(b, weights[0], b.op("take", x, pictures, axis=0)), b.transpose(weights[1], [0, 1, 3, 2]))
    fine = [b.op("logical_and", b.op("greater_equal", p, 0.0), b.op("less_equal", p, e - 1.0)) for p, e in zip(places, extents)]
    inside = b.op("logical_and", b.unsqueeze(fine[0], [1, 3]), b.unsqueeze(fine[1], [1, 2]))
    return b.op("where", inside, sampled, b.const(value, b.dtype(x)))


def _regions(n: Node, x: Expr, roi: Expr) -> tuple[Expr, Expr | None, int]:
    """Boxes (boxes, 4) and the numbers of their pictures, None for boxes of every picture; and the pictures of each box."""
    b = n.b
    count, one, width, *rest = b.static_shape(roi, "its boxes", 5)
    if one != 1 or width not in (4, 5) or rest != [1, 1]:
        raise Malformed(f"its boxes have the shape {tuple(b.shape(roi))}")
    rows = b.reshape_exactly(roi, [count, width])
    if width == 4:
        return rows, None, b.extent(x, 0, "the number of pictures")
    return b.slice(rows, [1], [5], [1]), b.squeeze(b.slice(rows, [0], [1], [1]), [1]), 1


#: The padding of a picture -> that of samples, and whether it folds places at the middle of the last elements.
_PADDINGS = {
    "constant": ("zeros", False),
    "border": ("border", False),
    "reflection": ("reflection", True),
    "symmetric": ("reflection", False),
}


def resample_at(
    n: Node,
    x: Expr,
    coordinates: Expr,
    sampling_mode: str,
    padding_mode: str,
    padding_value: float,
    coordinates_mode: str,
    align_corners: bool,
) -> Any:
    """Pictures (batch, channels, rows, columns) at computed places (batch, rows, columns, 2) of x and y.

    Source: coremltools, iOS15's `resample`, and the results of its tests.
    """
    b, method = n.b, sampling_mode.lower()
    if padding_mode.lower() not in _PADDINGS or method not in ("bilinear", "nearest"):
        raise Unsupported(f"it takes places by {sampling_mode[:40]} with the padding {padding_mode[:40]}")
    padding, middle = _PADDINGS[padding_mode.lower()]
    extents = [b.extent(b.of_rank(x, 4), axis, "the picture") for axis in (3, 2)]
    if b.shape(b.of_rank(coordinates, 4))[3] != 2:
        raise Malformed(f"its places have the shape {tuple(b.shape(coordinates))}")
    if b.shape(coordinates)[0] != b.shape(x)[0]:
        raise Malformed(f"it has places for {b.shape(coordinates)[0]} pictures, and its operand has {b.shape(x)[0]}")
    lines = np.array([_line(extent, coordinates_mode.lower(), align_corners, middle) for extent in extents])
    # Other coordinates are numbers of elements: rounded to shares in float32, they would be off by parts of an element.
    kind = "float64" if (lines != [1, 0]).any() else "float32"
    grid = b.cast(b.transpose(coordinates, [0, 3, 1, 2]), kind)
    if kind == "float64":
        factor, shift = (b.const(lines[:, i].reshape(1, 2, 1, 1)) for i in (0, 1))
        grid = b.op("add", b.op("multiply", grid, factor), shift)
    value = padding_value if padding == "zeros" else 0.0
    data = b.op("subtract", b.cast(x, kind), value) if value else b.cast(x, kind)
    how = {"layout": "NCHW", "method": method, "padding_mode": padding, "align_corners": middle}
    sampled = b.op("image.grid_sample", data, grid, **how)
    return b.cast(b.op("add", sampled, value) if value else sampled, b.dtype(x))


def _line(extent: int, mode: str, align: bool, middle: bool) -> tuple[float, float]:
    """The factor and the shift from the coordinates of a mode to those from -1 to 1 along an axis.

    The latter are the middles of the first and the last element, or the outer edges of both.
    """
    last = extent - 1
    if mode == "normalized_minus_one_to_one":
        factor, shift = (last if align else extent) / 2, last / 2
    elif mode == "normalized_zero_to_one":
        factor, shift = (last, 0.0) if align else (extent, -0.5)
    elif mode == "unnormalized":
        factor, shift = 1.0, 0.0
    else:
        raise Unsupported(f"its places are {mode[:40]}")
    if not middle:
        return 2 * factor / extent, (2 * shift + 1) / extent - 1
    return (2 * factor / last, 2 * shift / last - 1) if last else (0.0, 0.0)


def affine(
    n: Node,
    x: Expr,
    transform_matrix: Expr,
    output_height: int,
    output_width: int,
    sampling_mode: str,
    padding_mode: str,
    padding_value: float,
    coordinates_mode: str,
    align_corners: bool,
) -> Any:
    """Pictures moved by matrices (batch or 1, 6) of x and y between the middles of the first and the last elements."""
    b = n.b
    if coordinates_mode.lower() != "normalized_minus_one_to_one" or not align_corners:
        raise Unsupported(f"its places are {coordinates_mode[:40]} with align_corners={align_corners}")
    if not (0 < output_height < _LARGEST and 0 < output_width < _LARGEST):
        raise Malformed(f"its result has {output_height} x {output_width} places")
    count, width = b.static_shape(transform_matrix, "its matrices", 2)
    batch = b.extent(b.of_rank(x, 4), 0, "the number of pictures")
    if width != 6 or count not in (1, batch):
        raise Malformed(f"its matrices have the shape {(count, width)}")
    theta = b.reshape_exactly(b.cast(transform_matrix, "float32"), [count, 2, 3])
    places = affine_grid(
        b, theta if count == batch else b.op("repeat", theta, repeats=batch, axis=0), [output_height, output_width], True
    )
    return resample_at(n, x, places, sampling_mode, padding_mode, padding_value, coordinates_mode, True)


RULES = (
    Rule("affine", affine),
    Rule("crop", crop),
    Rule("crop_resize", crop_resize),
    Rule("resample", resample_at),
    Rule("resize", resize),
    Rule("resize_bilinear", resize_bilinear),
    Rule("resize_nearest_neighbor", resize_nearest),
    Rule("upsample_bilinear", upsample_bilinear),
    Rule("upsample_nearest_neighbor", upsample_nearest),
)
