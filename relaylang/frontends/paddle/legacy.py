"""The operators of `.pdmodel` files in the form of PaddlePaddle 3: its names, the order of its operands, its attributes.

Source: PaddlePaddle, op_compat.yaml and the definitions of its operators.

A row of the table has the old operator, the new one, and the operands in order:

    slice = slice Input StartsTensor|StartsTensorList*|@starts -> Out ; axis<dim

`A|B` takes the first that a layer has. `*` is a list of tensors, and `@` is an attribute, which becomes a constant.
Behind `->` are the results, `Out` where a row states none; behind `;` are attributes of other names, new before old.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from relaylang.frontends.paddle.program import Operation

#: Operators of one operand X, with the same name in both forms.
_UNARY = """
abs acos acosh asin asinh assign atan atanh bitwise_not ceil celu cos cosh cumprod digamma elu erf erfinv exp expm1 flip floor gelu
is_empty lgamma log log10 log1p log2 log_softmax logical_not logit logsigmoid maxout mish pixel_shuffle pixel_unshuffle reciprocal
relu relu6 round rsqrt selu share_data sigmoid sign silu sin sinh softmax softplus softsign sqrt square stanh swish tan tanh
logcumsumexp renorm tanh_shrink temporal_shift thresholded_relu trunc memcpy p_norm shuffle_channel channel_shuffle
"""
#: Operators of two operands X and Y, with the same name in both forms.
_BINARY = """
bitwise_and bitwise_or bitwise_xor bmm dot equal equal_all fmax fmin greater_equal greater_than heaviside kron
less_equal less_than logical_and logical_or logical_xor not_equal
"""

_TABLE = """
addmm = addmm Input X Y ; alpha<Alpha beta<Beta
affine_channel = affine_channel X Scale Bias
affine_grid = affine_grid Theta OutputShape|@output_shape -> Output
allclose = allclose Input Other Rtol|@rtol Atol|@atol
arg_max = argmax X @axis
arg_min = argmin X @axis
argsort = argsort X -> Out Indices
assign_value = assign_value
atan2 = atan2 X1 X2
batch_norm = batch_norm X Mean Variance Scale Bias -> Y
anchor_generator = anchor_generator Input -> Anchors Variances
bicubic_interp = bicubic_interp X OutSize SizeTensor* Scale ; data_format<data_layout
bicubic_interp_v2 = bicubic_interp X OutSize SizeTensor* Scale ; data_format<data_layout
bilinear_interp = bilinear_interp X OutSize SizeTensor* Scale ; data_format<data_layout
bilinear_interp_v2 = bilinear_interp X OutSize SizeTensor* Scale ; data_format<data_layout
bilinear_tensor_product = bilinear X Y Weight Bias
bincount = bincount X Weights @minlength
box_clip = box_clip Input ImInfo -> Output
box_coder = box_coder PriorBox PriorBoxVar TargetBox -> OutputBox
brelu = hardtanh X
broadcast_tensors = broadcast_tensors X* -> Out*
cast = cast X ; dtype<out_dtype
clip = clip X Min|@min Max|@max
collect_fpn_proposals = collect_fpn_proposals MultiLevelRois* MultiLevelScores* MultiLevelRoIsNum* -> FpnRois RoisNum
concat = concat X* AxisTensor|@axis
conditional_block = conditional_block Cond* Input* -> Out*
conv2d = conv2d Input Filter Bias -> Output
conv2d_transpose = conv2d_transpose Input Filter @output_size Bias -> Output
conv3d = conv3d Input Filter Bias -> Output
conv3d_transpose = conv3d_transpose Input Filter @output_size Bias -> Output
create_array = create_array
crop_tensor = crop X Shape|ShapeTensor*|@shape Offsets|OffsetsTensor*|@offsets
cholesky = cholesky X
cholesky_solve = cholesky_solve X Y
cross = cross X Y ; axis<dim
cummax = cummax x -> out indices
cummin = cummin x -> out indices
cumsum = cumsum X @axis
deformable_conv = deformable_conv Input Offset Filter Mask -> Output
deformable_conv_v1 = deformable_conv Input Offset Filter -> Output
depthwise_conv2d = depthwise_conv2d Input Filter Bias -> Output
depthwise_conv2d_transpose = depthwise_conv2d_transpose Input Filter @output_size Bias -> Output
dequantize_linear = dequantize_linear X Scale ZeroPoint -> Y
determinant = det Input
diag_embed = diag_embed Input
diag_v2 = diag X
dist = dist X Y
distribute_fpn_proposals = distribute_fpn_proposals FpnRois RoisNum -> MultiFpnRois* MultiLevelRoIsNum* RestoreIndex
dropout = dropout X Seed @dropout_prob ; mode<dropout_implementation
einsum = einsum Operands*
elementwise_add = add X Y
elementwise_div = divide X Y
elementwise_floordiv = floor_divide X Y
elementwise_fmax = fmax X Y
elementwise_fmin = fmin X Y
elementwise_heaviside = heaviside X Y
elementwise_max = maximum X Y
elementwise_min = minimum X Y
elementwise_mod = remainder X Y
elementwise_mul = multiply X Y
elementwise_pow = elementwise_pow X Y
elementwise_prod = multiply X Y
elementwise_sub = subtract X Y
expand = tile X ExpandTimes|expand_times_tensor*|@expand_times
expand_as_v2 = expand_as X Y
expand_v2 = expand X Shape|expand_shapes_tensor*|@shape
eye = eye @num_rows @num_columns
fake_channel_wise_quantize_dequantize_abs_max = fake_channel_wise_quantize_dequantize_abs_max X -> Out OutScale
fake_quantize_dequantize_abs_max = fake_quantize_dequantize_abs_max X -> Out OutScale
fake_quantize_dequantize_moving_average_abs_max = fake_quantize_dequantize_moving_average_abs_max X InScale -> Out OutScale
fc = fc Input W Bias
fill_any_like = full_like X @value
fill_constant = full_with_tensor ValueTensor ShapeTensor|ShapeTensorList*|@shape
fill_constant_batch_size_like = full_batch_size_like Input
fill_zeros_like = zeros_like X
flatten = flatten2 X
flatten2 = flatten2 X
flatten_contiguous_range = flatten X
floor_mod = remainder X Y
fold = fold X -> Y
frobenius_norm = frobenius_norm X @dim
gather = gather X Index Axis|@axis
gather_nd = gather_nd X Index
gaussian_random = gaussian ShapeTensor|ShapeTensorList*|@shape
generate_proposals_v2 = generate_proposals Scores BboxDeltas ImShape Anchors Variances
    ; pre_nms_top_n<pre_nms_topN post_nms_top_n<post_nms_topN -> RpnRois RpnRoiProbs RpnRoisNum
