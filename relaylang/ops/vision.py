"""Operators of object detection: anchors, boxes, non-maximum suppression, regions of interest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from relaylang.ir.types import ANY, TensorType, TupleType, Type
from relaylang.ops.record import FloatImm, Floats, Integer, Ints, Op, OpPattern, RelationContext, attrs_class, tensor
from relaylang.ops.shapes import (
    div_dim,
    divided,
    mul_dim,
    need_images,
    need_int,
    need_pixels,
    need_rank,
    product,
    same_dim,
    shape_text,
)
from relaylang.ops.traits import Trait

F, OPAQUE = OpPattern.OUT_ELEMWISE_FUSABLE, OpPattern.OPAQUE


@attrs_class("relay.attrs.MultiBoxPriorAttrs")
class MultiBoxPriorAttrs:
    sizes: Floats = (1.0,)
    ratios: Floats = (1.0,)
    steps: Floats = (-1.0, -1.0)
    offsets: Floats = (0.5, 0.5)
    clip: bool = False


@attrs_class("relay.attrs.MultiBoxTransformLocAttrs")
class MultiBoxTransformLocAttrs:
    clip: bool = True
    threshold: float = 0.01
    variances: Floats = (0.1, 0.1, 0.2, 0.2)
    keep_background: bool = False


@attrs_class("relay.attrs.GetValidCountsAttrs", in_metadata=True)
class GetValidCountsAttrs:
    score_threshold: FloatImm | None = None
    id_index: int = 0
    score_index: int = 1


@attrs_class("relay.attrs.NonMaximumSuppressionAttrs", in_metadata=True)
class NonMaximumSuppressionAttrs:
    force_suppress: bool = False
    top_k: int = -1
    coord_start: int = 2
    score_index: int = 1
    id_index: int = 0
    return_indices: bool = True
    invalid_to_bottom: bool = False


@attrs_class("relay.attrs.AllClassNonMaximumSuppressionAttrs", in_metadata=True)
class AllClassNonMaximumSuppressionAttrs:
    output_format: str = "onnx"


@attrs_class("relay.attrs.RegularNonMaximumSuppressionAttrs", in_metadata=True)
class RegularNonMaximumSuppressionAttrs:
    max_detections_per_class: int
    max_detections: int
    num_classes: int
    iou_threshold: float
    score_threshold: float


@attrs_class("relay.attrs.ROIAlignAttrs", in_metadata=True)
class ROIAlignAttrs:
    pooled_size: Ints
    spatial_scale: float
    sample_ratio: int = -1
    layout: str = "NCHW"
    mode: str = "avg"


@attrs_class("relay.attrs.ROIPoolAttrs", in_metadata=True)
class ROIPoolAttrs:
    pooled_size: Ints
    spatial_scale: float
    layout: str = "NCHW"


@attrs_class("relay.attrs.ProposalAttrs", in_metadata=True)
class ProposalAttrs:
    scales: Floats = (4.0, 8.0, 16.0, 32.0)
    ratios: Floats = (0.5, 1.0, 2.0)
    feature_stride: int = 16
    threshold: float = 0.7
    rpn_pre_nms_top_n: int = 6000
    rpn_post_nms_top_n: int = 300
    rpn_min_size: int = 16
    iou_loss: bool = False


@attrs_class("relay.attrs.YoloReorgAttrs")
class YoloReorgAttrs:
    stride: Integer = 1


def ranked(types: Sequence[Type], arg: int, rank: int, ctx: RelationContext) -> TensorType:
    """Argument `arg` as a tensor of a given number of dimensions."""
    ty = tensor(types, arg, ctx)
    need_rank(ty, rank, arg, ctx)
    return ty


def multibox_prior(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, c, h, w). The result is (1, h * w * (number of sizes + ratios - 1), 4) of its element type."""
    data = ranked(types, 0, 4, ctx)
    if not attrs.sizes or not attrs.ratios:
        ctx.fail(f"{'ratios' if attrs.sizes else 'sizes'}=[] must have a number")
    if 0 in data.shape[2:]:
        ctx.fail(f"must have cells, not `{data!r}`", 0)
    each = len(attrs.sizes) + len(attrs.ratios) - 1
    return TensorType((1, mul_dim(product(data.shape[2:]), each), 4), data.dtype)


