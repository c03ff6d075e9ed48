"""Suppression of boxes that overlap better ones, and the regions that a network proposes."""
from __future__ import annotations

from typing import Any

from relaylang.backends.cpu.kernel import BufTensor, Kernel, Value
from relaylang.backends.cpu.lower.algorithm import places
from relaylang.backends.cpu.lower.common import result_types
from relaylang.interpreter.kernels.vision import anchors_of
from relaylang.ir import Call
from relaylang.kernels.dtypes import CTYPES, literal
from relaylang.kernels.nest import Buf


def _buffers(kernel: Kernel, call: Call) -> list[Buf]:
    return [kernel.buffer(shape, dtype) for shape, dtype in result_types(call)]


def _values(bufs: list[Buf]) -> Value:
    return [BufTensor(b) for b in bufs] if len(bufs) > 1 else BufTensor(bufs[0])


def _scores(kernel: Kernel, data: Buf, column: int) -> Buf:
    """A column of rows (batch, rows, columns)."""
    batch, rows, columns = data.shape
    out = kernel.buffer((batch, rows), data.dtype)
    kernel.stage().put(f"for (long i = 0; i < {batch * rows}; i++) {out.name}[i] = {data.name}[i * {columns} + {column}];")
    return out


def _non_max_suppression(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """The best boxes first; one that overlaps a better one too much becomes -1. A box whose score is not positive neither
    suppresses nor is suppressed."""
    data, counts, indices, limit, threshold = (kernel.in_memory(a) for a in args)
    attrs = call.attrs
    batch, n, width = data.shape
    order = places(kernel, _scores(kernel, data, attrs.score_index), 1, False, nans_last=True)
    out = _buffers(kernel, call)
    rows, picked = kernel.buffer(data.shape, data.dtype), kernel.buffer((batch, n), "int32")
    t, top = CTYPES[data.dtype], attrs.top_k if attrs.top_k > 0 else n
    classes = attrs.id_index >= 0
    rival = f"r[k * {width} + {attrs.score_index}] > 0"
    if classes and not attrs.force_suppress:
        rival += f" && r[k * {width} + {attrs.id_index}] == r[j * {width} + {attrs.id_index}]"
    corner = attrs.coord_start
    overlap = f"r_overlap(r + j * {width} + {corner}, r + k * {width} + {corner}) >= {threshold.name}[0]"
    if attrs.return_indices:
        give = f"""long n = 0;
  for (long j = 0; j < count; j++) {{
    if (p[j] < 0) continue;
    const int32_t at = {indices.name}[u * {n} + p[j]];
    if (at >= 0) {out[0].name}[u * {n} + n++] = at;
  }}
  {out[-1].name}[u] = n;
  for (; n < {n}; n++) {out[0].name}[u * {n} + n] = -1;"""
    else:
        keep = f"r[j * {width}] >= 0" if attrs.invalid_to_bottom else "1"
        give = f"""{t}* to = {out[0].name} + u * {n * width};
  long n = 0;
  for (long j = 0; j < {n}; j++) if ({keep}) memcpy(to + n++ * {width}, r + j * {width}, sizeof(*r) * {width});
  for (n *= {width}; n < {n * width}; n++) to[n] = -1;"""
    kernel.stage(batch).put(f"""for (long u = lo; u < hi; u++) {{
  const {t}* x = {data.name} + u * {n * width};
  {t}* r = {rows.name} + u * {n * width};
  int32_t* p = {picked.name} + u * {n};
  const long count = r_clamp_index({counts.name}[u], 0, {n}), limit = {limit.name}[0];
  const int sorted = {threshold.name}[0] > 0;
  long used = 0;
  for (long j = 0; j < {n} && (!sorted || used < {top}); j++) {{
    const long i = sorted ? {order.name}[u * {n} + j] : j;
    if (i >= count) continue;
    memcpy(r + used * {width}, x + i * {width}, sizeof(*r) * {width});
    p[used++] = i;
  }}
  for (long j = used; j < {n}; j++) p[j] = -1;
  for (long j = used * {width}; j < {n * width}; j++) r[j] = -1;
  long kept = 0;
  for (long j = 0; sorted && j < count; j++) {{
    if (kept == limit) {{ for (; j < count; j++) p[j] = -2; break; }}
    if (p[j] < 0 || !(r[j * {width} + {attrs.score_index}] > 0)) continue;
    kept++;
    if ({f'r[j * {width} + {attrs.id_index}] < 0' if classes else '0'}) continue;
    for (long k = j + 1; k < used; k++) if ({rival} && {overlap}) p[k] = -2;
  }}
  for (long j = 0; j < count; j++) if (p[j] == -2) for (long c = 0; c < {width}; c++) r[j * {width} + c] = -1;
  {give}
}}""")
    return _values(out)


def _all_class_non_max_suppression(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """For each batch and class the boxes that remain, best first. Rows behind the counted ones are 0."""
    boxes, scores, limit, overlap, least = (kernel.in_memory(a) for a in args)
    batch, classes, n = scores.shape
    order = places(kernel, scores, 2, False, nans_last=True)
    out = _buffers(kernel, call)
    gone = kernel.buffer((n,), "bool")
    onnx = call.attrs.output_format == "onnx"
    stage = kernel.stage()
    for buf in out:
        stage.put(f"memset({buf.name}, 0, sizeof(*{buf.name}) * {max(1, buf.size)});")
    rows = classes * n
    if onnx:
        give = f"int64_t* to = {out[0].name} + found++ * 3; to[0] = u; to[1] = c; to[2] = p[j];"
    else:
        give = (f"int64_t* to = {out[0].name} + (u * {rows} + found) * 2; to[0] = c; to[1] = p[j];"
                f" {out[1].name}[u * {rows} + found++] = s[p[j]];")  # fmt: skip
    stage.put(f"""long found = 0;
for (long u = 0; u < {batch}; u++) {{
  {'' if onnx else 'found = 0;'}
  for (long c = 0; c < {classes}; c++) {{
    const {CTYPES[scores.dtype]}* s = {scores.name} + (u * {classes} + c) * {n};
    const {CTYPES[boxes.dtype]}* x = {boxes.name} + u * {n * 4};
    const int32_t* p = {order.name} + (u * {classes} + c) * {n};
    long most = {limit.name}[0] > 0 ? (long){limit.name}[0] : {n};
    memset({gone.name}, !({overlap.name}[0] > 0), {max(1, n)});
    for (long j = 0; j < {n} && most; j++) {{
      if (!(s[p[j]] > {least.name}[0]) || {gone.name}[j]) continue;
      {give}
      most--;
      for (long k = j + 1; k < {n}; k++)
        if (s[p[k]] > 0 && r_overlap(x + p[j] * 4, x + p[k] * 4) >= {overlap.name}[0]) {gone.name}[k] = 1;
    }}
  }}
  {out[-1].name}[{0 if onnx else 'u'}] = found;
}}""")
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
    stage = kernel.stage()
    for buf in out:
        stage.put(f"memset({buf.name}, 0, sizeof(*{buf.name}) * {max(1, buf.size)});")
    # A new one goes behind those that are as good: the list stays in order.
    stage.put(f"""for (long u = 0; u < {batch}; u++) {{
  float* best = {out_scores.name} + u * {most};
  float* kind = {out_classes.name} + u * {most};
  long found = 0;
  for (long c = 0; c < {attrs.num_classes}; c++) {{
    const {CTYPES[scores.dtype]}* s = {scores.name} + u * {n * columns} + c + {offset};
    const {CTYPES[boxes.dtype]}* x = {boxes.name} + u * {n * 4};
    const int32_t* p = {order.name} + (u * {columns} + c + {offset}) * {n};
    long taken = 0;
    memset({gone.name}, 0, {max(1, n)});
    for (long j = 0; j < {n} && taken < {attrs.max_detections_per_class}; j++) {{
      const float score = s[p[j] * {columns}];
      if (!(score >= {literal(attrs.score_threshold, "float32")}) || {gone.name}[j]) continue;
      taken++;
      for (long k = j + 1; k < {n}; k++)
        if (r_plain_overlap(x + p[j] * 4, x + p[k] * 4) > {literal(attrs.iou_threshold, "float32")}) {gone.name}[k] = 1;
      long at = found;
      while (at && best[at - 1] < score) at--;
      if (at >= {most}) continue;
      found += found < {most};
      for (long k = found - 1; k > at; k--) {{
        best[k] = best[k - 1]; kind[k] = kind[k - 1]; {picked.name}[k] = {picked.name}[k - 1];
      }}
      best[at] = score; kind[at] = c; {picked.name}[at] = p[j];
    }}
  }}
  for (long k = 0; k < found; k++) for (int d = 0; d < 4; d++)
    {out_boxes.name}[(u * {most} + k) * 4 + d] = {boxes.name}[(u * {n} + {picked.name}[k]) * 4 + d];
  {counts.name}[u] = found;
}}""")
    return _values(out)


def _proposal(kernel: Kernel, call: Call, args: list[Any]) -> Value:
    """The regions that remain after suppression, repeated until there are as many as asked for."""
    scores, moves, info = (kernel.in_memory(a) for a in args)
    attrs = call.attrs
    table = anchors_of(attrs)
    batch, _, h, w = scores.shape
    each, wanted = len(table), attrs.rpn_post_nms_top_n
    n = h * w * each
    anchors = kernel.constant(table, "float32")
    dtype = "float64" if any(b.dtype == "float64" for b in (scores, moves, info)) else "float32"
    t = CTYPES[dtype]
    rows, best = kernel.buffer((batch, n, 4), dtype), kernel.buffer((batch, n), dtype)
    stride, least = literal(float(attrs.feature_stride), "float32"), literal(float(attrs.rpn_min_size), "float32")
    if attrs.iou_loss:
        ends = f"const {t} a = low + m0, b = high + m1;"
    else:
        power = "expf" if dtype == "float32" else "exp"
        ends = f"""const float size = high - low + 1;
      const {t} centre = m0 * size + (low + 0.5f * (size - 1)), half = ({t})0.5 * ({power}(m1) * size - 1);
      const {t} a = centre - half, b = centre + half;"""
    # Of a row, x goes first: a region that is too small in either direction is one that is wrong.
    kernel.stage(batch).put(f"""for (long u = lo; u < hi; u++) {{
  const float rows = {info.name}[u * 3], columns = {info.name}[u * 3 + 1];
  const {t} least = {info.name}[u * 3 + 2] * {least};
  const long end[2] = {{columns / {stride}, rows / {stride}}};
  for (long y = 0; y < {h}; y++) for (long x = 0; x < {w}; x++) for (long k = 0; k < {each}; k++) {{
    const long i = (y * {w} + x) * {each} + k;
    {t}* r = {rows.name} + (u * {n} + i) * 4;
    int small = 0;
    for (int d = 0; d < 2; d++) {{
      const float* a0 = {anchors.name} + k * 4 + d;
      const float shift = (d ? y : x) * {stride}, low = a0[0] + shift, high = a0[2] + shift;
      const {t} m0 = {moves.name}[((u * {each} + k) * 4 + d) * {h * w} + y * {w} + x];
      const {t} m1 = {moves.name}[((u * {each} + k) * 4 + d + 2) * {h * w} + y * {w} + x];
      {ends}
      const float limit = (d ? rows : columns) - 1;
      const {t} c = a < limit ? a : limit, e = b < limit ? b : limit;
      r[d] = c > 0 ? c : 0;
      r[d + 2] = e > 0 ? e : 0;
      small |= r[d + 2] - r[d] + 1 < least;
    }}
    if (small) for (int d = 0; d < 2; d++) {{ r[d] -= least / 2; r[d + 2] += least / 2; }}
    const {t} score = {scores.name}[((u * {2 * each} + {each} + k) * {h} + y) * {w} + x];
    {best.name}[u * {n} + i] = small || y >= end[1] || x >= end[0] ? -1 : score;
  }}
}}""")
    order = places(kernel, best, 1, False, nans_last=True)
    gone, picked = kernel.buffer((batch, n), "bool"), kernel.buffer((batch, wanted), "int32")
    (out,) = _buffers(kernel, call)
    top = min(n, attrs.rpn_pre_nms_top_n) if attrs.rpn_pre_nms_top_n > 0 else n
    kernel.stage(batch).put(f"""for (long u = lo; u < hi; u++) {{
  const int32_t* p = {order.name} + u * {n};
  uint8_t* gone = {gone.name} + u * {n};
  int32_t* picked = {picked.name} + u * {wanted};
  const {t}* x = {rows.name} + u * {n * 4};
  long found = 0;
  memset(gone, 0, {max(1, n)});
  for (long j = 0; j < {top} && found < {wanted}; j++) {{
    if (gone[j]) continue;
    picked[found++] = p[j];
    const {t}* a = x + p[j] * 4;
    const {t} own = (a[2] - a[0] + 1) * (a[3] - a[1] + 1);
    for (long k = j + 1; k < {top}; k++) {{
      const {t}* b = x + p[k] * 4;
      const {t} w = fmin(a[2], b[2]) - fmax(a[0], b[0]) + 1, h = fmin(a[3], b[3]) - fmax(a[1], b[1]) + 1;
      const {t} common = (w > 0 ? w : 0) * (h > 0 ? h : 0);
      if (common / (own + (b[2] - b[0] + 1) * (b[3] - b[1] + 1) - common) > {literal(attrs.threshold, "float32")}) gone[k] = 1;
    }}
  }}
  for (long i = 0; i < {wanted}; i++) {{
    {CTYPES[out.dtype]}* to = {out.name} + (u * {wanted} + i) * 5;
    to[0] = u;
    for (int d = 0; d < 4; d++) to[d + 1] = found ? x[picked[i % found] * 4 + d] : 0;
  }}
}}""")
    return _values([out])


#: Written by stages of their own: never fused.
RECIPES: dict[str, Any] = {
    "vision.non_max_suppression": _non_max_suppression,
    "vision.all_class_non_max_suppression": _all_class_non_max_suppression,
    "vision.regular_non_max_suppression": _regular_non_max_suppression,
    "vision.proposal": _proposal,
}
