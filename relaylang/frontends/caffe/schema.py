"""Caffe's messages: the public field numbers of those fields that the importer reads.

Source: Caffe, caffe.proto; the fields of boxes are those of its branch for SSD, raw numbers those of NVIDIA's.
Layers of several branches have no number that all agree on. Their numbers here begin at 900001, and only texts have them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from relaylang.frontends.common.protobuf import messages

#: The parameters of layers that old and new messages have: each with its number in the new one, and in the old one.
_OLD = """
argmax_param 103 23 ArgMaxParameter; concat_param 104 9 ConcatParameter; convolution_param 106 10 ConvolutionParameter;
data_param 107 11 DataParameter; dropout_param 108 12 DropoutParameter; dummy_data_param 109 26 DummyDataParameter;
eltwise_param 110 24 EltwiseParameter; exp_param 111 41 ExpParameter; image_data_param 115 15 DataParameter;
inner_product_param 117 17 InnerProductParameter; lrn_param 118 18 LRNParameter;
memory_data_param 119 22 MemoryDataParameter; mvn_param 120 34 MVNParameter; pooling_param 121 19 PoolingParameter;
power_param 122 21 PowerParameter; relu_param 123 30 ReLUParameter; softmax_param 125 39 SoftmaxParameter;
slice_param 126 31 SliceParameter; threshold_param 128 25 ThresholdParameter
"""

_TABLE = """
NetParameter: name 1 string; layers 2 V1LayerParameter*; input 3 string*; input_dim 4 int64*; state 6 NetState;
    input_shape 8 BlobShape*; layer 100 LayerParameter*
enum Phase: TRAIN 0; TEST 1
NetState: phase 1 Phase =TEST; level 2 int32; stage 3 string*
NetStateRule: phase 1 Phase; min_level 2 int32; max_level 3 int32; stage 4 string*; not_stage 5 string*
BlobShape: dim 1 int64*
enum BlobProto.Type: DOUBLE 0; FLOAT 1; FLOAT16 2; INT 3; UINT 4
BlobProto: num 1 int32; channels 2 int32; height 3 int32; width 4 int32; data 5 NUMBERS; shape 7 BlobShape;
    double_data 8 NUMBERS; raw_data_type 10 BlobProto.Type; raw_data 12 bytes
FillerParameter: type 1 string =constant; value 2 float
LayerParameter: name 1 string; type 2 string; bottom 3 string*; top 4 string*; blobs 7 BlobProto*;
    include 8 NetStateRule*; exclude 9 NetStateRule*; batch_norm_param 139 BatchNormParameter; bias_param 141 BiasParameter;
    clip_param 148 ClipParameter; crop_param 144 CropParameter; detection_output_param 204 DetectionOutputParameter;
    elu_param 140 ELUParameter; embed_param 137 EmbedParameter; flatten_param 135 FlattenParameter;
    input_param 143 InputParameter; log_param 134 ExpParameter; norm_param 206 NormalizeParameter;
    parameter_param 145 ParameterParameter; permute_param 202 PermuteParameter; prelu_param 131 PReLUParameter;
    prior_box_param 203 PriorBoxParameter; recurrent_param 146 RecurrentParameter; reduction_param 136 ReductionParameter;
    reshape_param 133 ReshapeParameter; scale_param 142 ScaleParameter; spp_param 132 SPPParameter;
    swish_param 147 SwishParameter; tile_param 138 TileParameter; interp_param 900001 InterpParameter;
    upsample_param 900002 UpsampleParameter; shuffle_channel_param 900003 ShuffleChannelParameter;
    roi_pooling_param 900004 ROIPoolingParameter; NEW
