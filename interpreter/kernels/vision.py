"""Object detection. Boxes are (left, top, right, bottom) with either corner first, in the data's own element type."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.interpreter.kernels.common import Kernel, KernelError, from_plain, round_away, to_plain, wide
from relaylang.interpreter.kernels.image import bilinear
from relaylang.interpreter.kernels.indexing import check_range


def multibox_prior(attrs: Any, x: Any) -> Any:
    """Boxes around each cell's centre: one of every size, and one of the first size in every other ratio."""
    f32 = np.float32
    height, width = x.shape[2:]
    step_y, step_x = (f32(s) if s > 0 else f32(1 / n) for s, n in zip(attrs.steps, (height, width)))
    sizes = np.asarray(attrs.sizes, f32)
    ratios = np.sqrt(np.asarray(attrs.ratios[1:], f32))
    across = f32(height) / f32(width) / f32(2)
    half_x = np.concatenate([sizes * across, sizes[0] * across * ratios])
    half_y = np.concatenate([sizes / f32(2), sizes[0] / ratios / f32(2)])
    y = (np.arange(height).astype(f32) + f32(attrs.offsets[0])) * step_y
    x_ = (np.arange(width).astype(f32) + f32(attrs.offsets[1])) * step_x
    y, x_, half_y, half_x = np.broadcast_arrays(y[:, None, None], x_[:, None], half_y, half_x)
    boxes = np.stack([x_ - half_x, y - half_y, x_ + half_x, y + half_y], axis=-1).reshape(1, -1, 4)
    return (np.clip(boxes, f32(0), f32(1)) if attrs.clip else boxes).astype(x.dtype)


def multibox_transform_loc(attrs: Any, probability: Any, location: Any, anchor: Any) -> Any:
    """The best class of each anchor, with its box moved. Background is left out. The remaining rows are -1."""
    kind = location.dtype.type
    first = 0 if attrs.keep_background else 1
    scores = np.where(probability[:, first:] > -1, probability[:, first:], probability.dtype.type(-1))  # a nan is no score
    best = scores.argmax(axis=1) + first
    score = scores.max(axis=1, initial=-1)
    best[(score <= -1) | (score < kind(attrs.threshold))] = 0
    left, top, right, bottom = anchor[0].T
    moves = location.reshape(location.shape[0], location.shape[1] // 4, 4) * np.asarray(attrs.variances, kind)
    x = moves[..., 0] * (right - left) + (left + right) / kind(2)
    y = moves[..., 1] * (bottom - top) + (top + bottom) / kind(2)
    w = np.exp(moves[..., 2]) * (right - left) / kind(2)
    h = np.exp(moves[..., 3]) * (bottom - top) / kind(2)
    boxes = np.stack([x - w, y - h, x + w, y + h], axis=-1)
    boxes = np.clip(boxes, kind(0), kind(1)) if attrs.clip else boxes
    rows = np.concatenate([(best - first)[..., None].astype(kind), score[..., None], boxes.astype(score.dtype)], axis=-1)
    valid = np.ones_like(best, np.bool_) if attrs.keep_background else best > 0
    return _to_top(rows, valid), valid.sum(axis=1).astype(np.int32)


def _to_top(rows: Any, keep: Any, fill: int = -1) -> Any:
    """The rows to keep of each batch first, in their order, and a fill value behind them."""
    out = np.full_like(rows, fill)
    for result, had, kept in zip(out, rows, keep):
        result[: kept.sum()] = had[kept]
    return out


def get_valid_counts(attrs: Any, data: Any, threshold: Any) -> Any:
    keep = data[..., attrs.score_index] > threshold
    if attrs.id_index >= 0:
        keep &= data[..., attrs.id_index] >= 0
    indices = np.broadcast_to(np.arange(data.shape[1], dtype=np.int32), data.shape[:2])
    return keep.sum(axis=1).astype(np.int32), _to_top(data, keep), _to_top(indices, keep)


def _corners(boxes: Any) -> tuple[Any, Any]:
    return np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])


