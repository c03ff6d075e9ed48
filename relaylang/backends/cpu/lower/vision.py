"""Object detection: anchors, and the boxes that count."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.backends.cpu.kernel import BufTensor, Kernel, Recipe, Value
from relaylang.backends.cpu.lower.common import clamp, result_type, result_types
from relaylang.ir import Call
from relaylang.kernels.dtypes import CTYPES, literal
from relaylang.kernels.nest import Index, Nest, Scalar


def _multibox_prior(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """Boxes around each cell's centre: one of every size, and one of the first size in every other ratio."""
    attrs = call.attrs
    f = np.float32
    height, width = args[0].shape[2:]
    sizes = np.asarray(attrs.sizes, f)
    ratios = np.sqrt(np.asarray(attrs.ratios[1:], f))
    across = f(height) / f(width) / f(2)
    half_x = np.concatenate([sizes * across, sizes[0] * across * ratios])
    half_y = np.concatenate([sizes / f(2), sizes[0] / ratios / f(2)])
    shape, dtype = result_type(call)
    reach = kernel.constant(np.stack([-half_x, -half_y, half_x, half_y], axis=-1), "float32")
    centres = []
    for step, offset, n in zip(attrs.steps, attrs.offsets, (height, width)):
        step = f(step) if step > 0 else f(1 / n)
        centres.append(kernel.constant((np.arange(n).astype(f) + f(offset)) * step, "float32"))

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        row, column, kind = nest.unravel(index[1], (height, width, len(half_x)))
        y, x = (nest.load(b, i) for b, i in zip(centres, (row, column)))
        centre = (nest.as_scalar(index[2]) & 1).ne(0).select(y, x)
        value = centre + nest.load(reach, nest.offset([kind, index[2]], reach.shape))
        if attrs.clip:
            value = clamp(value, 0, 1)
        return value.cast(dtype)

    return Recipe(shape, dtype, at)


def _get_valid_counts(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """The rows whose score is above the threshold first, in their order, and -1 behind them."""
    data, threshold = (kernel.in_memory(a) for a in args)
    attrs = call.attrs
    counts, rows, indices = out = [kernel.buffer(shape, dtype) for shape, dtype in result_types(call)]
    batch, anchors, width = data.shape
    test = f"row[{attrs.score_index}] > {threshold.name}[0]"
    if attrs.id_index >= 0:
        test += f" && row[{attrs.id_index}] >= 0"
    kernel.stage(batch).put(f"""for (long u = lo; u < hi; u++) {{
  long n = 0;
  for (long i = 0; i < {anchors}; i++) {{
    const {CTYPES[data.dtype]}* row = {data.name} + (u * {anchors} + i) * {width};
    if (!({test})) continue;
    memcpy({rows.name} + (u * {anchors} + n) * {width}, row, sizeof(*row) * {width});
    {indices.name}[u * {anchors} + n++] = i;
  }}
  {counts.name}[u] = n;
  for (long i = n; i < {anchors}; i++) {indices.name}[u * {anchors} + i] = -1;
  for (long i = n * {width}; i < {anchors * width}; i++) {rows.name}[u * {anchors * width} + i] = -1;
}}""")
    return [BufTensor(b) for b in out]


def _multibox_transform_loc(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """The best class of each anchor, with its box moved. Background is left out. The remaining rows are -1."""
    probability, location, anchor = (kernel.in_memory(a) for a in args)
    attrs = call.attrs
    rows, counts = out = [kernel.buffer(shape, dtype) for shape, dtype in result_types(call)]
    batch, classes, anchors = probability.shape
    first = 0 if attrs.keep_background else 1
    dtype = "float64" if location.dtype == "float64" else "float32"
    t = CTYPES[dtype]
    moved = [f"m[{n}] * {literal(v, dtype)}" for n, v in enumerate(attrs.variances)]
    one = "v = v < 0 ? 0 : v > 1 ? 1 : v;" if attrs.clip else ""
    kernel.stage(batch).put(f"""for (long u = lo; u < hi; u++) {{
  long n = 0;
  {CTYPES[rows.dtype]}* to = {rows.name} + u * {anchors * 6};
  for (long i = 0; i < {anchors}; i++) {{
    const {CTYPES[probability.dtype]}* p = {probability.name} + u * {classes * anchors} + i;
    long best = 0;
    {t} score = -1;
    for (long c = {first}; c < {classes}; c++) if (p[c * {anchors}] > score) {{ score = p[c * {anchors}]; best = c; }}
    if (score < {literal(attrs.threshold, dtype)}) best = 0;
    if ({'0' if attrs.keep_background else 'best == 0'}) continue;
    const {CTYPES[location.dtype]}* m = {location.name} + (u * {anchors} + i) * 4;
    const {CTYPES[anchor.dtype]}* a = {anchor.name} + i * 4;
    const {t} wide = a[2] - a[0], high = a[3] - a[1];
    const {t} x = {moved[0]} * wide + (a[0] + a[2]) / ({t})2, y = {moved[1]} * high + (a[1] + a[3]) / ({t})2;
    const {t} w = exp({moved[2]}) * wide / 2, h = exp({moved[3]}) * high / 2;
    const {t} box[4] = {{x - w, y - h, x + w, y + h}};
    to[n * 6] = best - {first};
    to[n * 6 + 1] = score;
    for (int k = 0; k < 4; k++) {{ {t} v = box[k]; {one} to[n * 6 + 2 + k] = v; }}
    n++;
  }}
  {counts.name}[u] = n;
  for (long i = n * 6; i < {anchors * 6}; i++) to[i] = -1;
}}""")
    return [BufTensor(b) for b in out]


RECIPES: dict[str, Any] = {"vision.multibox_prior": _multibox_prior}
#: Written by stages of their own: never fused.
APART: dict[str, Any] = {
    "vision.get_valid_counts": _get_valid_counts,
    "vision.multibox_transform_loc": _multibox_transform_loc,
}