grid_sampler = grid_sample X Grid -> Output
group_norm = group_norm X Scale Bias -> Y Mean Variance
hard_shrink = hardshrink X
histogram = histogram X Weight
hard_sigmoid = hardsigmoid X
hard_swish = hardswish X
increment = increment_ X ; value<step
index_add = index_add X Index AddValue
index_put = index_put x indices* value -> out
index_sample = index_sample X Index
index_select = index_select X Index ; axis<dim
instance_norm = instance_norm X Scale Bias -> Y
inverse = inverse Input -> Output
iou_similarity = iou_similarity X Y
isfinite_v2 = isfinite X
isinf_v2 = isinf X
isnan_v2 = isnan X
kthvalue = kthvalue X -> Out Indices
label_smooth = label_smooth X PriorDist
layer_norm = layer_norm X Scale Bias -> Y Mean Variance
leaky_relu = leaky_relu X ; negative_slope<alpha
lerp = lerp X Y Weight
linear_interp = linear_interp X OutSize SizeTensor* Scale ; data_format<data_layout
linear_interp_v2 = linear_interp X OutSize SizeTensor* Scale ; data_format<data_layout
linspace = linspace Start Stop Num
lod_array_length = array_length X
logspace = logspace Start Stop Num Base
logsumexp = logsumexp X
lookup_table = lookup_table W Ids
lookup_table_v2 = embedding Ids W
lrn = lrn X -> Out MidOut
lu = lu X -> Out Pivots Infos
masked_select = masked_select X Mask -> Y
matmul = legacy_matmul X Y ; transpose_x<transpose_X transpose_y<transpose_Y
matmul_v2 = matmul X Y ; transpose_x<trans_x transpose_y<trans_y
matrix_nms = matrix_nms BBoxes Scores -> Out Index RoisNum
max_pool2d_with_index = max_pool2d_with_index X ; kernel_size<ksize -> Out Mask
mean = mean_all X
meshgrid = meshgrid X* -> Out*
mode = mode X -> Out Indices
mul = matmul_with_flatten X Y
multi_dot = multi_dot X*
multiclass_nms3 = multiclass_nms3 BBoxes Scores RoisNum -> Out Index NmsRoisNum
multiplex = multiplex X* Ids
mv = mv X Vec
nearest_interp = nearest_interp X OutSize SizeTensor* Scale ; data_format<data_layout
nearest_interp_v2 = nearest_interp X OutSize SizeTensor* Scale ; data_format<data_layout
nms = nms Boxes ; threshold<iou_threshold -> KeepBoxesIdxs
norm = norm X -> Out Norm
one_hot = one_hot X depth_tensor|@depth
one_hot_v2 = one_hot X depth_tensor|@depth
pad = pad X @pad_value
pad2d = pad2d X
pad3d = pad3d X Paddings|@paddings ; pad_value<value
pool2d = pool2d X @ksize
pool3d = pool3d X @ksize
pow = pow X FactorTensor ; y<factor
prelu = prelu X Alpha
prior_box = prior_box Input Image -> Boxes Variances
psroi_pool = psroi_pool X ROIs RoisNum
put_along_axis = put_along_axis Input Index Value ; axis<Axis reduce<Reduce -> Result
qr = qr X -> Q R
quantize_linear = quantize_linear X Scale ZeroPoint -> Y
range = arange Start End Step
read_from_array = read_array X I
reduce_all = all X @dim ; keepdim<keep_dim
reduce_amax = amax X @dim ; keepdim<keep_dim
reduce_amin = amin X @dim ; keepdim<keep_dim
reduce_any = any X @dim ; keepdim<keep_dim
reduce_max = max X @dim ; keepdim<keep_dim
reduce_mean = mean X @dim ; keepdim<keep_dim
reduce_min = min X @dim ; keepdim<keep_dim
reduce_prod = prod X @dim ; keepdim<keep_dim
reduce_sum = sum X @dim ; keepdim<keep_dim
repeat_interleave = repeat_interleave X RepeatsTensor ; repeats<Repeats axis<dim
reshape = reshape X ShapeTensor*|Shape|@shape
reshape2 = reshape X ShapeTensor*|Shape|@shape
reverse = reverse X @axis
rnn = rnn Input PreState* WeightList* SequenceLength -> Out DropoutState State*
roi_align = roi_align X ROIs RoisNum
roi_pool = roi_pool X ROIs RoisNum -> Out Argmax
roll = roll X ShiftsTensor|@shifts
scale = scale X ScaleTensor|@scale
scatter = scatter X Ids Updates
scatter_nd_add = scatter_nd_add X Index Updates
searchsorted = searchsorted SortedSequence Values
select_input = select_input X* Mask
sequence_mask = sequence_mask X MaxLenTensor -> Y
set_value = set_value_with_tensor Input ValueTensor StartsTensorList*|@starts EndsTensorList*|@ends StepsTensorList*|@steps
shape = shape Input
size = numel Input
slice = slice Input StartsTensor|StartsTensorList*|@starts EndsTensor|EndsTensorList*|@ends
slogdeterminant = slogdet Input
solve = solve X Y
softmax_with_cross_entropy = cross_entropy_with_softmax Logits Label -> Softmax Loss
softshrink = softshrink X ; threshold<lambda
split = split X SectionsTensorList*|@sections AxisTensor|@axis -> Out*
squeeze = squeeze X @axes
squeeze2 = squeeze X @axes
stack = stack X* -> Y
strided_slice = strided_slice Input StartsTensor|StartsTensorList*|@starts EndsTensor|EndsTensorList*|@ends
    StridesTensor|StridesTensorList*|@strides