def overlap(box: Any, boxes: Any) -> Any:
    """The intersection of a box with each of some others over their union."""
    (low, high), (lows, highs) = _corners(box), _corners(boxes)
    zero = boxes.dtype.type(0)
    common = np.maximum(np.minimum(high, highs) - np.maximum(low, lows), zero).prod(axis=-1)
    union = (high - low).prod(axis=-1) + (highs - lows).prod(axis=-1) - common
    return np.where(union <= zero, zero, common / np.where(union <= zero, boxes.dtype.type(1), union))


def non_max_suppression(attrs: Any, data: Any, counts: Any, indices: Any, limit: Any, threshold: Any) -> Any:
    """The best boxes first; one that overlaps a better one too much (of its class, unless `force_suppress`) becomes -1.

    A box whose score is not positive neither suppresses nor is suppressed.
    """
    if ((counts < 0) | (counts > data.shape[1])).any():
        raise KernelError(f"a count of valid boxes is not one of 0 to {data.shape[1]}")
    boxes = np.full_like(data, -1)
    picked = np.full(data.shape[:2], -1, np.int32)
    for i, count in enumerate(int(c) for c in counts):
        if threshold > 0:
            order = np.argsort(-wide(data[i, :count, attrs.score_index]), kind="stable")
            order = order[: attrs.top_k] if attrs.top_k > 0 else order
            boxes[i, : len(order)], picked[i, : len(order)] = data[i, order], order
            gone = _suppressed(attrs, boxes[i, :count], int(limit), threshold)
            boxes[i, :count][gone], picked[i, :count][gone] = -1, -1
        else:
            boxes[i, :count], picked[i, :count] = data[i, :count], np.arange(count)
        if attrs.return_indices:
            picked[i, :count] = np.where(picked[i, :count] >= 0, indices[i, picked[i, :count]], -1)
    if attrs.return_indices:
        valid = picked >= 0
        return _to_top(picked, valid), valid.sum(axis=1, keepdims=True).astype(np.int32)
    return _to_top(boxes, boxes[..., 0] >= 0) if attrs.invalid_to_bottom else boxes


def _suppressed(attrs: Any, rows: Any, limit: int, threshold: Any) -> np.ndarray:
    """Which of the sorted rows fall, for one batch."""
    boxes = rows[:, attrs.coord_start : attrs.coord_start + 4]
    live = rows[:, attrs.score_index] > 0
    gone = np.zeros(len(rows), np.bool_)
    kept = 0
    for j in range(len(rows)):
        if kept == limit:
            gone[j:] = True
            break
        if gone[j] or not live[j]:
            continue
        kept += 1
        rivals = live[j + 1 :].copy()
        if attrs.id_index >= 0:
            if rows[j, attrs.id_index] < 0:
                continue
            if not attrs.force_suppress:
                rivals &= rows[j + 1 :, attrs.id_index] == rows[j, attrs.id_index]
        gone[j + 1 :] |= rivals & (overlap(boxes[j], boxes[j + 1 :]) >= threshold)
    return gone


