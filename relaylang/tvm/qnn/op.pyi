"""Made by scripts/make_stubs.py from the operators' records and TVM's signatures."""

# ruff: noqa

from collections.abc import Sequence
from typing import Any

from relaylang.ir import Call
from relaylang.tvm.op.build import Argument
from relaylang.passes.quantize.requantize_config import RequantizeConfig as RequantizeConfig
from relaylang.passes.quantize.requantize_config import current_requantize_config as current_requantize_config
from relaylang.passes.quantize.requantize_config import requantize_config as requantize_config
from relaylang.passes.quantize.legalizations import register_qnn_canonicalize as register_qnn_canonicalize
from relaylang.passes.quantize.legalizations import register_qnn_legalize as register_qnn_legalize

def abs(
    x: Argument,
    scale: Argument,
    zero_point: Argument,
    output_scale: Argument,
    output_zero_point: Argument,
) -> Call: ...
def add(
    lhs: Argument,
    rhs: Argument,
    lhs_scale: Argument,
    lhs_zero_point: Argument,
    rhs_scale: Argument,
    rhs_zero_point: Argument,
    output_scale: Argument,
    output_zero_point: Argument,
    lhs_axis: int = -1,
    rhs_axis: int = -1,
) -> Call: ...
def avg_pool2d(
    data: Argument,
    input_scale: Argument,
    input_zero_point: Argument,
    output_scale: Argument,
    output_zero_point: Argument,
    pool_size: Sequence[int] | int,
    strides: Sequence[int] | int,
    padding: Sequence[int] | int,
    dilation: Sequence[int] | int,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = 'NHWC',
    out_layout: str = '',
) -> Call: ...
def batch_matmul(
    x: Argument,
    y: Argument,
    x_zero_point: Argument,
    y_zero_point: Argument,
    x_scale: Argument,
    y_scale: Argument,
    out_dtype: str | None = 'int32',
) -> Call: ...
def concatenate(
    data: Argument,
    input_scales: Argument,
    input_zero_points: Argument,
    output_scale: Argument,
    output_zero_point: Argument,
    axis: int,
) -> Call: ...
def contrib_dense_pack(
    data: Argument,
    weight: Argument,
    input_zero_point: Argument,
    kernel_zero_point: Argument,
    input_scale: Argument,
    kernel_scale: Argument,
    kernel_layout: str = 'NC',
    units: int | None = None,
    out_dtype: str | None = 'int32',
) -> Call: ...
def conv2d(
    data: Argument,
    kernel: Argument,
    input_zero_point: Argument,
    kernel_zero_point: Argument,
    input_scale: Argument,
    kernel_scale: Argument,
    kernel_size: int | Sequence[int] | None,
    channels: int | None,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    data_layout: str = 'NCHW',
    kernel_layout: str = 'OIHW',
    out_layout: str = '',
    out_dtype: str | None = 'int32',
) -> Call: ...
def conv2d_transpose(
    data: Argument,
    weight: Argument,
    input_zero_point: Argument,
    kernel_zero_point: Argument,
    input_scale: Argument,
    kernel_scale: Argument,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = 'NCHW',
    kernel_layout: str = 'IOHW',
    out_layout: str = '',
    output_padding: int | Sequence[int] = (0, 0),
    out_dtype: str | None = 'int32',
) -> Call: ...
def dense(
    data: Argument,
    weight: Argument,
    input_zero_point: Argument,
    kernel_zero_point: Argument,
    input_scale: Argument,
    kernel_scale: Argument,
    units: int | None,
    out_dtype: str | None = 'int32',
) -> Call: ...
def dequantize(
    data: Argument,
    input_scale: Argument,
    input_zero_point: Argument,
    axis: int = -1,
    out_dtype: str = 'float32',
) -> Call: ...
def erf(
    x: Argument,
    scale: Argument,
    zero_point: Argument,
    output_scale: Argument,
    output_zero_point: Argument,
) -> Call: ...
def exp(
    x: Argument,
    scale: Argument,
    zero_point: Argument,
    output_scale: Argument,
    output_zero_point: Argument,
) -> Call: ...
def hardswish(
    x: Argument,
    scale: Argument,
    zero_point: Argument,
    output_scale: Argument,
    output_zero_point: Argument,
) -> Call: ...
def leaky_relu(
    x: Argument,
    alpha: float,
    input_scale: Argument,
    input_zero_point: Argument,
    output_scale: Argument,
    output_zero_point: Argument,
) -> Call: ...
def log(
    x: Argument,
    scale: Argument,
    zero_point: Argument,
    output_scale: Argument,
    output_zero_point: Argument,
) -> Call: ...
def mul(
    lhs: Argument,
    rhs: Argument,
    lhs_scale: Argument,
    lhs_zero_point: Argument,
    rhs_scale: Argument,
    rhs_zero_point: Argument,
    output_scale: Argument,
    output_zero_point: Argument,
    lhs_axis: int = -1,
    rhs_axis: int = -1,
) -> Call: ...
def quantize(
    data: Argument,
    output_scale: Argument,
    output_zero_point: Argument,
    axis: int = -1,
    out_dtype: str = 'int8',
) -> Call: ...
def requantize(
    data: Argument,
    input_scale: Argument,
    input_zero_point: Argument,
    output_scale: Argument,
    output_zero_point: Argument,
    axis: int = -1,
    rounding: str = 'None',
    compute_dtype: str = 'None',
    out_dtype: str | None = 'int8',
) -> Call: ...
def rsqrt(
    x: Argument,
    scale: Argument,
    zero_point: Argument,
    output_scale: Argument,
    output_zero_point: Argument,
) -> Call: ...
def sigmoid(
    x: Argument,
    scale: Argument,
    zero_point: Argument,
    output_scale: Argument,
    output_zero_point: Argument,
) -> Call: ...
def simulated_dequantize(
    data: Any,
    input_scale: Any,
    input_zero_point: Any,
    axis: int = -1,
    in_dtype: str = 'int8',
) -> Call: ...
def simulated_quantize(
    data: Any,
    output_scale: Any,
    output_zero_point: Any,
    axis: int = -1,
    out_dtype: str = 'int8',
) -> Call: ...
def softmax(
    x: Argument,
    scale: Argument,
    zero_point: Argument,
    output_scale: Argument,
    output_zero_point: Argument,
    axis: int = -1,
) -> Call: ...
def sqrt(
    x: Argument,
    scale: Argument,
    zero_point: Argument,
    output_scale: Argument,
    output_zero_point: Argument,
) -> Call: ...
def subtract(
    lhs: Argument,
    rhs: Argument,
    lhs_scale: Argument,
    lhs_zero_point: Argument,
    rhs_scale: Argument,
    rhs_zero_point: Argument,
    output_scale: Argument,
    output_zero_point: Argument,
    lhs_axis: int = -1,
    rhs_axis: int = -1,
) -> Call: ...
def tanh(
    x: Argument,
    scale: Argument,
    zero_point: Argument,
    output_scale: Argument,
    output_zero_point: Argument,
) -> Call: ...
