"""The names, parameters and defaults of TVM's Python functions that make calls of operators.

Where a function takes the operator's arguments and then its attributes, in the record's order and with its defaults,
its name stands in `PLAIN`, and the record is its signature. The others are written out in `GIVEN`.
"""

from __future__ import annotations

PLAIN = """
searchsorted sum all any max min mean prod log log10 log2 tan cos cosh sin sinh acos acosh asin asinh atan atanh exp erf
sqrt rsqrt sigmoid floor ceil trunc round abs sign tanh negative logical_not bitwise_not add subtract multiply
divide floor_divide trunc_divide power mod floor_mod trunc_mod logical_and logical_or logical_xor bitwise_and
bitwise_or bitwise_xor equal not_equal less less_equal greater greater_equal maximum minimum right_shift left_shift
zeros_like ones_like fixed_point_multiply einsum copy isnan isfinite isinf sliding_window cast cast_like reinterpret
expand_dims squeeze reshape argwhere scatter_elements scatter_nd reshape_like full_like meshgrid tile
reverse_sequence where broadcast_to_like collapse_sum_like split layout_transform gather_nd adv_index
sparse_fill_empty_rows sparse_reshape invert_permutation dft trilu nn.softmax nn.fast_softmax nn.log_softmax
nn.global_max_pool2d nn.global_avg_pool2d nn.batch_flatten nn.bias_add nn.relu nn.prelu nn.dropout nn.batch_norm
nn.instance_norm nn.layer_norm nn.contrib_conv2d_winograd_weight_transform nn.contrib_conv2d_gemm_weight_transform
nn.contrib_conv3d_winograd_weight_transform image.grid_sample vision.multibox_prior vision.multibox_transform_loc
vision.regular_non_max_suppression vision.roi_align vision.roi_pool random.threefry_split annotation.stop_fusion
annotation.checkpoint annotation.compiler_begin annotation.compiler_end qnn.op.add qnn.op.mul qnn.op.subtract
""".split()

