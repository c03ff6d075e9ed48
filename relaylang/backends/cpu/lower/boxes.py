"""Suppression of boxes that overlap better ones, and the regions that a network proposes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from relaylang.backends.cpu.kernel import BufTensor, Kernel, Value
from relaylang.backends.cpu.lower.algorithm import places
from relaylang.backends.cpu.lower.common import result_types
from relaylang.backends.cpu.lower.sampling import wide, widened
from relaylang.interpreter.kernels.vision import anchors_of
from relaylang.ir import Call
from relaylang.kernels import ir
from relaylang.kernels.build import Builder
from relaylang.kernels.nest import Buf


def _buffers(kernel: Kernel, call: Call) -> list[Buf]:
    return [kernel.buffer(shape, dtype) for shape, dtype in result_types(call)]


def _values(bufs: list[Buf]) -> Value:
    return [BufTensor(b) for b in bufs] if len(bufs) > 1 else BufTensor(bufs[0])


def _scores(kernel: Kernel, data: Buf, column: int) -> Buf:
    """A column of rows (batch, rows, columns)."""
    batch, rows, columns = data.shape
    out = kernel.buffer((batch, rows), data.dtype)
    b = Builder()
    with b.loop("i", batch * rows) as i:
        b.store(out, ir.load(data, i * columns + column), i)
    kernel.stage(body=b.body)
    return out


@contextmanager
def _counted(b: Builder, name: str, high: ir.Expr | int, going: ir.Expr) -> Iterator[ir.Var]:
    """A loop from 0 up to `high`, without it, as long as a condition holds. Its variable stays where the loop ended."""
    number = b.var(name, 0)
    with b.repeat((number < high) & going):
        yield number
        b.assign(number, number + 1)


class _Box:
    """A box's lower and upper corner and its area, by names that begin with `name`.

    Its numbers begin at `at`: the lower corner, then the upper one. Where it is not `ordered`, any two opposite ones.
    """

    def __init__(self, b: Builder, name: str, x: Any, at: ir.Expr, ordered: bool = False) -> None:
        self.low: list[ir.Expr] = []
        self.high: list[ir.Expr] = []
        for d in range(2):
            one, two = (b.let(f"{name}{k}", widened(ir.load(x, at + k))[0]) for k in (d, d + 2))
            self.low.append(one if ordered else b.let(f"{name}_low{d}", ir.op("min", two, one)))
            self.high.append(two if ordered else b.let(f"{name}_high{d}", ir.op("max", one, two)))
        extents = [high - low for low, high in zip(self.low, self.high)]
        self.area = b.let(f"{name}_area", extents[0] * extents[1])

    def overlap(self, b: Builder, other: _Box, areas: bool = False) -> ir.Expr:
        """The intersection of two boxes over their union, 0 where there is none; with `areas`, where either has no area."""
        extents = []
        for d in range(2):
            extent = ir.op("min", other.high[d], self.high[d]) - ir.op("max", other.low[d], self.low[d])
            extents.append(ir.op("max", 0, b.let(f"common{d}", extent)))
        common = b.let("common", extents[0] * extents[1])
        union = b.let("whole", self.area + other.area - common)
        zero = ir.lifted(0, common)
        if areas:
            return ir.select((self.area > 0) & (other.area > 0), common / union, zero)
        return ir.select(union <= 0, zero, common / union)


#: The place of a box that a better one suppressed. Where there is no box, it is -1.
_SUPPRESSED = -2


def _suppress(
    b: Builder, attrs: Any, r: ir.Var, p: ir.Var, width: int, end: ir.Expr, used: ir.Expr, limit: ir.Expr, threshold: ir.Expr
) -> None:
    """Mark the places of boxes that overlap a better one of their class, and of those after `limit` boxes."""

    def column(row: ir.Expr, number: int) -> ir.Expr:
        return ir.load(r, row * width + number)

    classes = attrs.id_index >= 0
    kept = b.var("kept", 0)
    with _counted(b, "j", end, kept.ne(limit)) as j, b.when((ir.load(p, j) >= 0) & (column(j, attrs.score_index) > 0)):
        b.assign(kept, kept + 1)
        with b.when((column(j, attrs.id_index) < 0).eq(0)) if classes else nullcontext():
            own = _Box(b, "a", r, j * width + attrs.coord_start)
            with b.loop("k", j + 1, used) as k:
                rival = column(k, attrs.score_index) > 0
                if classes and not attrs.force_suppress:
                    rival = rival & column(k, attrs.id_index).eq(column(j, attrs.id_index))
                with b.when(rival):
                    overlap, least = widened(own.overlap(b, _Box(b, "b", r, k * width + attrs.coord_start)), threshold)
                    with b.when(overlap >= least):
                        b.store(p, _SUPPRESSED, k)
    with b.loop("k", j, end) as k:
        b.store(p, _SUPPRESSED, k)


def _non_max_suppression(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """The best boxes first; one that overlaps a better one too much becomes -1. A box whose score is not positive neither
    suppresses nor is suppressed."""
    data, counts, indices, limit, threshold = (kernel.in_memory(a) for a in args)
    attrs = call.attrs
    batch, n, width = data.shape
    order = places(kernel, _scores(kernel, data, attrs.score_index), 1, False, nans_last=True)
    out = _buffers(kernel, call)
    rows, picked = kernel.buffer(data.shape, data.dtype), kernel.buffer((batch, n), "int32")
    b = Builder()

    def copy(to: ir.Var, row: ir.Expr, source: ir.Var, number: ir.Expr) -> None:
        with b.loop("c", width) as c:
            b.store(to, ir.load(source, number * width + c), row * width + c)

    with b.loop("u", batch, kind=ir.PARALLEL) as u:
        x = b.let("x", ir.address(data, u * (n * width)))
        r = b.let("r", ir.address(rows, u * (n * width), written=True))
        p = b.let("p", ir.address(picked, u * n, written=True))
        count = b.let("count", ir.op("clamp", ir.cast(ir.load(counts, u), ir.INDEX), 0, n))
        sort = b.let("sort", ir.load(threshold, 0) > 0)
        most = b.let("most", ir.select(sort, ir.expr(attrs.top_k if attrs.top_k > 0 else n), ir.expr(n)))
        used = b.var("used", 0)
        with _counted(b, "line", n, used < most) as j:
            i = b.let("i", ir.select(sort, ir.cast(ir.load(order, u * n + j), ir.INDEX), j))
            with b.when(i < count):
                copy(r, used, x, i)
                b.store(p, i, used)
                b.assign(used, used + 1)
        b.fill(p, -1, used, n)
        b.fill(r, -1, used * width, n * width)
        end = b.let("end", ir.select(sort, count, ir.number(0)))
        most = b.let("limit", ir.cast(ir.load(limit, 0), ir.INDEX))
        _suppress(b, attrs, r, p, width, end, used, most, ir.load(threshold, 0))
        with b.loop("j", count) as j, b.when(ir.load(p, j).eq(_SUPPRESSED)):
            b.fill(r, -1, j * width, (j + 1) * width)
        kept = b.var("found", 0)
        if attrs.return_indices:
            to = b.let("to", ir.address(out[0], u * n, written=True))
            with b.loop("j", count) as j, b.when(ir.load(p, j) >= 0):
                index = b.let("index", ir.cast(ir.load(indices, u * n + ir.cast(ir.load(p, j), ir.INDEX)), "int32"))
                with b.when(index >= 0):
                    b.store(to, index, kept)
                    b.assign(kept, kept + 1)
            b.store(out[-1], kept, u)
            b.fill(to, -1, kept, n)
        else:
            to = b.let("to", ir.address(out[0], u * (n * width), written=True))
            with b.loop("j", n) as j, b.when(ir.load(r, j * width) >= 0) if attrs.invalid_to_bottom else nullcontext():
                copy(to, kept, r, j)
                b.assign(kept, kept + 1)
            b.fill(to, -1, kept * width, n * width)
    kernel.stage(body=b.body)
    return _values(out)


def _all_class_non_max_suppression(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """For each batch and class the boxes that remain, best first. Rows after the counted ones are 0."""
    boxes, scores, limit, overlap, least = (kernel.in_memory(a) for a in args)
    batch, classes, n = scores.shape
    order = places(kernel, scores, 2, False, nans_last=True)
    out = _buffers(kernel, call)
    gone = kernel.buffer((n,), "bool")
    onnx = call.attrs.output_format == "onnx"
    b = Builder()
    for buf in out:
        b.fill(buf, 0, buf.size)
    threshold = ir.load(overlap, 0)
    most = ir.cast(ir.load(limit, 0), ir.INDEX)
    kept = b.var("found", 0)
    with b.loop("u", batch) as u:
        if not onnx:
            b.assign(kept, 0)
        x = b.let("x", ir.address(boxes, u * (n * 4)))
        with b.loop("c", classes) as c:
            s = b.let("s", ir.address(scores, (u * classes + c) * n))
            p = b.let("p", ir.address(order, (u * classes + c) * n))
            left = b.var("left", ir.select(ir.load(limit, 0) > 0, most, ir.expr(n)))
            b.fill(gone, (threshold > 0).eq(0), n)
            with _counted(b, "j", n, left.ne(0)) as j:
                i = b.let("i", ir.cast(ir.load(p, j), ir.INDEX))
                score, lowest = widened(ir.load(s, i), ir.load(least, 0))
                with b.when((score > lowest) & ir.load(gone, j).eq(0)):
                    row = (kept,) if onnx else (u, kept)
                    for column, value in enumerate((u, c, i) if onnx else (c, i)):
                        b.store(out[0], value, *row, column)
                    if not onnx:
                        b.store(out[1], ir.load(s, i), u, kept)
                    b.assign(kept, kept + 1)
                    b.assign(left, left - 1)
                    own = _Box(b, "a", x, i * 4)
                    with b.loop("k", j + 1, n) as k:
                        other = b.let("other", ir.cast(ir.load(p, k), ir.INDEX))
                        with b.when(ir.load(s, other) > 0):
                            common, enough = widened(own.overlap(b, _Box(b, "b", x, other * 4)), threshold)
                            with b.when(common >= enough):
                                b.store(gone, 1, k)
        b.store(out[-1], kept, 0 if onnx else u)
    kernel.stage(body=b.body)
    return _values(out)


def _regular_non_max_suppression(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """As TFLite's detection: class by class, then the best of all. Boxes are (top, left, bottom, right)."""
    boxes, scores = (kernel.in_memory(a) for a in args)
    attrs = call.attrs
    batch, n, columns = scores.shape
    most, offset = attrs.max_detections, columns - attrs.num_classes
    order = places(kernel, scores, 1, False, nans_last=True)
    out_boxes, out_classes, out_scores, counts = out = _buffers(kernel, call)
    gone, picked = kernel.buffer((n,), "bool"), kernel.buffer((most + 1,), "int32")
    b = Builder()
    for buf in out:
        b.fill(buf, 0, buf.size)
    with b.loop("u", batch) as u:
        best = b.let("best", ir.address(out_scores, u * most, written=True))
        kind = b.let("kind", ir.address(out_classes, u * most, written=True))
        x = b.let("x", ir.address(boxes, u * (n * 4)))
        kept = b.var("found", 0)
        with b.loop("c", attrs.num_classes) as c:
            p = b.let("p", ir.address(order, (u * columns + c + offset) * n))
            taken = b.var("taken", 0)
            b.fill(gone, 0, n)
            with _counted(b, "j", n, taken < attrs.max_detections_per_class) as j:
                i = b.let("i", ir.cast(ir.load(p, j), ir.INDEX))
                score = b.let("score", ir.cast(ir.load(scores, u, i, c + offset), "float32"))
                with b.when((score >= attrs.score_threshold) & ir.load(gone, j).eq(0)):
                    b.assign(taken, taken + 1)
                    own = _Box(b, "a", x, i * 4, ordered=True)
                    with b.loop("k", j + 1, n) as k:
                        other = _Box(b, "b", x, ir.cast(ir.load(p, k), ir.INDEX) * 4, ordered=True)
                        common, enough = widened(own.overlap(b, other, areas=True), ir.Const(attrs.iou_threshold, "float32"))
                        with b.when(common > enough):
                            b.store(gone, 1, k)
                    # A new one goes after those that are as good: the list stays in order.
                    at = b.var("place", kept)
                    with b.repeat(ir.select(at > 0, ir.load(best, at - 1) < score, ir.Const(False, "bool"))):
                        b.assign(at, at - 1)
                    with b.when(at < most):
                        b.assign(kept, ir.minimum(kept + 1, most))
                        with b.loop("back", kept - 1 - at) as back:
                            k = b.let("k", kept - 1 - back)
                            for line in (best, kind, picked):
                                b.store(line, ir.load(line, k - 1), k)
                        for line, value in ((best, score), (kind, c), (picked, i)):
                            b.store(line, value, at)
        with b.loop("k", kept) as k, b.loop("d", 4) as d:
            b.store(out_boxes, ir.load(x, ir.cast(ir.load(picked, k), ir.INDEX) * 4 + d), u, k, d)
        b.store(counts, kept, u)
    kernel.stage(body=b.body)
    return _values(out)