sum = add_n X*
sync_batch_norm = batch_norm X Mean Variance Scale Bias -> Y
take_along_axis = take_along_axis Input Index ; axis<Axis -> Result
tensor_array_to_tensor = array_to_tensor X -> Out OutIndex
tile = tile X RepeatTimes|repeat_times_tensor*|@repeat_times
top_k = topk X K|@k -> Out Indices
top_k_v2 = topk X K|@k -> Out Indices
trace = trace Input
transpose = transpose X ; perm<axis
transpose2 = transpose X ; perm<axis
triangular_solve = triangular_solve X Y
tril_indices = tril_indices -> out
tril_triu = tril_triu X
triu_indices = triu_indices -> out
trilinear_interp = trilinear_interp X OutSize SizeTensor* Scale ; data_format<data_layout
trilinear_interp_v2 = trilinear_interp X OutSize SizeTensor* Scale ; data_format<data_layout
unbind = unbind X -> Out*
unfold = unfold X -> Y
uniform_random = uniform ShapeTensor|ShapeTensorList*|@shape
unique = unique X -> Out Indices Index Counts
unique_consecutive = unique_consecutive X -> Out Index Counts
unpool = unpool X Indices @output_size
unsqueeze = unsqueeze X AxesTensor|AxesTensorList*|@axes
unsqueeze2 = unsqueeze X AxesTensor|AxesTensorList*|@axes
unstack = unstack X -> Y*
where = where Condition X Y
where_index = nonzero Condition
while = while_block Condition -> StepScopes
write_to_array = write_array X I
yolo_box = yolo_box X ImgSize -> Boxes Scores
"""


@dataclass(frozen=True)
class Row:
    """How an old operator is written anew: its operands as alternatives, its results, and new names of attributes."""

    name: str
    operands: tuple[tuple[str, ...], ...] = (("X",),)
    results: tuple[str, ...] = ("Out",)
    renamed: tuple[tuple[str, str], ...] = ()


def _row(text: str) -> tuple[str, Row]:
    body, _, names = text.partition(" ; ")
    names, _, behind = names.partition(" -> ")
    body, _, results = body.partition(" -> ")
    old, _, new, *operands = body.split()
    renamed = [name.partition("<") for name in names.split()]
    alternatives = tuple([tuple(o.split("|")) for o in operands])
    return old, Row(new, alternatives, tuple((results or behind or "Out").split()), tuple([(n, o) for n, _, o in renamed]))


@cache
def rows() -> Mapping[str, Row]:
    """How the old operators are written anew, by name."""
    table = dict(_row(line) for line in _TABLE.replace("\n    ", " ").splitlines() if line)
    table |= {name: Row(name) for name in _UNARY.split()}
    return table | {name: Row(name, (("X",), ("Y",))) for name in _BINARY.split()}


def renewed(
    name: str, inputs: Mapping[str, Sequence[str]], outputs: Mapping[str, Sequence[str]], attributes: dict[str, Any]
) -> Operation:
    """An old operation in the new form. One that the table lacks keeps its name, with all its operands and results."""
    row = rows().get(name)
    if row is None:
        operands: list[Any] = [key for keys in inputs.values() for key in keys]
        return Operation(name, name, operands, [key for keys in outputs.values() for key in keys], attributes)
    for new, old in row.renamed:
        if old in attributes:
            attributes[new] = attributes[old]
    operands = [_operand(choices, inputs, attributes) for choices in row.operands]
    while operands and operands[-1] is None:
        operands.pop()
    results: list[Any] = []
    for result in row.results:
        keys = list(outputs.get(result.rstrip("*"), ()))
        results.append(keys if result.endswith("*") else keys[0] if keys else None)
    return Operation(row.name, name, operands, results, attributes)


def _operand(choices: Sequence[str], inputs: Mapping[str, Sequence[str]], attributes: Mapping[str, Any]) -> Any:
    """The first of the operands that an operation has: a key, a list of keys, or a constant; None for none."""
    for choice in choices:
        if choice.startswith("@"):
            value = attributes.get(choice[1:])
            if value is not None and not isinstance(value, str):
                return constant(value)
        elif inputs.get(choice.rstrip("*")):
            keys = inputs[choice.rstrip("*")]
            return list(keys) if choice.endswith("*") else keys[0]
    return None


def constant(value: Any) -> np.ndarray:
    """The value of an attribute as an operand: whole numbers are int64, others float32."""
    array = np.asarray(value)
    return array.astype("float32" if array.dtype.kind == "f" else "bool" if array.dtype.kind == "b" else "int64")


__all__ = ["Row", "constant", "renewed", "rows"]
