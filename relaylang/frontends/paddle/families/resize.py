"""Interpolation, grids of points, and samples at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.common.resample import affine_grid as affine
from relaylang.frontends.common.resample import resample, stretch
from relaylang.frontends.common.resize import Method, Stretch
from relaylang.frontends.paddle.node import Node
from relaylang.ir import Expr


def _interpolation(kind: str) -> Callable[..., Any]:
    def convert(n: Node, x: Expr, size: Any = None, sizes: Any = None, scale: Any = None) -> Any:
        """`sizes` come before `size`, this before the scales, and these before the attributes of extents."""
        data = n.text("data_format", "NCHW")
        if data not in ("NCHW", "NHWC", "NCDHW", "NDHWC", "NCW", "NWC"):
            raise Malformed(f"its layout is {data[:40]!r}")
        return n.channels_first(x, lambda x: _resized(n, x, kind, size, sizes, scale))

    return convert


def _method(n: Node, kind: str) -> Method:
    corners = n.bool("align_corners", True)
    coordinates = "align_corners" if corners else "half_pixel"
    if kind == "nearest":
        return Method("nearest", "align_corners" if corners else "asymmetric", "round_prefer_ceil" if corners else "floor")
    if kind == "linear" and not corners and n.int("align_mode", 1) == 1:
        coordinates = "asymmetric"
    return Method(kind, coordinates, a=-0.75)


def _scaled(n: Node, x: Expr, scales: dict[int, float], method: Method) -> Expr:
    """An operand that grows by scales of its axes."""
    if any(not 0 < s < 1e6 for s in scales.values()):
        raise Malformed(f"its scales are {[*scales.values()][:8]}")
    shape = n.b.shape(x)
    if all(isinstance(shape[a], int) for a in scales):
        ends = {a: int(int(shape[a]) * np.float32(s)) for a, s in scales.items()}  # type: ignore[call-overload]
        return _to(n, x, ends, scales, method)
    return resample(n.b, x, {a: stretch(n.b, x, a, scale=s) for a, s in scales.items()}, method)


def _resized(n: Node, x: Expr, kind: str, size: Any, sizes: Any, scale: Any) -> Expr:
    b = n.b
    count = b.rank(x) - 2
    method = _method(n, kind)
    if not 1 <= count <= 3:
        raise Malformed(f"its operand has {int(b.rank(x))} axes")
    places = list(range(2, count + 2))
    target = n.vector(sizes) if sizes is not None else n.vector(size) if size is not None else None
    if target is not None:
        if b.shape(target) != (count,):
            raise Malformed(f"it has another number of extents than {count}")
        parts: list[Any] = list(b.known(target) or [None] * count)
        extents = [p if p is not None else b.scalar(b.slice(target, [i], [i + 1], [0])) for i, p in enumerate(parts)]
        return _to(n, x, dict(zip(places, extents)), {}, method)
    scales = b.need(scale, "its scale").reshape(-1).tolist() if scale is not None else n.floats("scale", [])
    scales = scales * count if len(scales) == 1 else scales
    if any(s > 0 for s in scales):
        if len(scales) != count:
            raise Malformed(f"its scales are {scales[:8]}")
        return _scaled(n, x, dict(zip(places, scales)), method)
    names = ("out_d", "out_h", "out_w")[3 - count :]
    return _to(n, x, {a: n.int(name, 0) for a, name in zip(places, names)}, {}, method)


def _to(n: Node, x: Expr, extents: dict[int, Any], scales: dict[int, float], method: Method) -> Expr:
    """Resized to extents. Places are computed with the scales where these are stated."""
    b = n.b
    wrong = [e for e in extents.values() if isinstance(e, int) and e < 1]
    if wrong:
        raise Malformed(f"its result is to have the extents {[e for e in extents.values() if isinstance(e, int)]}")
    stretches: dict[int, Stretch] = {}
    for axis, extent in extents.items():
        scale = scales.get(axis)
        stretches[axis] = stretch(b, x, axis, extent, scale)
    return resample(b, x, stretches, method)


def grid_sample(n: Node, x: Expr, grid: Expr) -> Any:
    """Samples of (n, c, h, w) at points (n, rows, columns, 2) between -1 and 1."""
    b, count = n.b, n.b.rank(x) - 2
    mode, padding = n.text("mode", "bilinear"), n.text("padding_mode", "zeros")
    paddings = {"zeros": "zeros", "border": "border", "reflection": "reflection"}
    if mode not in ("bilinear", "nearest") or padding not in paddings or count not in (2, 3):
        raise Unsupported(f"it samples by {mode[:40]!r} with {padding[:40]!r} in {int(count)} axes")
    points = b.transpose(grid, [0, count + 1, *range(1, count + 1)])
    return b.op(
        "image.grid_sample",
        x,
        points,
        method=mode,
        layout="NCHW" if count == 2 else "NCDHW",
        padding_mode=padding,
        align_corners=n.bool("align_corners", True),
    )


def affine_grid(n: Node, theta: Expr, shape: Any = None) -> Any:
    extents = n.numbers(shape, "the shape of its result") if shape is not None else n.ints("output_shape")
    if len(extents) not in (4, 5) or any(d < 1 for d in extents):
        raise Malformed(f"its shape is {extents[:8]}")
    return affine(n.b, theta, extents[2:], n.bool("align_corners", True))


RULES = (
    Rule("affine_grid", affine_grid),
    Rule("bicubic_interp", _interpolation("cubic")),
    Rule("bilinear_interp", _interpolation("linear")),
    Rule("grid_sample", grid_sample),
    Rule("linear_interp", _interpolation("linear")),
    Rule("nearest_interp", _interpolation("nearest")),
    Rule("trilinear_interp", _interpolation("linear")),
)