def _regions(kernel: Kernel, attrs: Any, scores: Buf, moves: Buf, info: Buf) -> tuple[Buf, Buf]:
    """All regions that a network may propose, and their scores."""
    table = anchors_of(attrs)
    batch, _, h, w = scores.shape
    each = len(table)
    n = h * w * each
    anchors = kernel.constant(table, "float32")
    dtype = wide(scores, moves, info)
    rows, best = kernel.buffer((batch, n, 4), dtype), kernel.buffer((batch, n), dtype)
    stride = float(attrs.feature_stride)
    b = Builder()
    with b.loop("u", batch, kind=ir.PARALLEL) as u:
        scale, size = widened(ir.load(info, u * 3 + 2), ir.Const(float(attrs.rpn_min_size), "float32"))
        least = b.let("least", ir.cast(scale * size, dtype))
        # Of a region, x goes first. One that is too small in either direction is wrong.
        sides = [b.let(name, ir.cast(ir.load(info, u * 3 + k), "float32")) for name, k in (("columns", 1), ("rows", 0))]
        ends = [b.let(f"end{d}", ir.cast(side / stride, ir.INDEX)) for d, side in enumerate(sides)]
        with b.loop("y", h) as y, b.loop("x", w) as x, b.loop("k", each) as k:
            corners, small = [], []
            for d, cell in enumerate((x, y)):
                shift = b.let(f"shift{d}", ir.cast(cell, "float32") * stride)
                low, high = (b.let(f"{name}{d}", ir.load(anchors, k, at) + shift) for name, at in (("low", d), ("high", d + 2)))
                one, two = (ir.cast(ir.load(moves, u, k * 4 + at, y, x), dtype) for at in (d, d + 2))
                if attrs.iou_loss:
                    region = ir.cast(low, dtype) + one, ir.cast(high, dtype) + two
                else:
                    extent = high - low + 1
                    middle = low + 0.5 * (extent - 1)
                    centre = b.let(f"centre{d}", one * ir.cast(extent, dtype) + ir.cast(middle, dtype))
                    power = ir.cast(ir.op("exp", ir.cast(two, "float64")), dtype)
                    half = b.let(f"half{d}", 0.5 * (power * ir.cast(extent, dtype) - 1))
                    region = centre - half, centre + half
                limit = ir.cast(sides[d] - 1, dtype)
                held = [ir.op("min", limit, b.let(f"{name}{d}", at)) for name, at in zip("ab", region)]
                held = [b.let(f"{name}{d}", ir.op("max", 0, at)) for name, at in zip("pq", held)]
                corners.append(held)
                small.append(held[1] - held[0] + 1 < least)
            wrong, i = b.let("small", small[0] | small[1]), (y * w + x) * each + k
            for d, (start, stop) in enumerate(corners):
                b.store(rows, ir.select(wrong, start - least / 2, start), u, i, d)
                b.store(rows, ir.select(wrong, stop + least / 2, stop), u, i, d + 2)
            score = ir.cast(ir.load(scores, u, k + each, y, x), dtype)
            b.store(best, ir.select(wrong | (y >= ends[1]) | (x >= ends[0]), ir.Const(-1, dtype), score), u, i)
    kernel.stage(body=b.body)
    return rows, best


