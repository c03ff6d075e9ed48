"""The memory inside a core of the U55 and U65: inputs from below, then accumulators, and tables at the end.

It has banks of 1 KiB. The U55-32 and U55-64 have few. There, operations without a table have accumulators and operands in
the place of tables. The U85 has a memory for tables alone.
"""

from __future__ import annotations

import numpy as np

from relaylang.backends.ethosu.simulator.accumulators import accumulator_bits, block_of
from relaylang.backends.ethosu.simulator.feature_maps import ofm_extents
from relaylang.backends.ethosu.simulator.memory import TABLES
from relaylang.backends.ethosu.simulator.state import State

_BANK = 1024
#: Blocks of accumulators that are there at once.
_BUFFERS = 2
#: Banks of accumulators come in such numbers, by the MACs of a core: those of 32 and of 40 bits.
_TOGETHER = {32: (4, 4), 64: (4, 8), 128: (8, 12), 256: (16, 20)}


def lost_tables(state: State) -> np.ndarray:
    """The bytes of the memory for tables that the operation overwrites which is executed now."""
    if state.is_u85:
        return np.zeros(0, np.int64)
    kib = state.stream.shared_kib // state.stream.cores
    used = [range(state["IFM_IB_END"])]
    if state.command.name != "OP_ELEMENTWISE":
        used.append(_accumulators(state))
    lost = np.asarray([any(bank in banks for banks in used) for bank in range(kib - TABLES // _BANK, kib)])
    return np.flatnonzero(lost.repeat(_BANK))


def _accumulators(state: State) -> range:
    """The banks of accumulators."""
    height, width, depth = block_of(state)
    if ofm_extents(state)[0] == 1 and state["KERNEL_HEIGHT_M1"] == 0:
        height = 1  # a block of one row takes no room for a second one
    bits = accumulator_bits(state)
    banks = -(-height * width * (depth + -depth % 8) * bits // 8 // _BANK) * _BUFFERS
    together = _TOGETHER[state.stream.macs // state.stream.cores][bits == 40]
    start = state["AB_START"]
    return range(start, start + banks + -banks % together)
