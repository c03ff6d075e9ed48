"""Scaling: products of accumulators and multipliers, shifted to the right with six kinds of rounding."""

from __future__ import annotations

from enum import Enum, auto

import numpy as np

from relaylang.backends.ethosu.simulator.state import State

#: Bits of the lower part of a value, which is multiplied apart: the product has more than 64 bits.
_LOW = 20
_MASK = (1 << _LOW) - 1
_LARGEST = 1 << 62
#: The first of two roundings removes this number of bits.
_FIRST = 31


class Rounding(Enum):
    """Kinds of rounding. The double ones round at bit 31 first, as TensorFlow Lite does."""

    DOUBLE_SYMMETRIC = auto()
    NATURAL = auto()  # halves up
    DOUBLE_ASYMMETRIC = auto()
    SYMMETRIC = auto()  # halves away from zero
    TRUNCATE_TO_ZERO = auto()
    TRUNCATE_TO_LOWER = auto()


#: The numbers of `round_mode` for each product.
_U55 = (Rounding.DOUBLE_SYMMETRIC, Rounding.TRUNCATE_TO_ZERO, Rounding.NATURAL)
_U85 = tuple(Rounding)


def rounding(state: State, name: str = "OFM_SCALE") -> Rounding:
    """The rounding of a scale. The U85 has it beside the scale, the U55 and U65 in the precision of IFM or OFM."""
    kinds = _U85 if state.is_u85 else _U55
    mode = state.field(name if state.is_u85 else f"{name[:3]}_PRECISION", "round_mode")
    if mode >= len(kinds):
        raise state.fault(f"has the unknown rounding {mode}")
    return kinds[mode]


def scaled(values: np.ndarray, multiplier: np.ndarray | int, shift: np.ndarray | int, kind: Rounding, raised: int = 0) -> np.ndarray:
    """`values * multiplier / 2^shift`, rounded. Values have up to 48 bits, multipliers 32, shifts 0 to 63.

    `raised` are the bits by which TensorFlow Lite raises values before a double rounding (`dbl_rnd`).
    """
    m, s = np.asarray(multiplier, np.int64), np.asarray(shift, np.int64)
    addend = _addend(values, s, kind, raised)
    high, low = (values >> _LOW) * m, (values & _MASK) * m
    # The product is high * 2^20 + low. Bits below 2^20 reach the result of a larger shift only as a carry.
    product = np.clip(high, -_LARGEST >> _LOW, _LARGEST >> _LOW)  # a larger one exceeds all limits behind a small shift
    product_high = high + (addend >> _LOW) + ((low + (addend & _MASK)) >> _LOW)
    return np.asarray(np.where(s > _LOW, product_high >> np.maximum(s - _LOW, 0), ((product << _LOW) + low + addend) >> s))


def _addend(values: np.ndarray, shift: np.ndarray, kind: Rounding, raised: int) -> np.ndarray:
    """The number that rounding adds to a product before the shift."""
    half = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), 0)
    negative = values < 0
    first = np.where(shift > _FIRST - raised, np.int64(1) << max(_FIRST - 1 - raised, 0), 0)
    match kind:
        case Rounding.NATURAL:
            return half
        case Rounding.SYMMETRIC:
            return half - (negative & (shift > 0))
        case Rounding.TRUNCATE_TO_LOWER:
            return np.zeros_like(shift)
        case Rounding.TRUNCATE_TO_ZERO:
            return np.where(negative & (shift > 0), half - 1 + half, 0)
        case Rounding.DOUBLE_ASYMMETRIC:
            return half + first
        case Rounding.DOUBLE_SYMMETRIC:
            return half + np.where(negative, -first, first)


def scaled_by(state: State, name: str, values: np.ndarray) -> np.ndarray:
    """Values scaled as a register says."""
    multiplier, shift = state.scale(name)
    if (multiplier, shift) == (1, 0):
        return values
    return scaled(values, multiplier, shift, rounding(state, name), state.field(name, "dbl_rnd"))