def _proposal(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """The regions that remain after suppression, repeated until there are as many as asked for."""
    attrs = call.attrs
    rows, best = _regions(kernel, attrs, *(kernel.in_memory(a) for a in args))
    (batch, n), wanted, dtype = best.shape, attrs.rpn_post_nms_top_n, rows.dtype
    order = places(kernel, best, 1, False, nans_last=True)
    gone, picked = kernel.buffer((batch, n), "bool"), kernel.buffer((batch, wanted), "int32")
    (out,) = _buffers(kernel, call)
    top = min(n, attrs.rpn_pre_nms_top_n) if attrs.rpn_pre_nms_top_n > 0 else n
    b = Builder()

    def area(box: list[ir.Expr]) -> ir.Expr:
        return (box[2] - box[0] + 1) * (box[3] - box[1] + 1)

    def region(name: str, number: ir.Expr) -> list[ir.Expr]:
        at = b.let(name, ir.cast(ir.load(p, number), ir.INDEX) * 4)
        return [b.let(f"{name}{k}", ir.load(x, at + k)) for k in range(4)]

    with b.loop("u", batch, kind=ir.PARALLEL) as u:
        p, x = b.let("p", ir.address(order, u * n)), b.let("x", ir.address(rows, u * (n * 4)))
        lost = b.let("gone", ir.address(gone, u * n, written=True))
        chosen = b.let("picked", ir.address(picked, u * wanted, written=True))
        count = b.var("found", 0)
        b.fill(lost, 0, n)
        with _counted(b, "j", top, count < wanted) as j, b.when(ir.load(lost, j).eq(0)):
            b.store(chosen, ir.load(p, j), count)
            b.assign(count, count + 1)
            one = region("a", j)
            own = b.let("own", area(one))
            with b.loop("k", j + 1, top) as k:
                two = region("b", k)
                extents = []
                for d in range(2):
                    ends = [ir.cast(e, "float64") for e in (one[d + 2], two[d + 2], one[d], two[d])]
                    extent = ir.op("fmin", *ends[:2]) - ir.op("fmax", *ends[2:]) + 1
                    extents.append(ir.op("max", 0, b.let(f"common{d}", ir.cast(extent, dtype))))
                common = b.let("common", extents[0] * extents[1])
                share, least = widened(common / (own + area(two) - common), ir.Const(attrs.threshold, "float32"))
                with b.when(share > least):
                    b.store(lost, 1, k)
        with b.loop("i", wanted) as i:
            row = u * wanted + i
            b.store(out, u, row, 0)
            with b.loop("c", 4) as c:
                at = ir.cast(ir.load(chosen, i % count), ir.INDEX) * 4 + c
                b.store(out, ir.select(count.ne(0), ir.load(x, at), ir.Const(0, dtype)), row, c + 1)
    kernel.stage(body=b.body)
    return _values([out])


#: Written by stages of their own: never fused.
RECIPES: dict[str, Any] = {
    "vision.non_max_suppression": _non_max_suppression,
    "vision.all_class_non_max_suppression": _all_class_non_max_suppression,
    "vision.regular_non_max_suppression": _regular_non_max_suppression,
    "vision.proposal": _proposal,
}