enum V1LayerParameter.LayerType: NONE 0; ACCURACY 1; BNLL 2; CONCAT 3; CONVOLUTION 4; DATA 5; DROPOUT 6; EUCLIDEAN_LOSS 7;
    FLATTEN 8; HDF5_DATA 9; HDF5_OUTPUT 10; IM2COL 11; IMAGE_DATA 12; INFOGAIN_LOSS 13; INNER_PRODUCT 14; LRN 15;
    MULTINOMIAL_LOGISTIC_LOSS 16; POOLING 17; RELU 18; SIGMOID 19; SOFTMAX 20; SOFTMAX_LOSS 21; SPLIT 22; TANH 23;
    WINDOW_DATA 24; ELTWISE 25; POWER 26; SIGMOID_CROSS_ENTROPY_LOSS 27; HINGE_LOSS 28; MEMORY_DATA 29; ARGMAX 30;
    THRESHOLD 31; DUMMY_DATA 32; SLICE 33; MVN 34; ABSVAL 35; SILENCE 36; CONTRASTIVE_LOSS 37; EXP 38; DECONVOLUTION 39
V1LayerParameter: layer 1 V0LayerParameter; bottom 2 string*; top 3 string*; name 4 string;
    type 5 V1LayerParameter.LayerType; blobs 6 BlobProto*; include 32 NetStateRule*; exclude 33 NetStateRule*; OLD
V0LayerParameter: name 1 string; type 2 string; num_output 3 uint32; biasterm 4 bool =true; pad 7 uint32;
    kernelsize 8 uint32; group 9 uint32 =1; stride 10 uint32 =1; pool 11 PoolingParameter.PoolMethod;
    dropout_ratio 12 float =0.5; local_size 13 uint32 =5; alpha 14 float =1; beta 15 float =0.75; batchsize 19 uint32;
    k 22 float =1; blobs 50 BlobProto*; concat_dim 65 uint32 =1
ArgMaxParameter: out_max_val 1 bool; top_k 2 uint32 =1; axis 3 int32
BatchNormParameter: use_global_stats 1 bool; eps 3 float =0.00001
BiasParameter: axis 1 int32 =1; num_axes 2 int32 =1
ClipParameter: min 1 float; max 2 float
ConcatParameter: concat_dim 1 uint32 =1; axis 2 int32 =1
ConvolutionParameter: num_output 1 uint32; bias_term 2 bool =true; pad 3 uint32*; kernel_size 4 uint32*; group 5 uint32 =1;
    stride 6 uint32*; pad_h 9 uint32; pad_w 10 uint32; kernel_h 11 uint32; kernel_w 12 uint32; stride_h 13 uint32;
    stride_w 14 uint32; axis 16 int32 =1; dilation 18 uint32*
CropParameter: axis 1 int32 =2; offset 2 uint32*
DataParameter: batch_size 4 uint32
DropoutParameter: dropout_ratio 1 float =0.5; scale_train 2 bool =true
DummyDataParameter: data_filler 1 FillerParameter*; num 2 uint32*; channels 3 uint32*; height 4 uint32*; width 5 uint32*;
    shape 6 BlobShape*
enum EltwiseParameter.EltwiseOp: PROD 0; SUM 1; MAX 2
EltwiseParameter: operation 1 EltwiseParameter.EltwiseOp =SUM; coeff 2 float*
ELUParameter: alpha 1 float =1
EmbedParameter: num_output 1 uint32; input_dim 2 uint32; bias_term 3 bool =true
ExpParameter: base 1 float =-1; scale 2 float =1; shift 3 float
FlattenParameter: axis 1 int32 =1; end_axis 2 int32 =-1
InnerProductParameter: num_output 1 uint32; bias_term 2 bool =true; axis 5 int32 =1; transpose 6 bool
InputParameter: shape 1 BlobShape*
InterpParameter: height 1 int32; width 2 int32; zoom_factor 3 int32 =1; shrink_factor 4 int32 =1; pad_beg 5 int32; pad_end 6 int32
enum LRNParameter.NormRegion: ACROSS_CHANNELS 0; WITHIN_CHANNEL 1
LRNParameter: local_size 1 uint32 =5; alpha 2 float =1; beta 3 float =0.75; norm_region 4 LRNParameter.NormRegion; k 5 float =1
MemoryDataParameter: batch_size 1 uint32; channels 2 uint32; height 3 uint32; width 4 uint32
MVNParameter: normalize_variance 1 bool =true; across_channels 2 bool; eps 3 float =0.000000001
NonMaximumSuppressionParameter: nms_threshold 1 float =0.3; top_k 2 int32 =-1; eta 3 float =1
NormalizeParameter: across_spatial 1 bool =true; channel_shared 3 bool =true; eps 4 float =0.0000000001
ParameterParameter: shape 1 BlobShape
PermuteParameter: order 1 uint32*
enum PoolingParameter.PoolMethod: MAX 0; AVE 1; STOCHASTIC 2
enum PoolingParameter.RoundMode: CEIL 0; FLOOR 1
PoolingParameter: pool 1 PoolingParameter.PoolMethod; kernel_size 2 uint32*; stride 3 uint32*; pad 4 uint32*; kernel_h 5 uint32;
    kernel_w 6 uint32; stride_h 7 uint32; stride_w 8 uint32; pad_h 9 uint32; pad_w 10 uint32; global_pooling 12 bool;
    round_mode 13 PoolingParameter.RoundMode; ceil_mode 900001 bool =true