def all_class_non_max_suppression(attrs: Any, boxes: Any, scores: Any, limit: Any, iou_threshold: Any, score_threshold: Any) -> Any:
    """For each batch and class the boxes that remain, best first. Rows behind the counted ones are 0."""
    batch, classes, number = scores.shape
    chosen: list[list[tuple[int, int, Any]]] = []
    for b in range(batch):
        chosen.append([])
        for c in range(classes):
            order = np.argsort(-wide(scores[b, c]), kind="stable")
            order = order[scores[b, c][order] > score_threshold]
            most = int(limit) if limit > 0 else len(order)
            alive = np.full(len(order), iou_threshold > 0)
            for at, j in enumerate(order):
                if alive[at] and most:
                    chosen[b].append((c, int(j), scores[b, c, j]))
                    most -= 1
                    alive[at + 1 :] &= ~(
                        (scores[b, c][order[at + 1 :]] > 0) & (overlap(boxes[b, j], boxes[b, order[at + 1 :]]) >= iou_threshold)
                    )
    if attrs.output_format == "onnx":
        rows = [(b, c, j) for b, each in enumerate(chosen) for c, j, _ in each]
        out = np.zeros((batch * classes * number, 3), np.int64)
        out[: len(rows)] = np.asarray(rows, np.int64).reshape(-1, 3)
        return out, np.asarray([len(rows)], np.int64)
    out, best = np.zeros((batch, classes * number, 2), np.int64), np.zeros((batch, classes * number), np.float32)
    for b, each in enumerate(chosen):
        out[b, : len(each)] = np.asarray([(c, j) for c, j, _ in each], np.int64).reshape(-1, 2)
        best[b, : len(each)] = [s for _, _, s in each]
    return out, best, np.asarray([len(each) for each in chosen], np.int64)


def regular_non_max_suppression(attrs: Any, boxes: Any, scores: Any) -> Any:
    """As TFLite's detection: class by class, then the best of all. Boxes are (top, left, bottom, right)."""
    batch, most = boxes.shape[0], attrs.max_detections
    out_boxes, out_classes = np.zeros((batch, most, 4), np.float32), np.zeros((batch, most), np.float32)
    out_scores, counts = np.zeros((batch, most), np.float32), np.zeros(batch, np.int32)
    offset = scores.shape[2] - attrs.num_classes
    for b in range(batch):
        best: list[tuple[Any, int, int]] = []
        for c in range(attrs.num_classes):
            column = scores[b, :, c + offset]
            order = np.argsort(-wide(column), kind="stable")
            order = order[column[order] >= np.float32(attrs.score_threshold)]
            alive = np.ones(len(order), np.bool_)
            taken = 0
            for at, j in enumerate(order):
                if alive[at] and taken < attrs.max_detections_per_class:
                    best.append((column[j], int(j), c))
                    taken += 1
                    alive[at + 1 :] &= ~(_plain_overlap(boxes[b, j], boxes[b, order[at + 1 :]]) > attrs.iou_threshold)
            best = sorted(best, key=lambda detection: -detection[0])[:most]
        counts[b] = len(best)
        for row, (score, j, c) in enumerate(best):
            out_boxes[b, row], out_classes[b, row], out_scores[b, row] = boxes[b, j], c, score
    return out_boxes, out_classes, out_scores, counts


def _plain_overlap(box: Any, boxes: Any) -> Any:
    """As `overlap`, of boxes whose first corner is the lower one; those without an area overlap nothing."""
    area, areas = (box[2:] - box[:2]).prod(), (boxes[:, 2:] - boxes[:, :2]).prod(axis=-1)
    low, high = np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:], boxes[:, 2:])
    common = np.maximum(high - low, boxes.dtype.type(0)).prod(axis=-1)
    fine = (area > 0) & (areas > 0)
    return np.where(fine, common / np.where(fine, area + areas - common, boxes.dtype.type(1)), boxes.dtype.type(0))


def _pooled(attrs: Any, data: Any, rois: Any, pool: Any) -> Any:
    """`pool(image, roi)` of each region, as (channels, height, width)."""
    plain, rois = wide(to_plain(data, attrs.layout, "NCHW")), wide(rois)
    check_range(rois[:, 0].astype(np.int64), len(plain))
    size = (plain.shape[1], *attrs.pooled_size)
    regions = [pool(plain[int(roi[0])], roi[1:]) for roi in rois]
    out = np.stack(regions) if regions else np.zeros((0, *size))
    return from_plain(out.astype(data.dtype), "NCHW", attrs.layout)


