"""The windows of convolutions and pools, and the division of a pool's sums on the ALU."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.backends.vta.layers.steps import INT8, Gemm, Layer, Pool, Step, Value, Window
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call
from relaylang.partition.checks import op_name, shape


def window_of(attrs: Any, size: tuple[int, ...]) -> tuple[Window, tuple[int, ...]]:
    """The windows of a convolution or pool, and the padding on all four sides. Raises `Unsupported`."""
    for name, layout in (("layout", "NCHW"), ("data_layout", "NCHW"), ("kernel_layout", "OIHW"), ("out_layout", "NCHW")):
        if getattr(attrs, name, "") not in ("", layout):
            raise Unsupported(f"{name} is {getattr(attrs, name)}; VTA takes {layout}")
    padding = tuple(attrs.padding) * {1: 4, 2: 2, 4: 1}[len(attrs.padding)]
    return Window(size, tuple(attrs.strides), padding[:2], tuple(attrs.dilation)), padding


def gemm_of(call: Call, kernel: np.ndarray, data: tuple[int, ...], leaf: int) -> Gemm:
    """The product of a convolution or a dense layer. Raises `Unsupported`."""
    weight = kernel.astype(np.int8)
    if op_name(call).endswith("dense"):
        if len(data) != 2:
            raise Unsupported(f"its input has {len(data)} axes; VTA takes matrices")
        return Gemm(leaf, data, Window(), weight[:, :, None, None])
    window, padding = window_of(call.attrs, kernel.shape[2:])
    reach = [(size - 1) * step + 1 for size, step in zip(window.size, window.dilation)]
    if max(padding) > 15 or (max(padding) and any(pad >= size for pad, size in zip(padding, reach * 2))):
        raise Unsupported("its padding is more than 15, or as large as its kernel")
    if min(data) < 1:
        raise Unsupported("its input is empty")
    return Gemm(leaf, data, window, weight, call.attrs.groups)


def weights_inside(gemm: Gemm, out: tuple[int, ...]) -> np.ndarray:
    """For each place of the output, the sum of the weights that lie on the input and not on padding, shape (1, O, H, W)."""
    sums = gemm.weight.astype(np.int64).sum(axis=1)
    return sums[None, :, 0, 0] if len(out) == 2 else np.einsum("okl,yk,xl->oyx", sums, *_inside(gemm.window, out, gemm.data))[None]


def _inside(window: Window, out: tuple[int, ...], data: tuple[int, ...], after: tuple[int, ...] | None = None) -> list[np.ndarray]:
    """For rows and for columns: which taps of each place of the output lie on the image, shape (places, taps), as 0 or 1.

    With `after`, the padding below and on the right, padding counts as a part of the image.
    """
    masks = []
    for axis in (0, 1):
        places = np.arange(out[2 + axis])[:, None] * window.strides[axis] - window.padding[axis]
        taps = places + np.arange(window.size[axis]) * window.dilation[axis]
        low, high = (0, data[2 + axis]) if after is None else (-window.padding[axis], data[2 + axis] + after[axis])
        masks.append(((taps >= low) & (taps < high)).astype(np.int64))
    return masks


def read_pool(layer: Layer, call: Call, data: tuple[int, ...], leaf: int) -> Value:
    """Append a pool of an image: the greatest number of each window, or its average. Raises `Unsupported`."""
    attrs, name = call.attrs, op_name(call)
    if len(data) != 4:
        raise Unsupported(f"its input has {len(data)} axes; VTA takes images")
    if "global" in name:
        if attrs.layout != "NCHW":
            raise Unsupported(f"layout is {attrs.layout}; VTA takes NCHW")
        window, padding = Window(data[2:]), tuple([0] * 4)
    else:
        window, padding = window_of(attrs, tuple(attrs.pool_size))
    layer.pools.append(Pool(leaf, data, window, "MAX" if "max" in name else "ADD"))
    slot = layer.zeros()
    if "max" in name:
        layer.apply("ADD", slot, -128)
    layer.steps.append(Step("pool", slot, "pool", len(layer.pools) - 1))
    if "avg" in name:
        rows, columns = _inside(window, shape(call), data, padding[2:] if getattr(attrs, "count_include_pad", False) else None)
        _divide(layer, slot, np.maximum(np.outer(rows.sum(axis=1), columns.sum(axis=1)), 1), window.taps)
    return Value(slot, *INT8)


def _divide(layer: Layer, slot: int, counts: np.ndarray, most: int) -> None:
    """Append the division of sums of int8 numbers by their counts, shape (rows, columns), rounded towards zero.

    x / count is (x * m) >> k for all x from 0 to 128 * count, if m = ceil(2^k / count) exceeds 2^k / count little enough.
    """
    if most == 1:
        return
    for shift in range(31):
        factors = -(-(1 << shift) // counts)
        if ((factors * counts - (1 << shift)) * 128 * counts < 1 << shift).all():
            break
    if (128 * counts * factors >= 1 << 31).any():
        raise Unsupported(f"an average of {most} numbers needs more than 32 bits")
    other = layer.copy(slot)
    layer.apply("MUL", other, -1)
    for part in (slot, other):
        layer.apply("MAX", part, 0)
        layer.apply("MUL", part, factors[None, None])
        layer.apply("SHR", part, shift)
    layer.apply("MUL", other, -1)
    layer.combine("ADD", slot, "slot", other)


__all__ = ["gemm_of", "read_pool", "weights_inside"]
