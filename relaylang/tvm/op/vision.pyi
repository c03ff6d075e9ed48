"""Made by scripts/make_stubs.py from the operators' records and TVM's signatures."""

# ruff: noqa

from collections.abc import Sequence
from typing import Any

from relaylang.ir import Call
from relaylang.tvm.op.build import Argument, TupleWrapper

def all_class_non_max_suppression(
    boxes: Argument,
    scores: Argument,
    max_output_boxes_per_class: Argument = -1,
    iou_threshold: Argument = -1.0,
    score_threshold: Argument = -1.0,
    output_format: str = 'onnx',
) -> TupleWrapper: ...
def get_valid_counts(
    data: Argument,
    score_threshold: Argument,
    id_index: int = 0,
    score_index: int = 1,
) -> TupleWrapper: ...
def multibox_prior(
    data: Argument,
    sizes: Sequence[float] = (1.0,),
    ratios: Sequence[float] = (1.0,),
    steps: Sequence[float] = (-1.0, -1.0),
    offsets: Sequence[float] = (0.5, 0.5),
    clip: bool = False,
) -> Call: ...
def multibox_transform_loc(
    cls_prob: Argument,
    loc_pred: Argument,
    anchor: Argument,
    clip: bool = True,
    threshold: float = 0.01,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    keep_background: bool = False,
) -> TupleWrapper: ...
def non_max_suppression(
    data: Argument,
    valid_count: Argument,
    indices: Argument,
    max_output_size: Argument = -1,
    iou_threshold: Argument = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> TupleWrapper | Any: ...
def proposal(
    cls_prob: Argument,
    bbox_pred: Argument,
    im_info: Argument,
    scales: Sequence[float],
    ratios: Sequence[float],
    feature_stride: int,
    threshold: float,
    rpn_pre_nms_top_n: int,
    rpn_post_nms_top_n: int,
    rpn_min_size: int,
    iou_loss: bool,
) -> Call: ...
def regular_non_max_suppression(
    boxes: Argument,
    scores: Argument,
    max_detections_per_class: int,
    max_detections: int,
    num_classes: int,
    iou_threshold: float,
    score_threshold: float,
) -> TupleWrapper: ...
def roi_align(
    data: Argument,
    rois: Argument,
    pooled_size: Sequence[int] | int,
    spatial_scale: float,
    sample_ratio: int = -1,
    layout: str = 'NCHW',
    mode: str = 'avg',
) -> Call: ...
def roi_pool(
    data: Argument,
    rois: Argument,
    pooled_size: Sequence[int] | int,
    spatial_scale: float,
    layout: str = 'NCHW',
) -> Call: ...
def yolo_reorg(data: Argument, stride: int) -> Call: ...
