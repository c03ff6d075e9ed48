"""The accumulators. An operation starts them at zero, with a tensor, or with those before. They may stay inside."""

from __future__ import annotations

import numpy as np

from relaylang.backends.ethosu.simulator.feature_maps import Extents, feature_map, ofm_extents
from relaylang.backends.ethosu.simulator.memory import Memory
from relaylang.backends.ethosu.simulator.state import State

#: `acc_input`: where accumulators start.
_RESET, _KEEP, IFM2 = 0, 1, 2
#: `acc_format`: wide accumulators, which the U85 gives biases of as many bits.
_WIDE = 1
#: The bits of accumulators.
_BITS = {"ethos-u55": (32, 40), "ethos-u65": (32, 40), "ethos-u85": (32, 48)}
#: `microblock`: its rows and columns.
_MICROBLOCKS = ((1, 1), (1, 2), (1, 4), (2, 2), (2, 4), (4, 4))
#: The microblocks of each accelerator, by its MACs.
_KNOWN = {
    128: {(1, 1), (1, 2)},
    256: {(1, 2), (1, 4), (2, 2)},
    512: {(1, 4), (2, 2)},
    1024: {(1, 4), (2, 2), (2, 4)},
    2048: {(1, 4), (2, 2), (4, 4)},
}


def block_of(state: State) -> Extents:
    """The extents of a block of the output."""
    return state["OFM_BLK_HEIGHT_M1"] + 1, state["OFM_BLK_WIDTH_M1"] + 1, state["OFM_BLK_DEPTH_M1"] + 1


def are_wide(state: State) -> bool:
    """Whether accumulators have 48 bits, and biases as many."""
    return state.is_u85 and state.field("ACC_FORMAT", "acc_format") == _WIDE


def microblock_depth(state: State) -> int:
    """The channels of the smallest part of an output that the U85 computes at once."""
    number = state.field("ACC_FORMAT", "microblock")
    shape = _MICROBLOCKS[number] if number < len(_MICROBLOCKS) else None
    macs = state.stream.macs
    if shape is None or shape not in _KNOWN[macs]:
        raise state.fault(f"has the microblock {number}, which {state.stream.accelerator} lacks")
    return macs // 8 // (shape[0] * shape[1])


def accumulated(state: State, memory: Memory, sums: np.ndarray, join: np.ufunc = np.add) -> np.ndarray | None:
    """The accumulators after an operation joins its sums or extremes to them; None where they do not go out."""
    source = state.field("ACC_FORMAT", "acc_input")
    if source == _KEEP:
        _check_block(state)
        before = memory.accumulators
        if before is None or before.shape != sums.shape:
            raise state.fault("keeps accumulators, and the operation before it left others")
        sums = join(sums, before)
    elif source == IFM2:
        ifm2 = feature_map(state, "IFM2")
        sums = join(sums, ifm2.read(memory, ofm_extents(state)) - ifm2.zero_point)
    elif source != _RESET:
        raise state.fault(f"has accumulators that start with {source}, which the simulator does not know")
    if join is np.add:
        _check_range(state, sums)
    memory.accumulators = sums
    if stay_inside(state):
        _check_block(state)
        return None
    return sums


def accumulator_bits(state: State) -> int:
    """The bits of an accumulator."""
    kind = state.field("ACC_FORMAT", "acc_format")
    if kind > _WIDE:
        raise state.fault(f"has accumulators of the kind {kind}, which the simulator does not know")
    return _BITS[state.stream.product][kind]


def _check_range(state: State, sums: np.ndarray) -> None:
    """Sums that the accumulators hold. What larger ones become is not documented."""
    bits = accumulator_bits(state)
    most = 1 << bits - 1
    if sums.size and not (-most <= sums.min() and sums.max() < most):
        raise state.fault(f"sums to {max(sums.max(), sums.min(), key=abs)}, which accumulators of {bits} bits cannot hold")


def stay_inside(state: State) -> bool:
    """Whether the accumulators do not go out."""
    return bool(state.field("ACC_FORMAT", "acc_output"))


def _check_block(state: State) -> None:
    """Accumulators that stay inside are those of one block."""
    if any(extent > most for extent, most in zip(ofm_extents(state), block_of(state))):
        raise state.fault("leaves accumulators of more than one block inside")
