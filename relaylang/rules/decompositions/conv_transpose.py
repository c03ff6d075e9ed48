"""Transposed convolutions as convolutions at stride 1: of zeros between the elements, or of phases side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from relaylang.ir import Call, Expr, TensorType
from relaylang.ops.build import op_call, scalar
from relaylang.rules.decompositions.common import Decomposition, dtype_of, known, less, make, reshape, transpose


def _pairs(values: Any, count: int) -> list[int]:
    values = [values] if isinstance(values, int) else list(values)
    return [int(v) for v in (values * count if len(values) == 1 else values)]


def _transposed(call: Call, data: Expr, weight: Expr) -> Expr | None:
    """A convolution at stride 1 with the kernel turned round. Strides make phases, or zeros between the elements."""
    attrs = call.attrs
    layout, kernel_layout = attrs.data_layout, attrs.kernel_layout
    space = [c for c in layout if c in "DHW"]
    count = len(space)
    plain = "NC" + "".join(space)
    if sorted(layout) != sorted(plain) or sorted(kernel_layout) != sorted("IO" + "".join(space)):
        return None
    if attrs.out_layout not in ("", layout):
        return None
    # TVM's IOHW names the data's channels first; weights come as (groups, in, out, ...) and leave as (out, in, ...).
    order = [kernel_layout.index(c) for c in ("I", "O", *space)]
    weight = transpose(weight, order)
    inputs, outputs, *kernel = known(weight)
    groups = attrs.groups
    split = reshape(weight, [groups, inputs // groups, outputs, *kernel])
    turned = transpose(split, [0, 2, 1, *range(3, 3 + count)])
    if max(_pairs(attrs.strides, count)) > 1 and layout in (plain, f"N{''.join(space)}C"):
        phases = _phases(call, data, turned)
        if phases is not None:
            return phases
    weight = reshape(turned, [groups * outputs, inputs // groups, *kernel])
    for axis in range(2, 2 + count):
        if kernel[axis - 2] > 1:
            weight = make("reverse", [weight], known(weight), axis=axis)
    strides, dilation = _pairs(attrs.strides, count), _pairs(attrs.dilation, count)
    extra = _pairs(attrs.output_padding[:count], count)
    pads = _pairs(attrs.padding, count)
    pads = pads * 2 if len(pads) == count else pads
    if any(s > 1 for s in strides):
        by = [strides[space.index(c)] if c in space else 1 for c in layout]
        wide = [(n - 1) * s + 1 for n, s in zip(known(data), by)]
        data = make("nn.dilate", [data], wide, strides=by, dilation_value=0.0)
    reach = [(k - 1) * d for k, d in zip(kernel, dilation)]
    widths = [r - p for r, p in zip(reach, pads[:count])], [r - p + e for r, p, e in zip(reach, pads[count:], extra)]
    by_letter = [dict(zip(space, side)) for side in widths]
    data = _cropped(data, *([max(-side.get(c, 0), 0) for c in layout] for side in by_letter))
    padding = [max(width, 0) for side in widths for width in side]
    assert isinstance(call.checked_type, TensorType)
    return op_call(
        f"nn.conv{count}d",
        [data, weight],
        call.checked_type,
        strides=[1] * count,
        padding=padding,
        dilation=dilation,
        groups=groups,
        channels=groups * outputs,
        kernel_size=kernel,
        data_layout=layout,
        kernel_layout="OI" + "".join(space),
        out_dtype=call.checked_type.dtype,
    )


def _phases(call: Call, data: Expr, weight: Expr) -> Expr | None:
    """A transposed convolution as one convolution whose channels are the phases of its strides, set side by side behind.

    Along an axis of stride `s`, result `s * a + r` is made of the elements up to `a`. It uses every s-th tap from `r` on.
    `weight` is (groups, out, in, ...). With dilation there is none.
    """
    attrs = call.attrs
    assert isinstance(call.checked_type, TensorType)
    dtype = call.checked_type.dtype
    groups, outputs, inputs, *kernel = known(weight)
    count = len(kernel)
    strides, pads = _pairs(attrs.strides, count), _pairs(attrs.padding, count)
    layout = attrs.data_layout
    space = [c for c in layout if c in "DHW"]
    if any(d > 1 for d in _pairs(attrs.dilation, count)):
        return None
    last = f"N{''.join(space)}C"
    channels, batch = known(data)[layout.index("C")], known(data)[0]
    size = [known(data)[layout.index(c)] for c in space]
    out = [known(call)[layout.index(c)] for c in space]
    if layout != last:
        data = make("layout_transform", [data], [batch, *size, channels], src_layout=layout, dst_layout=last)
    # The kernel as (taps of a phase, phases) along each axis, its taps turned round.
    taps = [-(-k // s) for k, s in zip(kernel, strides)]
    widths = [[0, 0]] * 3 + [[0, t * s - k] for t, s, k in zip(taps, strides, kernel)]
    if any(b for _, b in widths):
        wide = [groups, outputs, inputs, *[t * s for t, s in zip(taps, strides)]]
        weight = make("nn.pad", [weight, scalar(0, dtype_of(weight))], wide, pad_width=widths, pad_mode="constant")
    cut = [groups, outputs, inputs, *[n for t, s in zip(taps, strides) for n in (t, s)]]
    weight = reshape(weight, cut)
    for axis in range(count):
        if taps[axis] > 1:
            weight = make("reverse", [weight], cut, axis=3 + 2 * axis)
    weight = transpose(weight, [0, *range(4, 4 + 2 * count, 2), 1, 2, *range(3, 3 + 2 * count, 2)])
    total = groups * outputs * math.prod(strides)
    weight = reshape(weight, [total, inputs, *taps])
    first = [p // s for p, s in zip(pads[:count], strides)]
    rows = [(p + n - 1) // s + 1 - a for p, n, s, a in zip(pads[:count], out, strides, first)]
    before = [t - 1 - a for t, a in zip(taps, first)]
    behind = [a + m - n for a, m, n in zip(first, rows, size)]
    data = _cropped(data, [0, *[max(-b, 0) for b in before], 0], [0, *[max(-b, 0) for b in behind], 0])
    data = op_call(
        f"nn.conv{count}d",
        [data, weight],
        TensorType([batch, *rows, total], dtype),
        strides=[1] * count,
        padding=[max(b, 0) for b in [*before, *behind]],
        dilation=[1] * count,
        groups=groups,
        channels=total,
        kernel_size=taps,
        data_layout=last,
        kernel_layout="OI" + "".join(space),
        out_dtype=dtype,
    )
    split = reshape(data, [batch, *rows, groups, *strides, outputs])
    order = [0, *[d for n in range(count) for d in (1 + n, 2 + count + n)], 1 + count, 2 + 2 * count]
    woven = reshape(transpose(split, order), [batch, *[m * s for m, s in zip(rows, strides)], groups * outputs])
    start = [p - a * s for p, a, s in zip(pads[:count], first, strides)]
    end = [m * s - b - n for m, s, b, n in zip(rows, strides, start, out)]
    result = _cropped(woven, [0, *start, 0], [0, *end, 0])
    if layout != last:
        result = make("layout_transform", [result], known(call), src_layout=last, dst_layout=layout)
    return result


def _cropped(x: Expr, before: Sequence[int], behind: Sequence[int]) -> Expr:
    """A tensor without so many elements at both ends of each axis."""
    if not any(before) and not any(behind):
        return x
    end = [n - b for n, b in zip(known(x), behind)]
    left = [b - a for a, b in zip(before, end)]
    return make("strided_slice", [x], left, begin=list(before), end=end, strides=[1])


def _conv_transpose(call: Call, args: list[Expr]) -> Expr | None:
    return _transposed(call, *args)


def _qnn_conv_transpose(call: Call, args: list[Expr]) -> Expr | None:
    data, weight, in_zero, weight_zero = args[:4]
    attrs = call.attrs
    if "C" not in attrs.data_layout or "O" not in attrs.kernel_layout:
        return None
    return _transposed(
        call, less(data, in_zero, attrs.data_layout.index("C")), less(weight, weight_zero, attrs.kernel_layout.index("O"))
    )


RULES: dict[str, Decomposition] = {
    **{f"nn.conv{n}d_transpose": _conv_transpose for n in (1, 2, 3)},
    "qnn.conv2d_transpose": _qnn_conv_transpose,
}
