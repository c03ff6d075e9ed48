"""Names of `tvm.relay` in TVM 0.6 and 0.7 that later versions spell otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.ir import Expr, IRModule
from relaylang.tvm.op import image

#: The module's class before TVM 0.7.
Module = IRModule

_METHODS = {"nearest_neighbor": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}


def resize(
    data: Expr,
    size: Sequence[int] | Expr,
    layout: str = "NCHW",
    method: str = "bilinear",
    coordinate_transformation_mode: str | bool = "half_pixel",
    out_dtype: str | None = None,
    align_corners: bool | None = None,
) -> Any:
    """A call of `image.resize2d`, by the arguments of `relay.image.resize`.

    TVM 0.6 has a truth value `align_corners` in the place of `coordinate_transformation_mode`; False means asymmetric.
    Raises `ValueError` for another method.
    """
    if method not in _METHODS:
        raise ValueError(f"image.resize: the method {method!r} is not one of {', '.join(_METHODS)}")
    if isinstance(coordinate_transformation_mode, bool):
        align_corners, coordinate_transformation_mode = coordinate_transformation_mode, "asymmetric"
    if align_corners is not None:
        coordinate_transformation_mode = "align_corners" if align_corners else "asymmetric"
    return image.resize2d(data, size, None, layout, _METHODS[method], coordinate_transformation_mode, "", -0.5, 0, 0.0, out_dtype)


__all__ = ["Module", "resize"]
