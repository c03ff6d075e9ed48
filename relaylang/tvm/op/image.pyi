"""Made by scripts/make_stubs.py from the operators' records and TVM's signatures."""

# ruff: noqa

from collections.abc import Sequence
from typing import Any

from relaylang.ir import Call
from relaylang.tvm.op.build import Argument

def affine_grid(data: Argument, target_shape: Sequence[int] | int | None = None) -> Call: ...
def crop_and_resize(
    data: Argument,
    boxes: Argument,
    box_indices: Argument,
    crop_size: Sequence[int] | int | None,
    layout: str,
    method: str = 'bilinear',
    extrapolation_value: float = 0,
    out_dtype: str | None = None,
) -> Call: ...
def dilation2d(
    data: Argument,
    weight: Argument,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilations: int | Sequence[int] = (1, 1),
    data_layout: str = 'NCHW',
    kernel_layout: str = 'IHW',
    out_dtype: str | None = '',
) -> Call: ...
def grid_sample(
    data: Argument,
    grid: Argument,
    method: str = 'bilinear',
    layout: str = 'NCHW',
    padding_mode: str = 'zeros',
    align_corners: bool = True,
) -> Call: ...
def resize1d(
    data: Any,
    size: Any,
    roi: Any = None,
    layout: str = 'NCW',
    method: str = 'linear',
    coordinate_transformation_mode: str = 'half_pixel',
    rounding_method: str = '',
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: Any = None,
) -> Any: ...
def resize2d(
    data: Any,
    size: Any,
    roi: Any = None,
    layout: str = 'NCHW',
    method: str = 'linear',
    coordinate_transformation_mode: str = 'half_pixel',
    rounding_method: str = '',
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: Any = None,
) -> Any: ...
def resize3d(
    data: Any,
    size: Any,
    roi: Any = None,
    layout: str = 'NCDHW',
    method: str = 'linear',
    coordinate_transformation_mode: str = 'half_pixel',
    rounding_method: str = '',
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: Any = None,
) -> Any: ...