GIVEN = """
sort(data, axis=-1, is_ascend=1)
argsort(data, axis=-1, is_ascend=1, dtype='int32')
topk(data, k=1, axis=-1, ret_type='both', is_ascend=False, dtype='int32')
argmax(data, axis=None, keepdims=False, exclude=False, select_last_index=False)
argmin(data, axis=None, keepdims=False, exclude=False, select_last_index=False)
variance(data, axis=None, keepdims=False, exclude=False, unbiased=False, with_mean=None)
std(data, axis=None, keepdims=False, exclude=False, unbiased=False)
mean_variance(data, axis=None, keepdims=False, exclude=False, unbiased=False)
mean_std(data, axis=None, keepdims=False, exclude=False)
logsumexp(data, axis=None, keepdims=False)
zeros(shape, dtype)
ones(shape, dtype)
clip(a, a_min, a_max)
concatenate(data, axis)
stack(data, axis)
device_copy(data, src_device, dst_device)
shape_of(data, dtype='int32')
ndarray_size(data, dtype='int32')
transpose(data, axes=None)
take(data, indices, axis=None, batch_dims=0, mode='clip')
full(fill_value, shape=(), dtype='')
arange(start, stop=None, step=None, dtype='float32')
repeat(data, repeats, axis)
reverse(data, axis)
broadcast_to(data, shape)
collapse_sum_to(data, shape)
strided_slice(data, begin, end, strides=None, axes=None, slice_mode='end')
strided_set(data, v, begin, end, strides=None)
slice_like(data, shape_like, axes=None)
reverse_reshape(data, newshape)
gather(data, axis, indices)
sequence_mask(data, valid_length, mask_value=0, axis=0)
one_hot(indices, on_value, off_value, depth, axis, dtype)
unravel_index(indices, shape)
sparse_to_dense(sparse_indices, output_shape, sparse_values, default_value=0)
matrix_set_diag(data, diagonal, k=0, align='RIGHT_LEFT')
cumsum(data, axis=None, dtype=None, exclusive=None)
cumprod(data, axis=None, dtype=None, exclusive=None)
unique(data, is_sorted=True, return_counts=False)
stft(data, n_fft, hop_length=None, win_length=None, window=None, normalized=False, onesided=True)
nn.conv1d(data, weight, strides=1, padding=0, dilation=1, groups=1, channels=None, kernel_size=None,
    data_layout='NCW', kernel_layout='OIW', out_layout='', out_dtype='')
nn.conv2d(data, weight, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, channels=None, kernel_size=None,
    data_layout='NCHW', kernel_layout='OIHW', out_layout='', out_dtype='')
nn.conv3d(data, weight, strides=(1, 1, 1), padding=(0, 0, 0), dilation=(1, 1, 1), groups=1, channels=None,
    kernel_size=None, data_layout='NCDHW', kernel_layout='OIDHW', out_layout='', out_dtype='')
nn.contrib_conv2d_nchwc(data, kernel, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, channels=None,
    kernel_size=None, data_layout='NCHW8c', kernel_layout='OIHW', out_layout='', out_dtype='')
nn.contrib_depthwise_conv2d_nchwc(data, kernel, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1,
    channels=None, kernel_size=None, data_layout='NCHW8c', kernel_layout='OIHW', out_layout='', out_dtype='')
nn.contrib_conv3d_winograd_without_weight_transform(data, weight, tile_size, strides=(1, 1, 1), padding=(0, 0, 0),
    dilation=(1, 1, 1), groups=1, channels=None, kernel_size=None, data_layout='NCDHW', kernel_layout='OIDHW',
    out_layout='', out_dtype='')
nn.conv3d_transpose(data, weight, strides=(1, 1, 1), padding=(0, 0, 0), dilation=(1, 1, 1), groups=1, channels=None,
    kernel_size=None, data_layout='NCDHW', kernel_layout='IODHW', out_layout='', output_padding=(0, 0, 0),
    out_dtype='')
nn.conv2d_transpose(data, weight, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, channels=None,
    kernel_size=None, data_layout='NCHW', kernel_layout='IOHW', out_layout='', output_padding=(0, 0), out_dtype='')
nn.conv1d_transpose(data, weight, strides=(1,), padding=(0,), dilation=(1,), groups=1, channels=None,
    kernel_size=None, data_layout='NCW', kernel_layout='IOW', out_layout='', output_padding=(0,), out_dtype='')
nn.max_pool1d(data, pool_size=(1,), strides=(1,), dilation=(1,), padding=(0,), layout='NCW', out_layout='',
    ceil_mode=False)
nn.max_pool2d(data, pool_size=(1, 1), strides=(1, 1), dilation=(1, 1), padding=(0, 0), layout='NCHW', out_layout='',
    ceil_mode=False)
nn.max_pool3d(data, pool_size=(1, 1, 1), strides=(1, 1, 1), dilation=(1, 1, 1), padding=(0, 0, 0), layout='NCDHW',
    out_layout='', ceil_mode=False)
nn.avg_pool1d(data, pool_size=(1,), strides=(1,), dilation=(1,), padding=(0,), layout='NCW', out_layout='',
    ceil_mode=False, count_include_pad=False)
nn.avg_pool2d(data, pool_size=(1, 1), strides=(1, 1), dilation=(1, 1), padding=(0, 0), layout='NCHW', out_layout='',
    ceil_mode=False, count_include_pad=False)
nn.avg_pool3d(data, pool_size=(1, 1, 1), strides=(1, 1, 1), dilation=(1, 1, 1), padding=(0, 0, 0), layout='NCDHW',
    out_layout='', ceil_mode=False, count_include_pad=False)
nn.max_pool2d_grad(out_grad, data, pool_size=(1, 1), strides=(1, 1), padding=(0, 0), layout='NCHW', out_layout='',
    ceil_mode=False)
nn.avg_pool2d_grad(out_grad, data, pool_size=(1, 1), strides=(1, 1), padding=(0, 0), layout='NCHW', out_layout='',
    ceil_mode=False, count_include_pad=False)
nn.upsampling(data, scale_h=1, scale_w=1, layout='NCHW', method='nearest_neighbor', align_corners=False)
nn.upsampling3d(data, scale_d=1, scale_h=1, scale_w=1, layout='NCDHW', method='nearest_neighbor',
    coordinate_transformation_mode='half_pixel')
nn.matmul(tensor_a, tensor_b, units=None, out_dtype='', transpose_a=False, transpose_b=False)
nn.dense(data, weight, units=None, out_dtype='')
nn.contrib_dense_pack(data, weight, weight_layout='NC', units=None, out_dtype='')
nn.fifo_buffer(data, buffer, axis)
nn.leaky_relu(data, alpha=0.01)
nn.pad(data, pad_width, pad_value=0, pad_mode='constant')
nn.dilate(data, strides, dilation_value=0.0)
nn.mirror_pad(data, pad_width, mode='SYMMETRIC')
nn.lrn(data, size=5, axis=1, bias=2, alpha=1e-05, beta=0.75)
nn.l2_normalize(data, eps, axis=None)
nn.dropout_raw(data, rate=0.5)
nn.group_norm(data, gamma, beta, num_groups, axis=1, epsilon=1e-05, center=True, scale=True)
nn.batch_matmul(tensor_a, tensor_b, out_dtype='', transpose_a=False, transpose_b=True)
nn.sparse_dense(dense_mat, sparse_mat, sparse_lhs=False)
nn.sparse_transpose(x)
nn.sparse_add(dense_mat, sparse_mat)
nn.contrib_conv2d_winograd_without_weight_transform(data, weight, tile_size, strides=(1, 1), padding=(0, 0),
    dilation=(1, 1), groups=1, channels=None, kernel_size=None, data_layout='NCHW', kernel_layout='OIHW',
    out_layout='', out_dtype='')
nn.contrib_conv2d_gemm_without_weight_transform(data, weight, strides=(1, 1), padding=(0, 0), dilation=(1, 1),
    groups=1, channels=None, kernel_size=None, data_layout='NCHW', kernel_layout='OIHW', out_layout='',
    out_dtype='')
nn.contrib_conv2d_winograd_nnpack_weight_transform(weight, convolution_algorithm, out_dtype='')
nn.deformable_conv2d(data, offset, weight, strides=(1, 1), padding=(0, 0), dilation=(1, 1), deformable_groups=1,
    groups=1, channels=None, kernel_size=None, data_layout='NCHW', kernel_layout='OIHW', out_layout='',
    out_dtype='')
nn.bitpack(data, bits=1, pack_axis=1, bit_axis=2, pack_type='uint32', name='BitPack')
nn.bitserial_conv2d(data, weight, strides=(1, 1), padding=(0, 0), channels=None, kernel_size=(3, 3),
    activation_bits=1, weight_bits=1, data_layout='NCHW', kernel_layout='OIHW', pack_dtype='uint32',
    out_dtype='int16', unipolar=True)
nn.bitserial_dense(data, weight, units=None, data_bits=1, weight_bits=1, pack_dtype='uint32', out_dtype='int16',
    unipolar=True)
nn.cross_entropy(predictions, targets)
nn.cross_entropy_with_logits(predictions, targets)
nn.nll_loss(predictions, targets, weights, reduction='mean', ignore_index=-100)
nn.depth_to_space(data, block_size, layout='NCHW', mode='DCR')
nn.space_to_depth(data, block_size, layout='NCHW')
nn.adaptive_max_pool1d(data, output_size=None, layout='NCW', out_layout='')
nn.adaptive_avg_pool1d(data, output_size=None, layout='NCW', out_layout='')
nn.adaptive_max_pool2d(data, output_size=None, layout='NCHW', out_layout='')
nn.adaptive_avg_pool2d(data, output_size=None, layout='NCHW', out_layout='')
nn.adaptive_max_pool3d(data, output_size=None, layout='NCDHW', out_layout='')
nn.adaptive_avg_pool3d(data, output_size=None, layout='NCDHW', out_layout='')
nn.global_max_pool1d(data, layout='NCW', out_layout='')
nn.global_avg_pool1d(data, layout='NCW', out_layout='')
nn.global_max_pool3d(data, layout='NCDHW', out_layout='')
nn.global_avg_pool3d(data, layout='NCDHW', out_layout='')
nn.correlation(data1, data2, kernel_size, max_displacement, stride1, stride2, padding, is_multiply, layout)
nn.space_to_batch_nd(data, block_shape, paddings, pad_value=0)
nn.batch_to_space_nd(data, block_shape, crops)
nn.conv2d_backward_weight(grad, data, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, channels=None,
    kernel_size=None, grad_layout='NCHW', data_layout='NCHW', kernel_layout='OIHW', out_dtype='')
image.resize1d(data, size, roi=None, layout='NCW', method='linear', coordinate_transformation_mode='half_pixel',
    rounding_method='', cubic_alpha=-0.5, cubic_exclude=0, extrapolation_value=0.0, out_dtype=None)
image.resize2d(data, size, roi=None, layout='NCHW', method='linear', coordinate_transformation_mode='half_pixel',
    rounding_method='', cubic_alpha=-0.5, cubic_exclude=0, extrapolation_value=0.0, out_dtype=None)
image.resize3d(data, size, roi=None, layout='NCDHW', method='linear', coordinate_transformation_mode='half_pixel',
    rounding_method='', cubic_alpha=-0.5, cubic_exclude=0, extrapolation_value=0.0, out_dtype=None)
image.crop_and_resize(data, boxes, box_indices, crop_size, layout, method='bilinear', extrapolation_value=0,
    out_dtype=None)
image.dilation2d(data, weight, strides=(1, 1), padding=(0, 0), dilations=(1, 1), data_layout='NCHW',
    kernel_layout='IHW', out_dtype='')
image.affine_grid(data, target_shape=None)
vision.get_valid_counts(data, score_threshold, id_index=0, score_index=1)
vision.non_max_suppression(data, valid_count, indices, max_output_size=-1, iou_threshold=0.5, force_suppress=False,
    top_k=-1, coord_start=2, score_index=1, id_index=0, return_indices=True, invalid_to_bottom=False)
vision.all_class_non_max_suppression(boxes, scores, max_output_boxes_per_class=-1, iou_threshold=-1.0,
    score_threshold=-1.0, output_format='onnx')
vision.proposal(cls_prob, bbox_pred, im_info, scales, ratios, feature_stride, threshold, rpn_pre_nms_top_n,
    rpn_post_nms_top_n, rpn_min_size, iou_loss)
vision.yolo_reorg(data, stride)
random.threefry_key(seed)
random.threefry_generate(key, shape)
random.uniform(key, shape, dtype='float32', low=0.0, high=1.0)
random.normal(key, shape, dtype='float32', mean=0.0, scale=1.0)
random.multinomial(key, probs, num_samples)
annotation.on_device(body, device, constrain_result=False, constrain_body=True)
op.vm.shape_of(expr)
qnn.op.requantize(data, input_scale, input_zero_point, output_scale, output_zero_point, axis=-1, rounding='None',
    compute_dtype='None', out_dtype='int8')
qnn.op.quantize(data, output_scale, output_zero_point, axis=-1, out_dtype='int8')
qnn.op.simulated_quantize(data, output_scale, output_zero_point, axis=-1, out_dtype='int8')
qnn.op.dequantize(data, input_scale, input_zero_point, axis=-1, out_dtype='float32')
qnn.op.simulated_dequantize(data, input_scale, input_zero_point, axis=-1, in_dtype='int8')
qnn.op.concatenate(data, input_scales, input_zero_points, output_scale, output_zero_point, axis)
qnn.op.conv2d(data, kernel, input_zero_point, kernel_zero_point, input_scale, kernel_scale, kernel_size, channels,
    strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, data_layout='NCHW', kernel_layout='OIHW',
    out_layout='', out_dtype='int32')
qnn.op.conv2d_transpose(data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale, strides=(1,
    1), padding=(0, 0), dilation=(1, 1), groups=1, channels=None, kernel_size=None, data_layout='NCHW',
    kernel_layout='IOHW', out_layout='', output_padding=(0, 0), out_dtype='int32')
qnn.op.dense(data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale, units, out_dtype='int32')
qnn.op.contrib_dense_pack(data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale,
    kernel_layout='NC', units=None, out_dtype='int32')
qnn.op.tanh(x, scale, zero_point, output_scale, output_zero_point)
qnn.op.exp(x, scale, zero_point, output_scale, output_zero_point)
qnn.op.sqrt(x, scale, zero_point, output_scale, output_zero_point)
qnn.op.rsqrt(x, scale, zero_point, output_scale, output_zero_point)
qnn.op.erf(x, scale, zero_point, output_scale, output_zero_point)
qnn.op.abs(x, scale, zero_point, output_scale, output_zero_point)
qnn.op.sigmoid(x, scale, zero_point, output_scale, output_zero_point)
qnn.op.hardswish(x, scale, zero_point, output_scale, output_zero_point)
qnn.op.log(x, scale, zero_point, output_scale, output_zero_point)
qnn.op.batch_matmul(x, y, x_zero_point, y_zero_point, x_scale, y_scale, out_dtype='int32')
qnn.op.leaky_relu(x, alpha, input_scale, input_zero_point, output_scale, output_zero_point)
qnn.op.softmax(x, scale, zero_point, output_scale, output_zero_point, axis=-1)
qnn.op.avg_pool2d(data, input_scale, input_zero_point, output_scale, output_zero_point, pool_size, strides, padding,
    dilation, ceil_mode=False, count_include_pad=True, layout='NHWC', out_layout='')
"""
