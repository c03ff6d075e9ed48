"""Scales of accumulators: one for all channels, or a table of biases, multipliers and shifts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relaylang.backends.ethosu.simulator.accumulators import are_wide
from relaylang.backends.ethosu.simulator.memory import Memory
from relaylang.backends.ethosu.simulator.scaling import rounding, scaled, scaled_by
from relaylang.backends.ethosu.simulator.state import State
from relaylang.backends.ethosu.simulator.weights import content

#: Bytes of a channel's entry.
_ENTRY = 10


class _Layout(NamedTuple):
    """The bytes of an entry's bias and multiplier, and the bits of both. The shift follows."""

    bias: int
    multiplier: int
    bias_bits: int
    multiplier_bits: int


_U55 = _Layout(5, 4, 40, 32)
_U85 = _Layout(4, 4, 32, 31)
_U85_WIDE = _Layout(6, 2, 48, 15)


def are_global(state: State) -> bool:
    """Whether all channels have one scale, OFM_SCALE."""
    return bool(state.field("OFM_PRECISION", "scale_mode"))


def apply_scales(state: State, memory: Memory, sums: np.ndarray) -> np.ndarray:
    """Accumulators with their biases, scaled."""
    if are_global(state):
        return scaled_by(state, "OFM_SCALE", sums)
    layout = (_U85_WIDE if are_wide(state) else _U85) if state.is_u85 else _U55
    bias, multiplier, shift = _table(state, memory, sums.shape[2], layout)
    return scaled(sums + bias, multiplier, shift, rounding(state))


def _table(state: State, memory: Memory, channels: int, layout: _Layout) -> np.ndarray:
    """The biases, multipliers and shifts. Each core of the U65 has a table of its own."""
    table = np.zeros((channels, 3), np.int64)
    cores = 1 if state.is_u85 else state.stream.cores
    for core in range(cores):
        count = len(range(core, channels, cores))
        if not count:
            continue
        raw = content(state, memory, "SCALE", core)
        if len(raw) < count * _ENTRY:
            raise state.fault(f"has a table of scales of {len(raw)} bytes for {count} channels")
        entries = raw[: count * _ENTRY].reshape(count, _ENTRY)
        end = layout.bias + layout.multiplier
        bias = _number(entries[:, : layout.bias], layout.bias_bits)
        bias -= (bias >> (layout.bias_bits - 1) & 1) << layout.bias_bits
        multiplier = _number(entries[:, layout.bias : end], layout.multiplier_bits)
        table[core::cores] = np.stack([bias, multiplier, _number(entries[:, end : end + 1], 6)], 1)
    return table.T


def _number(content: np.ndarray, bits: int) -> np.ndarray:
    """Numbers without sign in bytes, the lowest first, cut to some bits."""
    return (content.astype(np.int64) << (8 * np.arange(content.shape[1]))).sum(1) & ((1 << bits) - 1)
