"""Pools: the windows of `nn.max_pool2d` and of averages, and the division of a sum on the ALU."""

from __future__ import annotations

from relaylang.backends.vta.layers.requantize import Apply
from relaylang.backends.vta.steps import Pool, Slots, Step
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call
from relaylang.partition.checks import op_name, shape


def pool_of(call: Call, data: tuple[int, ...], leaf: int) -> tuple[Pool, int]:
    """The pool of a call, and the numbers in a window. Raises `Unsupported`."""
    attrs, name = call.attrs, op_name(call)
    if attrs.layout != "NCHW" or len(data) != 4:
        raise Unsupported(f"its layout is {attrs.layout}; VTA takes NCHW")
    operation = "MAX" if "max" in name else "ADD"
    if "global" in name:
        return Pool(leaf, data, operation, data[2:], (1, 1), (0, 0), (1, 1)), data[2] * data[3]
    if getattr(attrs, "out_layout", "") not in ("", "NCHW"):
        raise Unsupported(f"out_layout is {attrs.out_layout}; VTA takes NCHW")
    padding = tuple(attrs.padding) * {1: 4, 2: 2, 4: 1}[len(attrs.padding)]
    pool = Pool(leaf, data, operation, tuple(attrs.pool_size), tuple(attrs.strides), padding[:2], tuple(attrs.dilation))
    out = shape(call)[2:]
    reach = [(o - 1) * s + (k - 1) * d + 1 for o, s, k, d in zip(out, pool.strides, pool.window, pool.dilation)]
    beyond = any(r > p + n + q for r, p, n, q in zip(reach, padding, data[2:], padding[2:]))
    if operation == "ADD" and (beyond or (max(padding) and not attrs.count_include_pad)):
        raise Unsupported("its windows have different numbers of elements: at a border they count no padding")
    return pool, pool.window[0] * pool.window[1]


def average_steps(slots: Slots, apply: Apply, slot: int, count: int) -> None:
    """Append the division of a sum of `count` int8 numbers by their number, rounded towards zero.

    x / count is (x * m) >> k for all x from 0 to 128 * count, if m = ceil(2^k / count) exceeds 2^k / count little enough.
    """
    if count == 1:
        return
    most = 128 * count
    for shift in range(31):
        factor = -(-(1 << shift) // count)
        if (factor * count - (1 << shift)) * most < 1 << shift:
            break
    if factor >= 1 << 15 or most * factor >= 1 << 31:
        raise Unsupported(f"an average of {count} numbers needs more than 32 bits")
    other = slots.copy(slot)
    apply("MUL", other, -1)
    for part in (slot, other):
        apply("MAX", part, 0)
        if factor > 1:
            apply("MUL", part, factor)
        apply("SHR", part, shift)
    apply("MUL", other, -1)
    slots.steps.append(Step("ADD", slot, "slot", other))
    slots.free(other)


__all__ = ["average_steps", "pool_of"]
