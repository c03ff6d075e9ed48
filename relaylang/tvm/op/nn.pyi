"""Made by scripts/make_stubs.py from the operators' records and TVM's signatures."""

# ruff: noqa

from collections.abc import Sequence
from typing import Any

from relaylang.ir import Call, Expr
from relaylang.tvm.op.build import Argument, TupleWrapper

def adaptive_avg_pool1d(
    data: Argument,
    output_size: int | Sequence[int] | None = None,
    layout: str = 'NCW',
    out_layout: str = '',
) -> Call: ...
def adaptive_avg_pool2d(
    data: Argument,
    output_size: int | Sequence[int] | None = None,
    layout: str = 'NCHW',
    out_layout: str = '',
) -> Call: ...
def adaptive_avg_pool3d(
    data: Argument,
    output_size: int | Sequence[int] | None = None,
    layout: str = 'NCDHW',
    out_layout: str = '',
) -> Call: ...
def adaptive_max_pool1d(
    data: Argument,
    output_size: int | Sequence[int] | None = None,
    layout: str = 'NCW',
    out_layout: str = '',
) -> Call: ...
def adaptive_max_pool2d(
    data: Argument,
    output_size: int | Sequence[int] | None = None,
    layout: str = 'NCHW',
    out_layout: str = '',
) -> Call: ...
def adaptive_max_pool3d(
    data: Argument,
    output_size: int | Sequence[int] | None = None,
    layout: str = 'NCDHW',
    out_layout: str = '',
) -> Call: ...
def avg_pool1d(
    data: Argument,
    pool_size: int | Sequence[int] = (1,),
    strides: int | Sequence[int] = (1,),
    dilation: int | Sequence[int] = (1,),
    padding: int | Sequence[int] = (0,),
    layout: str = 'NCW',
    out_layout: str = '',
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Call: ...
def avg_pool2d(
    data: Argument,
    pool_size: int | Sequence[int] = (1, 1),
    strides: int | Sequence[int] = (1, 1),
    dilation: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    layout: str = 'NCHW',
    out_layout: str = '',
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Call: ...
def avg_pool2d_grad(
    out_grad: Argument,
    data: Argument,
    pool_size: Sequence[int] | int = (1, 1),
    strides: Sequence[int] | int = (1, 1),
    padding: Sequence[int] | int = (0, 0),
    layout: str = 'NCHW',
    out_layout: str = '',
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Call: ...
def avg_pool3d(
    data: Argument,
    pool_size: int | Sequence[int] = (1, 1, 1),
    strides: int | Sequence[int] = (1, 1, 1),
    dilation: int | Sequence[int] = (1, 1, 1),
    padding: int | Sequence[int] = (0, 0, 0),
    layout: str = 'NCDHW',
    out_layout: str = '',
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Call: ...
def batch_flatten(data: Argument) -> Call: ...
def batch_matmul(
    tensor_a: Argument,
    tensor_b: Argument,
    out_dtype: str | None = '',
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> Call: ...
def batch_norm(
    data: Argument,
    gamma: Argument,
    beta: Argument,
    moving_mean: Argument,
    moving_var: Argument,
    axis: int = 1,
    epsilon: float = 1e-05,
    center: bool = True,
    scale: bool = True,
) -> TupleWrapper: ...
def batch_to_space_nd(data: Argument, block_shape: Sequence[int] | int, crops: Sequence[Sequence[int]]) -> Call: ...
def bias_add(data: Argument, bias: Argument, axis: int = 1) -> Call: ...
def bitpack(
    data: Argument,
    bits: int = 1,
    pack_axis: int = 1,
    bit_axis: int = 2,
    pack_type: str | None = 'uint32',
    name: str = 'BitPack',
) -> Call: ...
def bitserial_conv2d(
    data: Argument,
    weight: Argument,
    strides: Sequence[int] | int = (1, 1),
    padding: Sequence[int] | int = (0, 0),
    channels: int | None = None,
    kernel_size: Sequence[int] | int = (3, 3),
    activation_bits: int = 1,
    weight_bits: int = 1,
    data_layout: str = 'NCHW',
    kernel_layout: str = 'OIHW',
    pack_dtype: str | None = 'uint32',
    out_dtype: str | None = 'int16',
    unipolar: bool = True,
) -> Call: ...
def bitserial_dense(
    data: Argument,
    weight: Argument,
    units: int | None = None,
    data_bits: int = 1,
    weight_bits: int = 1,
    pack_dtype: str | None = 'uint32',
    out_dtype: str | None = 'int16',
    unipolar: bool = True,
) -> Call: ...
def contrib_conv2d_gemm_weight_transform(weights: Argument, tile_N: int, tile_K: int) -> Call: ...
def contrib_conv2d_gemm_without_weight_transform(
    data: Argument,
    weight: Argument,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = 'NCHW',
    kernel_layout: str = 'OIHW',
    out_layout: str = '',
    out_dtype: str | None = '',
) -> Call: ...
def contrib_conv2d_nchwc(
    data: Argument,
    kernel: Argument,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = 'NCHW8c',
    kernel_layout: str = 'OIHW',
    out_layout: str = '',
    out_dtype: str | None = '',
) -> Call: ...
def contrib_conv2d_winograd_nnpack_weight_transform(
    weight: Argument,
    convolution_algorithm: int,
    out_dtype: str | None = '',
) -> Call: ...
def contrib_conv2d_winograd_weight_transform(weight: Argument, tile_size: int) -> Call: ...
def contrib_conv2d_winograd_without_weight_transform(
    data: Argument,
    weight: Argument,
    tile_size: int,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = 'NCHW',
    kernel_layout: str = 'OIHW',
    out_layout: str = '',
    out_dtype: str | None = '',
) -> Call: ...
def contrib_conv3d_winograd_weight_transform(weight: Argument, tile_size: int) -> Call: ...
def contrib_conv3d_winograd_without_weight_transform(
    data: Argument,
    weight: Argument,
    tile_size: int,
    strides: int | Sequence[int] = (1, 1, 1),
    padding: int | Sequence[int] = (0, 0, 0),
    dilation: int | Sequence[int] = (1, 1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = 'NCDHW',
    kernel_layout: str = 'OIDHW',
    out_layout: str = '',
    out_dtype: str | None = '',
) -> Call: ...
def contrib_dense_pack(
    data: Argument,
    weight: Argument,
    weight_layout: str = 'NC',
    units: int | None = None,
    out_dtype: str | None = '',
) -> Call: ...
def contrib_depthwise_conv2d_nchwc(
    data: Argument,
    kernel: Argument,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = 'NCHW8c',
    kernel_layout: str = 'OIHW',
    out_layout: str = '',
    out_dtype: str | None = '',
) -> Call: ...
def conv1d(
    data: Argument,
    weight: Argument,
    strides: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = 'NCW',
    kernel_layout: str = 'OIW',
    out_layout: str = '',
    out_dtype: str | None = '',
) -> Call: ...
def conv1d_transpose(
    data: Argument,
    weight: Argument,
    strides: int | Sequence[int] = (1,),
    padding: int | Sequence[int] = (0,),
    dilation: int | Sequence[int] = (1,),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = 'NCW',
    kernel_layout: str = 'IOW',
    out_layout: str = '',
    output_padding: int | Sequence[int] = (0,),
    out_dtype: str | None = '',
) -> Call: ...
def conv2d(
    data: Argument,
    weight: Argument,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = 'NCHW',
    kernel_layout: str = 'OIHW',
    out_layout: str = '',
    out_dtype: str | None = '',
) -> Call: ...
def conv2d_backward_weight(
    grad: Argument,
    data: Argument,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    grad_layout: str = 'NCHW',
    data_layout: str = 'NCHW',
    kernel_layout: str = 'OIHW',
    out_dtype: str | None = '',
) -> Call: ...
def conv2d_transpose(
    data: Argument,
    weight: Argument,
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
    out_dtype: str | None = '',
) -> Call: ...
def conv3d(
    data: Argument,
    weight: Argument,
    strides: int | Sequence[int] = (1, 1, 1),
    padding: int | Sequence[int] = (0, 0, 0),
    dilation: int | Sequence[int] = (1, 1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = 'NCDHW',
    kernel_layout: str = 'OIDHW',
    out_layout: str = '',
    out_dtype: str | None = '',
) -> Call: ...
def conv3d_transpose(
    data: Argument,
    weight: Argument,
    strides: int | Sequence[int] = (1, 1, 1),
    padding: int | Sequence[int] = (0, 0, 0),
    dilation: int | Sequence[int] = (1, 1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = 'NCDHW',
    kernel_layout: str = 'IODHW',
    out_layout: str = '',
    output_padding: int | Sequence[int] = (0, 0, 0),
    out_dtype: str | None = '',
) -> Call: ...
def correlation(
    data1: Argument,
    data2: Argument,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: int | Sequence[int],
    is_multiply: bool,
    layout: str,
) -> Call: ...
def cross_entropy(predictions: Argument, targets: Argument) -> Call: ...
def cross_entropy_with_logits(predictions: Argument, targets: Argument) -> Call: ...
def deformable_conv2d(
    data: Argument,
    offset: Argument,
    weight: Argument,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    deformable_groups: int = 1,
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = 'NCHW',
    kernel_layout: str = 'OIHW',
    out_layout: str = '',
    out_dtype: str | None = '',
) -> Call: ...
def dense(data: Argument, weight: Argument, units: int | None = None, out_dtype: str | None = '') -> Call: ...
def depth_to_space(data: Argument, block_size: int, layout: str = 'NCHW', mode: str = 'DCR') -> Call: ...
def dilate(data: Argument, strides: Sequence[int] | int, dilation_value: float = 0.0) -> Call: ...
def dropout(data: Any, rate: float = 0.5) -> Any: ...
def dropout_raw(data: Any, rate: float = 0.5) -> Any: ...
def fast_softmax(data: Argument, axis: int = -1) -> Call: ...
def fifo_buffer(data: Argument, buffer: Argument, axis: int) -> Call: ...
def global_avg_pool1d(data: Any, layout: str = 'NCW', out_layout: str = '') -> Any: ...
def global_avg_pool2d(data: Argument, layout: str = 'NCHW', out_layout: str = '') -> Call: ...
def global_avg_pool3d(data: Any, layout: str = 'NCDHW', out_layout: str = '') -> Any: ...
def global_max_pool1d(data: Any, layout: str = 'NCW', out_layout: str = '') -> Any: ...
def global_max_pool2d(data: Argument, layout: str = 'NCHW', out_layout: str = '') -> Call: ...
def global_max_pool3d(data: Any, layout: str = 'NCDHW', out_layout: str = '') -> Any: ...
def group_norm(
    data: Argument,
    gamma: Argument,
    beta: Argument,
    num_groups: int,
    axis: int = 1,
    epsilon: float = 1e-05,
    center: bool = True,
    scale: bool = True,
) -> Call: ...
def instance_norm(
    data: Argument,
    gamma: Argument,
    beta: Argument,
    axis: int = 1,
    epsilon: float = 1e-05,
    center: bool = True,
    scale: bool = True,
) -> Call: ...
def l2_normalize(data: Argument, eps: float, axis: Sequence[int] | int | None = None) -> Call: ...
def layer_norm(
    data: Argument,
    gamma: Argument,
    beta: Argument,
    axis: int = -1,
    epsilon: float = 1e-05,
    center: bool = True,
    scale: bool = True,
) -> Call: ...
def leaky_relu(data: Argument, alpha: float = 0.01) -> Call: ...
def log_softmax(data: Argument, axis: int = -1) -> Call: ...
def lrn(
    data: Argument,
    size: int = 5,
    axis: int = 1,
    bias: float = 2,
    alpha: float = 1e-05,
    beta: float = 0.75,
) -> Call: ...
def matmul(
    tensor_a: Any,
    tensor_b: Any,
    units: Any = None,
    out_dtype: str = '',
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Any: ...
def max_pool1d(
    data: Argument,
    pool_size: int | Sequence[int] = (1,),
    strides: int | Sequence[int] = (1,),
    dilation: int | Sequence[int] = (1,),
    padding: int | Sequence[int] = (0,),
    layout: str = 'NCW',
    out_layout: str = '',
    ceil_mode: bool = False,
) -> Call: ...
def max_pool2d(
    data: Argument,
    pool_size: int | Sequence[int] = (1, 1),
    strides: int | Sequence[int] = (1, 1),
    dilation: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    layout: str = 'NCHW',
    out_layout: str = '',
    ceil_mode: bool = False,
) -> Call: ...
def max_pool2d_grad(
    out_grad: Argument,
    data: Argument,
    pool_size: Sequence[int] | int = (1, 1),
    strides: Sequence[int] | int = (1, 1),
    padding: Sequence[int] | int = (0, 0),
    layout: str = 'NCHW',
    out_layout: str = '',
    ceil_mode: bool = False,
) -> Call: ...
def max_pool3d(
    data: Argument,
    pool_size: int | Sequence[int] = (1, 1, 1),
    strides: int | Sequence[int] = (1, 1, 1),
    dilation: int | Sequence[int] = (1, 1, 1),
    padding: int | Sequence[int] = (0, 0, 0),
    layout: str = 'NCDHW',
    out_layout: str = '',
    ceil_mode: bool = False,
) -> Call: ...
def mirror_pad(data: Argument, pad_width: Sequence[Sequence[int]], mode: str = 'SYMMETRIC') -> Call: ...
def nll_loss(
    predictions: Argument,
    targets: Argument,
    weights: Argument,
    reduction: str = 'mean',
    ignore_index: int = -100,
) -> Call: ...
def pad(
    data: Argument,
    pad_width: Sequence[Sequence[int]] | Expr,
    pad_value: Argument = 0,
    pad_mode: str = 'constant',
) -> Call: ...
def prelu(data: Argument, alpha: Argument, axis: int = 1) -> Call: ...
def relu(data: Argument) -> Call: ...
def softmax(data: Argument, axis: int = -1) -> Call: ...
def space_to_batch_nd(
    data: Argument,
    block_shape: Sequence[int] | int,
    paddings: Sequence[Sequence[int]],
    pad_value: float = 0,
) -> Call: ...
def space_to_depth(data: Argument, block_size: int, layout: str = 'NCHW') -> Call: ...
def sparse_add(dense_mat: Any, sparse_mat: Any) -> Call: ...
def sparse_dense(dense_mat: Any, sparse_mat: Any, sparse_lhs: bool = False) -> Call: ...
def sparse_transpose(x: Any) -> TupleWrapper: ...
def upsampling(
    data: Argument,
    scale_h: float | Expr = 1,
    scale_w: float | Expr = 1,
    layout: str = 'NCHW',
    method: str = 'nearest_neighbor',
    align_corners: bool = False,
) -> Call: ...
def upsampling3d(
    data: Argument,
    scale_d: float | Expr = 1,
    scale_h: float | Expr = 1,
    scale_w: float | Expr = 1,
    layout: str = 'NCDHW',
    method: str = 'nearest_neighbor',
    coordinate_transformation_mode: str = 'half_pixel',
) -> Call: ...