def roi_align(attrs: Any, data: Any, rois: Any) -> Any:
    """Each cell is the mean (or greatest) of points on a grid in it, interpolated between four pixels."""
    rois = wide(rois)
    f = rois.dtype.type
    if attrs.mode not in ("avg", "max"):
        raise KernelError(f"mode={attrs.mode!r} is neither avg nor max")

    def points(start: Any, extent: Any, cells: int) -> tuple[Any, int]:
        size = extent / f(cells)
        grid = attrs.sample_ratio if attrs.sample_ratio > 0 else int(np.ceil(size))
        inside = (np.arange(grid).astype(rois.dtype) + f(0.5)) * size / f(grid)
        return start + np.arange(cells).astype(rois.dtype)[:, None] * size + inside, grid

    def pool(image: Any, roi: Any) -> Any:
        left, top, right, bottom = roi * f(attrs.spatial_scale)
        rows, columns = attrs.pooled_size
        y, down = points(top, np.maximum(bottom - top, f(1)), rows)
        x, across = points(left, np.maximum(right - left, f(1)), columns)
        height, width = image.shape[1:]
        outside = ((y < -1) | (y > height))[:, :, None, None] | ((x < -1) | (x > width))[None, None]
        y, x = np.clip(y, 0, f(height - 1)), np.clip(x, 0, f(width - 1))
        y_, x_ = np.broadcast_arrays(y[:, :, None, None], x[None, None])
        values = np.where(outside, f(0), bilinear(image, y_, x_))
        if attrs.mode == "max":
            return values.max(axis=(2, 4))
        return (values / f(down * across)).sum(axis=(2, 4))

    return _pooled(attrs, data, rois, pool)


def roi_pool(attrs: Any, data: Any, rois: Any) -> Any:
    """Each cell is the greatest of the pixels that it touches, 0 where there are none."""
    rois = wide(rois)
    f = rois.dtype.type

    def cuts(start: Any, end: Any, cells: int, extent: int) -> list[tuple[int, int]]:
        size = f(max(end - start + 1, 1)) / f(cells)
        at = np.arange(cells).astype(rois.dtype)
        low = np.floor(at * size + f(1e-5)).astype(np.int32) + start
        high = np.ceil((at + f(1)) * size - f(1e-5)).astype(np.int32) + start
        return [(int(a), int(b)) for a, b in zip(np.clip(low, 0, extent), np.clip(high, 0, extent))]

    def pool(image: Any, roi: Any) -> Any:
        left, top, right, bottom = (int(n) for n in round_away(roi * f(attrs.spatial_scale)))
        rows, columns = attrs.pooled_size
        out = np.zeros((image.shape[0], rows, columns), image.dtype)
        for i, (a, b) in enumerate(cuts(top, bottom, rows, image.shape[1])):
            for j, (c, d) in enumerate(cuts(left, right, columns, image.shape[2])):
                if a < b and c < d:
                    out[:, i, j] = image[:, a:b, c:d].max(axis=(1, 2))
        return out

    return _pooled(attrs, data, rois, pool)


def anchors_of(attrs: Any) -> Any:
    """The windows around one cell, for each ratio and scale, (anchor, 4) of float32: left, top, right, bottom."""
    base = float(attrs.feature_stride)
    centre = 0.5 * (base - 1)
    anchors = []
    for ratio in attrs.ratios:
        across = np.floor(np.sqrt(np.floor(base * base / ratio)) + 0.5)
        down = np.floor(across * ratio + 0.5)
        for scale in attrs.scales:
            w, h = 0.5 * (across * scale - 1), 0.5 * (down * scale - 1)
            anchors.append((centre - w, centre - h, centre + w, centre + h))
    return np.asarray(anchors, np.float32)