PowerParameter: power 1 float =1; scale 2 float =1; shift 3 float
PReLUParameter: channel_shared 2 bool
enum PriorBoxParameter.CodeType: CORNER 1; CENTER_SIZE 2; CORNER_SIZE 3
PriorBoxParameter: min_size 1 float*; max_size 2 float*; aspect_ratio 3 float*; flip 4 bool =true; clip 5 bool;
    variance 6 float*; img_size 7 uint32; img_h 8 uint32; img_w 9 uint32; step 10 float; step_h 11 float; step_w 12 float;
    offset 13 float =0.5
DetectionOutputParameter: num_classes 1 uint32; share_location 2 bool =true; background_label_id 3 int32;
    nms_param 4 NonMaximumSuppressionParameter; code_type 6 PriorBoxParameter.CodeType =CORNER; keep_top_k 7 int32 =-1;
    variance_encoded_in_target 8 bool; confidence_threshold 9 float
RecurrentParameter: num_output 1 uint32; expose_hidden 5 bool
enum ReductionParameter.ReductionOp: SUM 1; ASUM 2; SUMSQ 3; MEAN 4
ReductionParameter: operation 1 ReductionParameter.ReductionOp =SUM; axis 2 int32; coeff 3 float =1
ReLUParameter: negative_slope 1 float
ReshapeParameter: shape 1 BlobShape; axis 2 int32; num_axes 3 int32 =-1
ROIPoolingParameter: pooled_h 1 uint32; pooled_w 2 uint32; spatial_scale 3 float =1
ScaleParameter: axis 1 int32 =1; num_axes 2 int32 =1; bias_term 4 bool
ShuffleChannelParameter: group 1 uint32 =1
SliceParameter: slice_dim 1 uint32 =1; slice_point 2 uint32*; axis 3 int32 =1
SoftmaxParameter: axis 2 int32 =1
SPPParameter: pyramid_height 1 uint32; pool 2 PoolingParameter.PoolMethod
SwishParameter: beta 1 float =1
ThresholdParameter: threshold 1 float
TileParameter: axis 1 int32 =1; tiles 2 int32
UpsampleParameter: scale 1 int32 =2; scale_h 2 int32; scale_w 3 int32
"""


def _table() -> str:
    """The table, with the parameters that old and new layers share in both."""
    shared = [field.split() for field in _OLD.replace("\n", " ").split(";")]
    new, old = ("; ".join(f"{name} {both[at]} {kind}" for name, *both, kind in shared) for at in (0, 1))
    return _TABLE.replace("; NEW\n", f"; {new}\n").replace("; OLD\n", f"; {old}\n")


@cache
def caffe(packed: bool = True) -> dict[str, Any]:
    """The classes of the messages by name. Raises `RelayError` (R0803) where protobuf is missing.

    Weights are `packed` in files: such a field holds the bytes of its numbers. In texts the numbers stand one by one.
    """
    kinds = ("bytes*", "bytes*") if packed else ("float*", "double*")
    table = _table().replace("data 5 NUMBERS", f"data 5 {kinds[0]}").replace("8 NUMBERS", f"8 {kinds[1]}")
    return messages(table, f"relaylang.caffe{'' if packed else '.text'}", "caffe", "proto2")


__all__ = ["caffe"]
