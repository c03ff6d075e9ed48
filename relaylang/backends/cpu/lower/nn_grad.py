"""Gradients of pools and of convolutions' weights. Data come as (n, c, h, w): `blocks.plain` brings other layouts there."""
from __future__ import annotations

from typing import Any

from relaylang.backends.cpu.kernel import Kernel
from relaylang.backends.cpu.lower.geometry import pads_of, spread
from relaylang.backends.cpu.lower.nn_pool import lowest
from relaylang.backends.cpu.lower.sampling import alone
from relaylang.ir import Call
from relaylang.kernels.dtypes import CTYPES, is_float, literal
from relaylang.kernels.nest import Buf


def _pool(greatest: bool) -> Any:
    """What each element gets of its windows' gradients: all where it is the first of the greatest, else its part."""

    def write(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
        grad, data = bufs
        attrs = call.attrs
        (batch, channels, rows, columns), (h, w) = grad.shape, data.shape[2:]
        (kh, kw), (sh, sw) = spread(attrs.pool_size, 2), spread(attrs.strides, 2)
        dh, dw = spread(getattr(attrs, "dilation", ()) or 1, 2)  # a builder of TVM gives none
        (top, bottom), (left, right) = pads_of(attrs.padding, 2)
        t = CTYPES[out.dtype]
        inside = f"y >= 0 && y < {h} && x >= 0 && x < {w}"
        taps = f"for (long a = 0, y = i * {sh} - {top}; a < {kh}; a++, y += {dh})" \
               f" for (long b = 0, x = j * {sw} - {left}; b < {kw}; b++, x += {dw})"  # fmt: skip
        if greatest:
            # Gradients on the padding are dropped.
            body = f"""long best = -1;
      {t} top = {literal(lowest(data.dtype, out.dtype), out.dtype)};
      int first = 1;
      {taps} {{
        const {t} v = {inside} ? ({t})from[y * {w} + x] : {literal(lowest(data.dtype, out.dtype), out.dtype)};
        if (first || v > top || (v != v && top == top)) {{ best = {inside} ? y * {w} + x : -1; top = v; }}
        first = 0;
      }}
      if (best >= 0) to[best] += g;"""
        else:
            counted = inside
            if attrs.count_include_pad:
                counted = f"y >= {-top} && y < {h + bottom} && x >= {-left} && x < {w + right}"
            body = f"""long n = 0;
      {taps} n += {counted};
      {taps} if ({inside}) to[y * {w} + x] += g / (n > 1 ? n : 1);"""
        kernel.stage(batch * channels).put(f"""for (long u = lo; u < hi; u++) {{
  const {CTYPES[data.dtype]}* from = {data.name} + u * {h * w};
  {t}* to = {out.name} + u * {h * w};
  for (long i = 0; i < {h * w}; i++) to[i] = 0;
  for (long i = 0; i < {rows}; i++) for (long j = 0; j < {columns}; j++) {{
      const {t} g = {grad.name}[(u * {rows} + i) * {columns} + j];
      {body}
  }}
}}""")

    return alone(write, sums=True)


def _backward_weight(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    """The sum of the data under a weight times the gradient."""
    grad, data = bufs
    attrs = call.attrs
    (batch, outputs, rows, columns), (_, channels, h, w) = grad.shape, data.shape
    _, depth, kh, kw = out.shape
    (sh, sw), (dh, dw) = spread(attrs.strides, 2), spread(attrs.dilation, 2)
    (top, _), (left, _) = pads_of(attrs.padding, 2)
    each = max(outputs // attrs.groups, 1)
    t = "double" if is_float(out.dtype) else "int64_t"
    kernel.stage(outputs * depth).put(f"""for (long u = lo; u < hi; u++) {{
  const long o = u / {max(depth, 1)}, c = o / {each} * {depth} + u % {max(depth, 1)};
  for (long a = 0; a < {kh}; a++) for (long b = 0; b < {kw}; b++) {{
    {t} sum = 0;
    for (long n = 0; n < {batch}; n++) for (long i = 0; i < {rows}; i++) for (long j = 0; j < {columns}; j++) {{
      const long y = i * {sh} + a * {dh} - {top}, x = j * {sw} + b * {dw} - {left};
      if (y < 0 || y >= {h} || x < 0 || x >= {w}) continue;
      sum += ({t}){grad.name}[((n * {outputs} + o) * {rows} + i) * {columns} + j]
        * {data.name}[((n * {channels} + c) * {h} + y) * {w} + x];
    }}
    {out.name}[(u * {kh} + a) * {kw} + b] = sum;
  }}
}}""")


#: Written by stages of their own: never fused.
ANCHORS: dict[str, Any] = {
    "nn.max_pool2d_grad": _pool(True),
    "nn.avg_pool2d_grad": _pool(False),
    "nn.conv2d_backward_weight": alone(_backward_weight, sums=True),
}
