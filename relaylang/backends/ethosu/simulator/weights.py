"""Weight streams: compressed (see `codec` and `fast_codec`), one for each core, in the accelerator's order (see `order`)."""

from __future__ import annotations

import math

import numpy as np

from relaylang.backends.ethosu.simulator.accumulators import microblock_depth
from relaylang.backends.ethosu.simulator.codec import Damaged, decode
from relaylang.backends.ethosu.simulator.fast_codec import decode_fast
from relaylang.backends.ethosu.simulator.feature_maps import MOST
from relaylang.backends.ethosu.simulator.memory import Memory
from relaylang.backends.ethosu.simulator.order import Order, places
from relaylang.backends.ethosu.simulator.state import State

#: Addresses and lengths of weights and scales are multiples of this number of bytes.
_ALIGNED = 16


def content(state: State, memory: Memory, name: str, core: int) -> np.ndarray:
    """The bytes of a core's stream of weights or table of scales."""
    at, size = (state.aligned(f"{name}{core or ''}_{what}", _ALIGNED) for what in ("BASE", "LENGTH"))
    region = state[f"{name}_REGION"]
    return memory.read_constant(region, memory.span(region, at, size))


def order_of(state: State, extents: tuple[int, int, int, int] = (1, 1, 1, 1), depthwise: bool = False) -> Order:
    """The order of weights of these extents."""

    def kernel(field: str) -> int:
        return state.field("KERNEL_STRIDE", field)

    macs, cores = state.stream.macs, state.stream.cores
    if state.is_u85:
        stride = tuple([1 + kernel(f"stride_{axis}_lsb") + 2 * kernel(f"stride_{axis}_msb") for axis in "yx"])
        micro = microblock_depth(state)
    else:
        stride = (1, 1)
        micro = 4 if macs // cores == 32 else 8
    is_sparse = state.command.name != "OP_POOL" and bool(state.field("WEIGHT_FORMAT", "weight_sparsity"))
    return Order(
        extents,
        state["OFM_BLK_DEPTH_M1"] + 1,
        micro,
        8 << state.field("IFM_PRECISION", "activation_precision"),
        (kernel("dilation_y") + 1, kernel("dilation_x") + 1),
        stride,
        depthwise,
        bool(kernel("weight_order")),
        is_sparse,
        macs,
        cores,
        state.is_u85,
    )


def read_weights(state: State, memory: Memory, extents: tuple[int, int, int, int], depthwise: bool) -> np.ndarray:
    """The weights, of axes output, row, column, input, as float64. `extents` are theirs, the kernel without dilation."""
    order = order_of(state, extents, depthwise)
    if math.prod(extents) > MOST:
        raise state.fault(f"has {' x '.join(map(str, extents))} weights")
    is_fast = bool(state.field("WEIGHT_FORMAT", "weight_format"))
    if is_fast and depthwise:
        raise state.fault("has weights in the fast form, which it cannot take")
    weights = np.zeros(extents)
    flat = weights.reshape(-1)
    for core in range(1 if is_fast else order.cores):
        place = places(order, core, is_fast)
        kept = place >= 0
        if not kept.any():
            continue
        raw = content(state, memory, "WEIGHT", core).tobytes()
        try:
            values = np.asarray(decode_fast(raw, len(place)) if is_fast else decode(raw), np.int16)
        except Damaged as problem:
            raise state.fault(f"has a weight stream that cannot be decoded: {problem}") from None
        if len(values) < len(place):
            raise state.fault(f"has a weight stream of {len(values)} values, and needs {len(place)}")
        flat[place[kept]] = values[: len(place)][kept]
    return weights
