"""Pixels at places that the program computes: crops, grids, regions of interest, deformed windows.

Data come as (n, c, h, w) or (n, c, d, h, w): `blocks.plain` brings other layouts there. The interpreter refuses an
index of an image that does not exist. Here it stands for the nearest image.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from relaylang.backends.cpu.kernel import Kernel, Sink, unsupported
from relaylang.backends.cpu.lower.geometry import pads_of, spread
from relaylang.backends.cpu.lower.nn_dense import converted
from relaylang.backends.cpu.lower.reduce import combined_text, start_text
from relaylang.backends.cpu.lower.scatter import pass_on, target_of
from relaylang.ir import Call
from relaylang.kernels.dtypes import CTYPES, is_float, literal
from relaylang.kernels.nest import Buf

Writes = Callable[[Kernel, Call, list[Buf], Buf], None]


def wide(*bufs: Buf) -> str:
    """The type in which floats, and the integers among them, are computed."""
    return "float64" if any(b.dtype == "float64" for b in bufs) else "float32"


def alone(write: Writes, sums: bool = False) -> Any:
    """A lowering that writes the whole result in a wide type. With `sums`, products of integers are summed in
    integers."""

    def lower(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
        bufs = [kernel.in_memory(a) for a in args]
        dtype = wide(*bufs) if not sums or is_float(sink.anchor.dtype) else sink.anchor.dtype
        out = sink.direct if sink.direct is not None and sink.anchor.dtype == dtype else kernel.buffer(sink.anchor.shape, dtype)
        write(kernel, call, bufs, out)
        pass_on(kernel, sink, out)

    return lower


def _image(number: str, data: Buf) -> str:
    return f"r_clamp_index((long)({number}), 0, {max(data.shape[0] - 1, 0)})"


def _crop_and_resize(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    """Each box (top, left, bottom, right, from 0 to 1): columns are mixed first, then rows."""
    data, boxes, numbers = bufs
    attrs = call.attrs
    if attrs.method not in ("bilinear", "nearest_neighbor"):
        raise unsupported(f"{call.op.name} by {attrs.method} cannot be compiled", call)  # type: ignore[attr-defined]
    linear = attrs.method == "bilinear"
    (_, channels, *space), size = data.shape, [int(n) for n in attrs.crop_size]
    t = CTYPES[out.dtype]
    stage = kernel.stage(boxes.shape[0])
    stage.put(f"for (long u = lo; u < hi; u++) {{\n  const long n = {_image(f'{numbers.name}[u]', data)};\n"
              f"  const {CTYPES[data.dtype]}* x = {data.name} + n * {math.prod(data.shape[1:])};")  # fmt: skip
    for d, (old, new) in enumerate(zip(space, size)):
        begin, end = (f"({t}){boxes.name}[u * 4 + {n}]" for n in (d, d + 2))
        step = f"({old - 1} * ({end} - {begin}) / {new - 1})" if new > 1 else "0"
        place = f"{begin} * {old - 1} + {step} * i{d}" if new > 1 else "0"
        stage.put(f"  for (long i{d} = 0; i{d} < {new}; i{d}++) {{\n"
                  f"    const {t} at{d} = {place}, p{d} = at{d} == at{d} ? at{d} : 0;\n"
                  f"    const {t} low{d} = {f'floor(p{d})' if linear else f'round(p{d})'}, s{d} = p{d} - low{d};\n"
                  f"    const {t} last{d} = {max(old - 1, 0)};\n"
                  f"    const long a{d} = low{d} < 0 ? 0 : low{d} > last{d} ? last{d} : low{d};\n"
                  f"    const long b{d} = low{d} + 1 < 0 ? 0 : low{d} + 1 > last{d} ? last{d} : low{d} + 1;")  # fmt: skip
    h, w = space
    if linear:
        rows = [f"(y[{a}0 * {w} + a1] * (1 - s1) + y[{a}0 * {w} + b1] * s1)" for a in "ab"]
        value = f"{rows[0]} * (1 - s0) + {rows[1]} * s0"
    else:
        value = f"y[a0 * {w} + a1]"
    stage.put(f"    const int beyond = at0 < 0 || at0 > {h - 1} || at1 < 0 || at1 > {w - 1};\n"
              f"    for (long c = 0; c < {channels}; c++) {{\n"
              f"      const {CTYPES[data.dtype]}* y = x + c * {h * w};\n"
              f"      {out.name}[((u * {channels} + c) * {size[0]} + i0) * {size[1]} + i1] = "
              f"beyond ? {literal(attrs.extrapolation_value, out.dtype)} : {value};\n    }}\n  }}\n  }}\n}}")  # fmt: skip


def _grid_sample(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    """The pixels around a place, by axis, with the share that each of them has."""
    data, grid = bufs
    attrs = call.attrs
    count = len(data.shape) - 2
    around = {"nearest": 1, "bilinear": 2, "bicubic": 4}[attrs.method]
    channels, space = data.shape[1], data.shape[2:]
    places, pixels = math.prod(out.shape[2:]), math.prod(space)
    t = CTYPES[out.dtype]
    stage = kernel.stage(out.shape[0] * places)
    stage.put(f"for (long u = lo; u < hi; u++) {{\n  const long b = u / {max(places, 1)}, o = u % {max(places, 1)};")
    for d, n in enumerate(space):
        raw = f"({t}){grid.name}[(b * {count} + {count - 1 - d}) * {places} + o]"
        place = f"({raw} + 1) * {n - 1} / 2" if attrs.align_corners else f"({t})-0.5 + ({raw} + 1) * {n} / 2"
        stage.put(f"  {t} p{d} = {place}, q{d}[{around}], s{d}[{around}];")

        def inside(name: str, d: int = d, n: int = n) -> str:
            text = ""
            if attrs.padding_mode == "reflection":
                text = f"{name} = r_fold({name}, {f'{n - 1}, 0' if attrs.align_corners else f'{n}, ({t})-0.5'}); "
            if attrs.padding_mode != "zeros":
                text += f"{name} = {name} < 0 ? 0 : {name} > {n - 1} ? {n - 1} : {name};"
            return text

        if attrs.method == "bicubic":
            stage.put(f"  r_cubic(s{d}, p{d} - floor(p{d}), ({t})-0.75);\n"
                      f"  for (int k = 0; k < 4; k++) {{\n    {t} p = floor(p{d}) - 1 + k;\n    {inside('p')}\n"
                      f"    q{d}[k] = trunc(p);\n  }}")  # fmt: skip
            continue
        stage.put(f"  {inside(f'p{d}')}")
        if attrs.method == "nearest":
            stage.put(f"  q{d}[0] = rint(p{d}); s{d}[0] = 1;")
        else:
            stage.put(f"  q{d}[0] = floor(p{d}); q{d}[1] = q{d}[0] + 1; s{d}[1] = p{d} - q{d}[0]; s{d}[0] = 1 - s{d}[1];")
    stage.put(f"  for (long c = 0; c < {channels}; c++) {{\n"
              f"    const {CTYPES[data.dtype]}* x = {data.name} + (b * {channels} + c) * {pixels};\n    {t} sum = 0;")  # fmt: skip
    for d in range(count):
        stage.put(f"    for (int k{d} = 0; k{d} < {around}; k{d}++)")
    test = " && ".join(f"q{d}[k{d}] >= 0 && q{d}[k{d}] < {n}" for d, n in enumerate(space))
    at = "0"
    for d, n in enumerate(space):
        at = f"({at} * {n} + (long)q{d}[k{d}])"
    shares = " * ".join(f"s{d}[k{d}]" for d in range(count))
    stage.put(f"      sum += ({test} ? x[{at}] : 0) * ({shares});\n"
              f"    {out.name}[(b * {channels} + c) * {places} + o] = sum;\n  }}\n}}")  # fmt: skip


def _roi_align(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    """The mean (or greatest) of points on a grid in each cell."""
    data, rois = bufs
    attrs = call.attrs
    (_, channels, h, w), (rows, columns) = data.shape, [int(n) for n in attrs.pooled_size]
    if attrs.mode not in ("avg", "max"):
        raise unsupported(f"{call.op.name} by {attrs.mode} cannot be compiled", call)  # type: ignore[attr-defined]
    mean = attrs.mode == "avg"
    t, p = CTYPES[out.dtype], wide(rois)
    f = CTYPES[p]
    stage = kernel.stage(rois.shape[0])
    stage.put(f"for (long u = lo; u < hi; u++) {{\n  const {CTYPES[rois.dtype]}* roi = {rois.name} + u * 5;\n"
              f"  const long n = {_image('roi[0]', data)};")  # fmt: skip
    for name, first, cells in (("y", 2, rows), ("x", 1, columns)):
        scale = literal(attrs.spatial_scale, p)
        points = str(attrs.sample_ratio) if attrs.sample_ratio > 0 else f"isfinite({name}1) ? (long)ceil({name}1) : 0"
        stage.put(f"  const {f} {name}0 = roi[{first}] * {scale}, {name}e = roi[{first + 2}] * {scale} - {name}0;\n"
                  f"  const {f} {name}1 = (1 > {name}e ? 1 : {name}e) / {cells};\n"
                  f"  const long {name}n = {points};")  # fmt: skip
    value = f"inside ? r_bilinear(image, {h}, {w}, yc, xc) : 0"
    greatest = f"const {t} v = {value}; s = {combined_text('max', out.dtype, 's', 'v')};"
    update = f"s += ({value}) / ({f})(yn * xn);" if mean else greatest
    stage.put(f"""  for (long c = 0; c < {channels}; c++) {{
    const {CTYPES[data.dtype]}* image = {data.name} + (n * {channels} + c) * {h * w};
    for (long i = 0; i < {rows}; i++) for (long j = 0; j < {columns}; j++) {{
      {t} s = {start_text("sum" if mean else "max", out.dtype)};
      for (long a = 0; a < yn; a++) for (long b = 0; b < xn; b++) {{
        const {f} y = y0 + i * y1 + (a + ({f})0.5) * y1 / yn, x = x0 + j * x1 + (b + ({f})0.5) * x1 / xn;
        const int inside = !(y < -1 || y > {h} || x < -1 || x > {w});
        const {f} yc = y < 0 ? 0 : y > {h - 1} ? {h - 1} : y, xc = x < 0 ? 0 : x > {w - 1} ? {w - 1} : x;
        {update}
      }}
      {out.name}[((u * {channels} + c) * {rows} + i) * {columns} + j] = s;
    }}
  }}
}}""")


def _roi_pool(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    """The greatest of the pixels that each cell touches, 0 where there are none."""
    data, rois = bufs
    attrs = call.attrs
    (_, channels, h, w), (rows, columns) = data.shape, [int(n) for n in attrs.pooled_size]
    t, p = CTYPES[out.dtype], wide(rois)
    f, near = CTYPES[p], literal(1e-5, p)
    scale = literal(attrs.spatial_scale, p)
    stage = kernel.stage(rois.shape[0])
    stage.put(f"for (long u = lo; u < hi; u++) {{\n  const {CTYPES[rois.dtype]}* roi = {rois.name} + u * 5;\n"
              f"  const long n = {_image('roi[0]', data)};")  # fmt: skip
    for name, first, cells in (("y", 2, rows), ("x", 1, columns)):
        stage.put(f"  const long {name}0 = round(roi[{first}] * {scale}), {name}e = round(roi[{first + 2}] * {scale});\n"
                  f"  const {f} {name}1 = ({f})({name}e - {name}0 + 1 > 1 ? {name}e - {name}0 + 1 : 1) / {cells};")  # fmt: skip

    def cut(name: str, at: str, extent: int) -> str:
        return (f"const long {name}a = r_clamp_index((long)floor({at} * {name}1 + {near}) + {name}0, 0, {extent}),"
                f" {name}b = r_clamp_index((long)ceil(({at} + 1) * {name}1 - {near}) + {name}0, 0, {extent});")  # fmt: skip

    stage.put(f"""  for (long c = 0; c < {channels}; c++) {{
    const {CTYPES[data.dtype]}* image = {data.name} + (n * {channels} + c) * {h * w};
    for (long i = 0; i < {rows}; i++) for (long j = 0; j < {columns}; j++) {{
      {cut("y", "i", h)}
      {cut("x", "j", w)}
      {t} s = ya < yb && xa < xb ? {start_text("max", out.dtype)} : 0;
      for (long y = ya; y < yb; y++) for (long x = xa; x < xb; x++) {{
        const {t} v = image[y * {w} + x];
        s = {combined_text("max", out.dtype, "s", "v")};
      }}
      {out.name}[((u * {channels} + c) * {rows} + i) * {columns} + j] = s;
    }}
  }}
}}""")


def _deformable_conv2d(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    """The moved pixels of all windows, then their products with the weights."""
    data, moves, weight = bufs
    attrs = call.attrs
    (batch, channels, h, w), (outputs, depth, height, width) = data.shape, weight.shape
    rows, columns = out.shape[2:]
    places, taps, groups = rows * columns, height * width, attrs.deformable_groups
    if channels % groups:
        raise unsupported(f"{channels} channels do not divide into {groups} groups", call)
    strides, dilation = spread(attrs.strides, 2), spread(attrs.dilation, 2)
    (top, _), (left, _) = pads_of(attrs.padding, 2)
    t, f = CTYPES[out.dtype], CTYPES[wide(data)]
    taken = kernel.buffer((batch, channels, taps, places), wide(data))
    kernel.stage(batch * channels).put(f"""for (long u = lo; u < hi; u++) {{
  const {CTYPES[data.dtype]}* image = {data.name} + u * {h * w};
  const long group = u / {channels} * {groups} + u % {channels} / {channels // groups};
  for (long k = 0; k < {taps}; k++) for (long p = 0; p < {places}; p++) {{
    const {CTYPES[moves.dtype]}* m = {moves.name} + (group * {taps} + k) * {2 * places} + p;
    const {f} y = ({f})(k / {width} * {dilation[0]} + p / {max(columns, 1)} * {strides[0]} - {top}) + m[0];
    const {f} x = ({f})(k % {width} * {dilation[1]} + p % {max(columns, 1)} * {strides[1]} - {left}) + m[{places}];
    const int outside = y < 0 || x < 0 || y >= {h} || x >= {w};
    {taken.name}[(u * {taps} + k) * {places} + p] = outside ? 0 : r_bilinear(image, {h}, {w}, y, x);
  }}
}}""")
    each = max(outputs // attrs.groups, 1)
    # Integers are made of the factors, not of their products.
    truth, add, factor = "", "+", f"x[k * {places} + p]"
    if out.dtype == "bool":
        truth, add, factor = " != 0", "^", f"({factor} != 0)"
    elif not is_float(out.dtype):
        factor = f"({t}){factor}"
    kernel.stage(batch * outputs).put(f"""for (long u = lo; u < hi; u++) {{
  const long n = u / {max(outputs, 1)}, o = u % {max(outputs, 1)};
  {t}* sum = {out.name} + u * {places};
  const {f}* x = {taken.name} + (n * {channels} + o / {each} * {depth}) * {taps * places};
  for (long p = 0; p < {places}; p++) sum[p] = 0;
  for (long k = 0; k < {depth * taps}; k++) {{
    const {t} by = {weight.name}[o * {depth * taps} + k]{truth};
    R_IVDEP
    for (long p = 0; p < {places}; p++) sum[p] {add}= by * {factor};
  }}
}}""")


def _correlation(kernel: Kernel, call: Call, bufs: list[Buf], out: Buf) -> None:
    """The mean product (or distance) of each patch of the first with those of the second around it."""
    first, second = bufs
    attrs = call.attrs
    channels = first.shape[1]
    size, reach, step, stride = attrs.kernel_size, attrs.max_displacement, attrs.stride2, attrs.stride1
    (top, _), (left, _) = pads_of(attrs.padding, 2)
    _, around, rows, columns = out.shape
    side, radius = math.isqrt(around), reach // step
    t = CTYPES[out.dtype]

    def pixel(name: str, buf: Buf) -> str:
        h, w = buf.shape[2:]
        return (f"const {t} {name} = {name}y >= 0 && {name}y < {h} && {name}x >= 0 && {name}x < {w} ? "
                f"{buf.name}[((n * {channels} + c) * {h} + {name}y) * {w} + {name}x] : 0;")  # fmt: skip

    kernel.stage(out.shape[0] * around).put(f"""for (long u = lo; u < hi; u++) {{
  const long n = u / {around}, dy = u % {around} / {side} - {radius}, dx = u % {side} - {radius};
  for (long i = 0; i < {rows}; i++) for (long j = 0; j < {columns}; j++) {{
    {t} s = 0;
    for (long c = 0; c < {channels}; c++) for (long y = 0; y < {size}; y++) for (long x = 0; x < {size}; x++) {{
      const long ay = i * {stride} + y + {reach - top}, ax = j * {stride} + x + {reach - left};
      const long by = ay + dy * {step}, bx = ax + dx * {step};
      {pixel("a", first)}
      {pixel("b", second)}
      s += {"a * b" if attrs.is_multiply else "fabs(a - b)"};
    }}
    {out.name}[(u * {rows} + i) * {columns} + j] = s / {max(size * size * channels, 1)};
  }}
}}""")


def _dilation2d(kernel: Kernel, call: Call, args: list[Any], sink: Sink) -> None:
    """The greatest sum of a window and the weight; the padding is 0."""
    attrs = call.attrs
    dtype = sink.anchor.dtype
    data, weight = (kernel.in_memory(converted(kernel, a, dtype, None)) for a in args)
    out = target_of(kernel, sink)
    (_, channels, h, w), (_, height, width) = data.shape, weight.shape
    (top, _), (left, _) = pads_of(attrs.padding, 2)
    strides, dilation = spread(attrs.strides[:2], 2), spread(attrs.dilations[:2], 2)
    rows, columns = out.shape[2:]
    t = CTYPES[dtype]
    kernel.stage(out.shape[0] * channels).put(f"""for (long u = lo; u < hi; u++)
  for (long i = 0; i < {rows}; i++) for (long j = 0; j < {columns}; j++) {{
    {t} s = {start_text("peak", dtype)};
    for (long a = 0; a < {height}; a++) for (long b = 0; b < {width}; b++) {{
      const long y = i * {strides[0]} + a * {dilation[0]} - {top}, x = j * {strides[1]} + b * {dilation[1]} - {left};
      const int inside = y >= 0 && y < {h} && x >= 0 && x < {w};
      const {t} v = (inside ? {data.name}[(u * {h} + y) * {w} + x] : 0)
        {"^" if dtype == "bool" else "+"} {weight.name}[(u % {channels} * {height} + a) * {width} + b];
      s = {combined_text("max", dtype, "s", "v")};
    }}
    {out.name}[(u * {rows} + i) * {columns} + j] = s;
  }}""")
    pass_on(kernel, sink, out)


#: Written by stages of their own: never fused.
ANCHORS: dict[str, Any] = {
    "image.crop_and_resize": alone(_crop_and_resize),
    "image.grid_sample": alone(_grid_sample),
    "image.dilation2d": _dilation2d,
    "vision.roi_align": alone(_roi_align),
    "vision.roi_pool": alone(_roi_pool),
    "nn.deformable_conv2d": alone(_deformable_conv2d, sums=True),
    "nn.correlation": alone(_correlation),
}