def _regions(attrs: Any, scores: Any, moves: Any, info: Any) -> Any:
    """The moved anchors of one image as rows (left, top, right, bottom, score), in the order row, column, anchor."""
    f = np.float32
    anchors = anchors_of(attrs)
    number = scores.shape[0] // 2
    height, width = scores.shape[1:]
    stride = f(attrs.feature_stride)
    grid = np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1).astype(f) * stride
    low = anchors[:, :2] + grid[:, :, None]
    high = anchors[:, 2:] + grid[:, :, None]
    moves = moves.reshape(number, 4, height, width).transpose(2, 3, 0, 1)
    if attrs.iou_loss:
        low, high = low + moves[..., :2], high + moves[..., 2:]
    else:
        size = high - low + f(1)
        centre = moves[..., :2] * size + (low + f(0.5) * (size - f(1)))
        half = f(0.5) * (np.exp(moves[..., 2:]) * size - f(1))
        low, high = centre - half, centre + half
    limit = np.asarray([info[1], info[0]], f) - f(1)
    low, high = (np.maximum(np.minimum(at, limit), f(0)) for at in (low, high))
    score = scores[number:].transpose(1, 2, 0).copy()
    score[int(info[0] / stride) :] = -1
    score[:, int(info[1] / stride) :] = -1
    least = info[2] * f(attrs.rpn_min_size)
    small = (high - low + f(1) < least).any(axis=-1)
    low[small] -= least / f(2)
    high[small] += least / f(2)
    score[small] = -1
    return np.concatenate([low, high, score[..., None]], axis=-1).reshape(-1, 5)


def proposal(attrs: Any, scores: Any, moves: Any, info: Any) -> Any:
    """The regions that remain after suppression, repeated until there are as many as asked for."""
    if not np.isfinite(info).all():
        raise KernelError("an image's height, width or scale is not finite")
    wanted = attrs.rpn_post_nms_top_n
    out = np.zeros((scores.shape[0] * wanted, 5), scores.dtype)
    for b in range(scores.shape[0]):
        rows = _regions(attrs, scores[b], moves[b], info[b])
        order = np.argsort(-wide(rows[:, 4]), kind="stable")
        rows = rows[order[: attrs.rpn_pre_nms_top_n] if attrs.rpn_pre_nms_top_n > 0 else order]
        low, high = rows[:, :2], rows[:, 2:4]
        area = (high - low + np.float32(1)).prod(axis=-1)
        alive = np.ones(len(rows), np.bool_)
        for j in range(len(rows) - 1):
            if alive[j]:
                common = np.maximum(np.minimum(high[j], high[j + 1 :]) - np.maximum(low[j], low[j + 1 :]) + np.float32(1), 0).prod(
                    axis=-1
                )
                alive[j + 1 :] &= ~(common / (area[j] + area[j + 1 :] - common) > np.float32(attrs.threshold))
        kept = rows[alive, :4]
        out[b * wanted : (b + 1) * wanted, 0] = b
        out[b * wanted : (b + 1) * wanted, 1:] = np.resize(kept, (wanted, 4))
    return out


def yolo_reorg(attrs: Any, x: Any) -> Any:
    """Darknet's: each batch as (C / s**2, H * s, W * s), whose pixels of one phase become one channel."""
    s = attrs.stride
    n, channels, height, width = x.shape
    if channels % (s * s):
        raise KernelError(f"{channels} channels do not divide into {s} times {s}")
    split = x.reshape(n, channels // (s * s), height, s, width, s)
    return split.transpose(0, 3, 5, 1, 2, 4).reshape(n, channels * s * s, height // s, width // s)


KERNELS: dict[str, Kernel] = {
    "vision.multibox_prior": multibox_prior,
    "vision.multibox_transform_loc": multibox_transform_loc,
    "vision.get_valid_counts": get_valid_counts,
    "vision.non_max_suppression": non_max_suppression,
    "vision.all_class_non_max_suppression": all_class_non_max_suppression,
    "vision.regular_non_max_suppression": regular_non_max_suppression,
    "vision.roi_align": roi_align,
    "vision.roi_pool": roi_pool,
    "vision.proposal": proposal,
    "vision.yolo_reorg": yolo_reorg,
}