def multibox_transform_loc(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes cls_prob (n, classes, anchors), loc_pred (n, anchors * 4), anchor (1, anchors, 4). The result is a tuple
    ((n, anchors, 6) of the element type of cls_prob, (n,) of int32).
    """
    probability, location = ranked(types, 0, 3, ctx), ranked(types, 1, 2, ctx)
    anchor = ranked(types, 2, 3, ctx)
    anchors = anchor.shape[1]
    if not same_dim(probability.shape[2], anchors):
        ctx.fail(f"has {anchors} anchors, but the class probabilities have {probability.shape[2]}", 2)
    if not same_dim(mul_dim(probability.shape[2], 4), location.shape[1]):
        ctx.fail(f"has {location.shape[1]} numbers, which are not 4 for each of {probability.shape[2]} anchors", 1)
    if anchors == 0 or not same_dim(anchor.shape[2], 4):
        ctx.fail(f"must have the shape (1, anchors, 4), not `{anchor!r}`", 2)
    if isinstance(probability.shape[1], int) and probability.shape[1] < (1 if attrs.keep_background else 2):
        ctx.fail(f"must have a class beside the background, not `{probability!r}`", 0)
    batch = probability.shape[0]
    return TupleType((TensorType((batch, anchors, 6), probability.dtype), TensorType((batch,), "int32")))


def columns(data: TensorType, attrs: AnyValue, ctx: RelationContext) -> None:
    """score_index and id_index are columns of the boxes; id_index is -1 where there are no classes."""
    count = data.shape[2]
    for name, least in (("score_index", 0), ("id_index", -1)):
        at = getattr(attrs, name)
        if at < least or (isinstance(count, int) and at >= count):
            ctx.fail(f"{name}={at} is not a column of `{data!r}`")


def get_valid_counts(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, anchors, k), score_threshold a scalar. The result is a tuple (counts (n,) of int32, data of its
    type, indices (n, anchors) of int32).
    """
    data = ranked(types, 0, 3, ctx)
    columns(data, attrs, ctx)
    counts, indices = TensorType(data.shape[:1], "int32"), TensorType(data.shape[:2], "int32")
    return TupleType((counts, data, indices))


def non_max_suppression(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, anchors, k), valid_count (n,), max_output_size and iou_threshold scalars. The result has the data's
    type, or is a tuple ((n, anchors), (n, 1)) of int32 where return_indices. Then indices are whole numbers (n, anchors);
    else nothing looks at them.
    """
    data = ranked(types, 0, 3, ctx)
    columns(data, attrs, ctx)
    ranked(types, 1, 1, ctx)
    if not attrs.return_indices:
        return data
    indices = ranked(types, 2, 2, ctx)
    need_int(indices, 2, ctx)
    if not all(map(same_dim, indices.shape, data.shape)):
        ctx.fail(f"must have the extents {shape_text(data.shape[:2])}, not {shape_text(indices.shape)}", 2)
    return TupleType((TensorType(data.shape[:2], "int32"), TensorType((data.shape[0], 1), "int32")))


def all_class_non_max_suppression(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes boxes (n, anchors, 4), scores (n, classes, anchors), three scalars. For output_format "onnx" the result is
    a tuple ((n * classes * anchors, 3), (1,)) of int64. Else it is a tuple of selected (n, classes * anchors, 2),
    scores (n, classes * anchors) and counts (n,). The scores are of float32, the others of int64.
    """
    boxes, scores = ranked(types, 0, 3, ctx), ranked(types, 1, 3, ctx)
    batch, classes, per_class = boxes.shape[0], scores.shape[1], boxes.shape[1]
    if attrs.output_format == "onnx":
        rows = ANY if ANY in (batch, per_class) else mul_dim(mul_dim(batch, classes), per_class)
        return TupleType((TensorType((rows, 3), "int64"), TensorType((1,), "int64")))
    rows = mul_dim(classes, per_class)
    indices, selected = TensorType((batch, rows, 2), "int64"), TensorType((batch, rows), "float32")
    return TupleType((indices, selected, TensorType((batch,), "int64")))


def regular_non_max_suppression(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes boxes (n, anchors, 4), scores (n, anchors, classes). The result is a tuple, with m for max_detections. It
    holds boxes (n, m, 4), classes (n, m) and scores (n, m) of float32, counts (n,) of int32.
    """
    boxes = ranked(types, 0, 3, ctx)
    classes = ranked(types, 1, 3, ctx).shape[2]
    if isinstance(classes, int) and attrs.num_classes > classes:
        ctx.fail(f"num_classes={attrs.num_classes} is more than the {classes} scores of a box", 1)
    if attrs.max_detections < 0:
        ctx.fail(f"max_detections={attrs.max_detections} must not be negative")
    rows = (boxes.shape[0], attrs.max_detections)
    selected = TensorType(rows, "float32")
    return TupleType((TensorType((*rows, 4), "float32"), selected, selected, TensorType(rows[:1], "int32")))


def region(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, c, h, w) or (n, h, w, c) by layout, rois (k, 5). The result has k for n, pooled_size for the
    spatial extents, and the data's element type.
    """
    data, rois = ranked(types, 0, 4, ctx), ranked(types, 1, 2, ctx)
    need_images(data.shape[0], rois.shape[0], ctx)
    if rois.shape[0] != 0 and attrs.layout in ("NCHW", "NHWC"):
        need_pixels(data.shape, attrs.layout, "NCHW", ctx)
    if len(attrs.pooled_size) != 2:
        ctx.fail(f"pooled_size={list(attrs.pooled_size)} must have 2 numbers")
    if attrs.layout == "NCHW":
        return TensorType((rois.shape[0], data.shape[1], *attrs.pooled_size), data.dtype)
    return TensorType((rois.shape[0], *attrs.pooled_size, data.shape[3]), data.dtype)


def proposal(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes cls_prob (n, 2 * anchors, h, w), bbox_pred (n, 4 * anchors, h, w), im_info (n, 3). The result is (n *
    rpn_post_nms_top_n, 5) of the element type of cls_prob.
    """
    probability, info = ranked(types, 0, 4, ctx), ranked(types, 2, 2, ctx)
    ranked(types, 1, 4, ctx)
    if not same_dim(info.shape[1], 3):
        ctx.fail(f"must have the shape (batch, 3), not `{info!r}`", 2)
    anchors = len(attrs.scales) * len(attrs.ratios)
    if isinstance(probability.shape[1], int) and probability.shape[1] != 2 * anchors:
        ctx.fail(f"scales={list(attrs.scales)} and the ratios make {anchors} anchors, which want {2 * anchors} channels", 0)
    if not same_dim(tensor(types, 1, ctx).shape[1], 4 * anchors):
        ctx.fail(f"must have 4 channels for each of {anchors} anchors, not {tensor(types, 1, ctx).shape[1]}", 1)
    if any(not ratio > 0 for ratio in attrs.ratios):
        ctx.fail(f"ratios={list(attrs.ratios)} must be positive")
    return TensorType((mul_dim(probability.shape[0], attrs.rpn_post_nms_top_n), 5), probability.dtype)


def yolo_reorg(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data (n, c, h, w). The result is (n, c * stride ** 2, h / stride, w / stride) of its element type."""
    data = ranked(types, 0, 4, ctx)
    if attrs.stride == 0:
        ctx.fail("stride=0 must be positive")
    batch, channels, height, width = data.shape
    divided(channels, attrs.stride**2, f"stride={attrs.stride}: {attrs.stride**2}", ctx)
    divided(height, attrs.stride, f"stride={attrs.stride}", ctx)
    divided(width, attrs.stride, f"stride={attrs.stride}", ctx)
    channels = mul_dim(channels, attrs.stride**2)
    return TensorType((batch, channels, div_dim(height, attrs.stride), div_dim(width, attrs.stride)), data.dtype)


OPS = (
    Op(
        "vision.multibox_prior",
        ("data",),
        MultiBoxPriorAttrs,
        multibox_prior,
        OPAQUE,
        5,
        doc="Anchor boxes of several sizes and ratios at each place.",
        takes="float",
    ),
    Op(
        "vision.multibox_transform_loc",
        ("cls_prob", "loc_pred", "anchor"),
        MultiBoxTransformLocAttrs,
        multibox_transform_loc,
        OPAQUE,
        5,
        doc="Boxes from anchors and predicted moves, with class and score.",
        takes="float[b,_,n] same[b,_] same[1,n,4]",
        results=2,
        example="fn (%classes: Tensor[(1, 3, 5), float32], %boxes: Tensor[(1, 20), float32], "
        "%anchors: Tensor[(1, 5, 4), float32]) { vision.multibox_transform_loc(%classes, %boxes, %anchors) }",
    ),
    Op(
        "vision.get_valid_counts",
        ("data", "score_threshold"),
        GetValidCountsAttrs,
        get_valid_counts,
        OPAQUE,
        5,
        needs=(0,),
        doc="Boxes with a score above a threshold, in front, and their number.",
        takes="float[_,_,_] float[]",
        results=3,
        python="(data, score_threshold: argument, id_index=0, score_index=1)",
    ),
    Op(
        "vision.non_max_suppression",
        ("data", "valid_count", "indices", "max_output_size", "iou_threshold"),
        NonMaximumSuppressionAttrs,
        non_max_suppression,
        OPAQUE,
        5,
        needs=(0, 1, 2),
        doc="Boxes that overlap less than a limit.",
        takes="float[b,n,_] integer[b] tensor integer[] float[]",
        traits={Trait.REFUSES_VALUES},
        results=lambda args, attrs: 2 if attrs.return_indices else 0,
        python="(..., max_output_size=-1, iou_threshold=0.5)",
        example="fn (%x: Tensor[(1, 10, 6), float32], %count: Tensor[(1), int32], %indices: Tensor[(1, 10), int32]) { "
        "vision.non_max_suppression(%x, %count, %indices, 10, 0.5f) }",
    ),
    Op(
        "vision.all_class_non_max_suppression",
        ("boxes", "scores", "max_output_boxes_per_class", "iou_threshold", "score_threshold"),
        AllClassNonMaximumSuppressionAttrs,
        all_class_non_max_suppression,
        OPAQUE,
        5,
        needs=(0, 1),
        doc="Boxes that overlap less than a limit, for each class.",
        takes="float[b,n,4] same[b,c,n] integer[] float[] float[]",
        results=lambda args, attrs: 2 if attrs.output_format == "onnx" else 3,
        python="(..., max_output_boxes_per_class=-1, iou_threshold=-1.0, score_threshold=-1.0)",
        example="fn (%boxes: Tensor[(1, 10, 4), float32], %scores: Tensor[(1, 2, 10), float32]) { "
        "vision.all_class_non_max_suppression(%boxes, %scores, 5i64, 0.5f, 0.1f) }",
    ),
    Op(
        "vision.regular_non_max_suppression",
        ("boxes", "scores"),
        RegularNonMaximumSuppressionAttrs,
        regular_non_max_suppression,
        OPAQUE,
        5,
        doc="Boxes that overlap less than a limit, the best of all classes.",
        takes="float[b,n,4] same[b,n,_]",
        results=4,
        example="fn (%boxes: Tensor[(1, 10, 4), float32], %scores: Tensor[(1, 10, 2), float32]) { "
        "vision.regular_non_max_suppression(%boxes, %scores, max_detections_per_class=5, max_detections=5, "
        "num_classes=2, iou_threshold=0.5f, score_threshold=0.1f) }",
    ),
    Op(
        "vision.roi_align",
        ("data", "rois"),
        ROIAlignAttrs,
        region,
        F,
        5,
        doc="Regions of interest at one size, by linear interpolation.",
        takes="float[_,_,_,_] float[_,5]",
    ),
    Op(
        "vision.roi_pool",
        ("data", "rois"),
        ROIPoolAttrs,
        region,
        F,
        5,
        doc="The largest elements of the parts of regions of interest.",
        takes="float[_,_,_,_] float[_,5]",
    ),
    Op(
        "vision.proposal",
        ("cls_prob", "bbox_pred", "im_info"),
        ProposalAttrs,
        proposal,
        OPAQUE,
        5,
        doc="Regions of interest from scores and predicted moves of anchors.",
        takes="float[b,_,h,w] float[b,_,h,w] float[b,3]",
        python="(..., scales, ratios, feature_stride, threshold, rpn_pre_nms_top_n, rpn_post_nms_top_n, rpn_min_size, iou_loss)",
        example="fn (%classes: Tensor[(1, 24, 8, 8), float32], %boxes: Tensor[(1, 48, 8, 8), float32], "
        "%info: Tensor[(1, 3), float32]) { vision.proposal(%classes, %boxes, %info, rpn_post_nms_top_n=10) }",
    ),
    Op(
        "vision.yolo_reorg",
        ("data",),
        YoloReorgAttrs,
        yolo_reorg,
        OpPattern.INJECTIVE,
        5,
        doc="Blocks of the spatial axes laid out along the channels.",
        python="(..., stride)",
    ),
)
