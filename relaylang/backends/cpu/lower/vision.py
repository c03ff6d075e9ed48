"""Object detection: anchors, and the boxes that count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.backends.cpu.kernel import BufTensor, Kernel, Recipe, Value
from relaylang.backends.cpu.lower.common import clamp, result_type, result_types
from relaylang.backends.cpu.lower.sampling import wide, widened
from relaylang.ir import Call
from relaylang.kernels import ir
from relaylang.kernels.build import Builder
from relaylang.kernels.index import ZERO
from relaylang.kernels.nest import Index, Nest, Scalar


def _multibox_prior(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """Boxes around each cell's centre: one of every size, and one of the first size in every other ratio."""
    attrs = call.attrs
    f = np.float32
    height, width = args[0].shape[2:]
    first, others = np.asarray(attrs.sizes, f), np.sqrt(np.asarray(attrs.ratios[1:], f))
    boxes = len(first) + len(others)
    sizes = kernel.constant(np.concatenate([first, np.full(len(others), first[0])]), "float32")
    ratios = kernel.constant(np.concatenate([np.ones(len(first), f), others]), "float32")
    shape, dtype = result_type(call)

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        row, column, kind = nest.unravel(index[1], (height, width, boxes))
        high, wide = (nest.as_scalar(ZERO + n).cast("float32") for n in (height, width))
        size, ratio = nest.load(sizes, kind), nest.load(ratios, kind)
        centres = []
        for place, step, offset, extent in zip((row, column), attrs.steps, attrs.offsets, (high, wide)):
            by = nest.const(step, "float32") if step > 0 else nest.const(1, "float32") / extent
            centres.append((nest.as_scalar(place).cast("float32") + float(f(offset))) * by)
        reaches = size / ratio / 2.0, size * (high / wide / 2.0) * ratio
        corner = nest.as_scalar(index[2])
        vertical = (corner & 1).ne(0)
        centre, reach = vertical.select(*centres), vertical.select(*reaches)
        value = (corner < 2).select(centre - reach, centre + reach)
        if attrs.clip:
            value = clamp(value, 0, 1)
        return value.cast(dtype)

    return Recipe(shape, dtype, at)


def _get_valid_counts(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """The rows whose score is above the threshold first, in their order, and -1 after them."""
    data, threshold = (kernel.in_memory(a) for a in args)
    attrs = call.attrs
    counts, rows, indices = out = [kernel.buffer(shape, dtype) for shape, dtype in result_types(call)]
    batch, anchors, width = data.shape
    b = Builder()
    with b.loop("u", batch, kind=ir.PARALLEL) as u:
        n = b.var("n", 0)
        with b.loop("i", anchors) as i:
            row = b.let("row", ir.address(data, (u * anchors + i) * width))
            score, least = widened(ir.load(row, attrs.score_index), ir.load(threshold, 0))
            test = score > least
            if attrs.id_index >= 0:
                test = test & (ir.load(row, attrs.id_index) >= 0)
            with b.when(test):
                with b.loop("c", width) as c:
                    b.store(rows, ir.load(row, c), u, n, c)
                b.store(indices, i, u, n)
                b.assign(n, n + 1)
        b.store(counts, n, u)
        b.fill(b.let("left", ir.address(indices, u * anchors, written=True)), -1, n, anchors)
        b.fill(b.let("rest", ir.address(rows, u * (anchors * width), written=True)), -1, n * width, anchors * width)
    kernel.stage(body=b.body)
    return [BufTensor(buf) for buf in out]


def _multibox_transform_loc(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """The best class of each anchor, with its box moved. Background is left out. The remaining rows are -1."""
    probability, location, anchor = (kernel.in_memory(a) for a in args)
    attrs = call.attrs
    rows, counts = out = [kernel.buffer(shape, dtype) for shape, dtype in result_types(call)]
    batch, classes, anchors = probability.shape
    first = 0 if attrs.keep_background else 1
    dtype = wide(location)
    b = Builder()
    with b.loop("u", batch, kind=ir.PARALLEL) as u:
        n = b.var("n", 0)
        to = b.let("to", ir.address(rows, u * (anchors * 6), written=True))
        with b.loop("i", anchors) as i:
            best, score = b.var("best", 0), b.var("score", ir.Const(-1, dtype))
            with b.loop("c", first, classes) as c:
                p = b.let("p", ir.cast(ir.load(probability, u, c, i), dtype))
                with b.when(p > score):
                    b.assign(score, p)
                    b.assign(best, c)
            b.assign(best, ir.select(score < attrs.threshold, ir.number(0), best))
            with b.when(best >= first):
                box = b.local("box", dtype, [4])
                corners = [ir.cast(ir.load(anchor, i * 4 + k), dtype) for k in range(4)]
                middles, halves = [], []
                for d in range(2):
                    move, growth = (ir.load(location, (u * anchors + i) * 4 + k) * attrs.variances[k] for k in (d, d + 2))
                    size = b.let(f"size{d}", corners[d + 2] - corners[d])
                    middles.append(b.let(f"middle{d}", move * size + (corners[d] + corners[d + 2]) / 2))
                    half = ir.op("exp", ir.cast(growth, "float64")) * ir.cast(size, "float64") / 2
                    halves.append(b.let(f"half{d}", ir.cast(half, dtype)))
                b.store(to, best - first, n * 6)
                b.store(to, score, n * 6 + 1)
                ends = [m - h for m, h in zip(middles, halves)] + [m + h for m, h in zip(middles, halves)]
                for d, corner in enumerate(ends):
                    b.store(box, corner, d)
                with b.loop("k", 4) as k:
                    end = b.let("end", ir.load(box, k))
                    b.store(to, ir.op("clamp", end, 0, 1) if attrs.clip else end, n * 6 + k + 2)
                b.assign(n, n + 1)
        b.store(counts, n, u)
        b.fill(to, -1, n * 6, anchors * 6)
    kernel.stage(body=b.body)
    return [BufTensor(buf) for buf in out]


RECIPES: dict[str, Any] = {"vision.multibox_prior": _multibox_prior}
#: Written by stages of their own: never fused.
APART: dict[str, Any] = {
    "vision.get_valid_counts": _get_valid_counts,
    "vision.multibox_transform_loc": _multibox_transform_loc,
}
