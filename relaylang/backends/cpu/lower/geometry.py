"""Where the axes of convolutions are, and how far their windows reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from relaylang.backends.cpu.kernel import unsupported
from relaylang.ir import Call
from relaylang.kernels.index import strides_of
from relaylang.kernels.sizes import Size


def spatial_axes(layout: str, call: Call) -> tuple[list[int], int]:
    """The spatial axes and the channel axis of a layout such as NCHW or NDHWC."""
    if not layout.isalpha() or not layout.isupper() or "C" not in layout:
        raise unsupported(f"the layout {layout} cannot be compiled", call)
    return [d for d, letter in enumerate(layout) if letter in "DHW"], layout.index("C")


def spread(values: Any, count: int) -> list[int]:
    values = [values] if isinstance(values, int) else list(values)
    return values * count if len(values) == 1 else values


def pads_of(padding: Any, count: int) -> list[tuple[int, int]]:
    """Padding before and behind each of `count` axes, from 1, `count` or twice `count` numbers."""
    values = spread(padding, count)
    if len(values) == count:
        values = values * 2
    return list(zip(values[:count], values[count:]))


@dataclass
class Conv:
    """A convolution with its axes in one order: batch, channel, and the spatial axes from outside in."""

    batch: int
    groups: int
    inputs: int  # channels a group
    outputs: int  # channels a group
    size: list[int]  # of the data
    kernel: list[int]
    stride: list[int]
    dilation: list[int]
    before: list[int]
    behind: list[int]
    out: list[int]
    axes: list[int]  # where the spatial axes are in the shapes
    channel: int  # where the channels are
    last: bool  # whether the channels are last

    @property
    def padded(self) -> list[int]:
        return [s + a + b for s, a, b in zip(self.size, self.before, self.behind)]

    @property
    def taps(self) -> int:
        total = 1
        for k in self.kernel:
            total *= k
        return total


def read_conv(call: Call, data: tuple[int, ...], weight: tuple[int, ...], out: tuple[int, ...]) -> Conv:
    """The convolution that a call's attributes describe."""
    attrs = call.attrs
    axes, channel = spatial_axes(attrs.data_layout, call)
    if attrs.out_layout not in ("", attrs.data_layout):
        raise unsupported(f"the output layout {attrs.out_layout} cannot be compiled", call)
    if attrs.data_layout[0] != "N":
        raise unsupported(f"the layout {attrs.data_layout} cannot be compiled", call)
    count = len(axes)
    layout = attrs.kernel_layout
    if not layout.isalpha() or not layout.isupper():
        raise unsupported(f"the kernel layout {layout} cannot be compiled", call)
    pads = pads_of(attrs.padding, count)
    size = [data[d] for d in axes]
    kernel = [weight[layout.index(attrs.data_layout[d])] for d in axes]
    stride, dilation = spread(attrs.strides, count), spread(attrs.dilation, count)
    results = [out[d] for d in axes]
    before = [a for a, _ in pads]
    # Only what the windows reach is padded behind: strides may leave the end unread. Sizes leave that open.
    behind = [
        b if isinstance(reach, Size) else max(0, reach)
        for reach, (_, b) in zip(reached(size, results, kernel, stride, dilation, before), pads)
    ]
    groups = attrs.groups
    return Conv(
        data[0],
        groups,
        data[channel] // groups,
        out[channel] // groups,
        size,
        kernel,
        stride,
        dilation,
        before,
        behind,
        results,
        axes,
        channel,
        channel == len(data) - 1,
    )


def reached(
    size: Sequence[int],
    out: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    before: Sequence[int],
) -> list[int]:
    """How far windows reach behind the data, along each axis."""
    return [(o - 1) * s + (k - 1) * d + 1 - n - a for o, s, k, d, n, a in zip(out, stride, kernel, dilation, size, before)]


def weight_strides(layout: str, shape: tuple[int, ...], inputs: int) -> tuple[int, int, dict[str, int]]:
    """The strides of a weight's output channel and input channel, and of its spatial axes by letter.

    In a depthwise HWOI or HWIO weight, the output channels are both channel axes together.
    """
    steps = strides_of(shape)
    spatial = {letter: steps[layout.index(letter)] for letter in layout if letter in "DHW"}
    if inputs == 1:
        channels = sorted((layout.index("O"), layout.index("I")))
        return steps[channels[1]], 0, spatial
    return steps[layout.index("O")], steps[layout.index("I")], spatial
